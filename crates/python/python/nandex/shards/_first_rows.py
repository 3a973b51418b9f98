"""The row that brought each key first."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

import nandex
from nandex import _nandex
from nandex._errors import InputError
from nandex.shards._keys import DIGEST_BYTES
from nandex.shards._shard import Shard

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

_TABLE = "first-rows"

#: The smallest cache in bytes that is worth its cost.
_CACHE_MIN = 4 << 20

#: The number of keys in a batch of all.
_BATCH_KEYS = 1 << 17


class FirstRows(Shard):
    """The row that brought each key first: one shard, in a file of a folder.

    The table stores under each key the number of the first row with it, and a row stays if that number is its own. So a
    caller that repeats a call, after a failure of any part, gets the same answer: no row is kept twice, and none is
    lost. The numbers are the caller's; a row must have the same one each time, and rows with equal keys different ones.

    `ram` is for this shard. Half of it caches keys, some 18 bytes each, so that repeated keys read no flash while all
    fit; the table gets it once it cannot grow otherwise. `entries` is the number of keys that a new file is made for;
    it grows past them. `mode` is as that of `nandex.open`: "w" refuses to begin again if a file is missing. One process
    has a shard open at a time; calls of its threads must take turns.
    """

    KIND = "first-rows"

    #: Bytes of the cache of keys; None before the shard was opened first.
    _cache: int | None = None

    def _open(self, mode: Literal["c", "w", "x"]) -> None:
        super()._open(mode)
        if self._cache is None:
            self._cache = self._ram // 2
        # The first keys determine the width: 8 bytes for numbers, or 16 for digests.
        self._table: nandex.Table | None = None
        self._has_table = bool(self._db.structures())

    def keep(self, keys: NDArray[Any], rows: NDArray[Any]) -> NDArray[np.bool_]:
        """Returns which rows were the first with their keys; those of one batch come in its order.

        Everything that the answer depends on is durable when this returns: neither a killed process nor a power cut
        changes a later answer. Costs a sync of the log, and a page read for each repeated key that is not in RAM.
        """
        return np.asarray(self.first(keys, rows) == rows.astype(np.uint64, copy=False))

    def first(self, keys: NDArray[Any], rows: NDArray[Any]) -> NDArray[np.uint64]:
        """Returns the first row with each key, which is the row itself if there was no other. As durable as `keep`."""
        rows = np.ascontiguousarray(rows).astype(np.uint64, copy=False)
        if len(keys) != len(rows):
            raise InputError(f"{len(keys)} keys and {len(rows)} rows: give a row for each key")
        if not len(keys):
            return rows
        keys = np.ascontiguousarray(keys)
        while True:
            table = self._opened(keys.dtype.itemsize)
            try:
                first, was_there = table.get_or_insert_many(keys, rows)
                table.sync()
                return np.where(was_there, first, rows)
            except nandex.FullError:
                # The inserted keys have the rows of this batch, and are found again with them.
                if not self._give_up_cache():
                    raise

    def _give_up_cache(self) -> bool:
        """Gives half of the cache's RAM to the table, or all if little is left. Returns False if there is none."""
        if not self._cache:
            return False
        self._cache = self._cache // 2 if self._cache > _CACHE_MIN else 0
        self.close()
        self._open("w")
        return True

    def _opened(self, key_bytes: int) -> nandex.Table:
        if self._table is None and self._has_table:
            self._table = self._existing()
        if self._table is None:
            self._table = self._with_cache("u64" if key_bytes == 8 else key_bytes)
        if self._table.key_bytes != key_bytes:
            raise InputError(
                f"keys of {key_bytes} bytes: {self.path} has keys of {self._table.key_bytes}; numbers have 8, and "
                "digests of all else 16"
            )
        return self._table

    def _existing(self) -> nandex.Table:
        """Returns the table of the file, whatever the width of its keys."""
        try:
            return self._with_cache("u64")
        except nandex.ConfigError:
            return self._with_cache(DIGEST_BYTES)

    def _with_cache(self, key: Literal["u64"] | int) -> nandex.Table:
        """Returns the table for such keys, and as much of the cache as its RAM leaves."""
        while True:
            try:
                table = self._db.table(
                    _TABLE, entries=self._entries, key=key, value="u64", policy="grow", ram=self._ram, cache=self._cache
                )
                if table.stats()["ram_bytes"] <= self._ram or not self._give_up_cache():
                    return table
            except (nandex.FullError, nandex.RamError):
                if not self._give_up_cache():
                    raise

    def batches(self) -> Iterator[tuple[NDArray[Any], NDArray[np.uint64]]]:
        """Yields all keys, and the rows that were first with them, in batches of no order. Reads the whole table."""
        if self._table is None and self._has_table:
            self._table = self._existing()
        entries = iter(()) if self._table is None else self._table.items()
        while batch := list(islice(entries, _BATCH_KEYS)):
            rows = np.array([row for _, row in batch], np.uint64)
            if isinstance(batch[0][0], bytes):
                yield np.frombuffer(b"".join(key for key, _ in batch), f"V{DIGEST_BYTES}"), rows
            else:
                yield np.array([key for key, _ in batch], np.uint64), rows

    def stats(self) -> nandex.Stats:
        """Returns the number of keys of the shard, and the figures of its table."""
        if self._table is None and self._has_table:
            self._table = self._existing()
        figures = {"entries": 0} if self._table is None else dict(self._table.stats())
        return nandex.Stats(f"shard {self.path}", figures)


class Buckets(FirstRows):
    """The first row in each bucket of near-duplicates: as `FirstRows`, in files of other names."""

    KIND = "buckets"
