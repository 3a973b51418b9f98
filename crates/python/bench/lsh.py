"""MinHashLSH next to datasketch's: documents a second of each way to insert and to query, and RAM for each document.

datasketch's index is in RAM, and nandex's in a file, unless told otherwise. Signatures are random,
so a query of a new one finds nothing; of those that are in the index, each finds itself.

With `--redis` datasketch's index is in an empty Redis of this machine, for which the module redis is needed.
"""

from __future__ import annotations

import argparse
import gc
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import datasketch
import numpy as np
from nandex.datasketch import MinHashLSH


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--documents", type=int, default=500_000, help="documents of the index")
    parser.add_argument("--queries", type=int, default=50_000, help="queries of each kind")
    parser.add_argument("--ram", default="32MiB", help="RAM of nandex's index")
    parser.add_argument("--threshold", type=float, default=0.9)
    parser.add_argument("--num-perm", type=int, default=128)
    parser.add_argument("--path", type=Path, default=None, help="folder of the index's file, which is temporary")
    parser.add_argument("--in-ram", action="store_true", help="nandex's index without a file")
    parser.add_argument("--redis", type=int, default=None, metavar="PORT", help="datasketch's index in Redis")
    return parser.parse_args()


def sketches(rows: Any) -> list[Any]:
    """A MinHash for each row of values."""
    model = datasketch.MinHash(num_perm=rows.shape[1])
    made = []
    for row in rows:
        made.append(datasketch.MinHash(hashvalues=row, permutations=model.permutations, scheme=model.scheme))
    return made


def timed(work: Callable[[], object]) -> float:
    gc.collect()
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


class Index:
    """An index of either kind, with the seconds that each way takes."""

    def __init__(self, lsh: Any) -> None:
        self.lsh = lsh
        self.rates: dict[str, float] = {}

    def measure(self, way: str, count: int, work: Callable[[], object]) -> None:
        self.rates[way] = count / timed(work)

    def insert_one_by_one(self, first: int, minhashes: list[Any]) -> None:
        def work() -> None:
            insert = self.lsh.insert
            for key, minhash in enumerate(minhashes, first):
                insert(key, minhash)

        self.measure("insert", len(minhashes), work)

    def insert_in_session(self, first: int, minhashes: list[Any]) -> None:
        def work() -> None:
            with self.lsh.insertion_session() as session:
                for key, minhash in enumerate(minhashes, first):
                    session.insert(key, minhash)

        self.measure("insertion_session", len(minhashes), work)

    def query_one_by_one(self, way: str, minhashes: list[Any]) -> None:
        def work() -> None:
            query = self.lsh.query
            for minhash in minhashes:
                query(minhash)

        self.measure(way, len(minhashes), work)


def random_rows(numbers: np.random.Generator, count: int, num_perm: int) -> Any:
    """Values of signatures, of the type that datasketch has."""
    kind = datasketch.MinHash(num_perm=2).hashvalues.dtype
    return numbers.integers(0, 2**32, (count, num_perm), dtype=np.uint64).astype(kind)


def fill(ours: Index, theirs: Index, rows: Any) -> None:
    """Inserts the rows into both indexes, a quarter each way. datasketch has no batches but its sessions."""
    quarter = len(rows) // 4
    parts = [range(start * quarter, (start + 1) * quarter) for start in range(4)]
    for index in (ours, theirs):
        index.insert_one_by_one(parts[0].start, sketches(rows[parts[0]]))
        index.insert_in_session(parts[1].start, sketches(rows[parts[1]]))
    for way, part in (("insert_many, array", parts[2]), ("insert_many, MinHashes", parts[3])):
        minhashes = sketches(rows[part])
        given = rows[part] if way.endswith("array") else minhashes
        ours.measure(way, quarter, lambda part=part, given=given: ours.lsh.insert_many(part, given))
        theirs.insert_in_session(part.start, minhashes)
        theirs.rates[way] = theirs.rates["insertion_session"]


def ask(ours: Index, theirs: Index, kind: str, rows: Any) -> None:
    """Queries both indexes, and compares their answers."""
    minhashes = sketches(rows)
    for index in (ours, theirs):
        index.query_one_by_one(f"query, {kind}", minhashes)
    found = []
    ours.measure(f"query_many, {kind}", len(rows), lambda: found.append(ours.lsh.query_many(rows)))
    theirs.rates[f"query_many, {kind}"] = theirs.rates[f"query, {kind}"]
    assert [sorted(keys) for keys in found[0]] == [sorted(theirs.lsh.query(minhash)) for minhash in minhashes]


def main() -> None:
    options = arguments()
    numbers = np.random.default_rng(7)
    rows = random_rows(numbers, options.documents // 4 * 4, options.num_perm)
    parameters = {"threshold": options.threshold, "num_perm": options.num_perm}
    redis = {"type": "redis", "redis": {"host": "127.0.0.1", "port": options.redis}}
    theirs = Index(datasketch.MinHashLSH(**parameters, storage_config=redis if options.redis else None))
    with tempfile.TemporaryDirectory(dir=options.path) as folder:
        place = {"type": "dict"} if options.in_ram else {"type": "nandex", "path": Path(folder, "alike.nandex")}
        storage = {**place, "ram": options.ram, "documents": len(rows)}
        ours = Index(MinHashLSH(**parameters, storage_config=storage))
        fill(ours, theirs, rows)
        ask(ours, theirs, "new", random_rows(numbers, options.queries, options.num_perm))
        ask(ours, theirs, "known", rows[numbers.integers(0, len(rows), options.queries)])
        stats = ours.lsh.stats()
        ours.lsh.close()
    print(f"{len(rows)} documents, {theirs.lsh.b} bands of {theirs.lsh.r} values, {options.ram} of RAM for nandex")
    print(f"{'documents/s':24}{'nandex':>12}{'datasketch':>12}{'ratio':>8}")
    for way, rate in ours.rates.items():
        print(f"{way:24}{rate:12,.0f}{theirs.rates[way]:12,.0f}{rate / theirs.rates[way]:8.1f}")
    print(f"RAM of nandex: {stats['ram_bytes'] / len(rows):.1f} bytes a document, {stats['generations']} generations")


if __name__ == "__main__":
    main()
