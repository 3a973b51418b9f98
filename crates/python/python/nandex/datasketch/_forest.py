"""A MinHash LSH forest: the documents that are the most alike."""

from __future__ import annotations

import json
from collections.abc import Generator, Hashable, Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from nandex._errors import InputError, KeyNotFoundError
from nandex._nandex import _integer
from nandex.datasketch._stored import COUNT_MAX, NUM_PERM_MAX, Sketch, Stored, check_integers, same_scheme
from nandex.datasketch._views import HashTable, Keys

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from nandex.datasketch._stored import Numbers

#: The key of an empty prefix, by the bytes of a value: 4 or 8, and 16 for a pair of WeightedMinHash.
_ROOTS = {4: 0x243F6A8885A308D3, 8: 0x13198A2E03707344, 16: 0xA4093822299F31D0}

#: The key of a prefix is computed from the previous key and the prefix's last value, so that each gives the other: the
#: finalizer of SplitMix64, and its inverse. They are stored on flash.
_STEP = np.uint64(0x9E3779B97F4A7C15)

#: The last 24 bits of the shortest prefixes of a WeightedMinHash, whose pairs of values cannot be recovered.
_PAIRS = np.uint64(0xB5297A)
_PAIRS_MASK = np.uint64(0xFFFFFF)


def _mixed(keys: Numbers) -> Numbers:
    keys = (keys ^ (keys >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    keys = (keys ^ (keys >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(keys ^ (keys >> np.uint64(31)))


def _unmixed(keys: Numbers) -> Numbers:
    keys = (keys ^ (keys >> np.uint64(31)) ^ (keys >> np.uint64(62))) * np.uint64(0x319642B2D24D8EC3)
    keys = (keys ^ (keys >> np.uint64(27)) ^ (keys >> np.uint64(54))) * np.uint64(0x96DE1B173F119089)
    return np.asarray(keys ^ (keys >> np.uint64(30)) ^ (keys >> np.uint64(60)))


class MinHashLSHForest(Stored):
    """An index of MinHash signatures by prefixes of several parts: finds the documents that are the most alike.

    The parameters and methods are those of `datasketch.MinHashLSHForest`, and so are the answers, with three
    exceptions: a query finds the 253 oldest keys of a prefix; once `index` was called, a key that is added later is
    found at once; and among equally similar keys the oldest are returned, while datasketch returns any.

    num_perm: Values of a signature.
    l: Parts of a signature, the prefix trees of the paper; `num_perm // l` is the longest prefix.
    storage_config, prepickle: As those of `MinHashLSH`. The keys of an opened file are searchable.

    A document has a bucket for each value of its signature: about 500 bytes of RAM and 1 KiB of flash for 128 of them.
    A query finds the longest shared prefixes by binary search, and reads the blocks of documents that have them. All
    calls may come from any thread.
    """

    __module__ = "nandex.datasketch"

    def __init__(
        self,
        num_perm: int = 128,
        l: int = 8,  # noqa: E741
        storage_config: dict[str, Any] | None = None,
        prepickle: bool | None = None,
    ) -> None:
        num_perm = _integer(num_perm, "num_perm", 1, NUM_PERM_MAX)
        self.l = l = _integer(l, "l", 1, num_perm)  # noqa: E741
        self.k = num_perm // l
        self.b = self.l * self.k
        self.hashranges = [(tree * self.k, (tree + 1) * self.k) for tree in range(l)]
        super().__init__(storage_config, prepickle)
        self._is_searchable = len(self._index) > 0

    def _start(self) -> None:
        about = {"forest": True, "l": self.l, "k": self.k}
        self._open((self.b, 1, self.b), json.dumps(about, sort_keys=True))
        self.keys = _ForestKeys(self)
        self.hashtables = [_ForestTable(self, (tree + 1) * self.k - 1) for tree in range(self.l)]

    def add(self, key: Hashable, minhash: Sketch) -> None:
        """Adds a key with its signature. A key that is present raises `ValueError`."""
        self.add_many([key], [minhash])

    def add_many(self, keys: Iterable[Hashable], minhashes: Any) -> None:
        """Adds keys with their signatures: an array of `hashvalues` with a row for each, or a list of MinHashes.

        A key that is present raises `ValueError`; those before it are added.
        """
        keys = keys.tolist() if isinstance(keys, np.ndarray) else list(keys)
        prefixes = self._prefixes_of(minhashes, is_add=True)
        if len(prefixes) != len(keys):
            raise InputError(f"{len(keys)} keys and {len(prefixes)} signatures: give one signature for each key")
        stopped = self._index.insert_many(keys, prefixes.reshape(-1), True)
        if stopped is not None:
            raise InputError(f"The given key has already been added: {keys[stopped]!r}")

    def index(self) -> None:
        """Makes the added keys searchable."""
        self._is_searchable = len(self._index) > 0

    def query(self, minhash: Sketch, k: int) -> list[Any]:
        """Returns at most `k` keys, those of the sets that are likely the most alike first."""
        return self.query_many([minhash], k)[0]

    def query_many(self, minhashes: Any, k: int) -> list[list[Any]]:
        """Returns the keys of `query` for each signature of an array of `hashvalues`, one row each, or a list of
        MinHashes."""
        k = _integer(k, "k", 1, COUNT_MAX)
        prefixes = self._prefixes_of(minhashes)
        found: list[list[Any]] = [[] for _ in prefixes]
        descents = [_descend(self.k, k) for _ in prefixes]
        lengths = {place: next(descent) for place, descent in enumerate(descents)} if self._is_searchable else {}
        while lengths:
            places, depths = np.array(list(lengths)), np.array(list(lengths.values())) - 1
            # The keys of other lengths are keys that no document has.
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
        """Returns the `hashvalues` of the MinHash of a key. A missing key raises `KeyError`. Costs a read.

        Those of a WeightedMinHash cannot be recovered, as with datasketch: they raise `ValueError`.
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
        """Returns whether no key is searchable: none was added, or `index` was not called since."""
        return not self._is_searchable

    def __repr__(self) -> str:
        return self._shown(f"l={self.l}, k={self.k}")

    def _prefixes_of(self, minhashes: Any, is_add: bool = False) -> Numbers:
        """Returns a key for each prefix of each part of each signature: documents, parts, lengths."""
        if not isinstance(minhashes, np.ndarray):
            minhashes = list(minhashes)
            if not minhashes:
                return np.empty((0, self.l, self.k), np.uint64)
            scheme = self._minhash_scheme
            for minhash in minhashes:
                if len(minhash) < self.b:
                    raise InputError(f"The num_perm of MinHash out of range: {len(minhash)}; give {self.b} or more")
                scheme = same_scheme(scheme, getattr(minhash, "scheme", None))
            if is_add:
                self._set_scheme(scheme)
            minhashes = np.stack([np.asarray(minhash.hashvalues)[: self.b] for minhash in minhashes])
        if minhashes.ndim < 2 or minhashes.shape[1] < self.b:
            raise InputError(
                f"The num_perm of MinHash out of range: an array of the shape {minhashes.shape}; give rows of {self.b} "
                "or more"
            )
        check_integers(minhashes)
        return self._prefixes_in(minhashes[:, : self.b].reshape(len(minhashes), self.l, self.k, -1))

    def _prefixes_in(self, values: NDArray[Any]) -> Numbers:
        """Returns the prefix keys of an array of documents, parts, and values of one number or of several."""
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
    """Requests the keys with prefixes of a length, and returns at most `count` keys that share the longest ones.

    If some keys share a prefix, some share each shorter one too, so a binary search finds the longest shared one.
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


class _ForestKeys(Keys):
    """The equivalent of datasketch's `MinHashLSHForest.keys`: the keys, and for each the hashes of its parts."""

    _lsh: MinHashLSHForest

    def getmany(self, *keys: Hashable) -> list[list[bytes]]:
        """Returns the hashes of the parts of each key."""
        step = self._lsh.k
        return [hashes[step - 1 :: step] for hashes in super().getmany(*keys)]

    def itemcounts(self) -> dict[Any, int]:
        """Returns the number of parts, for each key."""
        return dict.fromkeys(self, self._lsh.l)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _ForestKeys) and {key: self[key] for key in self} == {key: other[key] for key in other}

    __hash__ = None  # type: ignore[assignment]


class _ForestTable(HashTable):
    """The equivalent of an element of datasketch's `MinHashLSHForest.hashtables`: the keys by the hash of a part."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _ForestTable) and {it: self[it] for it in self} == {it: other[it] for it in other}

    __hash__ = None  # type: ignore[assignment]
