"""`MinHashLSH` and `MinHashLSHForest` as in datasketch, with an index that is bigger than RAM.

It takes datasketch's own `MinHash` and `WeightedMinHash`, and everything else that has `hashvalues`. Without a
`storage_config` the index is in RAM and ends with the object. With one it is a file:

>>> lsh = MinHashLSH(num_perm=4, params=(2, 2), storage_config={"type": "nandex", "path": path, "ram": "64MiB"})
>>> lsh.insert_many(["a", "b"], np.array([[1, 2, 3, 4], [1, 2, 5, 6]]))
>>> lsh.query_many(np.array([[1, 2, 9, 9], [7, 7, 5, 6]]))
[['a', 'b'], ['b']]
>>> lsh.close()
"""

from __future__ import annotations

import hashlib
import json
import operator
import os
from collections import Counter as _Counter
from collections.abc import Callable, Generator, Hashable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import numpy as np

from nandex._errors import ConfigError, InputError, InputTypeError, KeyNotFoundError
from nandex._nandex import _Lsh, _lsh_bands

if TYPE_CHECKING:
    from types import TracebackType

    from numpy.typing import NDArray

    _Numbers = NDArray[np.uint64]
    _Amount = int | float | str

__all__ = ["MinHashLSH", "MinHashLSHDeletionSession", "MinHashLSHForest", "MinHashLSHInsertionSession"]

_Self = TypeVar("_Self")

#: RAM and documents of an index, unless stated. It grows past the documents, by larger and larger parts.
_RAM = "256MiB"
_DOCUMENTS_IN_FILE = 100_000
_DOCUMENTS_IN_RAM = 10_000


class _Sketch(Protocol):
    """A signature, such as a datasketch `MinHash`."""

    hashvalues: Any

    def __len__(self) -> int: ...


def _storage(config: dict[str, Any] | None) -> tuple[str | None, _Amount, _Amount]:
    """Path, RAM and documents of a `storage_config`."""
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


def _check_parameters(threshold: float, num_perm: int, weights: tuple[float, float]) -> None:
    if not 0.0 <= threshold <= 1.0:
        raise ConfigError(f"threshold must be in [0.0, 1.0], and is {threshold}")
    if num_perm < 2:
        raise ConfigError(f"Too few permutation functions: {num_perm}; give 2 or more")
    if any(weight < 0.0 or weight > 1.0 for weight in weights):
        raise ConfigError(f"Weights must be in [0.0, 1.0], and are {weights}")
    if sum(weights) != 1.0:
        raise ConfigError(f"Weights must sum to 1.0, and are {weights}")


