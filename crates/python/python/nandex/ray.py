"""Duplicates of Ray datasets that are larger than the cluster's RAM: shards of keys on the nodes' own disks.

>>> import ray
>>> pages = ray.data.from_items([{"url": "a"}, {"url": "b"}, {"url": "a"}])
>>> nandex.ray.dedup(pages, "url", path=folder, shards=2, ram="32MiB").count()
2

Each shard is an actor that owns a volume, a file in the folder `path` of its node. An actor that dies is started again
there, recovers its volume, and is asked again; what it answers does not change, so no failure drops a row or keeps one
twice. `docs/python/ray.md` says how, and when one machine is enough.
"""

from __future__ import annotations

import secrets
import time
from collections import deque
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import ray
from ray.data.expressions import monotonically_increasing_id
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

import nandex
from nandex._errors import ConfigError, InUseError, InputError, MissingError
from nandex.shards import SHARDS_MAX, FirstRows, keys_of, numbers_of, split

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterable, Sequence

    from numpy.typing import NDArray

    _Amount = int | float | str
    _Path = str | os.PathLike[str]
    _Key = str | Sequence[str] | Callable[[pa.Table], Any]

__all__ = ["Dedup", "dedup", "restore"]

#: The column that numbers rows, where the dataset has none that does.
_ROW = "__nandex_row"

#: Rows of a block that are asked about at a time, and such batches that wait for answers.
_BATCH_ROWS = 1 << 20
_BATCHES_WAITING_MAX = 2

#: What a file is marked with once those of all shards are made.
_MADE = ".made"

#: How long a restarted actor waits for the one before it to let go of the file.
_IN_USE_S_MAX = 60.0


class _Shard:
    """The actor of a shard. It begins again with the file that the one before it has left."""

    def __init__(self, folder: str, shard: int, shards: int, ram: _Amount, entries: int | None) -> None:
        give_up = time.monotonic() + _IN_USE_S_MAX
        while True:
            try:
                self.rows = FirstRows(folder, shard, shards, ram=ram, entries=entries, mode="w")
                break
            except InUseError:
                if time.monotonic() > give_up:
                    raise
                time.sleep(0.1)
        self.ram = ram

    def keep(self, keys: NDArray[Any], rows: NDArray[np.uint64]) -> NDArray[np.bool_]:
        return self.rows.keep(keys, rows)

    def about(self) -> dict[str, Any]:
        import os

        return {"pid": os.getpid(), "node": ray.get_runtime_context().get_node_id(), "ram": self.ram}

    def stats(self) -> nandex.Stats:
        return self.rows.stats()

    def snapshot(self, folder: str) -> str:
        return str(self.rows.snapshot(folder))

    def close(self) -> None:
        self.rows.close()


