"""Counts of the keys of datasets."""

from __future__ import annotations

import heapq
import secrets
from collections import deque
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import ray
from ray.data.expressions import monotonically_increasing_id

from nandex import _nandex
from nandex.ray._actors import Shards
from nandex.ray._blocks import ROW, Waiting, column_of, mapped, parts_of, slices_of
from nandex.shards import Counts, keys_of, split
from nandex.shards._shard import NUMBER_MAX

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray


class Count(Shards):
    """Shards of a counter, which counts the keys of several datasets, one after another or at once.

    The shards live as long as this object; another one with the same path in this job has the same shards. Their counts
    stay in the files: the next `Count` of the path continues with them.

    `path` is a folder, on each node of its own. `shards` is their number, which is fixed for the path. `ram` is the RAM
    of each, at least 32 MiB. `keys` is the expected number of different keys in all; a shard grows past its share. An
    actor claims `num_cpus` of its node.
    """

    _KIND = Counts

    def add(self, dataset: Any, key: str) -> int:
        """Counts the rows of a Ray dataset, by a column of integers, or of texts of up to 31 bytes, and returns their
        number.

        The dataset is executed here. Each batch has a name, and a shard records which it has counted, so that a task or
        an actor that fails and is restarted counts nothing twice. If the job itself ends before this returns, some rows
        are counted and others not: take a snapshot before, and restore it then.
        """
        return executed(dataset, key, _counted, self._actors, key)

    def get_many(self, keys: Any) -> NDArray[np.uint64]:
        """Returns the counts of keys, a list or an Arrow array, in their order; 0 for a key that never occurred."""
        keys = keys if isinstance(keys, pa.Array) else pa.array(keys)
        return counts_of(self._actors, keys)

    def most_common(self, count: int) -> list[tuple[Any, int]]:
        """Returns the keys with the greatest counts; of equal counts, the smaller key first. Texts are bytes."""
        count = _nandex._integer(count, "count", 0, NUMBER_MAX)
        tops = self._all("most_common", count)
        return heapq.nsmallest(count, (pair for top in tops for pair in top), key=lambda pair: (-pair[1], pair[0]))

    def to_dataset(self) -> Any:
        """Returns all keys and counts as a Ray dataset of the columns `key` and `count`. Texts are bytes.

        They are read into Ray's object store here. If a shard dies meanwhile, this fails, and may be called again.
        """
        return ray.data.from_arrow_refs(list(self._stream("tables")))

    def copy_to(self, other: Count) -> int:
        """Adds these counts to those of another `Count`, such as one of more shards without counts; returns the number
        of keys.

        Nothing may be counted meanwhile. As with `add`, no failure of a shard counts anything twice; if the job itself
        ends before this returns, remove the other's files, and copy again.
        """
        return copy_counts(self, other)


def count(dataset: Any, key: str, *, path: Any, shards: int = 1, ram: Any = "256MiB", keys: int | None = None) -> Count:
    """Counts the rows of a Ray dataset by a column: returns a `Count` with these options, after its `add`."""
    counts = Count(path, shards=shards, ram=ram, keys=keys)
    counts.add(dataset, key)
    return counts


def copy_counts(shards: Shards, others: Shards) -> int:
    """Adds the counts of shards to those of others. Returns the number of keys."""
    waiting, salt, keys = Waiting(), secrets.randbits(64).to_bytes(8, "little"), 0
    for number, part in enumerate(shards._stream("tables")):
        table = ray.get(part)
        name = salt + number.to_bytes(8, "little")
        send_counts(others._actors, name, table["key"].combine_chunks(), table["count"].to_numpy(), waiting)
        keys += table.num_rows
    deque(waiting.end(), maxlen=0)
    return keys


def executed(dataset: Any, column: str, function: Any, *arguments: Any) -> int:
    """Calls a function with each block of a one-column dataset, with these arguments and the prefix of the execution's
    batch names, and returns the sum of the `rows` in its answers."""
    salt = secrets.randbits(64).to_bytes(8, "little")
    rows = dataset.select_columns([column]).with_column(ROW, monotonically_increasing_id())
    told = mapped(rows, function, *arguments, salt)
    return sum(int(batch["rows"].sum()) for batch in told.iter_batches(batch_format="numpy"))


def counts_of(actors: list[Any], keys: pa.Array) -> NDArray[np.uint64]:
    """Returns the counts that shards have of keys, in their order."""
    counts = np.zeros(len(keys), np.uint64)
    parts = parts_of(keys_of(keys), actors)
    answers = ray.get([actor.call.remote("get_many", keys.take(pa.array(at))) for actor, at in parts])
    for (_, at), answer in zip(parts, answers, strict=True):
        counts[at] = answer
    return counts


def send_counts(actors: list[Any], name: bytes, keys: pa.Array, amounts: NDArray[Any], waiting: Waiting) -> None:
    """Sends the counts of a batch to all shards, also to those that have none of its keys: they record its name."""
    parts = zip(actors, split(keys_of(keys), len(actors)), strict=True)
    calls = [actor.call.remote("add", name, keys.take(pa.array(at)), amounts[at]) for actor, at in parts]
    deque(waiting.add(None, calls), maxlen=0)


def name_of(batch: pa.Table, salt: bytes) -> bytes:
    """Returns the name of a batch in this execution, which is the same if a task runs again."""
    return salt + int(batch.column(ROW)[0].as_py()).to_bytes(8, "little")


def _counted(block: pa.Table, actors: list[Any], key: str, salt: bytes) -> pa.Table:
    """Sends the counts of a block to the shards, and returns its number of rows."""
    waiting = Waiting()
    for batch in slices_of(block):
        counted = pc.value_counts(column_of(batch, key))
        send_counts(actors, name_of(batch, salt), counted.field(0), counted.field(1).to_numpy(), waiting)
    return waiting.end_block(block)
