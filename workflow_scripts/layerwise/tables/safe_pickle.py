"""Pickles of plain containers, numbers and numeric numpy arrays; a pickle that asks for anything else is refused unread.

The one place where this project opens a pickle: the study released its metric values in that form. Nothing named in the
file is imported. The handful of names that numpy writes for arrays stand for functions of this module, which build the
array from its bytes, so neither numpy's nor any other package's code is run with arguments from the file.
"""

import collections
import os
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from layerwise.errors import FileError

MOST_BYTES = 64 * 2**20  # the study's files have a few kilobytes

_KINDS = "biuf"


class _Refused(Exception):
    """Names what a pickle asked for."""


class _DType:
    """Type and byte order of an array's elements; what else a pickled dtype may say is not taken over."""

    __slots__ = ("dtype",)

    def __init__(self, code: str) -> None:
        try:
            self.dtype = np.dtype(code)
        except (TypeError, ValueError) as error:
            raise _Refused(f"an array of {code!r}") from error
        if self.dtype.kind not in _KINDS:
            raise _Refused(f"an array of {self.dtype.name}")

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        order = state[1] if len(state) == 8 else None
        if order not in ("<", ">", "|", "=") or any(part is not None for part in state[2:5]):
            raise _Refused("an array of structured elements")
        self.dtype = self.dtype.newbyteorder(order)


class _Array:
    """An array on its way: numpy writes an empty one first and its contents afterwards."""

    __slots__ = ("values",)

    def __init__(self) -> None:
        self.values: NDArray[Any] = np.empty(0)

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        _, shape, dtype, fortran, raw = state
        self.values = _from_bytes(raw, dtype, shape, "F" if fortran else "C")


class _Name:
    """A name that numpy writes: it can be called, and a pickle can set nothing on it."""

    __slots__ = ("_function",)

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function

    def __call__(self, *arguments: object) -> object:
        return self._function(*arguments)

    def __setstate__(self, state: object) -> None:
        raise _Refused("a change of numpy")


def _from_bytes(raw: object, dtype: object, shape: object, order: str) -> NDArray[Any]:
    if not isinstance(dtype, _DType) or not isinstance(raw, bytes | bytearray):
        raise _Refused("an array of objects")
    if not isinstance(shape, tuple) or order not in ("C", "F"):
        raise _Refused("an array of no shape")
    return np.frombuffer(bytes(raw), dtype.dtype).reshape(shape, order="C" if order == "C" else "F")


def _buffer(raw: object, dtype: object, shape: object, order: str) -> _Array:
    made = _Array()
    made.values = _from_bytes(raw, dtype, shape, order)
    return made


def _reconstruct(subtype: object, shape: object, code: object) -> _Array:
    if subtype is not _NDARRAY or shape != (0,):
        raise _Refused("an array of another class")
    return _Array()


def _dtype(code: object, *_align_and_copy: object) -> _DType:
    if not isinstance(code, str):
        raise _Refused("an array of unknown elements")
    return _DType(code)


def _scalar(dtype: object, raw: object) -> float:
    return float(_from_bytes(raw, dtype, (), "C"))


def _not_called(*_arguments: object) -> None:
    raise _Refused("numpy.ndarray with arguments")


_NDARRAY = _Name(_not_called)
_NAMES: dict[tuple[str, str], object] = {
    ("numpy", "ndarray"): _NDARRAY,
    ("numpy", "dtype"): _Name(_dtype),
    ("collections", "OrderedDict"): collections.OrderedDict,
    **{("builtins", kind.__name__): kind for kind in (dict, list, tuple, set, frozenset)},
    **{(f"numpy.{core}.multiarray", "_reconstruct"): _Name(_reconstruct) for core in ("core", "_core")},
    **{(f"numpy.{core}.multiarray", "scalar"): _Name(_scalar) for core in ("core", "_core")},
    **{(f"numpy.{core}.numeric", "_frombuffer"): _Name(_buffer) for core in ("core", "_core")},
}


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str, /) -> object:
        """Return what an allowed name stands for; never import."""
        try:
            return _NAMES[module, name]
        except KeyError:
            raise _Refused(ascii(f"{module}.{name}"[:100])) from None


def read_curves(path: str | os.PathLike[str]) -> dict[str, NDArray[np.float64]]:
    """Read a pickled mapping of names to one number per layer.

    Args:
        path: a pickle of ``{normalization: list or array of L + 1 numbers}``, any protocol from 3 on.

    Returns:
        Name -> (L + 1,) float64.

    Raises:
        FileError: the pickle asks for anything but plain containers and numeric arrays (nothing of it is run), is
            damaged or larger than ``MOST_BYTES``, or holds something else.
    """
    path = Path(path)
    if path.stat().st_size > MOST_BYTES:
        raise FileError(f"{path} has more than {MOST_BYTES} bytes, which no file of per-layer values has; remove it.")
    try:
        with path.open("rb") as file:
            content = _Unpickler(file).load()
    except _Refused as refused:
        raise FileError(f"{path} asks for {refused}, which no file of numbers needs; it was not run: remove it.") from None
    except Exception as error:  # a damaged pickle can fail in any way
        raise FileError(f"{path} is a damaged pickle ({error}); fetch it again.") from error
    if not isinstance(content, dict) or not all(isinstance(name, str) for name in content):
        raise FileError(f"{path} holds no mapping of normalizations to values per layer; remove it.")
    return {name: _curve(values, f"{path}, {name!r}") for name, values in content.items()}


def _curve(values: object, where: str) -> NDArray[np.float64]:
    flat = values.values if isinstance(values, _Array) else values
    if isinstance(flat, list | tuple):
        numbers = [part.values.item() if isinstance(part, _Array) and part.values.size == 1 else part for part in flat]
        if any(isinstance(number, bool) or not isinstance(number, int | float) for number in numbers):
            raise FileError(f"{where} holds something else than one number per layer; remove the file.")
        flat = np.array(numbers, dtype=np.float64)
    if not isinstance(flat, np.ndarray) or flat.ndim != 1 or not flat.size:
        raise FileError(f"{where} is not one number per layer; remove the file.")
    return flat.astype(np.float64)
