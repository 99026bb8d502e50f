"""Storages: the memory behind tensors, read without a CUDA call and without waking anything lazy."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from oomscope.recording.census.kinds import is_a

Key = tuple[int, int]  # device index, address


@dataclass(slots=True, eq=False)
class Storage:
    """One storage on a device: a block of the allocator, or the front of one."""

    device: int
    address: int
    bytes: int
    dtype: str
    shape: list[int] | None
    category: str = "unknown"
    name: str | None = None
    saved_for: str | None = None
    visible: int | None = None  # bytes of it that tensors show which code can reach, where that is not all
    unread: str | None = None  # the variable that alone keeps it and is not read again
    holders: list[str] = field(default_factory=list)


class TensorReader:
    """Asks tensors for what they are; an object that answers strangely is passed over."""

    def __init__(self, torch: Any, device_type: str) -> None:
        self._tensor_type = torch.Tensor
        self._device_type = device_type
        # A copy-on-write storage is copied by asking for its address.
        self._is_lazy_copy = getattr(torch._C, "_is_cow_tensor", lambda _: False)
        self.storages: dict[Key, Storage] = {}
        self.failures = 0

    def is_tensor(self, item: Any) -> bool:
        """Whether this is a tensor, of whatever subclass."""
        return is_a(item, self._tensor_type)

    def is_tensor_type(self, kind: type) -> bool:
        """Whether instances of this class are tensors."""
        return issubclass(kind, self._tensor_type)

    def key(self, tensor: Any) -> Key | None:
        """Where the tensor's storage lies; registers it in `storages`. None where it is not on this kind of device."""
        try:
            device = tensor.device
            if device.type != self._device_type or _is_fake(tensor) or self._is_lazy_copy(tensor):
                return None
            storage = tensor.untyped_storage()
            address = storage.data_ptr()
            if not address:
                return None
            key = (device.index or 0, address)
            if key not in self.storages:
                self.storages[key] = Storage(
                    device=key[0],
                    address=address,
                    bytes=storage.nbytes(),
                    dtype=str(tensor.dtype).removeprefix("torch."),
                    shape=[int(length) for length in tensor.shape],
                )
            return key
        except Exception:
            self.failures += 1
            return None

    def parts(self, tensor: Any) -> list[Any]:
        """The tensors that hold the data: the tensor itself, or a wrapper's inner ones (DTensor, quantised weights)."""
        try:
            local = getattr(tensor, "__dict__", {}).get("_local_tensor")
            if local is not None:
                return self.parts(local)
            flatten = getattr(type(tensor), "__tensor_flatten__", None)
            if flatten is None:
                return [tensor]
            names, _ = flatten(tensor)
            return [part for name in names for part in self.parts(getattr(tensor, name))]
        except Exception:
            self.failures += 1
            return []

    def gradient(self, tensor: Any) -> Any:
        """A leaf's gradient or None; a tensor that is no leaf would warn when asked."""
        return tensor.grad if tensor.is_leaf else None


def _is_fake(tensor: Any) -> bool:
    return type(tensor).__module__.startswith(("torch._subclasses", "torch._functorch"))


@contextlib.contextmanager
def undisturbed(torch: Any) -> Iterator[None]:
    """Tensors answer for themselves inside: no ``__torch_function__`` is run and no warning shown."""
    with warnings.catch_warnings(), torch._C.DisableTorchFunction():
        warnings.simplefilter("ignore")
        yield
