"""Shards without an engine: the keys of columns, their split, and volumes whose processes are killed."""

import random
import signal
import subprocess
import sys
import textwrap
import time
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import datasketch
import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray

import nandex
from nandex.shards import Bands, Clusters, Counts, FirstRows, UnionFind, keys_of, numbers_of, split

RAM = "32MiB"


def test_columns_of_the_same_rows_have_the_same_keys() -> None:
    numbers = [0, 7, (1 << 64) - 1, 1 << 63]
    columns = [numbers, np.array(numbers, np.uint64), pa.array(numbers, pa.uint64())]
    for column in columns:
        assert keys_of(column).dtype == np.uint64 and keys_of(column).tolist() == numbers
    for small in (np.array([-1, 5], np.int16), pa.array([-1, 5], pa.int32()), pa.chunked_array([[-1], [5]]), [-1, 5]):
        assert keys_of(small).tolist() == [(1 << 64) - 1, 5]
    texts = ["a", "", "ä" * 100]
    columns = [texts, [text.encode() for text in texts], pa.array(texts), pa.array(texts, pa.large_string())]
    columns += [pa.chunked_array([texts[:1], texts[1:]]), pa.array(["x", *texts])[1:]]
    columns += [pa.array(texts, pa.string_view())]
    for column in columns:
        assert keys_of(column).dtype == np.dtype("V16")
        assert keys_of(column).tolist() == keys_of(texts).tolist()
    assert keys_of(np.array([b"a", b"bc"])).tolist() == keys_of(["a", "bc"]).tolist()
    assert len(set(keys_of(texts).tolist())) == 3


def test_several_columns_are_one_key() -> None:
    first, second = ["a", "ab", "a"], [1, 1, 2]
    keys = keys_of(first, second).tolist()
    assert len(set(keys)) == 3
    assert keys == keys_of(pa.array(first), np.array(second)).tolist()
    assert keys_of(["a"], ["bc"]).tolist() != keys_of(["ab"], ["c"]).tolist()
    with pytest.raises(nandex.InputError, match="one length"):
        keys_of(["a"], [1, 2])
    with pytest.raises(nandex.InputError, match="no column"):
        keys_of()


@pytest.mark.parametrize(
    ("column", "message"),
    [
        (pa.array([1, None]), "nulls"),
        (pa.array(["a", None]), "nulls"),
        (pa.array([1.5]), "double"),
        (np.array([1.5]), "float64"),
        ([1.5], "of the type float"),
        (["a", 1], "of the type int"),
    ],
)
def test_what_is_no_key_is_refused(column: Any, message: str) -> None:
    with pytest.raises(nandex.Error, match=message):
        keys_of(column)


@pytest.mark.parametrize("shards", [1, 2, 3, 7, 300])
def test_a_split_has_each_place_once_and_keeps_to_itself(shards: int) -> None:
    numbers = np.arange(30_000, dtype=np.uint64)
    for keys in (numbers, numbers << np.uint64(44), keys_of([str(it) for it in range(30_000)])):
        parts = split(keys, shards)
        assert len(parts) == shards
        assert sorted(np.concatenate(parts).tolist()) == list(range(len(keys)))
        assert all((np.diff(part) > 0).all() for part in parts)
        # Binomial: 6 standard deviations.
        mean = len(keys) / shards
        assert all(abs(len(part) - mean) < 6 * mean**0.5 for part in parts)
        again = split(keys[::-1], shards)
        assert [set(keys[part].tolist()) for part in parts] == [set(keys[::-1][part].tolist()) for part in again]
    for bad in (0, 1 << 17):
        with pytest.raises(nandex.ConfigError, match="shards"):
            split(numbers, bad)


def test_rows_are_numbered_by_numbers_or_texts() -> None:
    assert numbers_of(np.array([-1, 3])).tolist() == [(1 << 64) - 1, 3]
    assert len(set(numbers_of(["a", "b", "a"]).tolist())) == 2


