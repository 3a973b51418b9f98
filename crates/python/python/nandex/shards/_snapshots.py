"""The places of snapshots of shards: a folder, or an object store."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from nandex._errors import ConfigError, DeviceError, MissingError
from nandex.shards._files import copy_durably, write_chunks_durably

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeVar

    _T = TypeVar("_T")

#: The size in bytes of a part of an upload, and of a read.
_PART_BYTES = 8 << 20

_EIO = 5


class Place(Protocol):
    """A place of snapshots."""

    def put(self, file: Path, name: str) -> Any:
        """Copies a file to the place under a name, whole and durable or not at all, and returns its location."""

    def get(self, name: str, target: Path) -> None:
        """Copies the snapshot of a name to a file."""

    def names(self) -> list[str]:
        """Returns the names of all snapshots, in order."""


def place(where: str | os.PathLike[str], store: Mapping[str, Any] | None = None) -> Place:
    """Returns the place of a folder, or of a URL such as `s3://bucket/prefix`, with arguments of
    `obstore.store.from_url`."""
    if "://" in str(where):
        return _Bucket(str(where), dict(store or {}))
    if store:
        raise ConfigError(f"store: options for {where}, which is a folder; give a URL such as s3://bucket/prefix")
    return _Folder(Path(where))


class _Folder:
    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def __str__(self) -> str:
        return str(self._folder)

    def put(self, file: Path, name: str) -> Path:
        target = self._folder / name
        if target.resolve() == file.resolve():
            raise ConfigError(f"a snapshot of {file} in its own folder: choose another one")
        copy_durably(file, target)
        return target

    def get(self, name: str, target: Path) -> None:
        if not (self._folder / name).exists():
            raise MissingError(2, f"no snapshot {self._folder / name}")
        copy_durably(self._folder / name, target)

    def names(self) -> list[str]:
        return sorted(path.name for path in self._folder.glob("*"))


class _Bucket:
    """A prefix in an object store: S3, GCS, Azure, or a folder as `file:///`."""

    def __init__(self, url: str, options: dict[str, Any]) -> None:
        try:
            import obstore
        except ImportError as error:
            raise ConfigError(f'{url}: object stores need obstore; pip install "nandex[objects]"') from error
        self._obstore = obstore
        self._url = url.rstrip("/")
        if self._url.startswith("file://"):
            options = {"mkdir": True, **options}
        try:
            self._store = obstore.store.from_url(self._url, **options)
        except (obstore.exceptions.BaseError, TypeError, ValueError) as error:
            raise ConfigError(f"{url}: {error}") from error
        except OSError as error:
            raise DeviceError(error.errno or _EIO, f"cannot open {url}: {error}") from error

    def __str__(self) -> str:
        return self._url

    def put(self, file: Path, name: str) -> str:
        self._call("write", name, lambda: self._obstore.put(self._store, name, file, chunk_size=_PART_BYTES))
        return f"{self._url}/{name}"

    def get(self, name: str, target: Path) -> None:
        def copy() -> None:
            chunks = self._obstore.get(self._store, name).stream(min_chunk_size=_PART_BYTES)
            write_chunks_durably(target, (memoryview(chunk) for chunk in chunks))

        self._call("read", name, copy)

    def names(self) -> list[str]:
        def listed() -> list[str]:
            return [it["path"] for part in self._obstore.list(self._store) for it in part]

        return sorted(self._call("list", "", listed))

    def _call(self, what: str, name: str, call: Callable[[], _T]) -> _T:
        place = f"{self._url}/{name}".rstrip("/")
        try:
            return call()
        except (OSError, self._obstore.exceptions.BaseError) as error:
            # Further lines are for the library's own developers.
            reason = str(error).partition("\n")[0]
            if what == "read" and isinstance(error, FileNotFoundError):
                raise MissingError(2, f"no snapshot {place}: {reason}") from error
            raise DeviceError(_EIO, f"cannot {what} {place}: {reason}") from error
