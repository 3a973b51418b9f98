"""The common part of shards of every kind: a file whose name identifies the shard, and snapshots of it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeVar

import nandex
from nandex import _nandex
from nandex._errors import DamagedError, ExistsError, FormatError
from nandex.shards._files import sync_folder
from nandex.shards._keys import SHARDS_MAX
from nandex.shards._snapshots import place

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping
    from types import TracebackType

    _Amount = int | float | str
    _Path = str | os.PathLike[str]

_Self = TypeVar("_Self", bound="Shard")

#: The maximum number of keys that a file is made for, the greatest number of a pass, and the maximum that is requested.
NUMBER_MAX = (1 << 64) - 1


class Shard:
    """One shard, in a file of a folder.

    `ram` is for this shard. `entries` is the number of keys that a new file is made for; it grows past them. `mode` is
    as that of `nandex.open`: "w" refuses to begin again if a file is missing. One process has a shard open at a time;
    calls of its threads must take turns.
    """

    #: The prefix of the names of files.
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
        self.path = self.path_of(folder, shard, shards)
        # Impossible arguments are refused before a file exists.
        ram = _nandex._size(ram, "ram")
        entries = None if entries is None else _nandex._integer(entries, "entries", 1, NUMBER_MAX)
        if mode != "w":
            self.path.parent.mkdir(parents=True, exist_ok=True)
        self._ram, self._entries = ram, entries
        self._open(mode)

    @classmethod
    def path_of(cls, folder: _Path, shard: int, shards: int) -> Path:
        """Returns the file of a shard."""
        shards = _nandex._integer(shards, "shards", 1, SHARDS_MAX)
        shard = _nandex._integer(shard, "shard", 0, shards - 1)
        return Path(folder, f"{cls.KIND}-{shard:05}-of-{shards:05}.nandex")

    def _open(self, mode: Literal["c", "w", "x"]) -> None:
        # Each answer is synced to the log on its own, so that only whole buffers go to the tables. The interval does
        # not matter.
        self._db = nandex.open(self.path, ram=self._ram, mode=mode, durability=60.0)

    def snapshot(self, folder: _Path, store: Mapping[str, Any] | None = None) -> Any:
        """Copies the shard to a folder or an object store, as it is between two batches, and returns the location.

        `folder` is a path, or a URL such as `s3://bucket/prefix`, `gs://` or `az://`, for which obstore is needed: `pip
        install "nandex[objects]"`. `store` has arguments of `obstore.store.from_url`, such as `config`; missing ones
        are taken from the environment, such as `AWS_ENDPOINT`. A snapshot is written whole or not at all, and replaces
        an older one. The shard is closed meanwhile.

        # Errors
        A `DeviceError` if the copy fails; the shard continues unchanged.
        """
        target = place(folder, store)
        self.close()
        try:
            return target.put(self.path, self.path.name)
        finally:
            self._open("w")

    @classmethod
    def restore(
        cls, snapshot: _Path, folder: _Path, shard: int = 0, shards: int = 1, store: Mapping[str, Any] | None = None
    ) -> Path:
        """Restores a shard whose file is missing from a snapshot, and returns the file. `snapshot` and `store` are the
        arguments that `snapshot` was given as `folder` and `store`.

        # Errors
        An `ExistsError` if the file exists, a `MissingError` if the snapshot does not, a `FormatError` if another
        version of nandex made it, a `DamagedError` if it was changed. No file is made then.
        """
        source, target = place(snapshot, store), cls.path_of(folder, shard, shards)
        if target.exists():
            raise ExistsError(17, f"{target} exists: remove it first, if the snapshot is to replace it")
        copied = target.with_name(f"{target.name}.restored")
        source.get(target.name, copied)
        try:
            nandex.open(copied, mode="r").close()
        except (FormatError, DamagedError) as error:
            copied.unlink()
            told = f"the snapshot {target.name} in {source} cannot be restored: {error}"
            raise (DamagedError(5, told) if isinstance(error, DamagedError) else FormatError(told)) from error
        copied.replace(target)
        sync_folder(target.parent)
        return target

    @classmethod
    def missing(
        cls, snapshot: _Path, shards: int, store: Mapping[str, Any] | None = None
    ) -> tuple[list[int], list[str]]:
        """Returns which of `shards` shards have no snapshot in a place, and the names of the present ones of this
        kind."""
        shards = _nandex._integer(shards, "shards", 1, SHARDS_MAX)
        names = [name for name in place(snapshot, store).names() if name.startswith(f"{cls.KIND}-")]
        expected = {cls.path_of("", shard, shards).name: shard for shard in range(shards)}
        return [shard for name, shard in expected.items() if name not in names], names

    def close(self) -> None:
        """Closes the file. Everything that was answered is in it."""
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
