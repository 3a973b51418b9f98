"""Maps of any size: a MutableMapping, and batches in every form."""

import os
from collections.abc import MutableMapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import nandex


def test_a_map_is_a_mutable_mapping(db: nandex.Database) -> None:
    pages = db.map("pages")
    assert isinstance(pages, MutableMapping) and not pages and len(pages) == 0
    pages["a"] = "1"
    pages[b"b"] = bytearray(b"2")
    assert pages["a"] == b"1" and pages.get("x") is None and pages.get("x", 7) == 7
    assert "b" in pages and "x" not in pages and pages and len(pages) == 2
    assert sorted(pages) == sorted(pages.keys()) == [b"a", b"b"]
    assert sorted(pages.values()) == [b"1", b"2"] and dict(pages.items()) == {b"a": b"1", b"b": b"2"}
    assert pages.setdefault("a", "9") == b"1" and pages.setdefault("c", "3") == b"3"
    assert pages.pop("c") == b"3" and pages.pop("c", None) is None
    pages.update([("d", "4")], e="5")
    del pages["d"]
    for absent in ("d", ""):
        with pytest.raises(KeyError):
            pages[absent]
        with pytest.raises(nandex.KeyNotFoundError):
            del pages[absent]
        with pytest.raises(nandex.KeyNotFoundError):
            pages.pop(absent)
    key, value = pages.popitem()
    assert key not in pages and value in (b"1", b"2", b"5")
    pages.clear()
    assert list(pages) == [] and len(pages) == 0
    with pytest.raises(KeyError, match="empty"):
        pages.popitem()
    assert pages.pop("x", default=None) is None and pages.pop("x", default=7) == 7
    pages["a"] = "1"
    assert pages.setdefault("a") == b"1"
    with pytest.raises(nandex.InputTypeError, match="a value of the type NoneType"):
        pages.setdefault("x")


def test_values_may_be_large(db: nandex.Database) -> None:
    pages = db.map("pages")
    large = os.urandom(1 << 20)
    pages["large"] = large
    pages[""] = ""
    assert pages["large"] == large and pages[""] == b""
    with pytest.raises(nandex.InputError, match="at most"):
        pages["k" * 100_000] = "v"


@pytest.mark.parametrize("of", [list, tuple, np.array, pa.array])
def test_batches_of_every_form_are_put_and_read(db: nandex.Database, of: Any) -> None:
    pages = db.map("pages")
    keys = [b"key %d" % number for number in range(20_000)]
    values = [b"value %d" % number for number in range(20_000)]
    pages.put_many(of(keys), of(values))
    asked = of([keys[3], b"absent", keys[19_999]])
    answer = pages.get_many(asked)
    found = answer.to_pylist() if of is pa.array else answer
    assert found == [b"value 3", None, b"value 19999"]
    assert pages.contains_many(asked).tolist() == [True, False, True]
    old = pages.get_or_insert_many(of([b"key 3", b"new", b"new"]), of([b"1", b"2", b"3"]))
    assert (old.to_pylist() if of is pa.array else old) == [b"value 3", None, b"2"]


def test_batches_of_other_kinds_are_put(db: nandex.Database) -> None:
    pages = db.map("pages")
    pages.put_many(pa.record_batch([pa.array(["a", "b"]), pa.array([b"1", b"2"])], ["k", "v"]))
    pages.put_many({"c": "3"})
    pages.put_many((str(number), b"n") for number in range(10))
    pages.put_many(pa.array(["lll"], pa.large_string()), pa.array(["4"], pa.string_view()))
    pages.put_many(np.arange(3, dtype=np.uint32), np.array([b"x", b"y", b"z"]))
    assert pages.get_many(["a", "c", "9", "lll"], default=b"") == [b"1", b"3", b"n", b"4"]
    assert pages[(1).to_bytes(4, "little")] == b"y"
    sliced = pa.array(["a", "b", "c"]).slice(1)
    assert pages.get_many(sliced).to_pylist() == [b"2", b"3"]
    assert pages.get_many([]) == [] and pages.get_many(pa.array([], pa.string())).to_pylist() == []


@pytest.mark.parametrize(
    ("keys", "error", "says"),
    [
        (["a", None], nandex.InputTypeError, "element 1 of the batch: a key of the type NoneType"),
        (["a", 7], nandex.InputTypeError, "to_bytes"),
        (["a", "\ud800"], nandex.InputError, "a str without UTF-8"),
        (np.array([b"a", None], object), nandex.InputTypeError, "element 1 of the batch: a key of the type NoneType"),
        (np.array([0.5]), nandex.InputTypeError, "float64"),
        (np.int64(7), nandex.InputTypeError, "put it into a list"),
        (np.array([1], ">i4"), nandex.InputTypeError, "big-endian"),
        (pa.array(["a", None]), nandex.InputError, "1 nulls"),
        (pa.array([0.5]), nandex.InputTypeError, "double as keys: give binary or string"),
        ("abc", nandex.InputTypeError, "put it into a list"),
        (7.5, nandex.InputTypeError, "a batch of keys of the type float"),
    ],
)
def test_bad_batches_are_refused_with_what_to_do(
    db: nandex.Database, keys: Any, error: type[nandex.Error], says: str
) -> None:
    with pytest.raises(error) as refused:
        db.map("pages").get_many(keys)
    assert says in str(refused.value)


def test_bad_single_keys_are_refused(db: nandex.Database) -> None:
    pages = db.map("pages")
    with pytest.raises(nandex.InputTypeError, match="a key of the type int: give bytes or str"):
        pages[7]  # type: ignore[index]
    with pytest.raises(nandex.InputError, match="surrogateescape") as refused:
        pages["\udcff"]
    assert isinstance(refused.value.__cause__, UnicodeEncodeError)
    with pytest.raises(nandex.InputTypeError, match="a value of the type NoneType"):
        pages["a"] = None  # type: ignore[assignment]


