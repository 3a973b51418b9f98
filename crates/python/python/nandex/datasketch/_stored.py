"""The common part of the indexes of `nandex.datasketch`: storage, closing and pickling."""

from __future__ import annotations

import os
from collections.abc import Hashable, Iterator
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import numpy as np

from nandex._errors import ConfigError, InputError, InputTypeError
from nandex._nandex import _Lsh

if TYPE_CHECKING:
    from types import TracebackType

    from numpy.typing import NDArray

    Numbers = NDArray[np.uint64]
    _Amount = int | float | str

_Self = TypeVar("_Self")

#: The default RAM and documents of an index. It grows past the documents, by larger and larger parts.
_RAM = "256MiB"
_DOCUMENTS_IN_FILE = 100_000
_DOCUMENTS_IN_RAM = 10_000

#: The maximum number of values in a signature.
NUM_PERM_MAX = 1 << 16

#: The maximum of plain counts.
COUNT_MAX = (1 << 63) - 1


class Sketch(Protocol):
    """A signature, such as a datasketch `MinHash`."""

    hashvalues: Any

    def __len__(self) -> int: ...


def _storage(config: dict[str, Any] | None) -> tuple[str | None, _Amount, _Amount]:
    """Returns path, RAM and documents of a `storage_config`."""
    config = dict(config or {"type": "dict"})
    kind = config.pop("type", "nandex")
    if kind not in ("nandex", "dict"):
        raise ConfigError(
            f"storage_config: the type {kind!r}; give 'nandex' with a path, or 'dict' for an index in RAM"
        )
    path = config.pop("path", None)
    if kind == "dict" and path is not None:
        raise ConfigError("storage_config: a path with the type 'dict'; give the type 'nandex'")
    documents = config.pop("documents", _DOCUMENTS_IN_RAM if path is None else _DOCUMENTS_IN_FILE)
    ram = config.pop("ram", _RAM)
    if config:
        raise ConfigError(
            f"storage_config: {', '.join(map(repr, config))}; it has type, path, ram and documents, and a file has one "
            "index"
        )
    return None if path is None else os.fspath(path), ram, documents


class Stored:
    """An index of signatures, in a file or in RAM."""

    _index: _Lsh
    _path: str | None

    def __init__(self, storage_config: dict[str, Any] | None, prepickle: bool | None) -> None:
        self.prepickle = prepickle
        self._minhash_scheme: str | None = None
        self._path, self._ram, self._documents = _storage(storage_config)
        self._start()

    def _start(self) -> None:
        """Opens the index, and creates the views of it."""
        raise NotImplementedError

    def _open(self, shape: tuple[int, int, int], about: str) -> None:
        """Opens the index, with the scheme of its signatures."""
        self._index = _Lsh(
            self._path,
            ram=self._ram,
            documents=self._documents,
            shape=shape,
            about=about,
            pickles=self.prepickle is not False,
        )
        unpickled, self._minhash_scheme = self._minhash_scheme, self._index.scheme
        if self._minhash_scheme is None:
            self._set_scheme(unpickled)

    def _set_scheme(self, scheme: str | None) -> None:
        """Stores the scheme of the signatures, which cannot be told from hash values."""
        if scheme is not None and scheme != self._minhash_scheme:
            # Sketches of other kinds may have a scheme that is no name.
            if isinstance(scheme, str):
                self._index.set_scheme(scheme)
            self._minhash_scheme = scheme

    def __contains__(self, key: Hashable) -> bool:
        """Returns whether the key is present. Costs a read if it is."""
        return bool(self._index.contains_many([key])[0])

    def __len__(self) -> int:
        """Returns the number of keys."""
        return len(self._index)

    def __bool__(self) -> bool:
        return True

    def _scan(self) -> Iterator[tuple[list[Any], Numbers]]:
        """Yields all keys in the order of insertion, in parts, with their bucket keys."""
        start, keys, hashes = self._index.scan(0)
        while keys:
            yield keys, hashes
            start, keys, hashes = self._index.scan(start)

    def stats(self) -> dict[str, int]:
        """Returns the documents, their bytes, and the blocks that full buckets do not lead to, since the opening."""
        return self._index.stats()

    def sync(self) -> None:
        """Makes everything durable at once; otherwise updates are durable after 150 ms."""
        self._index.sync()

    def close(self) -> None:
        """Makes everything durable and closes the file. An index in RAM is lost."""
        self._index.close()

    def __enter__(self: _Self) -> _Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def _shown(self, parameters: str) -> str:
        where = "in RAM" if self._path is None else repr(self._path)
        state = "closed" if self._index.closed else f"{len(self)} keys"
        return f"<{type(self).__name__} {where}: {state}, {parameters}>"

    def __getstate__(self) -> dict[str, Any]:
        """Returns a file's path, or the whole content of an index in RAM."""
        state = {name: value for name, value in self.__dict__.items() if name not in ("_index", "keys", "hashtables")}
        state["_content"] = [] if self._path is not None else list(self._scan())
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        content = state.pop("_content")
        self.__dict__.update(state)
        self._start()
        for keys, hashes in content:
            self._index.insert_many(keys, hashes, False)


def same_scheme(known: str | None, scheme: str | None) -> str | None:
    if scheme is None or known is None:
        return known or scheme
    if scheme != known:
        raise InputError(
            f"MinHash scheme {scheme!r} does not match scheme {known!r} of the MinHash previously given to this index"
        )
    return known


def check_integers(values: NDArray[Any]) -> None:
    """Refuses signatures that are no integers."""
    if values.dtype.kind not in "ui":
        raise InputTypeError(f"an array of {values.dtype} as signatures: give integers, such as MinHash.hashvalues")
