"""Duplicates of Ray datasets, on a Ray of this machine alone, whose shards are killed.

`NANDEX_KILLS` is how often. Where Ray is not installed, `make ray` installs it and runs these tests.
"""

import gc
import os
import random
import shutil
import signal
import threading
import time
import urllib.request
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import datasketch
import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray
from sklearn.feature_extraction.text import TfidfVectorizer

import nandex
import nandex.datasketch
from nandex.shards import Bands

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
    """Returns whether each key of the tables has exactly one of these rows."""
    table = pa.concat_tables([rows_of(seed) for seed in seeds])
    keys = dict(zip(table["name"].to_pylist(), table["key"].to_pylist(), strict=True))
    return Counter(keys[name] for name in kept) == Counter(set(keys.values()))


class Killer:
    """Kills shards at random, from a thread, until their number is reached."""

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
def test_counts_go_on_in_more_shards(texts: bool, tmp_path: Path) -> None:
    numbers = np.random.default_rng(3).zipf(1.3, 20_000) % 5000
    column = pa.array([f"word {number}" for number in numbers]) if texts else pa.array(numbers)
    rows = ray.data.from_arrow(pa.table({"key": column}))
    few = nandex.ray.count(rows, "key", path=tmp_path / "few", shards=1, ram=RAM)
    more = nandex.ray.Count(tmp_path / "more", shards=3, ram=RAM)
    keys = column.unique()
    assert few.copy_to(more) == len(keys)
    before = few.get_many(keys)
    few.close()
    assert more.get_many(keys).tolist() == before.tolist() and before.sum() == 20_000
    assert more.add(rows, "key") == 20_000
    assert more.get_many(keys).tolist() == (2 * before).tolist()
    more.close()


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
    with pytest.raises(nandex.ConfigError, match="give a whole number from 1 to"):
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
    # Rows after the snapshot are run again, and earlier rows are unchanged.
    again = names(shards.unique(blocks(2), "key", id="name"))
    assert is_each_key_once(first + again, 1, 2) and len(again) == len(second)
    assert sorted(names(shards.unique(blocks(1), "key", id="name"))) == sorted(first)
    shards.close()


WORDS = [f"word{number}" for number in range(3000)]


def texts_of(seed: int, count: int = 600) -> pa.Table:
    """Texts, some near others in a table and between tables, with numbers that no other row has."""
    choose = random.Random(seed)
    of_all = [random.Random(group).choices(WORDS, k=60) for group in range(150)]
    texts = []
    for _ in range(count):
        words = list(choose.choice(of_all)) if choose.random() < 0.6 else choose.choices(WORDS, k=60)
        for _ in range(choose.randrange(3)):
            words[choose.randrange(60)] = choose.choice(WORDS)
        texts.append(" ".join(words))
    # Texts without words, two of which are equal.
    texts[:4] = ["", "...", "", "!"]
    return pa.table({"text": texts, "name": np.arange(count) + seed * count})


def near_blocks(*seeds: int) -> Any:
    return ray.data.from_arrow([texts_of(seed).slice(start, 150) for seed in seeds for start in range(0, 600, 150)])


def first_of_clusters(keys: NDArray[np.uint64]) -> list[int]:
    """The slow way: rows that share a key are connected, and the first of connected rows stays."""
    label = np.arange(len(keys))
    while True:
        before = label.copy()
        for column in keys.T:
            _, places = np.unique(column, return_inverse=True)
            smallest = np.full(places.max() + 1, len(keys))
            np.minimum.at(smallest, places, label)
            label = np.minimum(label, smallest[places])
        label = label[label]
        if (label == before).all():
            return [row for row, first in enumerate(label.tolist()) if row == first]


