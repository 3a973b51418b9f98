"""Joins two columns of keys and values through a table on flash, in batches of numpy arrays, and says how fast.

Usage: python join.py 200000
"""

import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import nandex


def main(count: str) -> None:
    entries = int(float(count))
    keys = np.random.default_rng(7).permutation(np.arange(entries, dtype=np.uint64))
    with tempfile.TemporaryDirectory() as folder, nandex.open(Path(folder) / "join.nandex", ram="256MiB") as db:
        table = db.table("left", entries=entries)
        begun = time.perf_counter()
        table.insert_many(keys, keys + np.uint64(1))
        inserted = time.perf_counter()
        values, found = table.get_many(keys[::-1].copy())
        read = time.perf_counter()
        assert found.all() and (values == keys[::-1] + np.uint64(1)).all()
        print(f"{entries / (inserted - begun):,.0f} inserts/s, {entries / (read - inserted):,.0f} lookups/s")
        print(table.stats())


if __name__ == "__main__":
    main(*sys.argv[1:])