class MinHashLSH:
    """An index of MinHash signatures by their bands: which documents have a Jaccard similarity above a threshold?

    The parameters are those of `datasketch.MinHashLSH`, and the bands and the candidates are the same, but for two
    things: a bucket keeps its 253 oldest keys, and bucket keys are hashes of 8 bytes.

    threshold: The Jaccard similarity from where on documents are to be candidates, 0 to 1.
    num_perm: Values of a signature.
    weights: How bad false positives and false negatives are; 1 together.
    params: Bands, and values in each, in place of those that are best for the threshold.
    storage_config: None for an index in RAM. `{"type": "nandex", "path": ...}` for one in a file, which is opened if
        it is there; with `"ram"`, what it may take, 256 MiB unless stated, and `"documents"`, with how many its first
        part is filled, 100,000 unless stated.
    prepickle: Keys are `str`, `bytes` and `int` as they are, and others as pickles. False refuses others: reading a
        pickle runs code, so do that where you do not trust who has written the file. True pickles as None does.
    hashfunc: A function from the bytes of a band to bytes, to be used before they are hashed.

    An insert reads nothing, and a query of a new signature next to nothing. One that finds keys reads a page for each
    band that has the bucket on flash, and two for keys that are not in RAM. Batches cost less: `insert_many`,
    `query_many`. All calls may come from any thread.
    """

    def __init__(
        self,
        threshold: float = 0.9,
        num_perm: int = 128,
        weights: tuple[float, float] = (0.5, 0.5),
        params: tuple[int, int] | None = None,
        storage_config: dict[str, Any] | None = None,
        prepickle: bool | None = None,
        hashfunc: Callable[[bytes], bytes] | None = None,
    ) -> None:
        _check_parameters(threshold, num_perm, weights)
        self.threshold = threshold
        self.weights = weights
        self.h = self.num_perm = num_perm
        if params is None:
            self.b, self.r = _lsh_bands(threshold, num_perm, weights)
        else:
            self.b, self.r = params
        if self.b * self.r > num_perm:
            raise ConfigError(
                f"params: {self.b} bands of {self.r} values are more than num_perm, {num_perm}; give fewer, or num_perm"
            )
        if self.b < 2 or self.r < 1:
            raise ConfigError(f"params: {self.b} bands of {self.r} values; give 2 bands or more, of 1 value or more")
        self.params = (self.b, self.r)
        self.prepickle = prepickle
        self.hashfunc = hashfunc
        self.storage_config = storage_config
        self.buffer_size = 50000
        self.hashranges = [(band * self.r, (band + 1) * self.r) for band in range(self.b)]
        self._minhash_scheme: str | None = None
        self._queries: list[_Numbers] = []
        self._path, self._ram, self._documents = _storage(storage_config)
        self._index = self._open()
        self.keys = _Keys(self)
        self.hashtables = [_HashTable(self, band) for band in range(self.b)]

    def _open(self) -> _Lsh:
        about = {"num_perm": self.h, "bands": self.b, "rows": self.r, "hashfunc": self.hashfunc is not None}
        return _Lsh(
            self._path,
            ram=self._ram,
            documents=self._documents,
            shape=(self.h, self.r, self.b),
            about=json.dumps(about, sort_keys=True),
            pickles=self.prepickle is not False,
        )

    def insert(self, key: Hashable, minhash: _Sketch, check_duplication: bool = True) -> None:
        """Adds a key with its signature.

        A key that is there is a `ValueError`. Without `check_duplication` it is in the buckets of both signatures.
        """
        done = None
        if self._takes_values_of(minhash):
            done = self._index.insert(key, minhash.hashvalues, check_duplication)
        if done is None:
            self._insert([key], self._hashed_of([minhash], is_insert=True), check_duplication)
        elif not done:
            self._refuse(0, [key])

    def insert_many(self, keys: Iterable[Hashable], minhashes: Any, check_duplication: bool = True) -> None:
        """Adds keys with their signatures: an array of `hashvalues` with a row for each, or a list of MinHashes.

        A key that is there is a `ValueError`; those before it are in. Takes the interpreter's lock for the keys only.
        """
        keys = keys.tolist() if isinstance(keys, np.ndarray) else list(keys)
        hashes = self._hashed_of(minhashes, is_insert=True)
        if len(hashes) != len(keys) * self.b:
            raise InputError(
                f"{len(keys)} keys and {len(hashes) // self.b} signatures: give as many of ones as of the others"
            )
        self._insert(keys, hashes, check_duplication)

    def _insert(self, keys: list[Hashable], hashes: _Numbers, check: bool) -> None:
        self._refuse(self._index.insert_many(keys, hashes, check), keys)

    @staticmethod
    def _refuse(stopped: int | None, keys: list[Hashable]) -> None:
        if stopped is not None:
            raise InputError(
                f"The given key already exists: {keys[stopped]!r}; remove it first, or insert without check_duplication"
            )

    def query(self, minhash: _Sketch) -> list[Any]:
        """The keys whose sets are likely above the threshold, in the order in which they came."""
        if self._takes_values_of(minhash):
            found = self._index.query(minhash.hashvalues)
            if found is not None:
                return found
        return self._index.query_many(self._hashed_of([minhash]))[0]

    def query_many(self, minhashes: Any) -> list[list[Any]]:
        """The keys for each signature: of an array of `hashvalues` with a row for each, or a list of MinHashes.

        The reads of all overlap.
        """
        return self._index.query_many(self._hashed_of(minhashes))

    def add_to_query_buffer(self, minhash: _Sketch) -> None:
        """Keeps a query for `collect_query_buffer`."""
        self._queries.append(self._hashed_of([minhash]))

    def collect_query_buffer(self) -> list[Any]:
        """The keys that every query of the buffer finds. The buffer is empty then."""
        queries, self._queries = self._queries, []
        if not queries:
            return []
        first, *others = self._index.query_many(np.concatenate(queries))
        common = set(first).intersection(*others)
        return [key for key in first if key in common]

    def __contains__(self, key: Hashable) -> bool:
        """Whether the key is there. Costs a read if it is."""
        return bool(self._index.contains_many([key])[0])

    def contains_many(self, keys: Iterable[Hashable]) -> NDArray[np.bool_]:
        """Whether each key is there; the reads overlap."""
        return self._index.contains_many(keys.tolist() if isinstance(keys, np.ndarray) else list(keys))

    def remove(self, key: Hashable) -> None:
        """Takes out a key. One that is not there is a `ValueError`."""
        if not self._index.remove(key):
            raise InputError(f"The given key does not exist: {key!r}")

    def insertion_session(self, buffer_size: int = 50000) -> MinHashLSHInsertionSession:
        """A context manager with an `insert`, as datasketch has it: no faster than that of the index."""
        return MinHashLSHInsertionSession(self, buffer_size)

    def deletion_session(self, buffer_size: int = 50000) -> MinHashLSHDeletionSession:
        """A context manager with a `remove`, as datasketch has it. Keys are taken out at once."""
        return MinHashLSHDeletionSession(self, buffer_size)

    def merge(self, other: MinHashLSH, check_overlap: bool = False) -> None:
        """Adds all that another index has, of the same `num_perm` and bands."""
        if type(self) is not type(other):
            raise InputTypeError(f"Cannot merge type {type(self).__name__} and type {type(other).__name__}.")
        if (self.h, self.params, self.hashfunc) != (other.h, other.params, other.hashfunc):
            raise ConfigError(
                f"Cannot merge MinHashLSH with different initialization parameters: num_perm {self.h} and params "
                f"{self.params}, and num_perm {other.h} and params {other.params}"
            )
        scheme = self._known_scheme(other._minhash_scheme)
        if check_overlap:
            for keys, _ in other._scan():
                if self.contains_many(keys).any():
                    raise InputError("The keys are overlapping, duplicate key exists.")
        for keys, hashes in other._scan():
            self._index.insert_many(keys, hashes, False)
        self._minhash_scheme = scheme

    def is_empty(self) -> bool:
        """Whether no key is there."""
        return len(self._index) == 0

    def __len__(self) -> int:
        """How many keys are there."""
        return len(self._index)

    def __bool__(self) -> bool:
        return True

    def get_counts(self) -> list[dict[bytes, int]]:
        """For each band, how many keys each bucket has. Reads all documents once; the buckets are all in RAM."""
        return self._counts(self._scan())

    def get_subset_counts(self, *keys: Hashable) -> list[dict[bytes, int]]:
        """The same for these keys alone."""
        found = [hashes for hashes in self._index.hashes_many(list(set(keys))) if hashes is not None]
        return [dict(_Counter(hashes[band] for hashes in found)) for band in range(self.b)]

    def _counts(self, scanned: Iterable[tuple[list[Any], _Numbers]]) -> list[dict[bytes, int]]:
        counts: list[_Counter[bytes]] = [_Counter() for _ in range(self.b)]
        for _, hashes in scanned:
            for band, count in enumerate(counts):
                count.update(_column(hashes, band, self.b))
        return [dict(count) for count in counts]

    def _scan(self) -> Iterator[tuple[list[Any], _Numbers]]:
        return _scanned(self._index)

    def stats(self) -> dict[str, int]:
        """Documents, what they take in bytes, and how many keys full buckets have left out since the opening."""
        return self._index.stats()

    def sync(self) -> None:
        """Makes everything durable; otherwise that is so after 150 ms."""
        self._index.sync()

    def close(self) -> None:
        """Makes everything durable and closes the file. An index in RAM is gone then."""
        self._index.close()

    def __enter__(self: _Self) -> _Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        where = "in RAM" if self._path is None else repr(self._path)
        state = "closed" if self._index.closed else f"{len(self)} keys"
        return f"<MinHashLSH {where}: {state}, num_perm={self.h}, params={self.params}>"

    def __getstate__(self) -> dict[str, Any]:
        """A file's path, or all that an index in RAM has."""
        state = {name: value for name, value in self.__dict__.items() if name not in ("_index", "keys", "hashtables")}
        state["_content"] = [] if self._path is not None else list(self._scan())
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        content = state.pop("_content")
        self.__dict__.update(state)
        self._index = self._open()
        self.keys = _Keys(self)
        self.hashtables = [_HashTable(self, band) for band in range(self.b)]
        for keys, hashes in content:
            self._index.insert_many(keys, hashes, False)

    def _takes_values_of(self, minhash: _Sketch) -> bool:
        """Whether the hash values of a sketch are the index's, as they are."""
        return self.hashfunc is None and getattr(minhash, "scheme", None) is self._minhash_scheme

    def _hashed_of(self, minhashes: Any, is_insert: bool = False) -> _Numbers:
        """A bucket key for each band of each signature."""
        if not isinstance(minhashes, np.ndarray):
            minhashes = list(minhashes)
            # Sketches whose hash values are plain arrays, of the scheme that the index has.
            if self.hashfunc is None and self._minhash_scheme is not None:
                hashes = self._index.hashes_of(minhashes, self._minhash_scheme)
                if hashes is not None:
                    return hashes
        return self._hashed(self._rows_of(minhashes, is_insert))

    def _rows_of(self, minhashes: Any, is_insert: bool) -> NDArray[Any]:
        """The values of signatures as an array: documents, `num_perm`, numbers of a value."""
        if not isinstance(minhashes, np.ndarray):
            minhashes = list(minhashes)
            scheme = self._scheme_of(minhashes)
            minhashes = self._stacked(minhashes)
            if is_insert:
                self._minhash_scheme = scheme
        if minhashes.ndim < 2 or minhashes.shape[1] != self.h:
            raise InputError(f"Expecting minhash with length {self.h}, got an array of the shape {minhashes.shape}")
        if minhashes.dtype.kind not in "ui":
            raise InputTypeError(
                f"an array of {minhashes.dtype} as signatures: give integers, such as MinHash.hashvalues"
            )
        width = 1 if minhashes.ndim == 2 else minhashes.shape[2]
        return np.ascontiguousarray(minhashes).reshape(len(minhashes), self.h, width)

    def _stacked(self, minhashes: list[_Sketch]) -> NDArray[Any]:
        if not minhashes:
            return np.empty((0, self.h), np.uint64)
        for minhash in minhashes:
            if len(minhash) != self.h:
                raise InputError(f"Expecting minhash with length {self.h}, got {len(minhash)}")
        return np.stack([np.asarray(minhash.hashvalues) for minhash in minhashes])

    def _scheme_of(self, minhashes: list[_Sketch]) -> str | None:
        """The scheme of the index's signatures after these. Hash values do not tell it, so MinHashes are asked."""
        scheme = self._minhash_scheme
        for minhash in minhashes:
            scheme = _same_scheme(scheme, getattr(minhash, "scheme", None))
        return scheme

    def _known_scheme(self, other: str | None) -> str | None:
        return _same_scheme(self._minhash_scheme, other)

    def _hashed(self, rows: NDArray[Any]) -> _Numbers:
        """A bucket key for each band."""
        if self.hashfunc is None:
            if rows.dtype.itemsize == 8:
                rows = rows.view(np.uint64)
            elif rows.dtype != np.uint32:
                rows = rows.astype(np.uint64)
            return self._index.hashes_in(rows.reshape(-1), self.h * rows.shape[2])
        used = rows[:, : self.b * self.r].reshape(len(rows) * self.b, -1)
        bands = (np.ascontiguousarray(band).byteswap().tobytes() for band in used)
        digests = (hashlib.blake2b(self.hashfunc(band), digest_size=8).digest() for band in bands)
        return np.frombuffer(b"".join(digests), ">u8").astype(np.uint64)


