"""Keys of rows, and the shard of each key."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from nandex import _nandex
from nandex._errors import InputError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    _Places = NDArray[np.intp]

#: The maximum number of shards: their numbers are sorted as 16 bits.
SHARDS_MAX = 1 << 16

DIGEST_BYTES = 16
_DIGEST = np.dtype("V16")


def keys_of(*columns: Any) -> NDArray[Any]:
    """Returns the keys of rows: the numbers of one column of integers, as uint64; else a digest of 16 bytes, of dtype
    `V16`.

    A column is a numpy or Arrow array, or a list; with several columns, rows are equal if all are equal. The chance
    that two different rows of 10^10 share a digest is below 10^-18.
    """
    if not columns:
        raise InputError("keys of no column: name at least one")
    if len(columns) == 1:
        numbers = _integers(columns[0])
        return _digests(columns[0]) if numbers is None else numbers
    parts = [keys_of(column) for column in columns]
    counts = {len(part) for part in parts}
    if len(counts) > 1:
        raise InputError(f"columns of {sorted(counts)} rows as one key: give columns of one length")
    rows = [np.ascontiguousarray(part).view(np.uint8).reshape(len(part), part.dtype.itemsize) for part in parts]
    return _digests(np.hstack(rows))


def numbers_of(*columns: Any) -> NDArray[np.uint64]:
    """Returns the numbers of rows from columns that identify them: those of one column of integers, else 64 bits of a
    digest.

    Two rows that share a number by chance matter only if their keys are equal too.
    """
    keys = keys_of(*columns)
    return keys if keys.dtype == np.uint64 else _first_words(keys)


def split(keys: NDArray[Any], shards: int) -> list[_Places]:
    """Returns the positions of the keys of each shard, in their order. For a given number of shards, a key always has
    the same shard."""
    shards = _nandex._integer(shards, "shards", 1, SHARDS_MAX)
    numbers = keys if keys.dtype == np.uint64 else _first_words(keys)
    # Consecutive numbers and multiples of powers of two become as good as random: the finalizer of SplitMix64.
    mixed = (numbers ^ (numbers >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    of = ((mixed >> np.uint64(32)) * np.uint64(shards)) >> np.uint64(32)
    of = of.astype(np.uint8 if shards <= 256 else np.uint16)
    order = np.argsort(of, kind="stable")
    ends = np.cumsum(np.bincount(of, minlength=shards))
    return np.split(order, ends[:-1])


def _first_words(keys: NDArray[Any]) -> NDArray[np.uint64]:
    return np.ascontiguousarray(keys).view(np.uint64).reshape(len(keys), -1)[:, 0]


def _integers(column: Any) -> NDArray[np.uint64] | None:
    """Returns a column of integers as uint64, negative ones as two's complement; None if it has no integers."""
    if hasattr(column, "__arrow_c_array__") or hasattr(column, "__arrow_c_stream__"):
        import pyarrow as pa

        is_arrow = isinstance(column, (pa.Array, pa.ChunkedArray))
        if not is_arrow or not pa.types.is_integer(column.type) or column.null_count:
            return None
        column = column.to_numpy()
    elif not isinstance(column, np.ndarray):
        if not column or not all(isinstance(key, (int, np.integer)) for key in column):
            return None
        column = np.array([int(key) & (1 << 64) - 1 for key in column], np.uint64)
    if column.dtype.kind not in "ui" or column.ndim != 1:
        return None
    return np.ascontiguousarray(column).astype(np.uint64, copy=False)


def _digests(column: Any) -> NDArray[Any]:
    return _nandex._digests(column).view(_DIGEST)
