"""Where an attribute that keeps memory is filled is told from the methods of its class, whoever runs them."""

from __future__ import annotations

import functools
import gc
import inspect
from collections import deque

import pytest

torch = pytest.importorskip("torch")

from oomscope.recording.census.walk import take_census  # noqa: E402

pytestmark = pytest.mark.torch

SIZE = 1 << 18


def kept(_=None):
    return torch.zeros(SIZE)


def decorated(function):
    @functools.wraps(function)
    def call(*args):
        return function(*args)

    return call


class Appends:
    def __init__(self):
        self.items = []
        self.seen = set()

    def fill(self):
        self.items.append(kept())  # here


class Adds(Appends):
    def __init__(self):
        super().__init__()
        self.items = set()

    def fill(self):
        self.items.add(kept())  # here


class Inherits(Appends):
    def reset(self):
        self.items = list()  # noqa: C408 - what some write


class Decorated:
    items = ()

    def __init__(self):
        self.items: list[object] = []

    @decorated
    def fill(self):
        self.items += [kept()]  # here


class Subscripts:
    def __init__(self):
        self.items = {}
        self.other = {}

    def fill(self):
        self.items["a"] = kept()  # here

    def reads(self):
        self.other[self.items["a"]] = 1
        print(self.items.get("a"), len(self.items))
        del self.items["a"]


class OfItems:
    def __init__(self):
        self.items = dict(a=1)  # noqa: C408 - what some write

    def fill(self):
        self.items.setdefault("b", []).append(kept())  # here


class Nested:
    def __init__(self):
        self.items = deque(maxlen=8)

    def fill(self):
        def later(*values):
            self.items.extend(
                values,
            )

        later(kept())


class Assigns:
    items = None

    def fill(self):
        self.items, self.rest = kept(), None  # here

    def empty(self):
        self.items = None


class Resets:
    def __init__(self):
        self.items = self.seen = []
        self.rest, self.items = None, None
        self.a, self.b, self.c, self.items = {}, (), set(), []

    def reset(self):
        self.items, self.seen = [], deque(maxlen=3)
        self.seen, self.items = list(), []  # noqa: C408 - what some write

    def fill(self):
        self.seen.append(1)
        self.items.append(kept())  # here


class TakesApart:
    def fill(self):
        self.size, self.items = (SIZE, [kept()])  # here


LIBRARY = {}
exec(
    compile(
        """
class Metric:
    def __init__(self):
        self.target = []

    def update(self, value):
        self.target.append(value)

    __call__ = update
""",
        "/opt/env/lib/python3.11/site-packages/metrics/metric.py",
        "exec",
    ),
    LIBRARY,
)


class Updates:
    def __init__(self):
        self.items = LIBRARY["Metric"]()

    def fill(self):
        self.items.update(kept())  # here

    def read(self):
        return self.items.target


class Calls(Updates):
    def fill(self):
        self.items(kept())  # here


def lines_of(rows, name):
    row = next(row for row in rows if f"owner.{name}" in (row["holder"] or ""))
    return [(one["filename"], one["line"], one["name"]) for one in row["stores"]]


def line_with(function, text):
    lines, first = inspect.getsourcelines(function)
    return next(first + at for at, line in enumerate(lines) if text in line)


KINDS = [Appends, Adds, Inherits, Decorated, Subscripts, OfItems, Assigns, Resets, TakesApart]


@pytest.mark.parametrize("kind", KINDS)
def test_the_line_of_another_method_that_fills_it(kind):
    def serve(owner):
        owner.fill()
        gc.collect()
        return take_census(torch, device_type="cpu").holders

    found = lines_of(serve(kind()), "items")
    fill = inspect.unwrap(kind.fill)
    if kind is Adds:
        assert found.pop() == (__file__, line_with(Appends.fill, "# here"), "fill")
    assert found == [(__file__, line_with(fill, "# here"), "fill")]


@pytest.mark.parametrize("kind", [Updates, Calls])
def test_an_object_of_a_library_is_filled_where_the_reader_calls_it(kind):
    def serve(owner):
        owner.fill()
        return take_census(torch, device_type="cpu").holders

    found = lines_of(serve(kind()), "items.target")
    made = (__file__, line_with(Updates.__init__, "Metric"), "__init__")
    inherited = [(__file__, line_with(Updates.fill, "# here"), "fill")] if kind is Calls else []
    assert set(found) == {made, *inherited, (__file__, line_with(kind.fill, "# here"), "fill")}


def test_a_function_within_a_method_and_a_call_of_several_lines():
    def serve(owner):
        owner.fill()
        return take_census(torch, device_type="cpu").holders

    rows = serve(Nested())
    assert lines_of(rows, "items") == [(__file__, line_with(Nested.fill, "items.extend"), "later")]


def test_a_variable_is_no_attribute_and_a_library_fills_nothing_of_ours():
    def serve(items, layer):
        items.append(kept())
        layer.weights = kept()
        return take_census(torch, device_type="cpu").holders

    rows = serve([], torch.nn.Module())
    row = next(row for row in rows if (row["holder"] or "").endswith("serve: items"))
    assert row["stores"] == []
    assert all(row["stores"] == [] for row in rows if "weights" in (row["holder"] or ""))


def test_nothing_of_the_program_is_executed():
    class Owner:
        def __init__(self):
            object.__setattr__(self, "items", [])

        def __getattribute__(self, name):
            raise AssertionError(name)

        @property
        def filled(self):
            raise AssertionError

        def fill(self):
            self.items.append(kept())  # here

    def serve(owner):
        object.__getattribute__(owner, "__dict__")["items"].append(kept())
        return take_census(torch, device_type="cpu")

    found = serve(Owner())
    assert not [note for note in found.walk["notes"] if "AssertionError" in note]
    assert lines_of(found.holders, "items") == [(__file__, line_with(Owner.fill, "# here"), "fill")]