def _same_scheme(known: str | None, scheme: str | None) -> str | None:
    if scheme is None or known is None:
        return known or scheme
    if scheme != known:
        raise InputError(
            f"MinHash scheme {scheme!r} does not match scheme {known!r} of the MinHash previously given to this index"
        )
    return known


def _scanned(index: _Lsh) -> Iterator[tuple[list[Any], _Numbers]]:
    """All keys in the order in which they came, in parts, with their bucket keys."""
    start, keys, hashes = index.scan(0)
    while keys:
        yield keys, hashes
        start, keys, hashes = index.scan(start)


def _column(hashes: _Numbers, band: int, bands: int) -> list[bytes]:
    """The bucket keys of a band as bytes."""
    packed = hashes[band::bands].astype(">u8").tobytes()
    return [packed[start : start + 8] for start in range(0, len(packed), 8)]


class _Keys:
    """What `MinHashLSH.keys` is in datasketch: the keys, and the bucket keys of each."""

    def __init__(self, lsh: MinHashLSH | MinHashLSHForest) -> None:
        self._lsh = lsh

    def __contains__(self, key: Hashable) -> bool:
        return key in self._lsh

    def __getitem__(self, key: Hashable) -> list[bytes]:
        return self.get(key)

    def get(self, key: Hashable) -> list[bytes]:
        """The bucket keys of a key, one of each band; none if it is not there."""
        return self.getmany(key)[0]

    def getmany(self, *keys: Hashable) -> list[list[bytes]]:
        """The bucket keys of each key."""
        return [hashes or [] for hashes in self._lsh._index.hashes_many(list(keys))]

    def __iter__(self) -> Iterator[Any]:
        for keys, _ in self._lsh._scan():
            yield from keys

    def keys(self) -> Iterator[Any]:
        """All keys."""
        return iter(self)

    def __len__(self) -> int:
        return len(self._lsh)

    def size(self) -> int:
        """How many keys there are."""
        return len(self)

    def has_key(self, key: Hashable) -> bool:
        """Whether the key is there."""
        return key in self

    def itemcounts(self) -> dict[Any, int]:
        """The number of bands, for each key."""
        return dict.fromkeys(self, self._lsh.b)


