"""The rows of datasets that are not near-duplicates of others."""

from __future__ import annotations

import secrets
from collections import deque
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import ray
from ray.data.expressions import monotonically_increasing_id

import nandex
from nandex import _nandex
from nandex._errors import ConfigError, InputError
from nandex.ray._actors import Shards, absolute
from nandex.ray._blocks import ROW, Waiting, column_of, mapped, parts_of, slices_of
from nandex.ray._dedup import copy_first_rows
from nandex.ray._places import planned, restored
from nandex.shards import Bands, Buckets, Clusters, UnionFind, numbers_of

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Mapping

    from numpy.typing import NDArray

    _Amount = int | float | str
    _Path = str | os.PathLike[str]
    _Text = str | Callable[[pa.Table], Any]
    _Numbers = NDArray[np.uint64]

#: The number of rows of a block whose keys are looked up at a time: each has a key for each band.
_BATCH_ROWS = 1 << 17

#: The maximum number of expected documents: each has up to 2^16 keys.
DOCUMENTS_MAX = 1 << 48

#: The number of bits of the number that is added to the row numbers of one execution.
_SALT_BITS = 62


class _Buckets(Shards):
    _KIND = Buckets


class _Clusters(Shards):
    _KIND = Clusters


class NearDup:
    """Shards that find near-duplicate rows, for several datasets, one after another.

    Each row has a signature, and keys that are computed from it. Each key goes to one of `shards`, which knows the
    first row with it. Such pairs of rows are joined in a union-find, whose nodes are in as many further shards. Of the
    connected rows of one call, the one with the smallest number stays, unless any of them is connected with a row of an
    earlier call. A row that stays does so permanently. Two rows with a key in common count as near-duplicates without
    further comparison.

    `path` is a folder, on each node of its own, and `shards` the number of shards with keys, and of those with nodes;
    both are fixed for the path, and so are the options of `bands`. `ram` is the RAM of each of these twice as many
    shards, at least 32 MiB. `documents` is the expected number of rows in all; shards grow past them. An actor claims
    `num_cpus` of its node.

    A row takes some 25 bytes of flash for each band and 36 more.
    """

    def __init__(
        self,
        path: _Path,
        *,
        shards: int = 1,
        ram: _Amount = "256MiB",
        documents: int | None = None,
        bands: Bands | None = None,
        num_cpus: float = 0,
    ) -> None:
        self.bands = Bands() if bands is None else bands
        keys = None
        if documents is not None:
            documents = _nandex._integer(documents, "documents", 0, DOCUMENTS_MAX)
            keys = documents * self.bands.shape[0]
        self._buckets = _Buckets(path, shards=shards, ram=ram, keys=keys, num_cpus=num_cpus)
        self._clusters = _Clusters(path, shards=shards, ram=ram, keys=documents, num_cpus=num_cpus)

    def unique(self, dataset: Any, text: _Text, *, id: str | None = None) -> Any:
        """Returns the rows of a Ray dataset that are no near-duplicates of earlier ones, in it or in earlier calls.

        `text` is a column of texts, or a function from a pyarrow table to an array of signatures, with `num_perm`
        integers for each row, such as the `hashvalues` of datasketch's MinHash.

        `id` is a column of numbers or texts that identifies each row, unique in all that the shards ever see. The
        dataset is executed here to find the pairs, and again whenever the result, which is lazy, is read; so it must
        give the same rows each time. An interrupted job can be run again: pairs that are known already change nothing.
        Without `id` the rows are numbered as they arrive, the dataset is put into Ray's object store, and so is the
        result.

        Call it for one dataset at a time: two at once count as one dataset, and a row that was read as one that stays
        may be near a row of the other.
        """
        salt = 0
        if id is None:
            # Rows of another execution have other numbers, in the same order.
            salt = secrets.randbits(_SALT_BITS)
            dataset = dataset.with_column(ROW, monotonically_increasing_id()).materialize()
        made_of = "signatures" if callable(text) else "texts"
        # A pass that ended before a failure has the next number. It had all its pairs then.
        number = max(self._clusters._all("begin", f"{self.bands}-{made_of}"))
        name = ROW if id is None else id
        columns = dataset if callable(text) else dataset.select_columns(list(dict.fromkeys([text, name])))
        clusters = self._clusters._actors
        told = mapped(
            columns, _tell_pairs, self._buckets._actors, clusters, self.bands, text, (name, salt, number)
        )
        deque(told.iter_batches(batch_format="numpy"), maxlen=0)
        self._clusters._all("end", number)
        kept = mapped(dataset, _keep_first, clusters, name, salt)
        return kept if id is not None else kept.materialize()

    def copy_to(self, other: NearDup) -> int:
        """Copies the rows of these shards to an empty `NearDup`, such as one of more shards; returns their number.

        No dataset may be read meanwhile. If a shard dies or the job ends meanwhile, call it again: until it has ended,
        the others refuse datasets. Costs some microseconds a row and band.

        # Errors
        A `ConfigError` if the others have other `bands`, or rows of their own.
        """
        if other.bands != self.bands:
            raise ConfigError(f"bands: {other.bands}; give those of the shards that are copied, {self.bands}")
        names, ended = zip(*self._clusters._all("told"), strict=True)
        if names[0] is None:
            return 0
        other._clusters._all("begin_copy", names[0])
        copy_first_rows(self._buckets, other._buckets)
        copied, rows = _union_find(other._clusters._actors), 0
        for batch in self._clusters._stream("nodes"):
            nodes = ray.get(batch)
            copied.copy(*nodes)
            rows += len(nodes[0])
        other._clusters._all("end_copy", max(ended))
        return rows

    def snapshot(self, folder: _Path, *, store: Mapping[str, Any] | None = None) -> list[Any]:
        """Copies each shard, as `Dedup.snapshot` does. It must not be called while `unique` runs."""
        return self._clusters.snapshot(folder, store=store) + self._buckets.snapshot(folder, store=store)

    @classmethod
    def restore(
        cls, snapshot: _Path, path: _Path, *, shards: int, store: Mapping[str, Any] | None = None
    ) -> list[Path]:
        """Restores the shards whose files are missing from snapshots, as `Dedup.restore` does.

        Datasets after the snapshot must be run again, from the start, with `id`.
        """
        source, folder = absolute(snapshot), absolute(path)
        clusters = planned(Clusters, source, folder, shards, store)
        return restored(clusters + planned(Buckets, source, folder, shards, store))

    def stats(self) -> nandex.Stats:
        """Returns the number of rows, and the figures of each shard."""
        clusters, buckets = self._clusters.stats(), self._buckets.stats()
        figures = {"entries": clusters["entries"], "buckets": buckets["entries"]}
        figures |= {f"clusters_{name}": figure for name, figure in clusters.items() if name != "entries"}
        figures |= {f"buckets_{name}": figure for name, figure in buckets.items() if name != "entries"}
        return nandex.Stats(f"near-duplicates {self._buckets._folder}", figures)

    def pids(self) -> list[int]:
        """Returns the current processes of the shards."""
        return self._buckets.pids() + self._clusters.pids()

    def close(self) -> None:
        """Closes the files and ends the actors, also for datasets not read yet, and for other objects of the same
        path."""
        self._buckets.close()
        self._clusters.close()


