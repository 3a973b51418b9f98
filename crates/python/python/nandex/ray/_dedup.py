"""The rows of datasets with new keys."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import ray
from ray.data.expressions import monotonically_increasing_id

from nandex._errors import InputError
from nandex.ray._actors import Shards
from nandex.ray._blocks import ROW, Waiting, column_of, mapped, parts_of, slices_of
from nandex.shards import FirstRows, keys_of, numbers_of, split

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray

    _Amount = int | float | str
    _Path = str | os.PathLike[str]
    _Key = str | Sequence[str] | Callable[[pa.Table], Any]


class Dedup(Shards):
    """Shards of the keys seen so far, for several datasets, one after another or at once.

    The shards live as long as this object, or a dataset that it made; another one with the same path in this job has
    the same shards. Their keys stay in the files: the next `Dedup` of the path continues with them.

    `path` is a folder, on each node of its own. `shards` is their number, which is fixed for the path. `ram` is the RAM
    of each. `keys` is the expected number of different keys in all; a shard grows past its share. An actor claims
    `num_cpus` of its node.
    """

    _KIND = FirstRows

    def unique(self, dataset: Any, key: _Key, *, id: str | None = None) -> Any:
        """Returns the rows of a Ray dataset whose keys are new, both in the dataset and to the shards.

        `key` is a column of integers, strings or bytes, several of them, or a function from a pyarrow table to such an
        array. Of rows with equal keys, the first that is looked up stays.

        `id` is a column of numbers or texts that identifies each row, unique in all that the shards ever see, such as
        the `row_hash` of `ray.data.read_parquet(..., include_row_hash=True)`. The dataset is then lazy, may be read any
        number of times, and an interrupted job can be run again with the same result as if it had not been interrupted.
        Without `id` the rows are numbered as they arrive, so that the answer is valid for one execution. It is executed
        here, and is in Ray's object store.
        """
        salt = 0
        if id is None:
            # Rows of another execution have other numbers.
            salt = secrets.randbits(64)
            dataset = dataset.with_column(ROW, monotonically_increasing_id())
        columns = key if callable(key) or isinstance(key, str) else tuple(key)
        kept = mapped(dataset, _keep_first, self._actors, columns, id, salt)
        return kept if id is not None else kept.materialize()

    def copy_to(self, other: Dedup) -> int:
        """Copies the keys seen by these shards to another `Dedup`, such as one of more shards, and returns their
        number.

        No dataset may be deduplicated meanwhile. The other keeps the keys it has seen itself. If a shard dies or the
        job ends meanwhile, call it again. Costs some microseconds a key.
        """
        return copy_first_rows(self, other)


def dedup(
    dataset: Any,
    key: _Key,
    *,
    path: _Path,
    shards: int = 1,
    ram: _Amount = "256MiB",
    keys: int | None = None,
    id: str | None = None,
    num_cpus: float = 0,
) -> Any:
    """Returns the rows of a Ray dataset with new keys: `Dedup` with these options, and its `unique`."""
    return Dedup(path, shards=shards, ram=ram, keys=keys, num_cpus=num_cpus).unique(dataset, key, id=id)


def _keep_first(block: pa.Table, actors: list[Any], key: _Key, id: str | None, salt: int) -> pa.Table:
    """Returns the rows of a block that stay."""
    keep = np.zeros(block.num_rows, bool)
    for places, answers in _asked(block, actors, key, id, salt):
        for at, answer in zip(places, answers, strict=True):
            keep[at] = answer
    kept = block if keep.all() else block.filter(pa.array(keep))
    return kept.drop_columns([ROW]) if id is None and ROW in kept.column_names else kept


def _asked(block: pa.Table, actors: list[Any], key: _Key, id: str | None, salt: int) -> Iterator[tuple[Any, list[Any]]]:
    """Yields the positions of rows in a block, by batches and shards, and which of them stay."""
    waiting, start = Waiting(), 0
    for batch in slices_of(block):
        keys = _keys(batch, key)
        rows = numbers_of(column_of(batch, ROW if id is None else id)) ^ np.uint64(salt)
        parts = parts_of(keys, actors)
        calls = [actor.call.remote("keep", keys[at], rows[at]) for actor, at in parts]
        yield from waiting.add([start + at for _, at in parts], calls)
        start += batch.num_rows
    yield from waiting.end()


def copy_first_rows(shards: Shards, others: Shards) -> int:
    """Copies the first rows of all keys to other shards. Returns the number of keys."""
    passed_on, calls, keys = ray.remote(_passed_on), Waiting(), 0
    for batch in shards._stream("batches"):
        for _, answers in calls.add(None, [passed_on.remote(batch, others._actors)]):
            keys += sum(answers)
    return keys + sum(sum(answers) for _, answers in calls.end())


def _passed_on(batch: tuple[NDArray[Any], NDArray[np.uint64]], actors: list[Any]) -> int:
    """Looks up keys that other shards have seen."""
    keys, rows = batch
    parts = zip(actors, split(keys, len(actors)), strict=True)
    ray.get([actor.call.remote("keep", keys[at], rows[at]) for actor, at in parts])
    return len(keys)


def _keys(batch: pa.Table, key: _Key) -> NDArray[Any]:
    if callable(key):
        keys = keys_of(key(batch))
        if len(keys) != batch.num_rows:
            raise InputError(f"key: {len(keys)} keys of {batch.num_rows} rows; the function must give one for each row")
        return keys
    return keys_of(*[column_of(batch, name) for name in ([key] if isinstance(key, str) else key)])
