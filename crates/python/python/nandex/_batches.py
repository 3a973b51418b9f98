"""The layout of numpy and Arrow arrays in memory: the bytes of their elements, for batched calls.

The module is for `nandex._nandex`. Only 32-bit offsets, the chunks of a chunked array, and the numbers of a list are
copied.
"""

from __future__ import annotations

import array as _array
from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from nandex._errors import InputError, InputTypeError

# Form, length, bytes, bytes of an element, whether zeros at its end are stripped, offsets.
Taken = tuple[str, int, NDArray[np.uint8], int, bool, "NDArray[np.int64] | None"]

# None for elements of any size, "u64" for numbers of 64 bits, else the bytes of each, which may be 0.
_Fits = int | Literal["u64"] | None

_EMPTY = np.zeros(0, np.uint8)


def take(given: Any, what: str, fits: _Fits) -> Taken | None:
    """Returns the bytes of a batch; None if it is no array, and its elements must be read one by one."""
    if isinstance(given, (str, bytes, bytearray, int)):
        raise InputTypeError(
            f"one {what} of the type {type(given).__name__} where a batch is expected: put it into a list"
        )
    if isinstance(given, np.ndarray):
        return _of_numpy(given, what, fits)
    if hasattr(given, "__arrow_c_array__") or hasattr(given, "__arrow_c_stream__"):
        return _of_arrow(given, what, fits)
    return _of_numbers(given, what) if fits == "u64" else None


def pairs(given: Any) -> tuple[Any, Any]:
    """Returns keys and values of a mapping, of a RecordBatch or table of two columns, or of an iterable of pairs."""
    if hasattr(given, "num_columns") and hasattr(given, "column"):
        if given.num_columns != 2:
            raise InputError(f"{given.num_columns} columns: give keys and values, in two columns")
        return given.column(0), given.column(1)
    if isinstance(given, Mapping):
        return list(given.keys()), list(given.values())
    keys: list[Any] = []
    values: list[Any] = []
    for key, value in given:
        keys.append(key)
        values.append(value)
    return keys, values


def _of_numpy(given: NDArray[Any], what: str, fits: _Fits) -> Taken:
    kind, width = given.dtype.kind, given.dtype.itemsize
    if kind == "O":
        raise InputTypeError(
            f"an array of objects as {what}s: give a list of bytes or str, or an array of a dtype such as S or u8"
        )
    if kind in "UT":
        raise InputTypeError(f"an array of {given.dtype} as {what}s: give np.char.encode(array, 'utf-8') or a list")
    rows = given.ndim == 2 and given.dtype == np.uint8
    if given.ndim != 1 and not rows:
        raise InputError(f"an array of {given.ndim} dimensions as {what}s: give one, or two of uint8 with a row each")
    if rows:
        width = given.shape[1]
    _check_dtype(given, what, fits, rows)
    if not given.flags.c_contiguous:
        raise InputError(f"a non-contiguous array as {what}s: give np.ascontiguousarray(array)")
    if isinstance(fits, int) and width != fits:
        raise InputError(f"an array of {what}s of {width} bytes: the table has {what}s of {fits} bytes")
    count = len(given)
    packed = given.reshape(-1).view(np.uint8) if given.size and width else _EMPTY
    return "numpy", count, packed, width, kind == "S" and fits is None, None


def _check_dtype(given: NDArray[Any], what: str, fits: _Fits, rows: bool) -> None:
    dtype = given.dtype
    if fits == "u64" and dtype != np.dtype("<u8"):
        raise InputTypeError(f"an array of {dtype} as {what}s: the table has uint64; give array.astype(np.uint64)")
    if fits == "u64" or rows or dtype.kind in "SV":
        return
    if dtype.kind not in "ui":
        raise InputTypeError(f"an array of {dtype} as {what}s: give bytes (S or V), uint8 in rows, or integers")
    if dtype.byteorder == ">":
        raise InputTypeError(f"a big-endian array of {dtype} as {what}s: give array.astype(array.dtype.newbyteorder('<'))")


def _of_numbers(given: Any, what: str) -> Taken:
    try:
        given = given if isinstance(given, (list, tuple)) else list(given)
        kinds = set(map(type, given))
        if bool in kinds or np.bool_ in kinds:
            raise InputTypeError(f"a {what} that is a bool: the table has uint64")
        numbers = _array.array("Q", given)
    except OverflowError as error:
        raise InputError(f"a {what} that is not from 0 to 2**64 - 1: the table has uint64 ({error})") from error
    except InputTypeError:
        raise
    except TypeError as error:
        raise InputTypeError(f"a {what} that is no int: the table has uint64 ({error})") from error
    packed = np.frombuffer(numbers, np.uint8) if len(numbers) else _EMPTY
    return "list", len(numbers), packed, 8, False, None