def test_asking_again_changes_nothing(tmp_path: Path) -> None:
    keys, rows = np.array([7, 8, 7, 9], np.uint64), np.array([10, 11, 12, 13])
    with FirstRows(tmp_path / "new", ram=RAM) as first:
        assert first.stats()["entries"] == 0
        for _ in range(3):
            assert first.keep(keys, rows).tolist() == [True, True, False, True]
        assert first.keep(keys, rows + 100).tolist() == [False] * 4
        assert first.keep(keys[:0], rows[:0]).tolist() == []
        assert [len(batch) for batch, _ in first.batches()] == [3]
        with pytest.raises(nandex.InputError, match="a row for each key"):
            first.keep(keys, rows[:2])
        with pytest.raises(nandex.InputError, match="digests of all else 16"):
            first.keep(keys_of(["a"]), rows[:1])
    with FirstRows(tmp_path / "new", ram=RAM, mode="w") as first:
        ((all_keys, their_rows),) = first.batches()
        assert sorted(zip(all_keys.tolist(), their_rows.tolist(), strict=True)) == [(7, 10), (8, 11), (9, 13)]
        assert first.stats()["entries"] == 3
        assert first.keep(keys, rows).tolist() == [True, True, False, True]


def test_a_table_that_cannot_grow_has_the_ram_of_its_cache(tmp_path: Path) -> None:
    def keep(first: FirstRows, start: int) -> bool:
        keys = np.arange(start, start + (1 << 16), dtype=np.uint64)
        return bool(first.keep(keys, keys).all())

    with FirstRows(tmp_path, ram="24MiB", entries=1000) as first:
        first._cache = cache = 19 << 20
        starts = iter(range(0, 1 << 21, 1 << 16))
        kept = [keep(first, start) for start in starts if first._cache == cache]
        assert 1 < len(kept) < 32 and all(kept)
        stats = first.stats()
        assert stats["cache_bytes"] <= first._cache < cache and stats["ram_bytes"] <= 24 << 20
        assert all(keep(first, start) for start in range(0, len(kept) << 16, 1 << 16))
        # Filters say how many of the entries are keys.
        entries = len(kept) << 16
        assert abs(first.stats()["entries"] - entries) <= entries // 100
    with FirstRows(tmp_path, ram="12MiB") as first:
        assert keep(first, 0) and first.stats()["ram_bytes"] <= 12 << 20


def test_a_file_that_is_gone_is_not_begun_again(tmp_path: Path) -> None:
    with pytest.raises(nandex.MissingError):
        FirstRows(tmp_path, ram=RAM, mode="w")
    for shard, shards, refused in [(2, 2, "shard: 2"), (-1, 2, "shard: -1"), (0, 1 << 17, "shards: 131072")]:
        with pytest.raises(nandex.ConfigError, match=refused):
            FirstRows(tmp_path, shard, shards, ram=RAM)


def test_a_snapshot_is_the_shard_as_it_was(tmp_path: Path) -> None:
    keys = keys_of([str(number) for number in range(20_000)])
    rows = np.arange(20_000)
    here, copies = tmp_path / "here", tmp_path / "copies"
    with FirstRows(here, 1, 3, ram=RAM) as first:
        first.keep(keys[:10_000], rows[:10_000])
        first.snapshot(copies)
        first.keep(keys[10_000:15_000], rows[10_000:15_000])
        copy = first.snapshot(copies)
        first.keep(keys[15_000:], rows[15_000:])
        with pytest.raises(nandex.ConfigError, match="own folder"):
            first.snapshot(here)
        assert first.stats()["entries"] == 20_000
    assert [path.name for path in copies.iterdir()] == [copy.name]
    with pytest.raises(nandex.ExistsError):
        FirstRows.restore(copies, here, 1, 3)
    FirstRows.path_of(here, 1, 3).unlink()
    with pytest.raises(nandex.MissingError, match="no snapshot"):
        FirstRows.restore(copies, here, 0, 3)
    FirstRows.restore(copies, here, 1, 3)
    with FirstRows(here, 1, 3, ram=RAM, mode="w") as first:
        assert first.stats()["entries"] == 15_000
        assert first.keep(keys, rows + 1).tolist() == [False] * 15_000 + [True] * 5_000


