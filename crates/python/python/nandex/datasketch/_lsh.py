"""A MinHash LSH index: the documents whose Jaccard similarity is above a threshold."""

from __future__ import annotations

import hashlib
import json
from collections import Counter as _Counter
from collections.abc import Callable, Hashable, Iterable
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from nandex._errors import ConfigError, InputError, InputTypeError
from nandex._nandex import _integer, _lsh_bands, _real
from nandex.datasketch._stored import COUNT_MAX, NUM_PERM_MAX, Sketch, Stored, check_integers, same_scheme
from nandex.datasketch._views import HashTable, Keys, column

if TYPE_CHECKING:
    from types import TracebackType

    from numpy.typing import NDArray

    from nandex.datasketch._stored import Numbers

_Self = TypeVar("_Self", bound="_Session")


def _checked(weights: tuple[float, float]) -> tuple[float, float]:
    """Returns the weights of both errors."""
    false_positives, false_negatives = (_real(weight, "weights", 0.0, 1.0) for weight in weights)
    if false_positives + false_negatives != 1.0:
        raise ConfigError(f"weights: {weights}; give two that sum to 1")
    return false_positives, false_negatives


class MinHashLSH(Stored):
    """An index of MinHash signatures by their bands: finds documents above a threshold of Jaccard similarity.

    The parameters are those of `datasketch.MinHashLSH`, and the bands and the candidates are the same, with two
    exceptions: a query finds the 253 oldest keys of a bucket, and bucket keys are 8-byte hashes.

    threshold: The Jaccard similarity at which documents become candidates, 0 to 1.
    num_perm: The number of values in a signature.
    weights: The costs of false positives and of false negatives, which sum to 1.
    params: The number of bands, and of values in each, instead of those that are best for the threshold.
    storage_config: None for an index in RAM. `{"type": "nandex", "path": ...}` for one in a file, which is opened if
        it exists; `"ram"` is its RAM, 256 MiB by default, and `"documents"` the number of documents that it has space
        for at first, 100,000 by default. It grows until the RAM is used up: 3 to 4 bytes for each band of a document.
    prepickle: Keys are `str`, `bytes` and `int` as they are, and others as pickles. False refuses others: reading a
        pickle runs code, so use False if you do not trust the writer of the file. True pickles as None does.
    hashfunc: A function from the bytes of a band to bytes, applied before they are hashed.

    An insert and a query of a new signature read almost nothing. A query that finds keys reads the block of each, which
    has up to 64 consecutive documents. Batches cost less: `insert_many`, `query_many`. All calls may come from any
    thread.
    """

    __module__ = "nandex.datasketch"

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
        self.threshold = _real(threshold, "threshold", 0.0, 1.0)
        self.weights = _checked(weights)
        self.h = self.num_perm = num_perm = _integer(num_perm, "num_perm", 2, NUM_PERM_MAX)
        if params is None:
            self.b, self.r = _lsh_bands(self.threshold, num_perm, self.weights)
        else:
            self.b, self.r = (_integer(number, "params", 0, NUM_PERM_MAX) for number in params)
        if self.b * self.r > num_perm:
            raise ConfigError(
                f"params: {self.b} bands of {self.r} values are more than num_perm, {num_perm}; give fewer, or num_perm"
            )
        if self.b < 2 or self.r < 1:
            raise ConfigError(f"params: {self.b} bands of {self.r} values; give 2 bands or more, of 1 value or more")
        self.params = (self.b, self.r)
        self.hashfunc = hashfunc
        self.storage_config = storage_config
        self.buffer_size = 50000
        self.hashranges = [(band * self.r, (band + 1) * self.r) for band in range(self.b)]
        self._queries: list[Numbers] = []
        super().__init__(storage_config, prepickle)

    def _start(self) -> None:
        about = {"num_perm": self.h, "bands": self.b, "rows": self.r, "hashfunc": self.hashfunc is not None}
        self._open((self.h, self.r, self.b), json.dumps(about, sort_keys=True))
        self.keys = Keys(self)
        self.hashtables = [HashTable(self, band) for band in range(self.b)]

    def insert(self, key: Hashable, minhash: Sketch, check_duplication: bool = True) -> None:
        """Adds a key with its signature.

        A key that is present raises `ValueError`. Without `check_duplication` it is in the buckets of both signatures.
        """
        done = None
        if self.hashfunc is None:
            done = self._index.insert(key, minhash, self._minhash_scheme, check_duplication)
        if done is None:
            self._insert([key], self._hashed_of([minhash], is_insert=True), check_duplication)
        elif not done:
            self._refuse(0, [key])

    def insert_many(self, keys: Iterable[Hashable], minhashes: Any, check_duplication: bool = True) -> None:
        """Adds keys with their signatures: an array of `hashvalues` with a row for each, or a list of MinHashes.

        A key that is present raises `ValueError`; those before it are added. Takes the interpreter's lock for the keys
        only.
        """
        keys = keys.tolist() if isinstance(keys, np.ndarray) else list(keys)
        hashes = self._hashed_of(minhashes, is_insert=True)
        if len(hashes) != len(keys) * self.b:
            raise InputError(
                f"{len(keys)} keys and {len(hashes) // self.b} signatures: give one signature for each key"
            )
        self._insert(keys, hashes, check_duplication)

    def _insert(self, keys: list[Hashable], hashes: Numbers, check: bool) -> None:
        self._refuse(self._index.insert_many(keys, hashes, check), keys)

    @staticmethod
    def _refuse(stopped: int | None, keys: list[Hashable]) -> None:
        if stopped is not None:
            raise InputError(
                f"The given key already exists: {keys[stopped]!r}; remove it first, or insert without check_duplication"
            )

    def query(self, minhash: Sketch) -> list[Any]:
        """Returns the keys whose sets are likely above the threshold, in the order of insertion."""
        if self.hashfunc is None:
            found = self._index.query(minhash, self._minhash_scheme)
            if found is not None:
                return found
        return self._index.query_many(self._hashed_of([minhash]))[0]

    def query_many(self, minhashes: Any) -> list[list[Any]]:
        """Returns the keys for each signature of an array of `hashvalues`, one row each, or of a list of MinHashes.

        The reads of all overlap.
        """
        return self._index.query_many(self._hashed_of(minhashes))

    def add_to_query_buffer(self, minhash: Sketch) -> None:
        """Keeps a query for `collect_query_buffer`."""
        self._queries.append(self._hashed_of([minhash]))

    def collect_query_buffer(self) -> list[Any]:
        """Returns the keys that every query of the buffer finds, and empties the buffer."""
        queries, self._queries = self._queries, []
        if not queries:
            return []
        first, *others = self._index.query_many(np.concatenate(queries))
        common = set(first).intersection(*others)
        return [key for key in first if key in common]

    def contains_many(self, keys: Iterable[Hashable]) -> NDArray[np.bool_]:
        """Returns whether each key is present; the reads overlap."""
        return self._index.contains_many(keys.tolist() if isinstance(keys, np.ndarray) else list(keys))

    def remove(self, key: Hashable) -> None:
        """Removes a key. A missing key raises `ValueError`."""
        if not self._index.remove(key):
            raise InputError(f"The given key does not exist: {key!r}")

    def remove_many(self, keys: Iterable[Hashable]) -> NDArray[np.bool_]:
        """Removes keys, and returns for each whether it was present; of equal keys only the first was.

        The reads of all overlap, and a block with several of them is written once.
        """
        return self._index.remove_many(keys.tolist() if isinstance(keys, np.ndarray) else list(keys))

    def insertion_session(self, buffer_size: int = 50000) -> MinHashLSHInsertionSession:
        """Returns a context manager with an `insert`, as datasketch does: it is no faster than that of the index."""
        return MinHashLSHInsertionSession(self, buffer_size)

    def deletion_session(self, buffer_size: int = 50000) -> MinHashLSHDeletionSession:
        """Returns a context manager with a `remove`, as datasketch does. Keys are removed at once."""
        return MinHashLSHDeletionSession(self, buffer_size)

    def merge(self, other: MinHashLSH, check_overlap: bool = False) -> None:
        """Adds all keys of another index, which must have the same `num_perm` and bands."""
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
        self._set_scheme(scheme)

    def is_empty(self) -> bool:
        """Returns whether the index has no keys."""
        return len(self._index) == 0

    def get_counts(self) -> list[dict[bytes, int]]:
        """Returns, for each band, the number of keys in each bucket. Reads all documents once; all buckets are in
        RAM."""
        return self._counts(self._scan())

    def get_subset_counts(self, *keys: Hashable) -> list[dict[bytes, int]]:
        """Returns the counts of `get_counts` for these keys alone."""
        found = [hashes for hashes in self._index.hashes_many(list(set(keys))) if hashes is not None]
        return [dict(_Counter(hashes[band] for hashes in found)) for band in range(self.b)]

    def _counts(self, scanned: Iterable[tuple[list[Any], Numbers]]) -> list[dict[bytes, int]]:
        counts: list[_Counter[bytes]] = [_Counter() for _ in range(self.b)]
        for _, hashes in scanned:
            for band, count in enumerate(counts):
                count.update(column(hashes, band, self.b))
        return [dict(count) for count in counts]

    def __repr__(self) -> str:
        return self._shown(f"num_perm={self.h}, params={self.params}")

    def _hashed_of(self, minhashes: Any, is_insert: bool = False) -> Numbers:
        """Returns a bucket key for each band of each signature."""
        if not isinstance(minhashes, np.ndarray):
            minhashes = list(minhashes)
            # Sketches whose hash values are plain arrays, of the index's scheme. A query may be the first call that
            # knows a scheme.
            scheme = self._minhash_scheme
            if scheme is None and minhashes and not is_insert:
                scheme = getattr(minhashes[0], "scheme", None)
            if self.hashfunc is None and scheme is not None:
                hashes = self._index.hashes_of(minhashes, scheme)
                if hashes is not None:
                    return hashes
        return self._hashed(self._rows_of(minhashes, is_insert))

    def _rows_of(self, minhashes: Any, is_insert: bool) -> NDArray[Any]:
        """Returns the values of signatures as an array: documents, `num_perm`, numbers of a value."""
        if not isinstance(minhashes, np.ndarray):
            minhashes = list(minhashes)
            scheme = self._scheme_of(minhashes)
            minhashes = self._stacked(minhashes)
            if is_insert:
                self._set_scheme(scheme)
        if minhashes.ndim < 2 or minhashes.shape[1] != self.h:
            raise InputError(f"Expecting minhash with length {self.h}, got an array of the shape {minhashes.shape}")
        check_integers(minhashes)
        width = 1 if minhashes.ndim == 2 else minhashes.shape[2]
        return np.ascontiguousarray(minhashes).reshape(len(minhashes), self.h, width)

    def _stacked(self, minhashes: list[Sketch]) -> NDArray[Any]:
        if not minhashes:
            return np.empty((0, self.h), np.uint64)
        for minhash in minhashes:
            if len(minhash) != self.h:
                raise InputError(f"Expecting minhash with length {self.h}, got {len(minhash)}")
        return np.stack([np.asarray(minhash.hashvalues) for minhash in minhashes])

    def _scheme_of(self, minhashes: list[Sketch]) -> str | None:
        """Returns the scheme of the index after these signatures. Hash values do not tell it, but MinHashes do."""
        scheme = self._minhash_scheme
        for minhash in minhashes:
            scheme = same_scheme(scheme, getattr(minhash, "scheme", None))
        return scheme

    def _known_scheme(self, other: str | None) -> str | None:
        return same_scheme(self._minhash_scheme, other)

    def _hashed(self, rows: NDArray[Any]) -> Numbers:
        """Returns a bucket key for each band."""
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


class _Session:
    """A context in which an index has another batch size."""

    def __init__(self, lsh: MinHashLSH, buffer_size: int) -> None:
        self.lsh = lsh
        self.lsh.buffer_size = _integer(buffer_size, "buffer_size", 0, COUNT_MAX)

    def close(self) -> None:
        """Does nothing."""

    def __enter__(self: _Self) -> _Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


class MinHashLSHInsertionSession(_Session):
    """Inserts as the index does, which gathers single inserts into batches."""

    __module__ = "nandex.datasketch"

    def insert(self, key: Hashable, minhash: Sketch, check_duplication: bool = True) -> None:
        """Inserts as `MinHashLSH.insert` does."""
        self.lsh.insert(key, minhash, check_duplication)


class MinHashLSHDeletionSession(_Session):
    """Removes keys, as datasketch's session does; there is nothing to buffer."""

    __module__ = "nandex.datasketch"

    def remove(self, key: Hashable) -> None:
        """Removes as `MinHashLSH.remove` does."""
        self.lsh.remove(key)
