"""Shards of a set of keys that is spread over processes and machines: each has a share of the keys, in a volume of its own.

`nandex.ray` is made of these, and the workers of other engines can use them as they are. A batch of keys is split by
`split`, each part goes to the process that has the shard, and `FirstRows` says which rows stay:

>>> keys = keys_of(np.array([7, 8, 7, 9], np.uint64))
>>> keep = np.zeros(len(keys), bool)
>>> for shard, places in enumerate(split(keys, 2)):
...     with FirstRows(folder, shard, 2, ram="32MiB") as rows:
...         keep[places] = rows.keep(keys[places], places)
>>> keep.tolist()
[True, True, False, True]
"""

from __future__ import annotations

import hashlib
import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import numpy as np

import nandex
from nandex import _batches
from nandex._errors import ConfigError, ExistsError, InputError, InputTypeError, MissingError

if TYPE_CHECKING:
    from types import TracebackType

    from numpy.typing import NDArray

    _Amount = int | float | str
    _Path = str | os.PathLike[str]
    _Bools = NDArray[np.bool_]
    _Places = NDArray[np.intp]

__all__ = ["FirstRows", "keys_of", "numbers_of", "split"]

_Self = TypeVar("_Self", bound="FirstRows")

#: The most shards: their numbers are sorted as 16 bits.
SHARDS_MAX = 1 << 16

_DIGEST_BYTES = 16
_DIGEST = np.dtype("V16")


def keys_of(*columns: Any) -> NDArray[Any]:
    """The keys of rows: of one column of integers its numbers, as uint64; else a digest of 16 bytes, of dtype `V16`.

    A column is an array of numpy or Arrow, or a list; of several columns, rows are equal if all are. Two different rows
    of 10^10 share a digest with a chance below 10^-18. Costs about a microsecond a row that is no number.
    """
    if not columns:
        raise InputError("keys of no column: name one at least")
    if len(columns) == 1:
        numbers = _integers(columns[0])
        return _digests(columns[0]) if numbers is None else numbers
    parts = [keys_of(column) for column in columns]
    counts = {len(part) for part in parts}
    if len(counts) > 1:
        raise InputError(f"columns of {sorted(counts)} rows as one key: give columns of one length")
    rows = [np.ascontiguousarray(part).view(np.uint8).reshape(len(part), part.dtype.itemsize) for part in parts]
    return _digests(np.hstack(rows))


def numbers_of(column: Any) -> NDArray[np.uint64]:
    """The numbers of rows from a column that names them: integers as they are, of all else 64 bits of a digest.

    Two rows that share a number by chance matter only where their keys are equal too.
    """
    keys = keys_of(column)
    return keys if keys.dtype == np.uint64 else _first_words(keys)


def split(keys: NDArray[Any], shards: int) -> list[_Places]:
    """The places of the keys of each shard, in their order. Which shard has a key never changes for one count of shards."""
    if not 1 <= shards <= SHARDS_MAX:
        raise ConfigError(f"shards: {shards}; give 1 to {SHARDS_MAX:,}")
    numbers = keys if keys.dtype == np.uint64 else _first_words(keys)
    # Numbers in a row, and multiples of powers of two, become as good as random: the finalizer of SplitMix64.
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
    """A column of integers as uint64, of negative ones the two's complement; None if it has no integers."""
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
    taken = _batches.take(column, "key", None)
    if taken is None:
        return _joined([_digest(_bytes(row)) for row in column])
    _, count, packed, width, is_stripped, offsets = taken
    data = memoryview(packed)
    if offsets is None:
        ends = range(0, width * (count + 1), width) if width else [0] * (count + 1)
    else:
        ends = offsets.tolist()
    spans = zip(ends[:-1], ends[1:], strict=True)
    if is_stripped:
        return _joined([_digest(bytes(data[start:end]).rstrip(b"\0")) for start, end in spans])
    return _joined([_digest(data[start:end]) for start, end in spans])


def _bytes(row: Any) -> Any:
    if isinstance(row, str):
        return row.encode()
    if isinstance(row, (bytes, bytearray, memoryview)):
        return row
    raise InputTypeError(f"a key of the type {type(row).__name__}: give bytes or str, or integers alone")


def _digest(row: Any) -> bytes:
    return hashlib.blake2b(row, digest_size=_DIGEST_BYTES).digest()


def _joined(digests: list[bytes]) -> NDArray[Any]:
    return np.frombuffer(b"".join(digests), _DIGEST)


def _sync_folder(folder: Path) -> None:
    opened = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


def copy_durably(source: Path, target: Path) -> None:
    """Copies a file, which is there whole and durable, or not at all. Replaces an older one."""
    target.parent.mkdir(parents=True, exist_ok=True)
    unfinished = target.with_name(f"{target.name}.unfinished")
    shutil.copyfile(source, unfinished)
    with unfinished.open("rb") as copied:
        os.fsync(copied.fileno())
    unfinished.replace(target)
    _sync_folder(target.parent)