class _HashTable:
    """What an element of `MinHashLSH.hashtables` is in datasketch: the buckets of a band.

    Going through them reads all documents once.
    """

    def __init__(self, lsh: MinHashLSH | MinHashLSHForest, band: int) -> None:
        self._lsh = lsh
        self._band = band

    def __getitem__(self, bucket: bytes) -> set[Any]:
        return self.get(bucket)

    def get(self, bucket: bytes) -> set[Any]:
        """The keys of a bucket."""
        return set(self._lsh._index.bucket(self._band, bucket)) if len(bucket) == 8 else set()

    def getmany(self, *buckets: bytes) -> list[set[Any]]:
        """The keys of each bucket."""
        return [self.get(bucket) for bucket in buckets]

    def __contains__(self, bucket: bytes) -> bool:
        return bool(self.get(bucket))

    def has_key(self, bucket: bytes) -> bool:
        """Whether the bucket has a key."""
        return bucket in self

    def itemcounts(self) -> dict[bytes, int]:
        """How many keys each bucket has."""
        counts: _Counter[bytes] = _Counter()
        for _, hashes in self._lsh._scan():
            counts.update(_column(hashes, self._band, self._lsh.b))
        return dict(counts)

    def __iter__(self) -> Iterator[bytes]:
        return iter(self.itemcounts())

    def keys(self) -> Iterator[bytes]:
        """All buckets."""
        return iter(self)

    def __len__(self) -> int:
        return len(self.itemcounts())

    def size(self) -> int:
        """How many buckets there are."""
        return len(self)


