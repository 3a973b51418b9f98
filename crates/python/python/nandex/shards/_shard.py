"""What shards of every kind have: a file with a name that says which one it is, and snapshots of it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Literal, TypeVar

import nandex
from nandex._errors import ConfigError, ExistsError, MissingError
from nandex.shards._files import copy_durably
from nandex.shards._keys import SHARDS_MAX

if TYPE_CHECKING:
    import os
    from types import TracebackType

    _Amount = int | float | str
    _Path = str | os.PathLike[str]

_Self = TypeVar("_Self", bound="Shard")


class Shard:
    """One shard, in a file of a folder.

    `ram` is for this shard. `entries` is for how many keys a new file is made; it grows past them. `mode` is as that of
    `nandex.open`: "w" refuses to begin again where a file is gone. One process has a shard open at a time; calls of its
    threads have to take turns.
    """

    #: How the names of files begin.
    KIND: ClassVar[str]

    def __init__(
        self,
        folder: _Path,
        shard: int = 0,
        shards: int = 1,
        *,
        ram: _Amount = "256MiB",
        entries: int | None = None,
        mode: Literal["c", "w", "x"] = "c",
    ) -> None:
        if not 0 <= shard < shards <= SHARDS_MAX:
            raise ConfigError(f"shard {shard} of {shards}: give shards from 0, and {SHARDS_MAX:,} of them at most")
        self.path = self.path_of(folder, shard, shards)
        if mode != "w":
            self.path.parent.mkdir(parents=True, exist_ok=True)
        self._ram, self._entries = ram, entries
        self._open(mode)

    @classmethod
    def path_of(cls, folder: _Path, shard: int, shards: int) -> Path:
        """The file of a shard."""
        return Path(folder, f"{cls.KIND}-{shard:05}-of-{shards:05}.nandex")

    def _open(self, mode: Literal["c", "w", "x"]) -> None:
        # Each answer is synced by itself.
        self._db = nandex.open(self.path, ram=self._ram, mode=mode, durability="never")

    def snapshot(self, folder: _Path) -> Path:
        """Copies the shard into a folder, as it is between two batches, in place of an older snapshot."""
        target = Path(folder, self.path.name)
        if target.resolve() == self.path.resolve():
            raise ConfigError(f"a snapshot of {self.path} in its own folder: choose another one")
        self.close()
        try:
            copy_durably(self.path, target)
        finally:
            self._open("w")
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