class FirstRows:
    """Which row brought each key first: one shard, in a file of a folder.

    The table has under each key the number of the row that came first with it, and a row stays if that is its own. So
    whoever asks again, after a failure of any part, gets the same answer: no row is kept twice, and none is lost. The
    numbers are the caller's; a row must have the same one each time, and rows with equal keys different ones.

    `ram` is for this shard. `entries` is for how many keys a new file is made; it grows past them. `mode` is as that of
    `nandex.open`: "w" refuses to begin anew where a file is gone. One process has a shard open at a time; calls of its
    threads have to take turns.
    """

    def __init__(
        self,
        folder: _Path,
        shard: int = 0,
        shards: int = 1,
        *,
        ram: _Amount = "256MiB",
        entries: _Amount | None = None,
        mode: Literal["c", "w", "x"] = "c",
    ) -> None:
        if not 0 <= shard < shards <= SHARDS_MAX:
            raise ConfigError(f"shard {shard} of {shards}: give shards from 0, and {SHARDS_MAX:,} of them at most")
        self.path = self.path_of(folder, shard, shards)
        if mode != "w":
            self.path.parent.mkdir(parents=True, exist_ok=True)
        self._options = (ram, entries)
        self._table: nandex.Table | None = None
        # Each answer is synced by itself.
        self._db = nandex.open(self.path, ram=ram, mode=mode, durability="never")

    @staticmethod
    def path_of(folder: _Path, shard: int, shards: int) -> Path:
        """The file of a shard."""
        return Path(folder, f"first-rows-{shard:05}-of-{shards:05}.nandex")

    def keep(self, keys: NDArray[Any], rows: NDArray[Any]) -> _Bools:
        """Which rows were the first with their keys; those of one batch come in its order.

        All that the answer rests on is durable when it is given: neither a killed process nor a power cut makes a later
        one differ. Costs a sync, and for each key that came before a page read, unless it is in RAM.
        """
        rows = np.ascontiguousarray(rows).astype(np.uint64, copy=False)
        if len(keys) != len(rows):
            raise InputError(f"{len(keys)} keys and {len(rows)} rows: give a row for each key")
        if not len(keys):
            return np.zeros(0, bool)
        table = self._opened(keys.dtype.itemsize)
        first, was_there = table.get_or_insert_many(np.ascontiguousarray(keys), rows)
        table.sync()
        return np.asarray(~was_there | (first == rows))

    def _opened(self, key_bytes: int) -> nandex.Table:
        # The first keys say how wide they are. Numbers and digests do not mix: a file that has the others says so.
        if self._table is None:
            self._table = self._db.table(
                "first-rows", entries=self._options[1], key=key_bytes, value="u64", policy="grow"
            )
        if self._table.key_bytes != key_bytes:
            raise InputError(
                f"keys of {key_bytes} bytes: {self.path} has keys of {self._table.key_bytes}; numbers have 8, and "
                "digests of all else 16"
            )
        return self._table

    def stats(self) -> nandex.Stats:
        """How many keys the shard has, and what its table says of itself."""
        if self._table is None and self._db.structures():
            for key_bytes in (8, _DIGEST_BYTES):
                try:
                    self._opened(key_bytes)
                    break
                except ConfigError:
                    continue
        figures = {"entries": 0} if self._table is None else dict(self._table.stats())
        return nandex.Stats(f"shard {self.path}", figures)

    def snapshot(self, folder: _Path) -> Path:
        """Copies the shard into a folder, as it is between two batches. An older snapshot is replaced by a whole one."""
        target = Path(folder, self.path.name)
        if target.resolve() == self.path.resolve():
            raise ConfigError(f"a snapshot of {self.path} in its own folder: choose another one")
        self.close()
        try:
            copy_durably(self.path, target)
        finally:
            self._db = nandex.open(self.path, ram=self._options[0], mode="w", durability="never")
        return target

    @classmethod
    def restore(cls, snapshot: _Path, folder: _Path, shard: int = 0, shards: int = 1) -> Path:
        """Puts a snapshot of a shard in place of a file that is gone, and returns where.

        # Errors
        An `ExistsError` if the file is there, a `MissingError` if the snapshot is not.
        """
        source, target = cls.path_of(snapshot, shard, shards), cls.path_of(folder, shard, shards)
        if target.exists():
            raise ExistsError(17, f"{target} exists: remove it first, if the snapshot is to replace it")
        if not source.exists():
            raise MissingError(2, f"no snapshot {source}")
        copy_durably(source, target)
        return target

    def close(self) -> None:
        """Closes the file. What was answered is in it."""
        self._table = None
        self._db.close()

    def __enter__(self: _Self) -> _Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None = None,
        error: BaseException | None = None,
        traceback: TracebackType | None = None,
    ) -> None:
        self.close()
