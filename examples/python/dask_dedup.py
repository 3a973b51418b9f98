"""Prints each different line of files once, with tasks of Dask that read and shards of Dask that know the lines.

Usage: python dask_dedup.py words.txt
"""

import sys
import tempfile
from typing import Any

import numpy as np
from distributed import Client, LocalCluster

from nandex.shards import FirstRows, keys_of, numbers_of, split

SHARDS = 2
LINES = 100


def different(path: str, number: int, shards: list[Any]) -> list[bytes]:
    """Returns the new lines of one part of a file. A task that runs again returns the same lines."""
    with open(path, "rb") as file:
        lines = [line.rstrip(b"\n") for at, line in enumerate(file) if at // LINES == number]
    # A line is identified by its file and its number in it.
    rows = numbers_of([path] * len(lines), np.arange(len(lines)) + number * LINES)
    keys = keys_of(lines)
    keep = np.zeros(len(lines), bool)
    asked = [(at, shard.keep(keys[at], rows[at])) for shard, at in zip(shards, split(keys, SHARDS), strict=True)]
    for at, answer in asked:
        keep[at] = answer.result()
    return [line for line, stays in zip(lines, keep.tolist(), strict=True) if stays]


def main(*paths: str) -> None:
    with (
        tempfile.TemporaryDirectory() as folder,
        LocalCluster(n_workers=SHARDS, threads_per_worker=2, host="127.0.0.1", dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        workers = list(client.scheduler_info()["workers"])
        shards = [
            client.submit(FirstRows, folder, shard, SHARDS, ram="32MiB", actor=True, workers=[worker]).result()
            for shard, worker in zip(range(SHARDS), workers, strict=True)
        ]
        tasks = []
        for path in paths:
            with open(path, "rb") as file:
                parts = -(-sum(1 for _ in file) // LINES)
            tasks += [client.submit(different, path, number, shards) for number in range(parts)]
        for line in sorted(line for lines in client.gather(tasks) for line in lines):
            print(line.decode(errors="replace"))
        for shard in shards:
            shard.close().result()


if __name__ == "__main__":
    main(*sys.argv[1:])
