"""The layout of numpy and Arrow arrays in memory: the bytes of their elements, for batched calls.

The module is for `nandex._nandex`. Copied are 32-bit offsets, the chunks of a chunked array, dictionaries, slices with a
step, numbers that are not uint64, and the elements of lists and of columns of pandas and polars.
"""

from __future__ import annotations

import array as _array
from collections.abc import Iterable, Mapping
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from nandex._errors import InputError, InputTypeError
from nandex._frames import columns_of, in_form, is_frame, library_of, numbers_in_form, plain

# Form, length, bytes, bytes of an element, whether zeros at its end are stripped, offsets.
Taken = tuple[str, int, NDArray[np.uint8], int, bool, "NDArray[np.int64] | None"]

# Form, and elements that are read one by one.
Objects = tuple[str, list[Any]]

# None for elements of any size, "u64" for numbers of 64 bits, else the bytes of each, which may be 0.
_Fits = int | Literal["u64"] | None

_EMPTY = np.zeros(0, np.uint8)


def take(given: Any, what: str, fits: _Fits) -> Taken | Objects | None:
    """Returns the bytes of a batch, or its elements to be read one by one; None if it is to be iterated over."""
    if isinstance(given, (str, bytes, bytearray, int, np.generic)):
        raise InputTypeError(
            f"one {what} of the type {type(given).__name__} where a batch is expected: put it into a list"
        )
    if isinstance(given, np.ndarray):
        return _of_numpy(given, what, fits, "numpy")
    library = library_of(given)
    if library in ("pandas", "polars"):
        column = plain(given, what)
        if isinstance(column, np.ndarray):
            return _of_numpy(column, what, fits, library)
        return _of_numbers(column, what, library) if fits == "u64" else (library, column)
    if hasattr(given, "__arrow_c_array__") or hasattr(given, "__arrow_c_stream__"):
        return _of_arrow(given, what, fits)
    return _of_numbers(given, what, "list") if fits == "u64" else None


def pairs(given: Any) -> tuple[Any, Any]:
    """Returns keys and values of a mapping, of a frame or Arrow table of two columns, or of an iterable of pairs."""
    if hasattr(given, "num_columns") and hasattr(given, "column"):
        if given.num_columns != 2:
            raise InputError(f"{given.num_columns} columns: give keys and values, in two columns")
        return given.column(0), given.column(1)
    if is_frame(given):
        return columns_of(given)
    if library_of(given) == "pandas" and type(given).__name__ == "Series":
        return given.index, given
    if isinstance(given, Mapping):
        return _split(given.items())
    if hasattr(given, "keys"):
        keys = list(given.keys())
        return keys, [given[key] for key in keys]
    try:
        items = iter(given)
    except TypeError as error:
        name = type(given).__name__
        raise InputTypeError(f"pairs of the type {name}: give keys and values, a mapping, or pairs ({error})") from error
    return _split(items)


def _split(items: Iterable[Any]) -> tuple[list[Any], list[Any]]:
    keys: list[Any] = []
    values: list[Any] = []
    for index, item in enumerate(items):
        try:
            key, value = item
        except (TypeError, ValueError) as error:
            raise InputTypeError(f"element {index} is no pair of a key and a value: {error}") from error
        keys.append(key)
        values.append(value)
    return keys, values


def _of_numpy(given: NDArray[Any], what: str, fits: _Fits, form: str) -> Taken | Objects:
    if given.ndim == 1 and given.dtype.kind in "OUT":
        elements = given.tolist()
        return _of_numbers(elements, what, form) if fits == "u64" else (form, elements)
    rows = given.ndim == 2 and given.dtype == np.uint8
    if given.ndim != 1 and not rows:
        raise InputError(f"an array of {given.ndim} dimensions as {what}s: give one, or two of uint8 with a row each")
    if fits == "u64":
        given = _as_u64(given, what)
    width = given.shape[1] if rows else given.dtype.itemsize
    _check_dtype(given, what, fits, rows)
    # Slices with a step are copied.
    given = np.ascontiguousarray(given)
    if isinstance(fits, int) and width != fits:
        raise InputError(f"an array of {what}s of {width} bytes: the table has {what}s of {fits} bytes")
    count = len(given)
    packed = given.reshape(-1).view(np.uint8) if given.size and width else _EMPTY
    return form, count, packed, width, given.dtype.kind == "S" and fits is None, None