class MinHashLSHInsertionSession:
    """Inserts as the index does: single inserts are gathered into batches there."""

    def __init__(self, lsh: MinHashLSH, buffer_size: int) -> None:
        self.lsh = lsh
        self.lsh.buffer_size = buffer_size

    def insert(self, key: Hashable, minhash: _Sketch, check_duplication: bool = True) -> None:
        """As `MinHashLSH.insert`."""
        self.lsh.insert(key, minhash, check_duplication)

    def close(self) -> None:
        """Does nothing."""

    def __enter__(self) -> MinHashLSHInsertionSession:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


class MinHashLSHDeletionSession:
    """Removes keys, as datasketch's session does; there is nothing to buffer."""

    def __init__(self, lsh: MinHashLSH, buffer_size: int) -> None:
        self.lsh = lsh
        self.lsh.buffer_size = buffer_size

    def remove(self, key: Hashable) -> None:
        """As `MinHashLSH.remove`."""
        self.lsh.remove(key)

    def close(self) -> None:
        """Does nothing."""

    def __enter__(self) -> MinHashLSHDeletionSession:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


#: What a prefix of no values has as its key, by the bytes of a value: 4 or 8, and 16 for a pair of WeightedMinHash.
_ROOTS = {4: 0x243F6A8885A308D3, 8: 0x13198A2E03707344, 16: 0xA4093822299F31D0}