def test_a_batch_counts_once(tmp_path: Path) -> None:
    keys, amounts = pa.array([-5, 7, 1 << 40]), np.array([1, 3, 1 << 33])
    with Counts(tmp_path, ram=RAM) as counts:
        assert (counts.get_many([7]).tolist(), counts.most_common(3), list(counts.tables())) == ([0], [], [])
        assert counts.add(b"a" * 16, keys, amounts) and not counts.add(b"a" * 16, keys, amounts)
        assert counts.add(b"b" * 16, keys[:0], amounts[:0])
        assert counts.add(b"c" * 16, pa.array([7], pa.int8()), np.array([4]))
        for name, given, amount, message in [
            (b"short", keys, amounts, "name of 5 bytes"),
            (b"d" * 16, pa.array([7, 7]), amounts[:2], "each key once"),
            (b"d" * 16, keys, amounts[:1], "each key once"),
            (b"d" * 16, pa.array(["a"]), amounts[:1], "counts int64"),
            (b"d" * 16, pa.array([None, 1]), amounts[:2], "nulls"),
        ]:
            with pytest.raises(nandex.InputError, match=message):
                counts.add(name, given, amount)
    with Counts(tmp_path, ram=RAM, mode="w") as counts:
        assert not counts.add(b"c" * 16, keys, amounts)
        assert counts.get_many(pa.array([7, -5, 8, 1 << 40])).tolist() == [7, 1, 0, 1 << 33]
        assert counts.most_common(2) == [(1 << 40, 1 << 33), (7, 7)]
        (table,) = counts.tables()
        assert sorted(zip(*table.to_pydict().values(), strict=True)) == [(-5, 1), (7, 7), (1 << 40, 1 << 33)]
        assert (counts.stats()["entries"], counts.stats()["batches"]) == (3, 3)


def test_texts_are_counted(tmp_path: Path) -> None:
    with Counts(tmp_path, ram=RAM) as counts:
        counts.add(b"a" * 16, pa.chunked_array([["the", "", "a\0"]]).combine_chunks(), np.array([2, 1, 1]))
        assert counts.get_many(["", "a\0", "a", "the"]).tolist() == [1, 1, 0, 2]
        assert counts.most_common(1) == [(b"the", 2)]
        with pytest.raises(nandex.Error, match="31"):
            counts.add(b"b" * 16, pa.array(["x" * 32]), np.array([1]))


def test_a_batch_that_broke_off_is_ended_when_the_shard_is_opened(tmp_path: Path) -> None:
    keys, amounts = pa.array([str(it) for it in range(1000)]), np.arange(1, 1001)
    with Counts(tmp_path, ram=RAM) as counts:
        counts.add(b"a" * 16, keys, amounts)
        copies = tmp_path / "copies"
        counts.snapshot(copies)
        # Half of the counts of a batch, and its journal, as a killed process leaves them.
        packed = keys.cast(pa.large_binary())
        counts._write_journal(b"b" * 16, packed, counts.get_many(keys) + amounts.astype(np.uint64))
        assert counts._counter is not None
        counts._counter.update({str(it): it + 1 for it in range(0, 1000, 2)})
    journal = counts.path.with_suffix(".journal").read_bytes()
    with Counts(tmp_path, ram=RAM, mode="w") as counts:
        assert (counts.get_many(keys) == 2 * amounts).all()
        assert not counts.add(b"b" * 16, keys, amounts)
    # A journal that is there again, of a batch that was counted, changes nothing.
    counts.path.with_suffix(".journal").write_bytes(journal)
    with Counts(tmp_path, ram=RAM, mode="w") as counts:
        assert (counts.get_many(keys) == 2 * amounts).all()
    counts.path.with_suffix(".journal").write_bytes(journal[:-1])
    with pytest.raises(nandex.DamagedError, match="restore a snapshot"):
        Counts(tmp_path, ram=RAM, mode="w")
    counts.path.unlink()
    Counts.restore(copies, tmp_path)
    with Counts(tmp_path, ram=RAM, mode="w") as counts:
        assert (counts.get_many(keys) == amounts).all()


# A shard in a process of its own: it is asked on lines of text, and answers by the places that stay.
SHARD = """
import sys, numpy as np
from nandex.shards import FirstRows
rows = FirstRows(sys.argv[1], ram="32MiB")
print("open", flush=True)
for line in sys.stdin:
    seed = int(line)
    keys = np.random.default_rng(seed).integers(0, 100_000, 20_000).astype(np.uint64)
    keep = rows.keep(keys, np.arange(len(keys), dtype=np.uint64) + np.uint64(seed << 32))
    print(np.packbits(keep).tobytes().hex(), flush=True)
"""