def test_near_duplicates_are_those_of_one_machine(tmp_path: Path) -> None:
    bands = Bands(threshold=0.7, num_perm=64)
    of_first, of_second = [bands.of_texts(texts_of(seed)["text"]) for seed in (0, 1)]
    first_truth = first_of_clusters(of_first)
    second_truth = [row for row in first_of_clusters(np.concatenate([of_first, of_second])) if row >= 600]
    assert 200 < len(first_truth) < 500 and 200 < len(second_truth) < 500
    shards = nandex.ray.NearDup(tmp_path, shards=2, ram=RAM, bands=bands)
    first = shards.unique(near_blocks(0), "text", id="name")
    assert sorted(names(first)) == first_truth
    second = shards.unique(near_blocks(1), "text", id="name")
    assert sorted(names(second)) == second_truth and sorted(names(first)) == first_truth
    # Asked again, also after a failure of all shards at once, they say the same, and know no more.
    assert shards.stats()["entries"] == 1200
    for pid in shards.pids():
        os.kill(pid, signal.SIGKILL)
    again = shards.unique(near_blocks(1, 0), "text", id="name")
    assert sorted(names(again)) == first_truth + second_truth
    assert shards.stats()["entries"] == 1200
    with pytest.raises(Exception, match="has clusters by [0-9x]+-of-64-"):
        nandex.ray.NearDup(tmp_path, shards=2, ram=RAM).unique(near_blocks(0), "text", id="name")
    shards.close()


def test_near_duplicates_go_on_in_more_shards(tmp_path: Path) -> None:
    few = nandex.ray.NearDup(tmp_path / "few", shards=1, ram=RAM)
    more = nandex.ray.NearDup(tmp_path / "more", shards=3, ram=RAM)
    assert few.copy_to(more) == 0
    first = sorted(names(few.unique(near_blocks(1), "text", id="name")))
    second = sorted(names(few.unique(near_blocks(0), "text", id="name")))
    # A copy that was broken off is made again, and no dataset is read meanwhile.
    more._clusters._all("begin_copy", few._clusters._all("told")[0][0])
    with pytest.raises(Exception, match="copy them again, to the end"):
        more.unique(near_blocks(1), "text", id="name")
    assert few.copy_to(more) == 1200 == more.stats()["entries"]
    with pytest.raises(Exception, match="has rows of its own"):
        few.copy_to(more)
    other = nandex.ray.NearDup(tmp_path / "other", ram=RAM, bands=Bands(threshold=0.5))
    with pytest.raises(nandex.ConfigError, match="give those of the shards that are copied"):
        few.copy_to(other)
    third = sorted(names(few.unique(near_blocks(2), "text", id="name")))
    few.close()
    # They give the first answers, for rows of all passes, and for rows of another one.
    assert sorted(names(more.unique(near_blocks(2), "text", id="name"))) == third
    assert sorted(names(more.unique(near_blocks(0), "text", id="name"))) == second
    assert sorted(names(more.unique(near_blocks(1), "text", id="name"))) == first
    more.close()
    other.close()


