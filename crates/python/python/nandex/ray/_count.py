"""How often each key of datasets came."""

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

from nandex.ray._actors import Shards
from nandex.ray._blocks import ROW, Waiting, column_of, slices_of
from nandex.shards import Counts, keys_of, split

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray


class Count(Shards):
    """Shards of a counter: how often each key came, in several datasets, one after another or at once.

    The shards live as long as this object; another one of the same path in this job has the same shards. What they
    counted stays in the files: the next `Count` of the path goes on with it.

    `path` is a folder, on each node of its own. `shards` is their number, which stays that of the path. `ram` is what
    each of them may take, 32 MiB at least. `keys` is how many different keys are expected in all; a shard grows past
    its share. An actor claims `num_cpus` of its node.
    """

    _KIND = Counts

    def add(self, dataset: Any, key: str) -> int:
        """Counts the rows of a Ray dataset, by a column of integers, or of texts of up to 31 bytes. Returns how many.

        The dataset is executed here. Each batch has a name, and a shard notes which it has counted, so that a task or
        an actor that fails and is started again counts nothing twice. If the job itself ends before this returns, some
        rows are counted and others not: take a snapshot before, and restore it then.
        """
        salt = secrets.randbits(64).to_bytes(8, "little")
        counted = (
            dataset.select_columns([key])
            .with_column(ROW, monotonically_increasing_id())
            .map_batches(
                _counted,
                batch_format="pyarrow",
                batch_size=None,
                zero_copy_batch=True,
                fn_args=(self._actors, key, salt),
            )
        )
        return sum(int(batch["rows"].sum()) for batch in counted.iter_batches(batch_format="numpy"))

    def get_many(self, keys: Any) -> NDArray[np.uint64]:
        """The counts of keys, a list or an array of Arrow, in their order; 0 of those that never came."""
        keys = keys if isinstance(keys, pa.Array) else pa.array(keys)
        counts = np.zeros(len(keys), np.uint64)
        places = split(keys_of(keys), len(self._actors))
        parts = zip(self._actors, places, strict=True)
        asked = [actor.call.remote("get_many", keys.take(pa.array(at))) for actor, at in parts]
        for at, answer in zip(places, ray.get(asked), strict=True):
            counts[at] = answer
        return counts

    def most_common(self, count: int) -> list[tuple[Any, int]]:
        """The keys with the greatest counts, of equal ones the smaller key first. Texts are bytes."""
        tops = self._all("most_common", count)
        return heapq.nsmallest(count, (pair for top in tops for pair in top), key=lambda pair: (-pair[1], pair[0]))

    def to_dataset(self) -> Any:
        """All keys and counts as a Ray dataset of the columns `key` and `count`. Texts are bytes.

        They are read into Ray's object store here. If a shard dies meanwhile, this fails, and may be called again.
        """
        return ray.data.from_arrow_refs(list(self._stream("tables")))


def count(dataset: Any, key: str, *, path: Any, shards: int = 1, ram: Any = "256MiB", keys: int | None = None) -> Count:
    """Counts the rows of a Ray dataset by a column: a `Count` with these options, after its `add`."""
    counts = Count(path, shards=shards, ram=ram, keys=keys)
    counts.add(dataset, key)
    return counts


def _counted(block: pa.Table, actors: list[Any], key: str, salt: bytes) -> Iterator[pa.Table]:
    """Sends the counts of a block to the shards, and tells how many rows it has."""
    waiting = Waiting()
    for batch in slices_of(block):
        name = salt + int(batch.column(ROW)[0].as_py()).to_bytes(8, "little")
        counted = pc.value_counts(column_of(batch, key))
        keys, amounts = counted.field(0), counted.field(1).to_numpy()
        # Also to shards that have none of them: they learn what is counted.
        parts = zip(actors, split(keys_of(keys), len(actors)), strict=True)
        calls = [actor.call.remote("add", name, keys.take(pa.array(at)), amounts[at]) for actor, at in parts]
        deque(waiting.add(None, calls), maxlen=0)
    deque(waiting.end(), maxlen=0)
    yield pa.table({"rows": pa.array([block.num_rows], pa.int64())})