# One that counts the keys of a batch, and answers once it has.
COUNTS = """
import sys, numpy as np, pyarrow as pa
from nandex.shards import Counts
counts = Counts(sys.argv[1], ram="32MiB")
print("open", flush=True)
for line in sys.stdin:
    seed = int(line)
    keys = np.random.default_rng(seed).integers(0, 100_000, 20_000)
    unique, amounts = np.unique(keys, return_counts=True)
    counts.add(seed.to_bytes(16, "little"), pa.array(unique), amounts)
    print("counted", flush=True)
"""


def ask_while_killing(code: str, folder: Path, kills: int, batches: int) -> Iterator[tuple[int, str]]:
    """Sends batches in any order, some again, and kills the process several times in the middle of one: the answers."""
    answered: set[int] = set()
    while kills or len(answered) < batches:
        arguments = [sys.executable, "-c", textwrap.dedent(code), str(folder)]
        with subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdin is not None and process.stdout is not None
            assert process.stdout.readline() == "open\n"
            for seed in [*random.sample(range(batches), 2), *(it for it in range(batches) if it not in answered)]:
                process.stdin.write(f"{seed}\n")
                process.stdin.flush()
                if kills and random.random() < 0.5:
                    time.sleep(random.uniform(0, 0.03))
                    process.send_signal(signal.SIGKILL)
                    kills -= 1
                    break
                answered.add(seed)
                yield seed, process.stdout.readline().strip()
            process.stdin.close()
            process.wait(60)


def test_killed_shards_neither_lose_nor_double(tmp_path: Path) -> None:
    random.seed(11)
    kept: dict[int, NDArray[np.bool_]] = {}
    for seed, told in ask_while_killing(SHARD, tmp_path, 6, 8):
        answer = np.unpackbits(np.frombuffer(bytes.fromhex(told), np.uint8)).astype(bool)
        assert (kept.setdefault(seed, answer) == answer).all()
    batches = [np.random.default_rng(seed).integers(0, 100_000, 20_000).astype(np.uint64) for seed in range(8)]
    stay = np.concatenate([batches[seed][kept[seed]] for seed in range(8)])
    assert sorted(stay.tolist()) == np.unique(np.concatenate(batches)).tolist()


def test_killed_counters_count_each_batch_once(tmp_path: Path) -> None:
    random.seed(12)
    assert {told for _, told in ask_while_killing(COUNTS, tmp_path, 6, 8)} == {"counted"}
    batches = [np.random.default_rng(seed).integers(0, 100_000, 20_000) for seed in range(8)]
    with Counts(tmp_path, ram=RAM, mode="w") as counts:
        found = counts.get_many(pa.array(np.arange(100_000)))
    assert (found == np.bincount(np.concatenate(batches), minlength=100_000)).all()


def test_pairs_are_joined_and_the_first_row_of_the_earliest_pass_stays(tmp_path: Path) -> None:
    def rows(*numbers: int) -> NDArray[np.uint64]:
        return np.array(numbers, np.uint64)

    with Clusters(tmp_path, ram=RAM) as clusters:
        assert clusters.stats()["entries"] == 0
        with pytest.raises(nandex.InputError, match="begin a pass first"):
            clusters.keep(rows(1))
        assert clusters.begin("pairs") == 1
        for _ in range(2):
            clusters.join(1, rows(5, 6, 7, 8, 9), rows(6, 9, 8), rows(5, 8, 7))
        assert clusters.roots(rows(5, 6, 7, 8, 9, 6)).tolist() == [5, 5, 7, 7, 7, 5]
        with pytest.raises(nandex.InputError, match="give two arrays"):
            clusters.join(1, rows(5), rows(5), rows())
    with Clusters(tmp_path, ram=RAM, mode="w") as clusters:
        # The pass did not end, and goes on.
        assert clusters.begin("pairs") == 1
        clusters.end(1)
        # Rows of a later pass with smaller numbers stay behind those that were there, and do not join them.
        assert clusters.begin("pairs") == 2
        for _ in range(2):
            clusters.join(2, rows(1, 2, 3, 6), rows(1, 2, 1), rows(6, 3, 9))
        assert clusters.keep(rows(1, 2, 3, 5, 6, 7)).tolist() == [False, True, False, True, False, True]
        assert clusters.roots(rows(9, 1)).tolist() == [7, 5]
        assert clusters.stats()["entries"] == 8 and clusters.keep(rows()).tolist() == []
        with pytest.raises(nandex.InputError, match="lacks 1 of the rows, such as 4"):
            clusters.keep(rows(5, 4))
        with pytest.raises(nandex.ConfigError, match="has clusters by pairs; give what it was made with"):
            clusters.begin("other")