def _as_u64(given: NDArray[Any], what: str) -> NDArray[Any]:
    """Returns whole numbers of any width as uint64; only others than uint64 are copied."""
    if given.ndim != 1 or given.dtype.kind not in "iu":
        raise InputTypeError(f"an array of {given.dtype} as {what}s: the table has uint64; give array.astype(np.uint64)")
    if given.dtype.kind == "i" and given.size and given.min() < 0:
        raise InputError(f"a {what} {given.min()}: the table has numbers from 0 to 2**64 - 1")
    return given.astype("<u8", copy=False)


def _check_dtype(given: NDArray[Any], what: str, fits: _Fits, rows: bool) -> None:
    dtype = given.dtype
    if fits == "u64" or rows or dtype.kind in "SV":
        return
    if dtype.kind not in "ui":
        raise InputTypeError(f"an array of {dtype} as {what}s: give bytes (S or V), uint8 in rows, or integers")
    if dtype.byteorder == ">":
        raise InputTypeError(f"a big-endian array of {dtype} as {what}s: give array.astype(array.dtype.newbyteorder('<'))")


def _of_numbers(given: Any, what: str, form: str) -> Taken:
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
        raise InputTypeError(f"a {what} that is not an int: the table has uint64 ({error})") from error
    packed = np.frombuffer(numbers, np.uint8) if len(numbers) else _EMPTY
    return form, len(numbers), packed, 8, False, None


def _of_arrow(given: Any, what: str, fits: _Fits) -> Taken:
    import pyarrow as pa

    column = given
    if hasattr(given, "num_columns"):
        raise InputTypeError(f"a table of {given.num_columns} columns as {what}s: give one of them, such as table.column(0)")
    if not isinstance(column, (pa.Array, pa.ChunkedArray)):
        column = pa.array(given) if hasattr(given, "__arrow_c_array__") else pa.chunked_array(given)
    if isinstance(column, pa.ChunkedArray):
        column = column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
    if isinstance(column, pa.ChunkedArray):
        column = pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
    if column.null_count:
        raise InputError(f"an Arrow array with {column.null_count} nulls as {what}s: give array.drop_null()")
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
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

    if fits == "u64" and column.type != pa.uint64():
        column = _cast_to_u64(column, what)
    kind, count = column.type, len(column)
    width = kind.bit_width // 8
    if isinstance(fits, int) and width != fits:
        raise InputError(f"an Arrow array of {what}s of {width} bytes: the table has {what}s of {fits} bytes")
    data = column.buffers()[1]
    packed = _EMPTY
    if count and width:
        packed = np.frombuffer(data, np.uint8, count * width, column.offset * width)
    return "arrow", count, packed, width, False, None


def _cast_to_u64(column: Any, what: str) -> Any:
    import pyarrow as pa

    if not pa.types.is_integer(column.type):
        raise InputTypeError(f"an Arrow array of {column.type} as {what}s: the table has uint64; give array.cast('uint64')")
    try:
        return column.cast(pa.uint64())
    except pa.ArrowInvalid as error:
        raise InputError(f"a {what} below 0: the table has numbers from 0 to 2**64 - 1 ({error})") from error


def fixed_answers(
    form: str, given: Any, values: NDArray[Any], found: NDArray[np.bool_], width: int | None, default: Any
) -> Any:
    """Returns values of one width in the form of the keys `given`; `width` is None for 64-bit numbers.

    For a list: a list, with the default for a missing key. For numpy: the values, and which keys were found. For Arrow:
    an array with nulls. For pandas and polars: a Series.
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
    if width is None and form != "list":
        return numbers_in_form(form, given, values, found, default)
    raw = values.tolist() if width is None else [bytes(row) for row in values.reshape(count, width)]
    answers = [value if is_there else default for value, is_there in zip(raw, found.tolist(), strict=True)]
    return answers if form == "list" else in_form(form, given, answers)


def spans_answer(
    data: NDArray[np.uint8], offsets: NDArray[np.int64], found: NDArray[np.bool_], is_text: bool
) -> Any:
    """Returns values of any size as an Arrow array, with a null for a missing key."""
    import pyarrow as pa

    buffers = [_bitmap(found), pa.py_buffer(offsets), pa.py_buffer(data)]
    answer = pa.Array.from_buffers(pa.large_binary(), len(found), buffers)
    return answer.cast(pa.large_string()) if is_text else answer


def _bitmap(found: NDArray[np.bool_]) -> Any:
    import pyarrow as pa

    return None if found.all() else pa.py_buffer(np.packbits(found, bitorder="little"))
