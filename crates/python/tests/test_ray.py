"""Duplicates of Ray datasets, on a Ray of this machine alone, whose shards are killed.

`NANDEX_KILLS` is how often. Where Ray is not installed, `make ray` installs it and runs these tests.
"""

import gc
import os
import random
import signal
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import nandex

os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
ray = pytest.importorskip("ray")
pytest.importorskip("ray.data")

import nandex.ray  # noqa: E402

RAM = "32MiB"
KILLS = int(os.environ.get("NANDEX_KILLS", "10"))


@pytest.fixture(scope="module", autouse=True)
def cluster() -> Iterator[None]:
    ray.init(
        num_cpus=2,
        include_dashboard=False,
        _node_ip_address="127.0.0.1",
        object_store_memory=256 << 20,
        log_to_driver=False,
        configure_logging=False,
    )
    ray.data.DataContext.get_current().enable_progress_bars = False
    yield
    ray.shutdown()


def rows_of(seed: int, count: int = 40_000, keys: int = 100_000) -> pa.Table:
    """Rows with keys that repeat within a table and between tables, and numbers that no other row has."""
    drawn = np.random.default_rng(seed).integers(0, keys, count)
    return pa.table({"key": drawn, "name": np.arange(count) + seed * count})


def blocks(*seeds: int) -> Any:
    """A dataset of several blocks for each table."""
    return ray.data.from_arrow([part for seed in seeds for part in split_table(rows_of(seed))])


def split_table(table: pa.Table) -> list[pa.Table]:
    return [table.slice(start, 10_000) for start in range(0, table.num_rows, 10_000)]


def names(dataset: Any) -> list[int]:
    return [name for batch in dataset.iter_batches(batch_format="numpy") for name in batch["name"].tolist()]


def is_each_key_once(kept: list[int], *seeds: int) -> bool:
    """Has each key of the tables exactly one row of these?"""
    table = pa.concat_tables([rows_of(seed) for seed in seeds])
    keys = dict(zip(table["name"].to_pylist(), table["key"].to_pylist(), strict=True))
    return Counter(keys[name] for name in kept) == Counter(set(keys.values()))


class Killer:
    """Kills shards at random, from a thread, until it was often enough."""

    def __init__(self, shards: Any, kills: int) -> None:
        self._shards, self._kills = shards, kills
        self.killed: list[int] = []
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while len(self.killed) < self._kills:
            # Those that live: one that was killed before is asked again once it is there.
            pid = random.choice(self._shards.pids())
            time.sleep(random.uniform(0, 0.2))
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
                self.killed.append(pid)

    @property
    def is_at_work(self) -> bool:
        return self._thread.is_alive()

    def end(self) -> None:
        self._thread.join()
        assert len(self.killed) == len(set(self.killed)) == self._kills


def test_killed_shards_neither_lose_nor_double(tmp_path: Path) -> None:
    random.seed(7)
    shards = nandex.ray.Dedup(tmp_path, shards=2, ram=RAM)
    killer = Killer(shards, KILLS)
    answers: dict[int, list[int]] = {}
    while killer.is_at_work or len(answers) < 2:
        seed = len(answers)
        answers[seed] = names(shards.unique(blocks(seed), "key", id="name"))
    killer.end()
    assert is_each_key_once([name for kept in answers.values() for name in kept], *answers)
    for seed in random.sample(sorted(answers), 2):
        assert sorted(names(shards.unique(blocks(seed), "key", id="name"))) == sorted(answers[seed])
    assert shards.stats()["entries"] == sum(map(len, answers.values()))
    shards.close()


