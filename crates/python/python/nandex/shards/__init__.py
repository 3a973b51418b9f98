"""Shards of keys that are spread over processes and machines: each has a share of the keys, in a file of its own.

`nandex.ray` is built on these, and the workers of other engines can use them directly. A batch of keys is split by
`split`, each part goes to the process that has the shard, and `FirstRows` decides which rows stay:

>>> keys = keys_of(np.array([7, 8, 7, 9], np.uint64))
>>> keep = np.zeros(len(keys), bool)
>>> for shard, places in enumerate(split(keys, 2)):
...     with FirstRows(folder, shard, 2, ram="32MiB") as rows:
...         keep[places] = rows.keep(keys[places], places)
>>> keep.tolist()
[True, True, False, True]

`Counts` counts keys in the same way: a batch of them has a name, and counts once. `Bands` computes keys of texts, which
near-duplicates share; `Buckets` finds the first row with each key, and `UnionFind` joins such pairs of rows, whose
nodes are in `Clusters`.
"""

from __future__ import annotations

from nandex.shards._bands import Bands
from nandex.shards._clusters import Clusters
from nandex.shards._counts import Counts, Terms
from nandex.shards._first_rows import Buckets, FirstRows
from nandex.shards._keys import SHARDS_MAX, keys_of, numbers_of, split
from nandex.shards._shard import Shard
from nandex.shards._union_find import UnionFind

__all__ = [
    "SHARDS_MAX",
    "Bands",
    "Buckets",
    "Clusters",
    "Counts",
    "FirstRows",
    "Shard",
    "Terms",
    "UnionFind",
    "keys_of",
    "numbers_of",
    "split",
]