def test_an_iterator_survives_changes_and_ends_with_the_map(db: nandex.Database) -> None:
    pages = db.map("pages")
    pages.put_many([str(number) for number in range(5000)], ["v"] * 5000)
    entries = iter(pages.items())
    first = next(entries)
    pages["new"] = "v"
    assert first[1] == b"v" and len(list(entries)) >= 4999
    keys, unread = iter(pages), iter(pages)
    next(keys)
    pages.close()
    with pytest.raises(nandex.ClosedError, match='map "pages" is closed'):
        list(keys)
    del unread
    again = db.map("pages")
    assert len(again) == 5001


def test_a_size_that_is_stated_is_kept(path: Path) -> None:
    with nandex.open(path, ram="32MiB") as db:
        small = db.map("small", entries=1000, bytes="1MiB")
        with pytest.raises(nandex.FullError) as refused:
            for number in range(1000):
                small[str(number)] = bytes(10_000)
        assert isinstance(refused.value, OSError) and refused.value.errno == 28
        cache = db.map("cache", bytes="1MiB", policy="fifo")
        for number in range(1000):
            cache[str(number)] = bytes(10_000)
        assert "999" in cache and "0" not in cache
        with pytest.raises(nandex.ConfigError, match="grow, reject or fifo"):
            db.map("lru", policy="lru")
        assert small.stats()["values_live_bytes"] > 0


def test_parameters_that_are_stated_are_those_of_the_map_and_must_stay_so(db: nandex.Database) -> None:
    for _ in range(2):
        with db.map("m", entries=1000, parameters={"spare_buffers": "7"}) as opened:
            assert opened.parameters["spare_buffers"] == "7"
    with pytest.raises(nandex.Error, match="exists with spare_buffers = 7, and was required with 8"):
        db.map("m", entries=1000, parameters={"spare_buffers": "8"})
    with pytest.raises(nandex.Error, match="is not a parameter; the parameters are"):
        db.map("other", parameters={"colour": "red"})


def test_a_map_keeps_records_in_the_ram_that_its_table_leaves_or_as_much_as_is_stated(path: Path) -> None:
    pairs = [(str(number), b"v" * 100) for number in range(2000)]
    with nandex.open(path, ram="16MiB") as db:
        pages = db.map("pages")
        pages.update(pairs)
        assert pages.stats()["cache_bytes_max"] > 4 << 20 and pages.stats()["cache_records"] == 2000
    with nandex.open(path, ram="16MiB") as db:
        pages = db.map("pages", cache="1MiB")
        assert pages.stats()["cache_bytes_max"] == 1 << 20
        keys = [key for key, _ in pairs]
        for _ in range(3):
            assert pages.get_many(keys) == [value for _, value in pairs]
        stats = pages.stats()
        assert stats["cache_hits"] > 2000 and 0 < stats["cache_bytes"] <= 1 << 20
    with nandex.open(path, ram="16MiB") as db, pytest.raises(nandex.Error, match="cache"):
        db.map("pages", cache="100MiB")


def test_a_map_is_equal_to_a_mapping_of_the_same_keys_and_values(db: nandex.Database) -> None:
    pages, others = db.map("pages"), db.map("others")
    assert pages == {} and pages == others
    pages.update({"a": "1", "b": "2"})
    same = {b"a": b"1", b"b": b"2"}
    assert pages == same and same == pages and not pages != same and dict(pages) == same
    for other in ({}, {b"a": b"1"}, {**same, b"c": b"3"}, {b"a": b"1", b"b": b"3"}, {b"a": b"1", b"c": b"2"}):
        assert pages != other and other != pages
    assert pages != [(b"a", b"1"), (b"b", b"2")] and pages != 7
    assert pages != others
    others.update(same)
    assert pages == others
    with pytest.raises(TypeError, match="unhashable"):
        hash(pages)


def test_keys_are_counted_exactly_after_every_change(db: nandex.Database) -> None:
    pages = db.map("pages", cache=0)
    keys = [b"key %d" % number for number in range(5000)]
    pages.put_many(keys, keys)
    pages.put_many(keys[:1000], keys[:1000])
    reads = pages.stats()["values_reads"]
    assert len(pages) == len(pages.keys()) == 5000
    assert pages.stats()["values_reads"] == reads, "a count reads no records"
    del pages[keys[0]]
    assert len(pages) == 4999
    pages["new"] = "x"
    pages["new"] = "y"
    assert len(pages) == 5000


def test_a_map_that_is_opened_for_text_returns_text(db: nandex.Database) -> None:
    with db.map("names", text=True) as names:
        names.update({"é": "1", "b": "ü"})
        assert names.text and names["é"] == "1" and names == {"é": "1", "b": "ü"}
        assert sorted(names) == sorted(names.keys()) == ["b", "é"] and set(names.values()) == {"1", "ü"}
        assert names.get_many(["b", "x"]) == ["ü", None] and names.get("x", "-") == "-"
        assert names.get_many(pa.array(["b", "x"])).to_pylist() == ["ü", None]
        assert names.setdefault("c", "3") == names.setdefault("c", "4") == "3"
        assert names.pop("c") == "3" and names.get_or_insert_many(["b"], ["9"]) == ["ü"]
        key, value = names.popitem()
        assert isinstance(key, str) and isinstance(value, str)
        names["raw"] = b"\xff"
        with pytest.raises(nandex.InputError, match="not UTF-8; open the structure without text=True"):
            names["raw"]
    assert db.map("names")["raw"] == b"\xff"
