"""The array types of the columns."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:  # numpy.typing writes itself a documentation when it is loaded
    import numpy as np
    import numpy.typing as npt

IntArray: TypeAlias = "npt.NDArray[np.int64]"
"""One int64 a row. Addresses of 2**63 and above (XPU) stand as their two's complement; see `address_text`."""

Int32Array: TypeAlias = "npt.NDArray[np.int32]"
StackArray: TypeAlias = Int32Array
UInt8Array: TypeAlias = "npt.NDArray[np.uint8]"
BoolArray: TypeAlias = "npt.NDArray[np.bool_]"
FloatArray: TypeAlias = "npt.NDArray[np.float64]"


def address_text(address: int) -> str:
    """An address as debuggers print it, undoing the two's complement of the columns."""
    return f"0x{int(address) & 0xFFFF_FFFF_FFFF_FFFF:x}"