def test_killed_counters_count_each_row_once(tmp_path: Path) -> None:
    random.seed(8)
    counts = nandex.ray.Count(tmp_path, shards=2, ram=RAM)
    killer = Killer(counts, max(2, KILLS // 5))
    seed = 0
    while killer.is_at_work or seed < 2:
        assert counts.add(blocks(seed), "key") == 40_000
        seed += 1
    killer.end()
    drawn = pa.concat_tables([rows_of(it) for it in range(seed)])["key"].to_numpy()
    truth = np.bincount(drawn, minlength=100_000)
    assert (counts.get_many(pa.array(np.arange(100_000))) == truth).all()
    table = pa.concat_tables(ray.get(counts.to_dataset().to_arrow_refs()))
    assert dict(zip(*table.to_pydict().values(), strict=True)) == {key: n for key, n in enumerate(truth.tolist()) if n}
    top = sorted(enumerate(truth.tolist()), key=lambda pair: (-pair[1], pair[0]))
    assert counts.most_common(20) == top[:20]
    counts.close()


@pytest.mark.parametrize("texts", [False, True])
def test_more_shards_go_on_where_fewer_were(texts: bool, tmp_path: Path) -> None:
    def key(block: pa.Table) -> Any:
        return block["key"].cast(pa.string()) if texts else block["key"]

    few = nandex.ray.Dedup(tmp_path / "few", shards=1, ram=RAM)
    first = names(few.unique(blocks(1), key, id="name"))
    more = nandex.ray.Dedup(tmp_path / "more", shards=3, ram=RAM)
    for _ in range(2):
        assert few.copy_to(more) == len(first)
    few.close()
    assert more.stats()["entries"] == len(first)
    assert sorted(names(more.unique(blocks(1), key, id="name"))) == sorted(first)
    assert is_each_key_once(first + names(more.unique(blocks(2), key, id="name")), 1, 2)
    more.close()


def test_words_are_counted(tmp_path: Path) -> None:
    words = ray.data.from_items([{"word": word} for word in "the cat and the hat".split()])
    counts = nandex.ray.count(words, "word", path=tmp_path, shards=3, ram=RAM)
    assert counts.most_common(2) == [(b"the", 2), (b"and", 1)]
    assert counts.get_many(["the", "dog", "hat"]).tolist() == [2, 0, 1]
    with pytest.raises(Exception, match="counts bytes"):
        counts.add(ray.data.from_items([{"word": 7}]), "word")
    with pytest.raises(Exception, match="nulls"):
        counts.add(ray.data.from_arrow(pa.table({"word": ["a", None]})), "word")
    counts.close()


def test_rows_without_numbers_are_numbered_for_one_execution(tmp_path: Path) -> None:
    unique = nandex.ray.dedup(blocks(1, 2), "key", path=tmp_path, shards=3, ram=RAM)
    assert unique.schema().names == ["key", "name"]
    kept = names(unique)
    # Its actors are those of the dataset alone, and another dataset has them too.
    gc.collect()
    assert sorted(names(unique)) == sorted(kept)
    assert is_each_key_once(kept, 1, 2)
    more = names(nandex.ray.dedup(blocks(2, 3), "key", path=tmp_path, shards=3, ram=RAM))
    assert is_each_key_once(kept + more, 1, 2, 3)
    assert names(nandex.ray.dedup(blocks(1), "key", path=tmp_path, shards=3, ram=RAM)) == []


def test_a_lazy_dataset_keeps_its_shards_and_a_later_one_finds_what_was_seen(tmp_path: Path) -> None:
    unique = nandex.ray.dedup(blocks(1), lambda block: block["key"], path=tmp_path, shards=2, ram=RAM, id="name")
    gc.collect()
    kept = names(unique)
    assert is_each_key_once(kept, 1) and unique.count() == len(kept)
    del unique
    gc.collect()
    shards = nandex.ray.Dedup(tmp_path, shards=2, ram=RAM)
    assert sorted(names(shards.unique(blocks(1), ["key"], id="name"))) == sorted(kept)
    assert is_each_key_once(kept + names(shards.unique(blocks(2), "key", id="name")), 1, 2)
    shards.close()


def test_texts_and_several_columns_are_keys(tmp_path: Path) -> None:
    rows = [{"host": f"h{number % 7}", "path": f"p{number % 100}", "size": number % 2} for number in range(3000)]
    pages = ray.data.from_items(rows, override_num_blocks=4)
    for key in ("host", ["host", "path"], ["path", "size"]):
        columns = [key] if isinstance(key, str) else key
        unique = nandex.ray.dedup(pages, key, path=tmp_path / "-".join(columns), shards=2, ram=RAM)
        kept = [tuple(row[name] for name in columns) for row in unique.take_all()]
        assert Counter(kept) == Counter({tuple(row[name] for name in columns) for row in rows})


def test_errors_say_what_to_do(tmp_path: Path) -> None:
    shards = nandex.ray.Dedup(tmp_path, shards=2, ram=RAM)
    with pytest.raises(Exception, match="no column 'url': the dataset has 'key', 'name'"):
        shards.unique(blocks(1), "url", id="name").count()
    with pytest.raises(Exception, match="3 keys of 10000 rows"):
        shards.unique(blocks(1), lambda block: [1, 2, 3], id="name").count()
    with pytest.raises(nandex.ConfigError, match="close them first"):
        nandex.ray.Dedup(tmp_path, shards=2, ram="64MiB")
    with pytest.raises(nandex.ConfigError, match="give the number in it"):
        nandex.ray.Dedup(tmp_path, shards=3, ram=RAM)
    with pytest.raises(nandex.ConfigError, match="give 1 to"):
        nandex.ray.Dedup(tmp_path, shards=0)
    shards.close()


def test_a_shard_whose_disk_is_gone_is_restored(tmp_path: Path) -> None:
    here, copies = tmp_path / "here", tmp_path / "copies"
    shards = nandex.ray.Dedup(here, shards=2, ram=RAM)
    first = names(shards.unique(blocks(1), "key", id="name"))
    files = shards.snapshot(copies)
    assert [file.parent for file in files] == [copies] * 2
    second = names(shards.unique(blocks(2), "key", id="name"))
    shards.close()
    (here / files[1].name).unlink()
    with pytest.raises(nandex.MissingError, match=r"shards \[1\] of .* restore"):
        nandex.ray.Dedup(here, shards=2, ram=RAM)
    assert nandex.ray.Dedup.restore(copies, here, shards=2) == [here / files[1].name]
    shards = nandex.ray.Dedup(here, shards=2, ram=RAM)
    # What came since the snapshot is run again, and what came before is as it was.
    again = names(shards.unique(blocks(2), "key", id="name"))
    assert is_each_key_once(first + again, 1, 2) and len(again) == len(second)
    assert sorted(names(shards.unique(blocks(1), "key", id="name"))) == sorted(first)
    shards.close()
