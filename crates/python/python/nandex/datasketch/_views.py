"""datasketch's views of its tables, over the index."""

from __future__ import annotations

from collections import Counter as _Counter
from collections.abc import Hashable, Iterator
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from nandex._nandex import _Lsh
    from nandex.datasketch._stored import Numbers


class _Shown(Protocol):
    """An index with `b` bucket keys for each key."""

    b: int
    _index: _Lsh

    def __contains__(self, key: Hashable) -> bool: ...

    def __len__(self) -> int: ...

    def _scan(self) -> Iterator[tuple[list[Any], Numbers]]: ...


def column(hashes: Numbers, band: int, bands: int) -> list[bytes]:
    """Returns the bucket keys of a band as bytes."""
    packed = hashes[band::bands].astype(">u8").tobytes()
    return [packed[start : start + 8] for start in range(0, len(packed), 8)]


class Keys:
    """The equivalent of datasketch's `MinHashLSH.keys`: the keys, and the bucket keys of each."""

    def __init__(self, lsh: _Shown) -> None:
        self._lsh = lsh

    def __contains__(self, key: Hashable) -> bool:
        return key in self._lsh

    def __getitem__(self, key: Hashable) -> list[bytes]:
        return self.get(key)

    def get(self, key: Hashable) -> list[bytes]:
        """Returns the bucket keys of a key, one of each band; none if it is absent."""
        return self.getmany(key)[0]

    def getmany(self, *keys: Hashable) -> list[list[bytes]]:
        """Returns the bucket keys of each key."""
        return [hashes or [] for hashes in self._lsh._index.hashes_many(list(keys))]

    def __iter__(self) -> Iterator[Any]:
        for keys, _ in self._lsh._scan():
            yield from keys

    def keys(self) -> Iterator[Any]:
        """Yields all keys."""
        return iter(self)

    def __len__(self) -> int:
        return len(self._lsh)

    def size(self) -> int:
        """Returns the number of keys."""
        return len(self)

    def has_key(self, key: Hashable) -> bool:
        """Returns whether the key is present."""
        return key in self

    def itemcounts(self) -> dict[Any, int]:
        """Returns the number of bands, for each key."""
        return dict.fromkeys(self, self._lsh.b)


class HashTable:
    """The equivalent of an element of datasketch's `MinHashLSH.hashtables`: the buckets of a band.

    Iterating over them reads all documents once.
    """

    def __init__(self, lsh: _Shown, band: int) -> None:
        self._lsh = lsh
        self._band = band

    def __getitem__(self, bucket: bytes) -> set[Any]:
        return self.get(bucket)

    def get(self, bucket: bytes) -> set[Any]:
        """Returns the keys of a bucket."""
        return set(self._lsh._index.bucket(self._band, bucket)) if len(bucket) == 8 else set()

    def getmany(self, *buckets: bytes) -> list[set[Any]]:
        """Returns the keys of each bucket."""
        return [self.get(bucket) for bucket in buckets]

    def __contains__(self, bucket: bytes) -> bool:
        return bool(self.get(bucket))

    def has_key(self, bucket: bytes) -> bool:
        """Returns whether the bucket has a key."""
        return bucket in self

    def itemcounts(self) -> dict[bytes, int]:
        """Returns the number of keys in each bucket."""
        counts: _Counter[bytes] = _Counter()
        for _, hashes in self._lsh._scan():
            counts.update(column(hashes, self._band, self._lsh.b))
        return dict(counts)

    def __iter__(self) -> Iterator[bytes]:
        return iter(self.itemcounts())

    def keys(self) -> Iterator[bytes]:
        """Yields all buckets."""
        return iter(self)

    def __len__(self) -> int:
        return len(self.itemcounts())

    def size(self) -> int:
        """Returns the number of buckets."""
        return len(self)
