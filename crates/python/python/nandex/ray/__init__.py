"""Duplicates and terms of Ray datasets that are larger than the cluster's RAM: shards of keys on the nodes' own disks.

>>> import ray
>>> pages = ray.data.from_items([{"url": "a"}, {"url": "b"}, {"url": "a"}])
>>> nandex.ray.dedup(pages, "url", path=folder, shards=2, ram="32MiB").count()
2

Each shard is an actor that owns a volume, a file in the folder `path` of its node. A dead actor is restarted on that
node, recovers its volume, and gets its calls again; its answers do not change, so no failure drops a row or keeps one
twice. `docs/how-to/ray.md` explains how, and when one machine is enough.
"""

from __future__ import annotations

from nandex.ray._count import Count, count
from nandex.ray._dedup import Dedup, dedup
from nandex.ray._near_dup import NearDup, near_dup
from nandex.ray._tfidf import Tfidf, tfidf

__all__ = ["Count", "Dedup", "NearDup", "Tfidf", "count", "dedup", "near_dup", "tfidf"]
