"""Tables of fixed widths: numbers, bytes, and batches in every form."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import nandex

COUNT = 20_000


def test_numbers_are_put_read_and_removed(db: nandex.Database) -> None:
    table = db.table("t", entries=1000)
    table[7] = 42
    table.insert(np.uint64(8), 2**64 - 1)
    assert (table[7], table[8], table.get(9), table.get(9, -1)) == (42, 2**64 - 1, None, -1)
    assert 7 in table and 9 not in table
    assert table.get_or_insert(9, 1) is None and table.get_or_insert(9, 2) == 1
    del table[9]
    table.remove(10)
    assert sorted(table) == [7, 8] and sorted(table.values()) == [42, 2**64 - 1]
    with pytest.raises(KeyError) as missing:
        table[9]
    assert isinstance(missing.value, nandex.Error) and missing.value.args == (9,)
    with pytest.raises(nandex.KeyNotFoundError):
        del table[9]


def test_parameters_that_are_stated_are_the_tables_and_must_stay_so(db: nandex.Database) -> None:
    with db.table("t", entries=1000, parameters={"spare_buffers": "7"}) as table:
        assert table.parameters["spare_buffers"] == "7" and table.parameters["key_bytes"] == "8"
    db.table("t", entries=1000, parameters={"spare_buffers": "7"}).close()
    with pytest.raises(nandex.Error, match="exists with spare_buffers = 7, and was required with 8"):
        db.table("t", entries=1000, parameters={"spare_buffers": "8"})
    with pytest.raises(nandex.Error, match="'colour' is not a parameter|\"colour\" is not a parameter"):
        db.table("u", parameters={"colour": "red"})


def test_options_of_an_opening_are_stated_with_the_parameters_and_are_not_kept(db: nandex.Database) -> None:
    with db.table("t", entries=100_000, parameters={"cache_bytes": "300k", "read_depth": "4"}) as table:
        assert 0 < table.stats()["cache_bytes"] <= 300 << 10
        assert "cache_bytes" not in table.parameters
    with db.table("t", entries=100_000) as table:
        assert table.stats()["cache_bytes"] > 300 << 10
    for open_one in (db.table, db.map, db.filter, db.counter):
        with pytest.raises(nandex.ConfigError, match="read_depth: 0; it must be 1 to 4,096"):
            open_one("other", parameters={"read_depth": "0"})
        with pytest.raises(nandex.ConfigError, match="of an opening, flush_threads"):
            open_one("other", parameters={"colour": "red"})


def test_bytes_of_other_widths_are_put_and_read(db: nandex.Database) -> None:
    with db.table("t", entries=1000, key=20, value=12) as table:
        table[b"k" * 20] = b"v" * 12
        table["s" * 20] = "ü" * 6
        assert table["k" * 20] == b"v" * 12 and table[b"s" * 20] == ("ü" * 6).encode()
        assert (table.key_bytes, table.value_bytes) == (20, 12)
        keys = np.array([b"k" * 20, b"x" * 20])
        values, found = table.get_many(keys)
        assert values.dtype == np.dtype("V12") and values[0].tobytes() == b"v" * 12
        assert found.tolist() == [True, False]
        rows = np.frombuffer(b"k" * 20 + b"x" * 20, np.uint8).reshape(2, 20)
        assert table.contains_many(rows).tolist() == [True, False]
        assert table.get_many([b"k" * 20, b"x" * 20], default=b"") == [b"v" * 12, b""]
    with db.table("set", entries=1000, key=8, value=0) as table:
        table.insert_many([b"12345678"], [b""])
        assert table.get_many([b"12345678", b"87654321"]) == [b"", None]


def test_a_batch_of_numpy_is_put_and_read(db: nandex.Database) -> None:
    table = db.table("t", entries=COUNT)
    keys = np.arange(COUNT, dtype=np.uint64) * np.uint64(7919)
    table.insert_many(keys, keys + np.uint64(1))
    values, found = table.get_many(np.concatenate([keys, keys + np.uint64(1)]))
    assert found.tolist() == [True] * COUNT + [False] * COUNT
    assert values.dtype == np.uint64 and (values[:COUNT] == keys + np.uint64(1)).all()
    old, was_there = table.get_or_insert_many(np.array([0, 1], np.uint64), np.array([9, 9], np.uint64))
    assert (old.tolist(), was_there.tolist()) == ([1, 0], [True, False])
    empty, none = table.get_many(np.zeros(0, np.uint64))
    assert len(empty) == len(none) == 0


def test_a_table_of_keys_alone_takes_values_of_no_bytes_in_every_form(db: nandex.Database) -> None:
    # Arrays were taken for numbers of 64 bits, and refused.
    table = db.table("set", entries=1000, value=0)
    keys = np.arange(5, dtype=np.uint64)
    table.insert_many(keys[:2], np.zeros((2, 0), np.uint8))
    table.insert_many(pa.array([2], pa.uint64()), pa.array([b""], pa.binary(0)))
    table.insert_many([3], [b""])
    nothing, found = table.get_many(keys)
    assert found.tolist() == [True] * 4 + [False] and nothing.shape == (5, 0)
    values, was_there = table.get_or_insert_many(keys[3:], np.zeros((2, 0), np.uint8))
    assert was_there.tolist() == [True, False] and values.shape == (2, 0)
    assert table.get_many(pa.array([4, 5], pa.uint64())).to_pylist() == [b"", None]
    table.insert_many(keys, nothing)
    for values in (np.zeros(2, np.uint64), np.array([b"a", b"b"]), pa.array([1, 2], pa.uint64())):
        with pytest.raises(nandex.InputError, match="the table has values of 0 bytes"):
            table.insert_many(keys[:2], values)


def test_lists_mappings_and_pairs_are_put(db: nandex.Database) -> None:
    table = db.table("t", entries=1000)
    table.insert_many([1, 2], (10, 20))
    table.insert_many({3: 30})
    table.insert_many(iter([(4, 40)]))
    assert table.get_many(range(1, 6)) == [10, 20, 30, 40, None]
    assert dict(table.items()) == {1: 10, 2: 20, 3: 30, 4: 40}


def test_arrow_is_put_and_read(db: nandex.Database) -> None:
    table = db.table("t", entries=COUNT)
    keys = pa.array(range(COUNT), pa.uint64())
    table.insert_many(pa.record_batch([keys, keys], ["key", "value"]))
    answer = table.get_many(pa.array([5, COUNT, 6], pa.uint64()))
    assert answer.type == pa.uint64() and answer.to_pylist() == [5, None, 6]
    assert table.get_many(keys.slice(100, 3)).to_pylist() == [100, 101, 102]
    assert table.get_many(pa.chunked_array([keys.slice(0, 2), keys.slice(7, 1)])).to_pylist() == [0, 1, 7]
    wide = db.table("wide", entries=1000, key=16, value=4)
    kind, of = pa.binary(16), pa.binary(4)
    wide.insert_many(pa.array([b"a" * 16, b"b" * 16], kind), pa.array([b"1234", b"5678"], of))
    assert wide.get_many(pa.array([b"b" * 16, b"c" * 16], kind)).to_pylist() == [b"5678", None]


@pytest.mark.parametrize(
    ("keys", "error", "says"),
    [
        (np.array([1.0]), nandex.InputTypeError, "float64 as keys: the table has uint64"),
        (np.array([1, -1]), nandex.InputError, "a key -1: the table has numbers from 0 to 2**64 - 1"),
        (np.array([True]), nandex.InputTypeError, "astype(np.uint64)"),
        (np.array([1, None], object), nandex.InputTypeError, "not an int"),
        (np.array(["a"]), nandex.InputTypeError, "not an int"),
        (np.zeros((2, 2), np.uint64), nandex.InputError, "2 dimensions"),
        ([1, -1], nandex.InputError, "0 to 2**64 - 1"),
        ([1, "x"], nandex.InputTypeError, "not an int"),
        (7, nandex.InputTypeError, "put it into a list"),
        (pa.array([1, None], pa.uint64()), nandex.InputError, "1 nulls"),
        (pa.array([1, -1]), nandex.InputError, "a key below 0"),
        (pa.array(["a"]), nandex.InputTypeError, "string as keys: give uint64"),
        (pa.table({"k": [1]}), nandex.InputTypeError, "a table of 1 columns as keys: give one of them"),
        (None, nandex.InputTypeError, "not an int"),
    ],
)
def test_bad_batches_are_refused_with_what_to_do(
    db: nandex.Database, keys: Any, error: type[nandex.Error], says: str
) -> None:
    table = db.table("t", entries=1000)
    with pytest.raises(error) as refused:
        table.get_many(keys)
    assert says in str(refused.value)
    assert isinstance(refused.value, TypeError if error is nandex.InputTypeError else ValueError)


def test_bad_single_keys_and_widths_are_refused(db: nandex.Database) -> None:
    table = db.table("t", entries=1000)
    refused: list[tuple[int | bytes, type[nandex.Error]]]
    refused = [(-1, nandex.InputError), (2**64, nandex.InputError), (b"k", nandex.InputTypeError)]
    for key, error in refused:
        with pytest.raises(error, match="numbers from 0 to"):
            table[key]
    wide = db.table("wide", entries=1000, key=16, value=4)
    with pytest.raises(nandex.InputError, match="a key of 3 bytes: this table was created with keys of 16"):
        wide[b"abc"]
    with pytest.raises(nandex.InputError, match="a key of 3 bytes"):
        wide.get_many([b"a" * 16, b"abc"])
    with pytest.raises(nandex.InputError, match="array of keys of 5 bytes"):
        wide.get_many(np.array([b"12345"]))
    with pytest.raises(nandex.InputError, match="1 keys and 2 values"):
        wide.insert_many([b"a" * 16], [b"1234", b"1234"])
    with pytest.raises(nandex.ConfigError, match="exists with keys of 16 bytes.*ask with key=16, value=4,"):
        wide.close()
        db.table("wide", key=12)
    with pytest.raises(nandex.ConfigError, match='give "u64"'):
        db.table("other", key="u32")  # type: ignore[arg-type]


def test_the_length_of_a_table_is_the_number_of_its_keys(db: nandex.Database) -> None:
    for policy in ("reject", "grow"):
        table = db.table(policy, entries=COUNT, policy=policy)
        assert not table and len(table) == 0
        keys = np.arange(COUNT, dtype=np.uint64)
        table.insert_many(keys, keys)
        table.insert_many(keys[: COUNT // 2], keys[: COUNT // 2])
        del table[0]
        assert table and len(table) == COUNT - 1


def test_a_full_table_refuses_and_one_that_grows_does_not(db: nandex.Database) -> None:
    keys = np.arange(400_000, dtype=np.uint64)
    full = db.table("full", entries=10_000, ram="8MiB")
    with pytest.raises(nandex.FullError, match="the table is full") as refused:
        full.insert_many(keys, keys)
    assert isinstance(refused.value, OSError) and refused.value.errno == 28
    full.close()
    grows = db.table("grows", entries=10_000, policy="grow", ram="16MiB")
    grows.insert_many(keys, keys)
    assert grows[399_999] == 399_999


def test_what_was_put_is_there_after_an_opening(path: Path) -> None:
    with nandex.open(path, ram="16MiB") as db:
        db.table("t", entries=1000)[7] = 42
    with nandex.open(path, ram="16MiB", mode="w") as db:
        assert db.table("t")[7] == 42
        assert db.structures()[0][0] == "t"


def test_figures_show_themselves(db: nandex.Database) -> None:
    table = db.table("t", entries=1000)
    table[7] = 42
    stats = table.stats()
    assert stats["entries"] == 1 and isinstance(stats, dict)
    assert "entries" in repr(stats) and "KiB" in repr(stats) and "<table>" in stats._repr_html_()
    assert dict(stats.__rich_repr__()) == stats
    assert repr(table) == '<nandex table "t">'
    assert db.stats()["ram_bytes_taken"] == db.stats()["ram_bytes_taken_t"] > 0
