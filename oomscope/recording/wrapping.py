"""Decorating every kind of function so that it stays the kind it is."""

from __future__ import annotations

import functools
import inspect
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Generator
from contextlib import AbstractContextManager
from typing import Any

Opener = Callable[[], AbstractContextManager[Any]]


def wrap(function: Any, opened: Opener) -> Any:
    """`function`, each call of it inside a context of its own.

    Raises:
        TypeError: this is no function.
    """
    if isinstance(function, (staticmethod, classmethod)):
        return type(function)(wrap(function.__func__, opened))
    if isinstance(function, type) or not callable(function):
        raise TypeError(f"record decorates functions and methods, not {function!r}")
    if inspect.isasyncgenfunction(function):
        return _wrap_async_generator(function, opened)
    if inspect.iscoroutinefunction(function):
        return _wrap_coroutine(function, opened)
    if inspect.isgeneratorfunction(function):
        return _wrap_generator(function, opened)

    @functools.wraps(function)
    def recorded(*args: Any, **kwargs: Any) -> Any:
        with opened():
            return function(*args, **kwargs)

    return recorded


def _wrap_coroutine(function: Any, opened: Opener) -> Any:
    @functools.wraps(function)
    async def recorded(*args: Any, **kwargs: Any) -> Any:
        with opened():
            return await function(*args, **kwargs)

    return recorded


def _wrap_generator(function: Any, opened: Opener) -> Any:
    @functools.wraps(function)
    def recorded(*args: Any, **kwargs: Any) -> Generator[Any, Any, Any]:
        with opened():
            return (yield from function(*args, **kwargs))

    return recorded


def _wrap_async_generator(function: Any, opened: Opener) -> Any:
    @functools.wraps(function)
    async def recorded(*args: Any, **kwargs: Any) -> AsyncIterator[Any]:
        with opened():
            inner: AsyncGenerator[Any, Any] = function(*args, **kwargs)
            following = inner.__anext__()
            while True:
                try:
                    item = await following
                except StopAsyncIteration:
                    return
                try:
                    sent = yield item
                except GeneratorExit:
                    await inner.aclose()
                    raise
                except BaseException as error:
                    following = inner.athrow(error)
                else:
                    following = inner.asend(sent)

    return recorded
