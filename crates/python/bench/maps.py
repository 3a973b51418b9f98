"""A map next to SQLite and LMDB: gets and puts a second of keys that are there, singly and in batches, on one thread.

What a put that has returned survives is nearly the same everywhere: the end of the process, but not each power cut.

* nandex: the map of `db.map`. Puts are durable every 100 ms, the default.
* SQLite: one table without row ids, WAL and `synchronous=NORMAL`: durable at checkpoints. A single put is a transaction,
  and so is a batch (`executemany`). A batch of gets is one `SELECT ... IN`, and the page cache may take the RAM of nandex.
* LMDB: `sync=False`, `writemap=True`, `readahead=False`: durable when the kernel writes. A single get or put is a
  transaction, and so is a batch (`getmulti`, `putmulti`).

Each pass of puts ends with a sync, which is timed. All answers are compared with what was put.
"""

from __future__ import annotations

import argparse
import gc
import hashlib
import json
import platform
import random
import sqlite3
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import nandex

try:
    import lmdb
except ImportError:
    lmdb = None


class Options(NamedTuple):
    """The settings; RAM is nandex's and the page cache of SQLite."""

    pairs: int
    key_bytes: int
    value_bytes: int
    operations: int
    batch: int
    ram: int


class Nandex:
    name = f"nandex {nandex.__version__}"

    def __init__(self, folder: Path, options: Options) -> None:
        self.db = nandex.open(folder / "maps.nandex", ram=options.ram)
        self.map = self.db.map("pairs")
        self.get, self.get_many = self.map.get, self.map.get_many
        self.put, self.put_many = self.map.__setitem__, self.map.put_many
        self.sync, self.close = self.map.sync, self.db.close


class Sqlite:
    name = f"SQLite {sqlite3.sqlite_version}"
    replace = "INSERT OR REPLACE INTO pairs VALUES (?, ?)"

    def __init__(self, folder: Path, options: Options) -> None:
        # Without a level of isolation each statement is a transaction, unless one is begun.
        self.db = sqlite3.connect(folder / "maps.sqlite", isolation_level=None)
        self.db.execute("PRAGMA journal_mode=WAL")
        self.db.execute("PRAGMA synchronous=NORMAL")
        self.db.execute(f"PRAGMA cache_size=-{options.ram // 1024}")
        self.db.execute("CREATE TABLE pairs (key BLOB PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID")
        self.close = self.db.close

    def get(self, key: bytes) -> bytes | None:
        row = self.db.execute("SELECT value FROM pairs WHERE key = ?", (key,)).fetchone()
        return row and row[0]

    def get_many(self, keys: Sequence[bytes]) -> list[bytes | None]:
        marks = ",".join("?" * len(keys))
        found = dict(self.db.execute(f"SELECT key, value FROM pairs WHERE key IN ({marks})", keys))
        return [found.get(key) for key in keys]

    def put(self, key: bytes, value: bytes) -> None:
        self.db.execute(self.replace, (key, value))

    def put_many(self, keys: Sequence[bytes], values: Sequence[bytes]) -> None:
        self.db.execute("BEGIN IMMEDIATE")
        self.db.executemany(self.replace, zip(keys, values, strict=True))
        self.db.execute("COMMIT")

    def sync(self) -> None:
        self.db.execute("PRAGMA wal_checkpoint(FULL)").fetchone()


class Lmdb:
    name = f"LMDB {'.'.join(map(str, lmdb.version()))}" if lmdb else "LMDB"

    def __init__(self, folder: Path, options: Options) -> None:
        # The map is address space, not memory: half-full pages and copies need space.
        map_bytes = (1 << 30) + 8 * options.pairs * (options.key_bytes + options.value_bytes)
        path = str(folder / "maps.lmdb")
        self.env = lmdb.open(path, map_size=map_bytes, sync=False, writemap=True, readahead=False)
        self.close = self.env.close

    def get(self, key: bytes) -> bytes | None:
        with self.env.begin() as reader:
            return reader.get(key)

    def get_many(self, keys: Sequence[bytes]) -> list[bytes | None]:
        with self.env.begin() as reader:
            found = dict(reader.cursor().getmulti(keys))
        return [found.get(key) for key in keys]

    def put(self, key: bytes, value: bytes) -> None:
        with self.env.begin(write=True) as writer:
            writer.put(key, value)

    def put_many(self, keys: Sequence[bytes], values: Sequence[bytes]) -> None:
        with self.env.begin(write=True) as writer:
            writer.cursor().putmulti(list(zip(keys, values, strict=True)))

    def sync(self) -> None:
        self.env.sync(True)


