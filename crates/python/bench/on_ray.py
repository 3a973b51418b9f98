"""Measures near_dup and tfidf of nandex.ray on this machine, and the same without Ray.

Prints one line for each way, with documents a second by the clock. Texts have 200 words, and half of them are near an
earlier one.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from typing import Any

import numpy as np
import pyarrow as pa
import ray

import nandex.ray
from nandex.shards import Bands, Buckets, Clusters
from nandex.sklearn import TfidfVectorizer

WORDS = 50_000
TEXT_WORDS = 200
BLOCK_ROWS = 2000


def texts(count: int) -> pa.Table:
    """Texts of words by Zipf's law; every second one is an earlier one with two words changed."""
    draw = np.random.default_rng(1)
    chosen = (draw.zipf(1.2, (count, TEXT_WORDS)) % WORDS).astype(np.int64)
    near = np.arange(1, count, 2)
    chosen[near] = chosen[draw.integers(0, (near + 1) // 2) * 2]
    chosen[near[:, None], draw.integers(0, TEXT_WORDS, (len(near), 2))] = draw.integers(0, WORDS, (len(near), 2))
    words = np.array([f"word{number}" for number in range(WORDS)], object)
    return pa.table({"id": np.arange(count), "text": [" ".join(row) for row in words[chosen]]})


def one_machine(table: pa.Table, folder: str, ram: str) -> int:
    """Does the work of near_dup in a loop, and returns the number of texts that stay."""
    bands, rows = Bands(), table["id"].to_numpy().astype(np.uint64)
    with Buckets(folder, ram=ram) as buckets, Clusters(folder, ram=ram) as clusters:
        number = clusters.begin(f"{bands}-texts")
        for start in range(0, len(rows), BLOCK_ROWS):
            part = rows[start : start + BLOCK_ROWS]
            keys = bands.of_texts(table["text"].slice(start, BLOCK_ROWS).combine_chunks())
            own = np.repeat(part, keys.shape[1])
            first = buckets.first(keys.reshape(-1), own)
            clusters.join(number, part, own[own != first], first[own != first])
        clusters.end(number)
        return int(clusters.keep(rows).sum())


def tell(way: str, count: int, work: Any) -> Any:
    start = time.perf_counter()
    done = work()
    print(f"{way:<40} {count / (time.perf_counter() - start):>10,.0f} documents/s", flush=True)
    return done


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--documents", type=int, default=40_000)
    parser.add_argument("--ram", default="256MiB", help="of each shard")
    parser.add_argument("--shards", type=int, nargs="+", default=[1, 2, 4])
    given = parser.parse_args()
    count, table = given.documents, texts(given.documents)
    with tempfile.TemporaryDirectory() as folder:
        kept = tell("near_dup without Ray", count, lambda: one_machine(table, folder, given.ram))
        with TfidfVectorizer(path=f"{folder}/terms", ram=given.ram) as terms:
            tell("nandex.sklearn.TfidfVectorizer", count, lambda: terms.fit_transform(table["text"].to_pylist()))
    ray.init(include_dashboard=False, _node_ip_address="127.0.0.1", log_to_driver=False, configure_logging=False)
    ray.data.DataContext.get_current().enable_progress_bars = False
    parts = [table.slice(start, BLOCK_ROWS) for start in range(0, count, BLOCK_ROWS)]
    dataset = ray.data.from_arrow(parts).materialize()
    for shards in given.shards:
        options = {"shards": shards, "ram": given.ram}
        with tempfile.TemporaryDirectory() as folder:
            near = nandex.ray.NearDup(folder, **options)
            found = tell(f"near_dup, {shards} shards", count, lambda: near.unique(dataset, "text", id="id").count())
            assert found == kept
            near.close()
            terms_of = nandex.ray.Tfidf(folder, **options)
            tell(f"tfidf, {shards} shards, add", count, lambda: terms_of.add(dataset, "text"))
            tell(f"tfidf, {shards} shards, transform", count, lambda: terms_of.transform(dataset, "text").materialize())
            terms_of.close()


if __name__ == "__main__":
    main()