@pytest.mark.parametrize("shards", [1, 3])
def test_clusters_are_those_of_the_slow_way(tmp_path: Path, shards: int) -> None:
    draw = np.random.default_rng(5)
    count = 3000
    left, right = draw.integers(0, count, (2, 2500)).astype(np.uint64)
    # A chain that is added from its end, so that each row is far from the root.
    chain = np.arange(count, count + 500, dtype=np.uint64)
    left, right = np.append(left, chain[:0:-1]), np.append(right, chain[-2::-1])
    opened = [Clusters(tmp_path, shard, shards, ram=RAM, entries=100) for shard in range(shards)]
    number = max(shard.begin("pairs") for shard in opened)
    clusters = UnionFind.of(opened)
    with ThreadPoolExecutor(1) as one_at_a_time:
        # Several join at one time; a shard answers one call after another.
        joined = UnionFind(
            shards,
            lambda calls: [
                one_at_a_time.submit(getattr(opened[shard], method), *given).result() for shard, method, given in calls
            ],
        )
        with ThreadPoolExecutor(4) as threads:
            parts = [(left[start : start + 100], right[start : start + 100]) for start in range(0, len(left), 100)]
            deque(threads.map(lambda pairs: joined.join(number, pairs[0], *pairs), parts), maxlen=0)
    told = np.unique(np.append(left, right))
    found = clusters.roots(told)
    assert (clusters.keep(told) == (found == told)).all()
    for shard in opened:
        shard.close()
    label = np.arange(count + 500)
    for _ in range(600):
        smallest = np.minimum(label[left], label[right])
        np.minimum.at(label, left, smallest)
        np.minimum.at(label, right, smallest)
    assert (label[left] == label[right]).all()
    assert (found == label[told]).all()


def test_texts_share_keys_as_signatures_in_datasketch_do() -> None:
    bands = Bands(threshold=0.5, num_perm=32)
    assert bands.shape == (datasketch.MinHashLSH(threshold=0.5, num_perm=32).b, bands.shape[1])
    texts = ["One fish, two fish, red fish", "one fish two fish red fish", "blue", "...", "...", "?", ""]
    keys = bands.of_texts(texts)
    assert keys.shape == (7, bands.shape[0]) and (keys == bands.of_texts(pa.array(texts))).all()
    assert (keys[0] == keys[1]).all() and (keys[3] == keys[4]).all()
    assert len({tuple(row) for row in keys.tolist()}) == 5
    signatures = np.arange(64).reshape(2, 32)
    keys = bands.of_signatures(signatures)
    assert len(set(keys.ravel().tolist())) == 2 * bands.shape[0]
    assert (keys == bands.of_signatures(signatures.astype(np.uint32))).all()
    # Equal values make other keys in another band.
    assert len(set(bands.of_signatures(np.zeros((1, 32), int)).ravel().tolist())) == bands.shape[0]
    assert bands.of_signatures(np.zeros((3, 32, 2), int)).shape == (3, bands.shape[0])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Bands(threshold=2), "threshold: 2; give a number from 0 to 1"),
        (lambda: Bands(params=(0, 4)), "params"),
        (lambda: Bands(params=(40, 4)), "at most 128 values"),
        (lambda: Bands(shingle=0).of_texts(["a"]), "shingle: 0; give a whole number from 1 to 64"),
        (lambda: Bands().of_texts([1]), "of the type int"),
        (lambda: Bands().of_texts(pa.array(["a", None])), "1 nulls"),
        (lambda: Bands().of_signatures(np.zeros((2, 64), int)), "give rows of 128"),
        (lambda: Bands().of_signatures(np.zeros((2, 128))), "float64 as signatures"),
    ],
)
def test_bands_that_cannot_be_are_refused(call: Callable[[], object], message: str) -> None:
    with pytest.raises(nandex.Error, match=message):
        call()