def test_killed_shards_of_near_duplicates_join_each_pair(tmp_path: Path) -> None:
    random.seed(9)
    seeds = range(3, 7)
    bands = Bands(threshold=0.7, num_perm=64)
    truth = first_of_clusters(np.concatenate([bands.of_texts(texts_of(seed)["text"]) for seed in seeds]))
    shards = nandex.ray.NearDup(tmp_path, shards=2, ram=RAM, bands=bands)
    killer = Killer(shards, max(2, KILLS // 5))
    rounds = 0
    while killer.is_at_work or rounds < 2:
        kept = names(shards.unique(near_blocks(*seeds), "text", id="name"))
        assert sorted(name - 3 * 600 for name in kept) == truth
        rounds += 1
    killer.end()
    shards.close()


def test_signatures_of_datasketch_are_near_as_they_are_there(tmp_path: Path) -> None:
    rows = texts_of(2)

    def sketches(batch: pa.Table) -> Any:
        minhashes = [datasketch.MinHash(num_perm=64) for _ in range(batch.num_rows)]
        for minhash, text in zip(minhashes, batch["text"].to_pylist(), strict=True):
            minhash.update_batch([word.encode() for word in text.split()] or [text.encode()])
        return np.stack([minhash.hashvalues for minhash in minhashes])

    lsh = nandex.datasketch.MinHashLSH(threshold=0.7, num_perm=64)
    signatures = sketches(rows)
    lsh.insert_many(range(600), signatures)
    label = list(range(600))
    for _ in range(20):
        label = [min(label[it] for it in found) for found in lsh.query_many(signatures)]
    kept = nandex.ray.near_dup(near_blocks(2), sketches, path=tmp_path, shards=3, ram=RAM, threshold=0.7, num_perm=64)
    assert kept.schema().names == ["text", "name"]
    assert sorted(name - 1200 for name in names(kept)) == [row for row in range(600) if label[row] == row]


def test_weights_of_terms_are_those_of_scikit_learn(tmp_path: Path) -> None:
    texts = [text.replace("word1", "Wörd") for text in texts_of(0)["text"].to_pylist()]
    texts[5] = "x" * 40 + " " + "y" * 32
    table = pa.table({"text": texts, "name": range(600)})
    rows = ray.data.from_arrow([table.slice(start, 100) for start in range(0, 600, 100)])
    options: list[dict[str, Any]] = [
        {},
        {"min_df": 3, "max_df": 0.05, "sublinear_tf": True, "norm": "l1"},
        {"use_idf": False, "binary": True, "norm": None},
        {"smooth_idf": False},
    ]
    terms = nandex.ray.Tfidf(tmp_path, shards=3, ram=RAM, ngram_range=(1, 2))
    assert terms.add(rows, "text") == 600 == terms.documents
    known = sum("word5" in text.split() for text in texts)
    assert terms.documents_of(["word5", "no such term", "x" * 40]).tolist() == [known, 0, 1]
    for weighing in options:
        theirs = TfidfVectorizer(ngram_range=(1, 2), **weighing)
        expected = theirs.fit_transform(texts)
        columns = theirs.get_feature_names_out()
        weighed = terms.transform(rows, "text", **weighing).sort("name").take_all()
        for place, row in enumerate(weighed):
            of_row = expected[[place]]
            there = dict(zip(columns[of_row.indices], of_row.data, strict=True))
            assert row["terms"] == sorted(there, key=str.encode)
            assert np.allclose(row["weights"], [there[term] for term in row["terms"]], rtol=1e-12)
    fewer = nandex.ray.Tfidf(tmp_path / "fewer", shards=2, ram=RAM, ngram_range=(1, 2))
    some = ["word5", "word5 word6", "x" * 40, "no such term"]
    assert terms.copy_to(fewer) == terms.stats()["entries"] - 1
    assert fewer.documents == 600 and (fewer.documents_of(some) == terms.documents_of(some)).all()
    fewer.close()
    with pytest.raises(nandex.ConfigError, match="give those of the shards that are copied"):
        terms.copy_to(nandex.ray.Tfidf(tmp_path / "fewer", shards=2, ram=RAM))
    terms.close()
    with pytest.raises(nandex.ConfigError, match="norm: 'l3'"):
        nandex.ray.tfidf(rows, "text", path=tmp_path / "new", ram=RAM, norm="l3")
    with pytest.raises(nandex.ConfigError, match="min_df: 1.5"):
        nandex.ray.tfidf(rows, "text", path=tmp_path / "new", ram=RAM, min_df=1.5)
    assert not (tmp_path / "new").exists()
    with pytest.raises(nandex.Error, match="ngram"):
        nandex.ray.Tfidf(tmp_path / "new", ram=RAM, ngram_range=(2, 1))


def test_killed_shards_of_terms_count_each_document_once(tmp_path: Path) -> None:
    random.seed(10)
    terms = nandex.ray.Tfidf(tmp_path, shards=2, ram=RAM)
    killer = Killer(terms, max(2, KILLS // 5))
    seed = 0
    while killer.is_at_work or seed < 2:
        assert terms.add(near_blocks(seed), "text") == 600
        seed += 1
    killer.end()
    texts = [set(text.split()) for it in range(seed) for text in texts_of(it)["text"].to_pylist()]
    assert terms.documents == len(texts)
    assert terms.documents_of(WORDS).tolist() == [sum(word in text for text in texts) for word in WORDS]
    terms.close()


@pytest.fixture(scope="module")
def s3() -> Iterator[dict[str, Any]]:
    """A server of S3's protocol on this machine alone, with a bucket: options for it."""
    moto = pytest.importorskip("moto.server")
    server = moto.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    endpoint = f"http://{host}:{port}"
    urllib.request.urlopen(urllib.request.Request(f"{endpoint}/copies", method="PUT")).close()
    keys = {"aws_access_key_id": "any", "aws_secret_access_key": "any", "aws_region": "us-east-1"}
    yield {"config": {**keys, "aws_endpoint": endpoint}, "client_options": {"allow_http": True}}
    server.stop()


def test_shards_whose_node_is_gone_come_back_from_s3(tmp_path: Path, s3: dict[str, Any]) -> None:
    here, url = tmp_path / "here", "s3://copies/of-dedup"
    shards = nandex.ray.Dedup(here, shards=2, ram=RAM)
    first = names(shards.unique(blocks(1), "key", id="name"))
    files = shards.snapshot(url, store=s3)
    assert files == [f"{url}/first-rows-0000{shard}-of-00002.nandex" for shard in range(2)]
    shards.unique(blocks(2), "key", id="name").count()
    shards.close()
    for file in here.glob("*.nandex"):
        file.unlink()
    with pytest.raises(nandex.ConfigError, match="has first-rows-.*-of-00002.nandex: give the number in it"):
        nandex.ray.Dedup.restore(url, tmp_path / "three", shards=3, store=s3)
    with pytest.raises(nandex.MissingError, match=r"has no snapshot of shards \[0, 1\] of first-rows; it has none"):
        nandex.ray.Dedup.restore("s3://copies/nowhere", here, shards=2, store=s3)
    assert len(nandex.ray.Dedup.restore(url, here, shards=2, store=s3)) == 2
    shards = nandex.ray.Dedup(here, shards=2, ram=RAM)
    assert shards.stats()["entries"] == len(first)
    assert sorted(names(shards.unique(blocks(1), "key", id="name"))) == sorted(first)
    with pytest.raises(nandex.DeviceError, match="cannot write s3://no-bucket"):
        shards.snapshot("s3://no-bucket", store=s3)
    assert shards.stats()["entries"] == len(first)
    shards.close()


def test_a_missing_snapshot_restores_no_shard(tmp_path: Path) -> None:
    here, copies = tmp_path / "here", tmp_path / "copies"
    shards = nandex.ray.Count(here, shards=2, ram=RAM)
    shards.add(blocks(1), "key")
    files = shards.snapshot(copies)
    shards.close()
    files[1].unlink()
    for file in here.glob("*.nandex"):
        file.unlink()
    with pytest.raises(nandex.MissingError, match=r"has no snapshot of shards \[1\]"):
        nandex.ray.Count.restore(copies, here, shards=2)
    assert list(here.glob("*.nandex")) == []


def test_near_duplicates_go_on_after_a_restore(tmp_path: Path) -> None:
    here, copies = tmp_path / "here", tmp_path / "copies"
    shards = nandex.ray.NearDup(here, shards=2, ram=RAM)
    first = names(shards.unique(near_blocks(1), "text", id="name"))
    assert len(shards.snapshot(copies)) == 4
    second = names(shards.unique(near_blocks(0), "text", id="name"))
    shards.close()
    for file in (*here.glob("clusters*.nandex"), *here.glob("buckets-00001*.nandex")):
        file.unlink()
    with pytest.raises(nandex.MissingError, match="restore"):
        nandex.ray.NearDup(here, shards=2, ram=RAM)
    lacking = tmp_path / "lacking"
    shutil.copytree(copies, lacking)
    (lacking / "buckets-00001-of-00002.nandex").unlink()
    with pytest.raises(nandex.MissingError, match=r"has no snapshot of shards \[1\] of buckets"):
        nandex.ray.NearDup.restore(lacking, here, shards=2)
    assert not list(here.glob("clusters*.nandex"))
    assert len(nandex.ray.NearDup.restore(copies, here, shards=2)) == 3
    shards = nandex.ray.NearDup(here, shards=2, ram=RAM)
    # Rows of the second pass have smaller numbers, and stay behind those of the first.
    assert sorted(names(shards.unique(near_blocks(0), "text", id="name"))) == sorted(second)
    assert sorted(names(shards.unique(near_blocks(1), "text", id="name"))) == sorted(first)
    shards.close()
