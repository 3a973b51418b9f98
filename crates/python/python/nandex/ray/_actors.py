"""Shards as actors: each owns a file on the disk of its node, and restarts with the content of that file."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import ray

import nandex
from nandex import _nandex
from nandex._errors import ConfigError, InUseError
from nandex.ray._places import on, placed, planned, restored
from nandex.shards import SHARDS_MAX
from nandex.shards._shard import NUMBER_MAX

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from nandex.shards import Shard

    _Amount = int | float | str
    _Path = str | os.PathLike[str]

#: The maximum number of processors that an actor may claim.
_CPUS_MAX = 1e6

#: The time that an actor waits for its predecessor to release the file.
_IN_USE_S_MAX = 60.0


def absolute(place: _Path) -> str:
    """Returns a path that means the same in all processes; a URL is returned as it is."""
    return str(place) if "://" in str(place) else str(Path(place).absolute())


class _Actor:
    """The process of a shard."""

    def __init__(
        self, kind: type[Shard], folder: str, place: tuple[int, int], ram: _Amount, entries: int | None
    ) -> None:
        give_up = time.monotonic() + _IN_USE_S_MAX
        while True:
            try:
                self.shard = kind(folder, *place, ram=ram, entries=entries, mode="w")
                break
            except InUseError:
                if time.monotonic() > give_up:
                    raise
                time.sleep(0.1)
        self.ram = ram

    def call(self, method: str, *arguments: Any) -> Any:
        return getattr(self.shard, method)(*arguments)

    def stream(self, method: str) -> Iterator[Any]:
        yield from getattr(self.shard, method)()

    def about(self) -> tuple[int, _Amount]:
        return os.getpid(), self.ram


class Shards:
    """The common part of shards of every kind."""

    _KIND: ClassVar[type[Shard]]

    def __init__(
        self,
        path: _Path,
        *,
        shards: int = 1,
        ram: _Amount = "256MiB",
        keys: int | None = None,
        num_cpus: float = 0,
    ) -> None:
        shards = _nandex._integer(shards, "shards", 1, SHARDS_MAX)
        ram = _nandex._size(ram, "ram")
        keys = None if keys is None else _nandex._integer(keys, "keys", 0, NUMBER_MAX)
        num_cpus = _nandex._real(num_cpus, "num_cpus", 0.0, _CPUS_MAX)
        self._folder = str(Path(path).absolute())
        nodes = placed(self._KIND, self._folder, shards, ram)
        entries = None if keys is None else max(1, -(-keys // shards))
        actor = ray.remote(_Actor)
        self._actors = [
            actor.options(
                name=f"nandex {self._KIND.KIND} {self._folder} {shard} of {shards}",
                get_if_exists=True,
                num_cpus=num_cpus,
                # Repeating a call gives the same answer, so Ray may retry it.
                max_restarts=-1,
                max_task_retries=-1,
                scheduling_strategy=on(node),
            ).remote(self._KIND, self._folder, (shard, shards), ram, entries)
            for shard, node in enumerate(nodes)
        ]
        for _, has in self._about():
            if has != ram:
                raise ConfigError(f"ram: {ram}; the shards of {self._folder} run with {has} each: close them first")

    def _about(self) -> list[tuple[int, _Amount]]:
        about: list[tuple[int, _Amount]] = ray.get([actor.about.remote() for actor in self._actors])
        return about

    def _all(self, method: str, *arguments: Any) -> list[Any]:
        answers: list[Any] = ray.get([actor.call.remote(method, *arguments) for actor in self._actors])
        return answers

    def _stream(self, method: str) -> Iterator[Any]:
        """Yields references to the items of a method of each shard. A dead shard is an error: its order may differ."""
        for actor in self._actors:
            yield from actor.stream.options(num_returns="streaming", max_task_retries=0).remote(method)

    def snapshot(self, folder: _Path, *, store: Mapping[str, Any] | None = None) -> list[Any]:
        """Copies each shard into a folder of its node, or to an object store, and returns the paths or URLs.

        `folder` is a path, or a URL such as `s3://bucket/prefix`; then `store` has options, as in
        `nandex.shards.Shard.snapshot`. A shard is copied between two batches.
        """
        return self._all("snapshot", absolute(folder), store)

    @classmethod
    def restore(
        cls, snapshot: _Path, path: _Path, *, shards: int, store: Mapping[str, Any] | None = None
    ) -> list[Path]:
        """Restores the shards whose files are missing from snapshots, and returns their files.

        `snapshot` and `store` are the arguments that `snapshot` was given. The nodes that get the files, those with the
        fewest shards, must reach it. Everything added after the snapshot is lost: run it again, from the start.

        # Errors
        A `MissingError` that names the shards without a snapshot, a `ConfigError` if it has another number of shards,
        and those of `nandex.shards.Shard.restore`.
        """
        return restored(planned(cls._KIND, absolute(snapshot), absolute(path), shards, store))

    def stats(self) -> nandex.Stats:
        """Returns the number of keys, and the figures of each shard."""
        shards = self._all("stats")
        figures: dict[str, Any] = {"entries": sum(shard["entries"] for shard in shards)}
        for number, shard in enumerate(shards):
            figures.update({f"shard_{number}_{name}": figure for name, figure in shard.items()})
        return nandex.Stats(f"{self._KIND.KIND} {self._folder}", figures)

    def pids(self) -> list[int]:
        """Returns the current processes of the shards."""
        return [pid for pid, _ in self._about()]

    def close(self) -> None:
        """Closes the files and ends the actors, also for datasets not read yet, and for other objects of the same
        path."""
        self._all("close")
        for actor in self._actors:
            ray.kill(actor, no_restart=True)
        self._actors = []