#: The key of a prefix is made of the one before it and of its last value, so that each gives the other: the finalizer
#: of SplitMix64, and what undoes it. They are on flash.
_STEP = np.uint64(0x9E3779B97F4A7C15)

#: The last 24 bits of the shortest prefixes of a WeightedMinHash: its pairs of values cannot be had back.
_PAIRS = np.uint64(0xB5297A)
_PAIRS_MASK = np.uint64(0xFFFFFF)


def _mixed(keys: _Numbers) -> _Numbers:
    keys = (keys ^ (keys >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    keys = (keys ^ (keys >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(keys ^ (keys >> np.uint64(31)))


def _unmixed(keys: _Numbers) -> _Numbers:
    keys = (keys ^ (keys >> np.uint64(31)) ^ (keys >> np.uint64(62))) * np.uint64(0x319642B2D24D8EC3)
    keys = (keys ^ (keys >> np.uint64(27)) ^ (keys >> np.uint64(54))) * np.uint64(0x96DE1B173F119089)
    return np.asarray(keys ^ (keys >> np.uint64(30)) ^ (keys >> np.uint64(60)))


class MinHashLSHForest:
    """An index of MinHash signatures by prefixes of several parts: which documents are the most alike?

    The parameters and methods are those of `datasketch.MinHashLSHForest`, and so are the answers, but for these: a
    prefix keeps its 253 oldest keys; once `index` was called, a key that is added later is found at once; and of keys
    that are equally alike those that came first are given, while datasketch gives any.

    num_perm: Values of a signature.
    l: Parts of a signature, the prefix trees of the paper; `num_perm // l` is the longest prefix.
    storage_config, prepickle: As those of `MinHashLSH`. What a file has when it is opened is searchable.

    A document has a key on flash for each value of its signature, about 5 KiB for 128 of them. A query finds the
    longest shared prefixes by halves, and reads pages for those that are there. All calls may come from any thread.
    """

    def __init__(
        self,
        num_perm: int = 128,
        l: int = 8,  # noqa: E741
        storage_config: dict[str, Any] | None = None,
        prepickle: bool | None = None,
    ) -> None:
        if l <= 0 or num_perm <= 0:
            raise ConfigError(f"num_perm and l must be positive, and are {num_perm} and {l}")
        if l > num_perm:
            raise ConfigError(f"l cannot be greater than num_perm, and is {l} of {num_perm}")
        self.l = l
        self.k = num_perm // l
        self.b = self.l * self.k
        self.hashranges = [(tree * self.k, (tree + 1) * self.k) for tree in range(l)]
        self.prepickle = prepickle
        self._minhash_scheme: str | None = None
        self._path, self._ram, self._documents = _storage(storage_config)
        self._start()
        self._is_searchable = len(self._index) > 0

    def _start(self) -> None:
        self._index = _Lsh(
            self._path,
            ram=self._ram,
            documents=self._documents,
            shape=(self.b, 1, self.b),
            about=json.dumps({"forest": True, "l": self.l, "k": self.k}, sort_keys=True),
            pickles=self.prepickle is not False,
        )
        self.keys = _ForestKeys(self)
        self.hashtables = [_ForestTable(self, (tree + 1) * self.k - 1) for tree in range(self.l)]

    def add(self, key: Hashable, minhash: _Sketch) -> None:
        """Adds a key with its signature. A key that is there is a `ValueError`."""
        self.add_many([key], [minhash])

    def add_many(self, keys: Iterable[Hashable], minhashes: Any) -> None:
        """Adds keys with their signatures: an array of `hashvalues` with a row for each, or a list of MinHashes.

        A key that is there is a `ValueError`; those before it are in.
        """
        keys = keys.tolist() if isinstance(keys, np.ndarray) else list(keys)
        prefixes = self._prefixes_of(minhashes, is_add=True)
        if len(prefixes) != len(keys):
            raise InputError(f"{len(keys)} keys and {len(prefixes)} signatures: give as many of ones as of the others")
        stopped = self._index.insert_many(keys, prefixes.reshape(-1), True)
        if stopped is not None:
            raise InputError(f"The given key has already been added: {keys[stopped]!r}")

    def index(self) -> None:
        """Makes the keys that were added searchable."""
        self._is_searchable = len(self._index) > 0

    def query(self, minhash: _Sketch, k: int) -> list[Any]:
        """At most `k` keys, of the sets that are likely the most alike first."""
        return self.query_many([minhash], k)[0]

    def query_many(self, minhashes: Any, k: int) -> list[list[Any]]:
        """The same for each signature: of an array of `hashvalues` with a row for each, or a list of MinHashes."""
        if k <= 0:
            raise InputError(f"k must be positive, and is {k}")
        prefixes = self._prefixes_of(minhashes)
        found: list[list[Any]] = [[] for _ in prefixes]
        descents = [_descend(self.k, k) for _ in prefixes]
        lengths = {place: next(descent) for place, descent in enumerate(descents)} if self._is_searchable else {}
        while lengths:
            places, depths = np.array(list(lengths)), np.array(list(lengths.values())) - 1
            # The keys of other lengths are such that no document has them.
            asked = ~prefixes[places]
            rows = np.arange(len(places))
            asked[rows, :, depths] = prefixes[places, :, depths]
            for place, keys in zip(places.tolist(), self._index.query_many(asked.reshape(-1)), strict=True):
                try:
                    lengths[place] = descents[place].send(keys)
                except StopIteration as ended:
                    found[place] = ended.value
                    del lengths[place]
        return found

    def get_minhash_hashvalues(self, key: Hashable) -> NDArray[Any]:
        """The `hashvalues` of the MinHash of a key. A key that is not there is a `KeyError`. Costs a read.

        Those of a WeightedMinHash cannot be had, as with datasketch: that is a `ValueError`.
        """
        (prefixes,) = self._index.hashes_many([key])
        if prefixes is None:
            raise KeyNotFoundError(f"The provided key does not exist in the LSHForest: {key}")
        of_trees = np.frombuffer(b"".join(prefixes), ">u8").astype(np.uint64).reshape(self.l, self.k)
        if (of_trees[:, 0] & _PAIRS_MASK == _PAIRS).all():
            raise InputError(f"the signature of {key!r} is that of a WeightedMinHash, whose hash values are not kept")
        before = np.empty_like(of_trees)
        before[:, 1:] = of_trees[:, :-1]
        for value_bytes in (4, 8):
            before[:, 0] = _ROOTS[value_bytes]
            values = (_unmixed(of_trees) - before * _STEP).reshape(-1)
            if value_bytes == 8 or (values >> np.uint64(32) == 0).all():
                break
        return np.asarray(values, np.uint32 if value_bytes == 4 else np.uint64)

    def is_empty(self) -> bool:
        """Whether no key is searchable: none was added, or `index` was not called since."""
        return not self._is_searchable

    def __contains__(self, key: Hashable) -> bool:
        """Whether the key was added. Costs a read if it was."""
        return bool(self._index.contains_many([key])[0])

    def __len__(self) -> int:
        """How many keys were added."""
        return len(self._index)

    def __bool__(self) -> bool:
        return True

    def _scan(self) -> Iterator[tuple[list[Any], _Numbers]]:
        return _scanned(self._index)

    def stats(self) -> dict[str, int]:
        """Documents, what they take in bytes, and how many keys full prefixes have left out since the opening."""
        return self._index.stats()

    def sync(self) -> None:
        """Makes everything durable; otherwise that is so after 150 ms."""
        self._index.sync()

    def close(self) -> None:
        """Makes everything durable and closes the file. An index in RAM is gone then."""
        self._index.close()

    def __enter__(self: _Self) -> _Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        where = "in RAM" if self._path is None else repr(self._path)
        state = "closed" if self._index.closed else f"{len(self)} keys"
        return f"<MinHashLSHForest {where}: {state}, l={self.l}, k={self.k}>"

    def __getstate__(self) -> dict[str, Any]:
        """A file's path, or all that an index in RAM has."""
        state = {name: value for name, value in self.__dict__.items() if name not in ("_index", "keys", "hashtables")}
        state["_content"] = [] if self._path is not None else list(self._scan())
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        content = state.pop("_content")
        self.__dict__.update(state)
        self._start()
        for keys, hashes in content:
            self._index.insert_many(keys, hashes, False)

    def _prefixes_of(self, minhashes: Any, is_add: bool = False) -> _Numbers:
        """A key for each prefix of each part of each signature: documents, parts, lengths."""
        if not isinstance(minhashes, np.ndarray):
            minhashes = list(minhashes)
            if not minhashes:
                return np.empty((0, self.l, self.k), np.uint64)
            scheme = self._minhash_scheme
            for minhash in minhashes:
                if len(minhash) < self.b:
                    raise InputError(f"The num_perm of MinHash out of range: {len(minhash)}; give {self.b} or more")
                scheme = _same_scheme(scheme, getattr(minhash, "scheme", None))
            if is_add:
                self._minhash_scheme = scheme
            minhashes = np.stack([np.asarray(minhash.hashvalues)[: self.b] for minhash in minhashes])
        if minhashes.ndim < 2 or minhashes.shape[1] < self.b:
            raise InputError(
                f"The num_perm of MinHash out of range: an array of the shape {minhashes.shape}; give rows of {self.b} "
                "or more"
            )
        if minhashes.dtype.kind not in "ui":
            raise InputTypeError(
                f"an array of {minhashes.dtype} as signatures: give integers, such as MinHash.hashvalues"
            )
        return self._prefixes_in(minhashes[:, : self.b].reshape(len(minhashes), self.l, self.k, -1))

    def _prefixes_in(self, values: NDArray[Any]) -> _Numbers:
        """The same for an array of documents, parts, and values of one number or of several."""
        numbers = values.shape[3]
        root = _ROOTS[16 if numbers > 1 else 4 if values.dtype.itemsize <= 4 else 8]
        values = values.astype(np.uint64)
        key = np.full(values.shape[:2], root, np.uint64)
        prefixes = np.empty(values.shape[:3], np.uint64)
        for depth in range(self.k):
            for number in range(numbers):
                key = _mixed(key * _STEP + values[:, :, depth, number])
            prefixes[:, :, depth] = key
        if numbers > 1:
            prefixes[:, :, 0] = prefixes[:, :, 0] & ~_PAIRS_MASK | _PAIRS
        return prefixes


def _descend(longest: int, count: int) -> Generator[int, list[Any], list[Any]]:
    """Asks for the keys with prefixes of a length, and returns those that share the longest ones, `count` at most.

    Where some keys share a prefix, some share each shorter one too. So the longest that any shares is found by halves.
    """
    asked: dict[int, list[Any]] = {}
    shared, absent, length = 0, longest + 1, longest
    while absent - shared > 1:
        asked[length] = yield length
        shared, absent = (length, absent) if asked[length] else (shared, length)
        length = (shared + absent) // 2
    found: dict[Any, None] = {}
    while shared and len(found) < count:
        found.update(dict.fromkeys(asked[shared] if shared in asked else (yield shared)))
        shared -= 1
    return list(found)[:count]


class _ForestKeys(_Keys):
    """What `MinHashLSHForest.keys` is in datasketch: the keys, and for each the hashes of its parts."""

    _lsh: MinHashLSHForest

    def getmany(self, *keys: Hashable) -> list[list[bytes]]:
        """The hashes of the parts of each key."""
        step = self._lsh.k
        return [hashes[step - 1 :: step] for hashes in super().getmany(*keys)]

    def itemcounts(self) -> dict[Any, int]:
        """The number of parts, for each key."""
        return dict.fromkeys(self, self._lsh.l)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _ForestKeys) and {key: self[key] for key in self} == {key: other[key] for key in other}

    __hash__ = None  # type: ignore[assignment]


class _ForestTable(_HashTable):
    """What an element of `MinHashLSHForest.hashtables` is in datasketch: the keys by the hash of a part."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _ForestTable) and {it: self[it] for it in self} == {it: other[it] for it in other}

    __hash__ = None  # type: ignore[assignment]
