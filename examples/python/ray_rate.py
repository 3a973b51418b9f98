"""Measures how many numbers Ray and its shards deduplicate a second on this machine; half of them came before.

Each shard has that much RAM. 0 shards are one FirstRows in a loop, without Ray.

Usage: python ray_rate.py 200000 64MiB 0 2
"""

import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import ray

import nandex.ray
from nandex.shards import FirstRows

BLOCK_ROWS = 1 << 20


def drawn(batch: pa.Table, count: int) -> pa.Table:
    """Returns a block of numbers below five eighths of the count, as good as random: half of all are different."""
    rows = batch["id"].to_numpy()
    keys = np.random.default_rng(int(rows[0])).integers(0, count * 5 // 8, len(rows))
    return pa.table({"id": rows, "key": keys.astype(np.uint64)})


def unique(numbers: Any, dedup: nandex.ray.Dedup) -> int:
    """Returns how many are kept by shards."""
    return int(dedup.unique(numbers, "key", id="id").materialize().count())


def looped(numbers: Any, first: FirstRows) -> int:
    """Returns how many are kept by one shard without Ray."""
    batches = numbers.iter_batches(batch_size=BLOCK_ROWS, batch_format="numpy")
    return sum(int(first.keep(batch["key"], batch["id"]).sum()) for batch in batches)


def tell(shards: int, count: int, work: Callable[[], int]) -> None:
    rates, found = [], []
    for _ in range(2):
        start = time.perf_counter()
        found.append(work())
        rates.append(f"{count / (time.perf_counter() - start) / 1e6:.2f} M keys/s")
    assert found[0] == found[1]
    print(f"{shards} shards: {rates[0]}, {found[0]:,} different; asked again: {rates[1]}", flush=True)


def main(total: str, ram: str, *shards: str) -> None:
    ray.init(include_dashboard=False, _node_ip_address="127.0.0.1", log_to_driver=False)
    ray.data.DataContext.get_current().enable_progress_bars = False
    count = int(total)
    numbers = ray.data.range(count, override_num_blocks=max(1, count // BLOCK_ROWS))
    numbers = numbers.map_batches(drawn, batch_format="pyarrow", batch_size=None, fn_args=(count,)).materialize()
    for number in map(int, shards):
        with tempfile.TemporaryDirectory() as folder:
            if number == 0:
                with FirstRows(folder, ram=ram, entries=count // 2) as first:
                    tell(number, count, partial(looped, numbers, first))
                continue
            dedup = nandex.ray.Dedup(folder, shards=number, ram=ram, keys=count // 2)
            tell(number, count, partial(unique, numbers, dedup))
            dedup.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
