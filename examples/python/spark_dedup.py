"""Prints each different line of files once, with tasks of Spark that each have some shards of the lines.

Usage: python spark_dedup.py words.txt
"""

import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from nandex.shards import FirstRows, keys_of, split

SHARDS = 4

Batches = Iterator[pa.RecordBatch]


def with_shard(batches: Batches) -> Batches:
    """Returns the rows with the shard of each."""
    for batch in batches:
        shard = np.empty(batch.num_rows, np.int32)
        for number, places in enumerate(split(keys_of(batch.column("value")), SHARDS)):
            shard[places] = number
        yield batch.append_column("shard", pa.array(shard))


def first_rows(folder: str) -> Callable[[Batches], Batches]:
    """Returns the first rows with their keys. All rows of a shard are in one partition, so one task has it open."""

    def of_partition(batches: Batches) -> Batches:
        with ExitStack() as stack:
            opened: dict[int, FirstRows] = {}
            for batch in batches:
                of, rows = batch.column("shard").to_numpy(), batch.column("row").to_numpy()
                keys = keys_of(batch.column("value"))
                keep = np.zeros(len(keys), bool)
                for number in np.unique(of).tolist():
                    if number not in opened:
                        opened[number] = stack.enter_context(FirstRows(folder, number, SHARDS, ram="32MiB"))
                    places = np.flatnonzero(of == number)
                    keep[places] = opened[number].keep(keys[places], rows[places])
                yield batch.filter(pa.array(keep))

    return of_partition


def main(*paths: str) -> None:
    settings = {
        "spark.ui.enabled": "false",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        # A second attempt at a task that still runs would find its shards in use.
        "spark.speculation": "false",
    }
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    with tempfile.TemporaryDirectory() as folder:
        spark = SparkSession.builder.master("local[2]").config(map=settings).getOrCreate()
        # A row has the same number when Spark runs a task again.
        lines = spark.read.text(list(paths)).withColumn("row", F.monotonically_increasing_id())
        sharded = lines.mapInArrow(with_shard, "value string, row long, shard int").repartition(SHARDS, "shard")
        kept = sharded.mapInArrow(first_rows(folder), sharded.schema)
        for row in sorted(row.value for row in kept.select("value").collect()):
            print(row)
        spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
