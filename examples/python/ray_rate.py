"""Measures how many numbers Ray and its shards deduplicate a second on this machine, half of which came before.

Usage: python ray_rate.py 200000 2
"""

import sys
import tempfile
import time

import numpy as np
import pyarrow as pa
import ray

import nandex.ray

BLOCK_ROWS = 1 << 20


def drawn(batch: pa.Table, count: int) -> pa.Table:
    """A block of numbers below half of the count, as good as random."""
    rows = batch["id"].to_numpy()
    keys = np.random.default_rng(int(rows[0])).integers(0, count * 5 // 8, len(rows))
    return pa.table({"id": rows, "key": keys.astype(np.uint64)})


def main(count: str, *shards: str) -> None:
    ray.init(include_dashboard=False, _node_ip_address="127.0.0.1", log_to_driver=False)
    ray.data.DataContext.get_current().enable_progress_bars = False
    blocks = max(1, int(count) // BLOCK_ROWS)
    numbers = ray.data.range(int(count), override_num_blocks=blocks)
    numbers = numbers.map_batches(drawn, batch_format="pyarrow", batch_size=None, fn_args=(int(count),)).materialize()
    for number in map(int, shards):
        with tempfile.TemporaryDirectory() as folder:
            dedup = nandex.ray.Dedup(folder, shards=number, ram="512MiB", keys=int(count) // 2)
            start = time.perf_counter()
            unique = dedup.unique(numbers, "key", id="id").materialize().count()
            first = time.perf_counter() - start
            start = time.perf_counter()
            again = dedup.unique(numbers, "key", id="id").materialize().count()
            second = time.perf_counter() - start
            dedup.close()
            assert again == unique
        print(
            f"{number} shards: {int(count) / first / 1e6:.2f} M keys/s, {unique:,} different; "
            f"asked again: {int(count) / second / 1e6:.2f} M keys/s",
            flush=True,
        )


if __name__ == "__main__":
    main(*sys.argv[1:])
