"""Counts of keys, where a batch counts once however often it is sent."""

from __future__ import annotations

import hashlib
from itertools import islice
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

import nandex
from nandex import _nandex
from nandex._errors import DamagedError, InputError
from nandex.shards._files import write_durably
from nandex.shards._shard import NUMBER_MAX, Shard

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    import pyarrow as pa
    from numpy.typing import NDArray

    from nandex.shards._shard import _Amount, _Path

#: The length in bytes of the name of a batch, and of the digest before a journal.
BATCH_BYTES = 16

#: The RAM of the names of batches. The counter has the rest.
_BATCHES_RAM = "2MiB"

#: The number of keys in a chunk of all.
_CHUNK_KEYS = 1 << 17


class Counts(Shard):
    """Counts of keys: one shard, in a file of a folder.

    A batch has a name, and is counted once however often it is sent. Before it is counted, a journal next to the file
    gets the keys with their present counts and their new counts; so a shard that is opened after a failure finishes an
    interrupted batch. Keys are all integers, or all texts of up to 31 bytes.

    `ram` is for this shard. `entries` is the number of keys that a new file is made for; it grows past them. `mode` is
    as that of `nandex.open`: "w" refuses to begin again if a file is missing. One process has a shard open at a time;
    calls of its threads must take turns.
    """

    KIND = "counts"

    def _open(self, mode: Literal["c", "w", "x"]) -> None:
        is_new = mode != "w" and not self.path.exists()
        if is_new:
            # A structure of a file that existed before.
            self._journal.unlink(missing_ok=True)
        super()._open(mode)
        self._counter: nandex.Counter | None = None
        self._batches = self._db.table(
            "batches", key=BATCH_BYTES, value="u64", entries=10_000, policy="grow", ram=_BATCHES_RAM
        )
        kinds = [name for name, _ in self._db.structures() if name.startswith("of-")]
        self.of = kinds[0].removeprefix("of-") if kinds else None
        if self.of is not None:
            self._end_batch()

    @property
    def _journal(self) -> Path:
        return self.path.with_suffix(".journal")

    @classmethod
    def restore(
        cls, snapshot: _Path, folder: _Path, shard: int = 0, shards: int = 1, store: Mapping[str, Any] | None = None
    ) -> Path:
        target = cls.path_of(folder, shard, shards)
        if not target.exists():
            # Belongs to the file that is missing.
            target.with_suffix(".journal").unlink(missing_ok=True)
        return super().restore(snapshot, folder, shard, shards, store)

    def add(self, batch: bytes, keys: pa.Array, amounts: NDArray[Any]) -> bool:
        """Adds amounts to the counts of the keys of a batch, all different, and returns whether it was not counted yet.

        It is durable when this returns. Costs a page read for each key that is not in RAM, and four syncs.
        """
        if len(batch) != BATCH_BYTES:
            raise InputError(f"a batch with a name of {len(batch)} bytes: give {BATCH_BYTES}")
        if len(keys) != len(amounts) or len(keys.unique()) != len(keys):
            raise InputError(f"{len(keys)} keys and {len(amounts)} amounts: give each key once, with its amount")
        if batch in self._batches:
            return False
        counter = self._opened(_kind_of(keys))
        if len(keys):
            amounts = np.ascontiguousarray(amounts).astype(np.uint64, copy=False)
            packed = _packed(keys)
            self._write_journal(batch, packed, counter.get_many(packed) + amounts)
            self._apply(counter, packed, amounts)
        self._note(batch, int(amounts.sum()))
        return True

    def _opened(self, of: str) -> nandex.Counter:
        if self._counter is None or self.of != of:
            if self.of not in (None, of):
                raise InputError(f"keys of the type {of}: {self.path} counts {self.of}")
            self.of = of
            self._counter = self._db.counter(f"of-{of}", keys=self._entries)
        return self._counter

    def _apply(self, counter: nandex.Counter, keys: pa.Array, amounts: NDArray[np.uint64]) -> None:
        """Adds amounts, and makes them durable."""
        import pyarrow as pa

        counter.update(keys.filter(pa.array(amounts == 1)))
        several = keys.filter(pa.array(amounts > 1)).to_pylist()
        counter.update(dict(zip(several, amounts[amounts > 1].tolist(), strict=True)))
        counter.sync()

    def _note(self, batch: bytes, rows: int) -> None:
        self._batches[batch] = rows
        self._batches.sync()
        self._journal.unlink(missing_ok=True)

    def _write_journal(self, batch: bytes, keys: pa.Array, sums: NDArray[np.uint64]) -> None:
        import pyarrow as pa

        table = pa.table({"key": keys, "sum": sums}).replace_schema_metadata({"batch": batch.hex()})
        sink = pa.BufferOutputStream()
        with pa.ipc.new_file(sink, table.schema) as writer:
            writer.write_table(table)
        told = sink.getvalue()
        write_durably(self._journal, hashlib.blake2b(told, digest_size=BATCH_BYTES).digest(), memoryview(told))

    def _end_batch(self) -> None:
        """Counts the rest of a batch that a failure interrupted."""
        import pyarrow as pa

        if self.of is None or not self._journal.exists():
            return
        told = self._journal.read_bytes()
        digest, told = told[:BATCH_BYTES], told[BATCH_BYTES:]
        if hashlib.blake2b(told, digest_size=BATCH_BYTES).digest() != digest:
            raise DamagedError(5, f"{self._journal} is damaged: restore a snapshot of {self.path}")
        table = pa.ipc.open_file(pa.BufferReader(told)).read_all()
        batch = bytes.fromhex(table.schema.metadata[b"batch"].decode())
        if batch in self._batches:
            return
        keys, sums = table["key"].combine_chunks(), table["sum"].to_numpy()
        counter = self._opened(self.of)
        counts = counter.get_many(keys)
        if (counts > sums).any():
            raise DamagedError(5, f"{self._journal} is of an older {self.path}: restore a snapshot")
        self._apply(counter, keys, sums - counts)
        self._note(batch, 0)

    def get_many(self, keys: Any) -> NDArray[np.uint64]:
        """Returns the counts of keys; 0 for keys that never occurred."""
        import pyarrow as pa

        keys = keys if isinstance(keys, pa.Array) else pa.array(keys)
        if self.of is None or not len(keys):
            return np.zeros(len(keys), np.uint64)
        return self._opened(_kind_of(keys)).get_many(_packed(keys))

    def most_common(self, count: int) -> list[tuple[Any, int]]:
        """Returns the keys with the greatest counts. Reads the whole counter."""
        count = _nandex._integer(count, "count", 0, NUMBER_MAX)
        if self.of is None:
            return []
        top = self._opened(self.of).most_common(count)
        keys = _unpacked([key for key, _ in top], self.of).to_pylist()
        return list(zip(keys, [amount for _, amount in top], strict=True))

    def tables(self) -> Iterator[pa.Table]:
        """Yields all keys and counts, in no order: Arrow tables of the columns `key` and `count`. Reads the whole
        counter."""
        import pyarrow as pa

        entries = iter(()) if self.of is None else self._opened(self.of).items()
        while chunk := list(islice(entries, _CHUNK_KEYS)):
            counts = pa.array([count for _, count in chunk], pa.uint64())
            yield pa.table({"key": _unpacked([key for key, _ in chunk], self.of or ""), "count": counts})

    def stats(self) -> nandex.Stats:
        """Returns the number of keys and batches, and the figures of the counter."""
        figures: dict[str, Any] = {"entries": 0}
        if self.of is not None:
            figures = dict(self._opened(self.of).stats())
        figures["batches"] = self._batches.stats()["entries"]
        return nandex.Stats(f"shard {self.path}", figures)


class Terms(Counts):
    """The number of documents of each term: as `Counts`, in files of other names."""

    KIND = "terms"


def _kind_of(keys: pa.Array) -> str:
    """Returns the kind of keys: int64, uint64, or bytes."""
    import pyarrow as pa

    if pa.types.is_integer(keys.type):
        return "int64" if pa.types.is_signed_integer(keys.type) else "uint64"
    return "bytes"


def _packed(keys: pa.Array) -> pa.Array:
    """Returns keys as the counter stores them: 64-bit integers as bytes."""
    import pyarrow as pa

    if keys.null_count:
        raise InputError(f"{keys.null_count} nulls as keys: give array.drop_null()")
    if not pa.types.is_integer(keys.type):
        return keys.cast(pa.large_binary())
    numbers = np.ascontiguousarray(keys.cast(_kind_of(keys)).to_numpy())
    return pa.Array.from_buffers(pa.binary(8), len(numbers), [None, pa.py_buffer(numbers)])


def _unpacked(keys: Sequence[bytes], of: str) -> pa.Array:
    import pyarrow as pa

    return pa.array(keys, pa.binary()) if of == "bytes" else pa.array(np.frombuffer(b"".join(keys), of))