def _of_arrow(given: Any, what: str, fits: _Fits) -> Taken:
    import pyarrow as pa

    column = given
    if not isinstance(column, (pa.Array, pa.ChunkedArray)):
        column = pa.array(given) if hasattr(given, "__arrow_c_array__") else pa.chunked_array(given)
    if isinstance(column, pa.ChunkedArray):
        column = column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
    if isinstance(column, pa.ChunkedArray):
        column = pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
    if column.null_count:
        raise InputError(f"an Arrow array with {column.null_count} nulls as {what}s: give array.drop_null()")
    kind = column.type
    if pa.types.is_string_view(kind) or pa.types.is_binary_view(kind):
        column = column.cast(pa.large_binary())
        kind = column.type
    if fits is None and (pa.types.is_binary(kind) or pa.types.is_string(kind)):
        return _of_spans(column, np.dtype(np.int32))
    if fits is None and (pa.types.is_large_binary(kind) or pa.types.is_large_string(kind)):
        return _of_spans(column, np.dtype(np.int64))
    if pa.types.is_fixed_size_binary(kind) or pa.types.is_integer(kind):
        return _of_fixed(column, what, fits)
    expected = f"fixed_size_binary({fits})" if isinstance(fits, int) else "uint64" if fits else "binary or string"
    raise InputTypeError(f"an Arrow array of {kind} as {what}s: give {expected}")


def _of_spans(column: Any, dtype: np.dtype[Any]) -> Taken:
    _, offsets, data = column.buffers()
    count = len(column)
    if count == 0:
        return "arrow", 0, _EMPTY, 0, False, np.zeros(1, np.int64)
    places = np.frombuffer(offsets, dtype, count + 1, column.offset * dtype.itemsize)
    packed = np.frombuffer(data, np.uint8) if data is not None and data.size else _EMPTY
    return "arrow", count, packed, 0, False, places.astype(np.int64, copy=False)


def _of_fixed(column: Any, what: str, fits: _Fits) -> Taken:
    import pyarrow as pa

    kind, count = column.type, len(column)
    if fits == "u64" and kind != pa.uint64():
        raise InputTypeError(f"an Arrow array of {kind} as {what}s: the table has uint64; give array.cast('uint64')")
    width = kind.bit_width // 8
    if isinstance(fits, int) and width != fits:
        raise InputError(f"an Arrow array of {what}s of {width} bytes: the table has {what}s of {fits} bytes")
    data = column.buffers()[1]
    packed = _EMPTY
    if count and width:
        packed = np.frombuffer(data, np.uint8, count * width, column.offset * width)
    return "arrow", count, packed, width, False, None


def fixed_answers(form: str, values: NDArray[Any], found: NDArray[np.bool_], width: int | None, default: Any) -> Any:
    """Returns values of one width in the form of the keys; `width` is None for 64-bit numbers.

    For a list: a list, with the default for a missing key. For numpy: the values, and which keys were found. For Arrow:
    an array with nulls.
    """
    count = len(found)
    if form == "arrow":
        import pyarrow as pa

        kind = pa.uint64() if width is None else pa.binary(width)
        return pa.Array.from_buffers(kind, count, [_bitmap(found), pa.py_buffer(values)])
    if form == "numpy" and width:
        return values.view(f"V{width}"), found
    if form == "numpy":
        return (values if width is None else values.reshape(count, 0)), found
    raw = values.tolist() if width is None else [bytes(row) for row in values.reshape(count, width)]
    return [value if is_there else default for value, is_there in zip(raw, found.tolist(), strict=True)]


def spans_answer(data: NDArray[np.uint8], offsets: NDArray[np.int64], found: NDArray[np.bool_]) -> Any:
    """Returns values of any size as an Arrow array, with a null for a missing key."""
    import pyarrow as pa

    buffers = [_bitmap(found), pa.py_buffer(offsets), pa.py_buffer(data)]
    return pa.Array.from_buffers(pa.large_binary(), len(found), buffers)


def _bitmap(found: NDArray[np.bool_]) -> Any:
    import pyarrow as pa

    return None if found.all() else pa.py_buffer(np.packbits(found, bitorder="little"))