class Pairs:
    """The pairs of a run: random bytes that are the same each time, and the number of the last put of each key."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self.keys = [made(index, 0, options.key_bytes) for index in range(options.pairs)]
        self.puts = [0] * options.pairs
        self.numbers = random.Random(7)

    def pick(self) -> list[int]:
        return self.numbers.choices(range(len(self.keys)), k=self.options.operations)

    def values(self, indices: Iterable[int]) -> list[bytes]:
        """The newest values."""
        return [made(index, self.puts[index], self.options.value_bytes) for index in indices]

    def keys_of(self, indices: Iterable[int]) -> list[bytes]:
        return [self.keys[index] for index in indices]


def made(index: int, number: int, length: int) -> bytes:
    return hashlib.shake_128(b"%d %d" % (index, number)).digest(length)


def timed(work: Callable[[], object]) -> float:
    gc.collect()
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def batches(items: Sequence[Any], length: int) -> list[Sequence[Any]]:
    return [items[start : start + length] for start in range(0, len(items), length)]


def gets(store: Any, pairs: Pairs, indices: Sequence[int], batch: int) -> float:
    """Seconds of gets, whose answers are checked."""
    keys = pairs.keys_of(indices)
    answers: list[bytes | None] = []

    def work() -> None:
        if batch == 1:
            answers.extend(map(store.get, keys))
        else:
            for some in parts:
                answers.extend(store.get_many(some))

    parts = batches(keys, batch)
    seconds = timed(work)
    assert answers == pairs.values(indices), f"{store.name}: a value is not the newest of its key"
    return seconds


def puts(store: Any, pairs: Pairs, indices: Sequence[int], batch: int) -> float:
    """Seconds of puts and of the sync after them."""
    for index in indices:
        pairs.puts[index] += 1
    keys, values = pairs.keys_of(indices), pairs.values(indices)

    def work() -> None:
        if batch == 1:
            for key, value in zip(keys, values, strict=True):
                store.put(key, value)
        else:
            for some, theirs in parts:
                store.put_many(some, theirs)
        store.sync()

    parts = list(zip(batches(keys, batch), batches(values, batch), strict=True))
    return timed(work)


def measure(store: Any, options: Options) -> dict[str, float]:
    """Operations a second of each kind."""
    pairs, rates = Pairs(options), {}
    every = range(options.pairs)
    rates["load"] = options.pairs / puts(store, pairs, every, options.batch)
    for way, work, batch in (
        ("get", gets, 1),
        ("get_many", gets, options.batch),
        ("put", puts, 1),
        ("put_many", puts, options.batch),
    ):
        rates[way] = options.operations / work(store, pairs, pairs.pick(), batch)
    gets(store, pairs, every, options.batch)
    return rates


def size(text: str) -> int:
    """Bytes of a size such as 512MiB."""
    for unit, factor in (("KiB", 1 << 10), ("MiB", 1 << 20), ("GiB", 1 << 30)):
        if text.endswith(unit):
            return int(text.removesuffix(unit)) * factor
    return int(text)


def arguments() -> tuple[Options, argparse.Namespace]:
    form = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=form)
    parser.add_argument("--pairs", type=int, default=1_000_000)
    parser.add_argument("--key-bytes", type=int, default=8, help="from 8 to 511, which is LMDB's limit")
    parser.add_argument("--value-bytes", type=int, default=100)
    parser.add_argument("--operations", type=int, default=200_000, help="gets and puts of each kind")
    parser.add_argument("--batch", type=int, default=1024, help="keys of a call with several")
    parser.add_argument("--ram", type=size, default="512MiB", help="RAM of nandex, and of SQLite's page cache")
    parser.add_argument("--path", type=Path, default=None, help="folder of the files, which are temporary")
    parser.add_argument("--json", action="store_true", help="one JSON object in place of the table")
    given = parser.parse_args()
    if not 8 <= given.key_bytes <= 511:
        parser.error(f"--key-bytes {given.key_bytes}: from 8 to 511")
    return Options(*(getattr(given, name) for name in Options._fields)), given


def main() -> None:
    options, given = arguments()
    rates: dict[str, dict[str, float]] = {}
    for kind in (Nandex, Sqlite, Lmdb):
        if kind is Lmdb and lmdb is None:
            continue
        with tempfile.TemporaryDirectory(dir=given.path) as folder:
            store = kind(Path(folder), options)
            rates[store.name] = measure(store, options)
            store.close()
    skipped = ["LMDB: `pip install lmdb` is missing"] if lmdb is None else []
    if given.json:
        python = platform.python_version()
        print(json.dumps({**options._asdict(), "python": python, "rates": rates, "skipped": skipped}))
        return
    print(f"{options.pairs} pairs of {options.key_bytes} + {options.value_bytes} bytes, batches of {options.batch}")
    print(f"{'a second':12}" + "".join(f"{name:>16}" for name in rates))
    for way in next(iter(rates.values())):
        print(f"{way:12}" + "".join(f"{found[way]:16,.0f}" for found in rates.values()))
    print(*skipped, sep="\n", end="")


if __name__ == "__main__":
    main()