class Dedup:
    """Shards of the keys that were seen, for several datasets, one after another or at once.

    The shards live as long as this object, or a dataset that it made; another one of the same path in this job has the
    same shards. What they know stays in the files: the next `Dedup` of the path goes on with it.

    `path` is a folder, on each node of its own. `shards` is their number, which stays that of the path. `ram` is what
    each of them may take. `keys` is how many different keys are expected in all; a shard grows past its share. An actor
    claims `num_cpus` of its node.
    """

    def __init__(
        self,
        path: _Path,
        *,
        shards: int = 1,
        ram: _Amount = "256MiB",
        keys: int | None = None,
        num_cpus: float = 0,
    ) -> None:
        self._folder = str(Path(path).absolute())
        self._shards = shards
        entries = None if keys is None else max(1, -(-keys // shards))
        nodes = _placed(self._folder, shards, ram)
        actor = ray.remote(_Shard)
        self._actors = [
            actor.options(
                name=f"nandex first rows {self._folder} {shard} of {shards}",
                get_if_exists=True,
                num_cpus=num_cpus,
                # The same question has the same answer, so Ray may ask it again.
                max_restarts=-1,
                max_task_retries=-1,
                scheduling_strategy=_on(node),
            ).remote(self._folder, shard, shards, ram, entries)
            for shard, node in enumerate(nodes)
        ]
        for about in self._all("about"):
            if about["ram"] != ram:
                raise ConfigError(f"ram: {ram}; the shards of {self._folder} run with {about['ram']} each: close them first")

    def _all(self, method: str, *arguments: Any) -> list[Any]:
        answers: list[Any] = ray.get([getattr(actor, method).remote(*arguments) for actor in self._actors])
        return answers

    def unique(self, dataset: Any, key: _Key, *, id: str | None = None) -> Any:
        """The rows of a Ray dataset whose keys did not come before, in it or in what the shards have seen earlier.

        `key` is a column of integers, strings or bytes, several of them, or a function from a pyarrow table to such an
        array. Of rows with one key the one stays that is asked about first.

        `id` names a column of numbers or texts that names each row, unique in all that the shards ever see, such as the
        `row_hash` of `ray.data.read_parquet(..., include_row_hash=True)`. The dataset is then lazy, may be read any
        number of times, and a job that was broken off is simply run again: it answers as if it had not been. Without
        `id` the rows are numbered as they come, so that the answer holds for one execution. It is executed here, and is
        in Ray's object store.
        """
        salt = 0
        if id is None:
            # Rows of another execution have other numbers.
            salt = secrets.randbits(64)
            dataset = dataset.with_column(_ROW, monotonically_increasing_id())
        columns = key if callable(key) or isinstance(key, str) else tuple(key)
        kept = dataset.map_batches(
            _keep_first,
            batch_format="pyarrow",
            batch_size=None,
            zero_copy_batch=True,
            fn_args=(self._actors, columns, id, salt),
        )
        return kept if id is not None else kept.materialize()

    def snapshot(self, folder: _Path) -> list[Path]:
        """Copies each shard into a folder of its node, and returns the files. A shard is copied between two batches.

        With an `id` a snapshot may be taken at any time. Without one, take it when no dataset is being deduplicated.
        """
        return [Path(copy) for copy in self._all("snapshot", str(Path(folder).absolute()))]

    def stats(self) -> nandex.Stats:
        """How many keys there are, and what each shard holds."""
        shards = self._all("stats")
        figures: dict[str, Any] = {"entries": sum(shard["entries"] for shard in shards)}
        for number, shard in enumerate(shards):
            figures.update({f"shard_{number}_{name}": figure for name, figure in shard.items()})
        return nandex.Stats(f"dedup {self._folder}", figures)

    def pids(self) -> list[int]:
        """The processes of the shards, as they are now."""
        return [about["pid"] for about in self._all("about")]

    def close(self) -> None:
        """Closes the files and ends the actors. Datasets that were not yet read cannot be read any more."""
        self._all("close")
        for actor in self._actors:
            ray.kill(actor, no_restart=True)
        self._actors = []


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
    """The rows of a Ray dataset whose keys did not come before: `Dedup` with these options, and its `unique`."""
    return Dedup(path, shards=shards, ram=ram, keys=keys, num_cpus=num_cpus).unique(dataset, key, id=id)


def restore(snapshot: _Path, path: _Path, *, shards: int) -> list[Path]:
    """Puts snapshots in place of the shards whose files are gone, and returns their files.

    The folder of snapshots must be readable on the nodes that get them, which are those with the fewest shards. Run
    afterwards anew, from its start, every dataset that came since the snapshot: what the lost files knew is forgotten.
    """
    source, folder = str(Path(snapshot).absolute()), str(Path(path).absolute())
    there = _there(folder, shards)
    missing = [shard for shard in range(shards) if shard not in there.files]
    nodes = there.places()
    return _each(_restore, [(nodes[shard], (source, folder, shard, shards)) for shard in missing])


def _keep_first(block: pa.Table, actors: list[Any], key: _Key, id: str | None, salt: int) -> pa.Table:
    """The rows of a block that stay. Parts of two batches are at the shards while the next one is split."""
    waiting: deque[tuple[int, list[NDArray[np.intp]], list[Any]]] = deque()
    keep = np.zeros(block.num_rows, bool)

    def take() -> None:
        start, places, answers = waiting.popleft()
        for at, answer in zip(places, ray.get(answers), strict=True):
            keep[start + at] = answer

    for start in range(0, block.num_rows, _BATCH_ROWS):
        batch = block.slice(start, _BATCH_ROWS)
        keys = _keys(batch, key)
        rows = numbers_of(_column(batch, _ROW if id is None else id)) ^ np.uint64(salt)
        parts = [(actor, at) for actor, at in zip(actors, split(keys, len(actors)), strict=True) if len(at)]
        asked = [actor.keep.remote(keys[at], rows[at]) for actor, at in parts]
        waiting.append((start, [at for _, at in parts], asked))
        if len(waiting) > _BATCHES_WAITING_MAX:
            take()
    while waiting:
        take()
    kept = block if keep.all() else block.filter(pa.array(keep))
    return kept.drop_columns([_ROW]) if id is None and _ROW in kept.column_names else kept


def _keys(batch: pa.Table, key: _Key) -> NDArray[Any]:
    if callable(key):
        keys = keys_of(key(batch))
        if len(keys) != batch.num_rows:
            raise InputError(f"key: {len(keys)} keys of {batch.num_rows} rows; the function must give one for each row")
        return keys
    return keys_of(*[_column(batch, name) for name in ([key] if isinstance(key, str) else key)])


def _column(batch: pa.Table, name: str) -> Any:
    if name not in batch.column_names:
        raise InputError(f"no column {name!r}: the dataset has {', '.join(map(repr, batch.column_names))}")
    return batch.column(name)


def _on(node: str) -> Any:
    return NodeAffinitySchedulingStrategy(node, soft=False)


def _each(function: Callable[..., Any], calls: Iterable[tuple[str, tuple[Any, ...]]]) -> list[Any]:
    """Calls a function on nodes, at once."""
    task = ray.remote(function)
    answers: list[Any] = ray.get(
        [task.options(num_cpus=0, scheduling_strategy=_on(node)).remote(*arguments) for node, arguments in calls]
    )
    return answers


def _make(folder: str, shard: int, shards: int, ram: _Amount) -> None:
    FirstRows(folder, shard, shards, ram=ram).close()


def _mark(folder: str, shard: int, shards: int) -> None:
    FirstRows.path_of(folder, shard, shards).with_suffix(_MADE).touch()


def _restore(snapshot: str, folder: str, shard: int, shards: int) -> Path:
    return FirstRows.restore(snapshot, folder, shard, shards)


def _listed(folder: str) -> list[str]:
    return sorted(path.name for path in Path(folder).glob("first-rows-*"))


class _Files:
    """Which nodes have the files of which shards, and whether all were made once."""

    def __init__(self, folder: str, shards: int, lists: dict[str, list[str]]) -> None:
        self.shards = shards
        self.nodes = list(lists)
        self.files: dict[int, list[str]] = {}
        self.are_made = False
        names = {FirstRows.path_of(folder, shard, shards).name: shard for shard in range(shards)}
        for node, name in ((node, name) for node, listed in lists.items() for name in listed):
            self.are_made |= name.endswith(_MADE)
            if name in names:
                self.files.setdefault(names[name], []).append(node)
            elif name.endswith(".nandex"):
                raise ConfigError(f"shards: {shards}; {folder} has {name}: give the number in it, or another path")

    def places(self) -> list[str]:
        """A node for each shard: one that has its file, and of all that may have it the one with the fewest."""
        loads = dict.fromkeys(self.nodes, 0)
        places = []
        for shard in range(self.shards):
            node = min(self.files.get(shard, self.nodes), key=lambda it: loads[it])
            loads[node] += 1
            places.append(node)
        return places


def _there(folder: str, shards: int) -> _Files:
    alive = [node for node in ray.nodes() if node["Alive"]]
    nodes = [node["NodeID"] for node in alive if node["Resources"].get("CPU")] or [node["NodeID"] for node in alive]
    lists = _each(_listed, [(node, (folder,)) for node in nodes])
    return _Files(folder, shards, dict(zip(nodes, lists, strict=True)))


def _placed(folder: str, shards: int, ram: _Amount) -> list[str]:
    """The node of each shard, which has its file: all files are new, or all are there.

    Marks are put next to the files once all are made, so one that is gone is told from one that never was.
    """
    if not 1 <= shards <= SHARDS_MAX:
        raise ConfigError(f"shards: {shards}; give 1 to {SHARDS_MAX:,}")
    there = _there(folder, shards)
    missing = [shard for shard in range(shards) if shard not in there.files]
    if missing and there.are_made:
        raise MissingError(
            2, f"shards {missing} of {folder} have no file on any node: restore a snapshot, or remove those of all shards"
        )
    nodes = there.places()
    _each(_make, [(nodes[shard], (folder, shard, shards, ram)) for shard in missing])
    if not there.are_made:
        _each(_mark, [(node, (folder, shard, shards)) for shard, node in enumerate(nodes)])
    return nodes
