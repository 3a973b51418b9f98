"""The placement of shards on nodes: the node with a shard's file, or the node with the fewest shards."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import ray
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from nandex import _nandex
from nandex._errors import ConfigError, MissingError
from nandex.shards import SHARDS_MAX

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from nandex.shards import Shard

    _Amount = int | float | str
    #: A node, and arguments.
    _Call = tuple[str, tuple[Any, ...]]

#: The mark of a file, which is made once those of all shards exist.
_MADE = ".made"


def on(node: str) -> Any:
    return NodeAffinitySchedulingStrategy(node, soft=False)


def _each(function: Callable[..., Any], calls: Iterable[_Call]) -> list[Any]:
    """Calls a function on several nodes at once."""
    task = ray.remote(function)
    answers: list[Any] = ray.get(
        [task.options(num_cpus=0, scheduling_strategy=on(node)).remote(*arguments) for node, arguments in calls]
    )
    return answers


def _make(kind: type[Shard], folder: str, shard: int, shards: int, ram: _Amount) -> None:
    kind(folder, shard, shards, ram=ram).close()


def _mark(kind: type[Shard], folder: str, shard: int, shards: int) -> None:
    kind.path_of(folder, shard, shards).with_suffix(_MADE).touch()


def _restore(
    kind: type[Shard], snapshot: str, folder: str, place: tuple[int, int], store: Mapping[str, Any] | None
) -> Path:
    return kind.restore(snapshot, folder, *place, store)


def _missing(
    kind: type[Shard], snapshot: str, shards: int, store: Mapping[str, Any] | None
) -> tuple[list[int], list[str]]:
    return kind.missing(snapshot, shards, store)


def _listed(kind: type[Shard], folder: str) -> list[str]:
    return sorted(path.name for path in Path(folder).glob(f"{kind.KIND}-*"))


class _Files:
    """The nodes that have the files of the shards, and whether all files were made once."""

    def __init__(self, kind: type[Shard], folder: str, shards: int, lists: dict[str, list[str]]) -> None:
        self.shards = shards
        self.nodes = list(lists)
        self.files: dict[int, list[str]] = {}
        self.are_made = False
        names = {kind.path_of(folder, shard, shards).name: shard for shard in range(shards)}
        for node, name in ((node, name) for node, listed in lists.items() for name in listed):
            self.are_made |= name.endswith(_MADE)
            if name in names:
                self.files.setdefault(names[name], []).append(node)
            elif name.endswith(".nandex"):
                raise ConfigError(f"shards: {shards}; {folder} has {name}: give the number in it, or another path")

    def places(self) -> list[str]:
        """Returns a node for each shard: one that has its file, and among several the one with the fewest shards."""
        loads = dict.fromkeys(self.nodes, 0)
        places = []
        for shard in range(self.shards):
            node = min(self.files.get(shard, self.nodes), key=lambda it: loads[it])
            loads[node] += 1
            places.append(node)
        return places


def _there(kind: type[Shard], folder: str, shards: int) -> _Files:
    shards = _nandex._integer(shards, "shards", 1, SHARDS_MAX)
    alive = [node for node in ray.nodes() if node["Alive"]]
    nodes = [node["NodeID"] for node in alive if node["Resources"].get("CPU")] or [node["NodeID"] for node in alive]
    lists = _each(_listed, [(node, (kind, folder)) for node in nodes])
    return _Files(kind, folder, shards, dict(zip(nodes, lists, strict=True)))


def placed(kind: type[Shard], folder: str, shards: int, ram: _Amount) -> list[str]:
    """Returns the node of each shard, which has its file: either all files are new, or all exist.

    Marks are put next to the files once all are made, which tells a lost file from one that never existed.
    """
    there = _there(kind, folder, shards)
    missing = [shard for shard in range(shards) if shard not in there.files]
    if missing and there.are_made:
        raise MissingError(
            2, f"shards {missing} of {folder} have no file on any node: restore a snapshot, or remove all files there"
        )
    nodes = there.places()
    _each(_make, [(nodes[shard], (kind, folder, shard, shards, ram)) for shard in missing])
    if not there.are_made:
        _each(_mark, [(node, (kind, folder, shard, shards)) for shard, node in enumerate(nodes)])
    return nodes


def planned(
    kind: type[Shard], snapshot: str, folder: str, shards: int, store: Mapping[str, Any] | None
) -> list[_Call]:
    """Returns the calls that restore missing files from snapshots, if all of them have one."""
    there = _there(kind, folder, shards)
    nodes = there.places()
    gone = [shard for shard in range(shards) if shard not in there.files]
    # A folder may have another content on each node.
    listed = _each(_missing, [(nodes[shard], (kind, snapshot, shards, store)) for shard in gone])
    lacking = [shard for shard, (missing, _) in zip(gone, listed, strict=True) if shard in missing]
    if lacking:
        names = sorted({name for _, names in listed for name in names})
        of_others = [name for name in names if not name.endswith(f"-of-{shards:05}.nandex")]
        if of_others:
            raise ConfigError(f"shards: {shards}; {snapshot} has {of_others[0]}: give the number in it")
        found = ", ".join(names) or "none"
        raise MissingError(
            2, f"{snapshot} has no snapshot of shards {lacking} of {kind.KIND}; it has {found}: give one that has all"
        )
    return [(nodes[shard], (kind, snapshot, folder, (shard, shards), store)) for shard in gone]


def restored(plan: list[_Call]) -> list[Path]:
    """Executes the planned calls, and returns the files."""
    return _each(_restore, plan)