def near_dup(
    dataset: Any,
    text: _Text,
    *,
    path: _Path,
    shards: int = 1,
    ram: _Amount = "256MiB",
    documents: int | None = None,
    id: str | None = None,
    threshold: float = 0.8,
    num_perm: int = 128,
    params: tuple[int, int] | None = None,
    shingle: int = 3,
    num_cpus: float = 0,
) -> Any:
    """Returns the rows of a Ray dataset that are no near-duplicates: `unique` of a `NearDup` with these options and
    `Bands`."""
    bands = Bands(threshold, num_perm, params, shingle)
    shards_of = NearDup(path, shards=shards, ram=ram, documents=documents, bands=bands, num_cpus=num_cpus)
    return shards_of.unique(dataset, text, id=id)


def _tell_pairs(
    block: pa.Table, buckets: list[Any], clusters: list[Any], bands: Bands, text: _Text, how: tuple[str, int, int]
) -> pa.Table:
    """Looks up the first rows with the keys of a block's rows, and sends the pairs of rows to the clusters."""
    name, salt, number = how
    asked, joined = Waiting(), _union_find(clusters)

    def tell(answered: Any) -> None:
        for (rows, own), firsts in answered:
            left = np.concatenate([rows[:0], *own])
            joined.join(number, rows, *_pairs(left, np.concatenate([rows[:0], *firsts])))

    for batch in slices_of(block, _BATCH_ROWS):
        rows = _rows(batch, name, salt)
        keys = _keys(batch, bands, text)
        flat, own = keys.reshape(-1), np.repeat(rows, keys.shape[1])
        parts = parts_of(flat, buckets)
        calls = [actor.call.remote("first", flat[at], own[at]) for actor, at in parts]
        tell(asked.add((rows, [own[at] for _, at in parts]), calls))
    tell(asked.end())
    return asked.end_block(block)


def _union_find(clusters: list[Any]) -> UnionFind:
    """Creates the union-find over the nodes of actors."""
    return UnionFind(
        len(clusters),
        lambda calls: ray.get([clusters[shard].call.remote(method, *given) for shard, method, given in calls]),
    )


def _pairs(left: _Numbers, right: _Numbers) -> tuple[_Numbers, _Numbers]:
    """Returns pairs of different rows, each once."""
    is_pair = left != right
    pairs = np.unique(np.stack([left[is_pair], right[is_pair]]), axis=1)
    return pairs[0], pairs[1]


def _keep_first(block: pa.Table, clusters: list[Any], name: str, salt: int) -> pa.Table:
    """Returns the rows of a block that stay."""
    joined = _union_find(clusters)
    keep = [joined.keep(_rows(batch, name, salt)) for batch in slices_of(block)]
    kept = block.filter(pa.array(np.concatenate([np.zeros(0, bool), *keep])))
    return kept.drop_columns([ROW]) if ROW in kept.column_names else kept


def _rows(batch: pa.Table, name: str, salt: int) -> _Numbers:
    return np.asarray(numbers_of(column_of(batch, name)) + np.uint64(salt))


def _keys(batch: pa.Table, bands: Bands, text: _Text) -> _Numbers:
    if not callable(text):
        return bands.of_texts(column_of(batch, text))
    keys = bands.of_signatures(text(batch))
    if len(keys) != batch.num_rows:
        raise InputError(f"text: {len(keys)} signatures of {batch.num_rows} rows; the function must give one for each")
    return keys