def test_a_snapshot_goes_to_an_object_store_and_back(tmp_path: Path) -> None:
    pytest.importorskip("obstore")
    url = (tmp_path / "bucket" / "of mine").as_uri()
    keys, rows = np.arange(20_000, dtype=np.uint64), np.arange(20_000)
    with FirstRows(tmp_path / "here", 0, 2, ram=RAM) as first:
        first.keep(keys, rows)
        assert first.snapshot(url) == f"{url}/{first.path.name}"
        first.keep(keys + np.uint64(1 << 40), rows)
        with pytest.raises(nandex.DeviceError, match="cannot open file:///proc/version/no-folder"):
            first.snapshot("file:///proc/version/no-folder")
        assert first.stats()["entries"] == 40_000
    assert FirstRows.missing(url, 2) == ([1], [first.path.name])
    assert FirstRows.restore(url, tmp_path / "there", 0, 2) == FirstRows.path_of(tmp_path / "there", 0, 2)
    with FirstRows(tmp_path / "there", 0, 2, ram=RAM, mode="w") as first:
        assert first.stats()["entries"] == 20_000 and first.keep(keys, rows).all()
    with pytest.raises(nandex.MissingError, match="no snapshot .*first-rows-00001-of-00002.nandex"):
        FirstRows.restore(url, tmp_path / "there", 1, 2)
    assert [path.name for path in (tmp_path / "there").iterdir()] == [first.path.name]
    with pytest.raises(nandex.ConfigError, match="nothing://"):
        FirstRows.restore("nothing://here", tmp_path / "elsewhere")
    with pytest.raises(nandex.ConfigError, match="which is a folder; give a URL"):
        FirstRows.restore(tmp_path, tmp_path / "elsewhere", store={"config": {}})


def test_a_snapshot_of_another_version_or_a_damaged_one_is_not_restored(tmp_path: Path) -> None:
    copies = tmp_path / "copies"
    with FirstRows(tmp_path / "here", ram=RAM) as first:
        first.keep(np.arange(100, dtype=np.uint64), np.arange(100))
        copy = first.snapshot(copies)
    whole = copy.read_bytes()
    for error, message, damaged in [
        (nandex.FormatError, "cannot be restored: .*version", of_version(whole, 99)),
        (nandex.DamagedError, "cannot be restored", whole[:100] + b"?" * 8192 + whole[8292:]),
        (nandex.FormatError, "cannot be restored", b"no volume" * 9999),
    ]:
        copy.write_bytes(damaged)
        with pytest.raises(error, match=message):
            FirstRows.restore(copies, tmp_path / "there")
        assert list((tmp_path / "there").iterdir()) == []
    copy.write_bytes(whole)
    FirstRows.restore(copies, tmp_path / "there")
    # An opened shard that was not restored reports it too.
    FirstRows.path_of(tmp_path / "there", 0, 1).write_bytes(of_version(whole, 99))
    with pytest.raises(nandex.FormatError, match="version"):
        FirstRows(tmp_path / "there", ram=RAM, mode="w")


def of_version(volume: bytes, version: int) -> bytes:
    """A volume whose superblocks have another version: the first two bytes of their bodies, below checksums."""
    changed = bytearray(volume)
    for start in (0, 4096):
        page = changed[start : start + 4096]
        page[32:34] = version.to_bytes(2, "little")
        page[:4] = crc32c(bytes(page[4:])).to_bytes(4, "little")
        changed[start : start + 4096] = page
    return bytes(changed)


def crc32c(content: bytes) -> int:
    remainder = 0xFFFFFFFF
    for byte in content:
        remainder ^= byte
        for _ in range(8):
            remainder = remainder >> 1 ^ (0x82F63B78 if remainder & 1 else 0)
    return remainder ^ 0xFFFFFFFF
