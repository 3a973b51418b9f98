"""Counters: compared with collections.Counter on the same keys."""

import collections
import hashlib
import random
from pathlib import Path

import numpy as np
import pytest

import nandex


def test_counts_are_those_of_collections(db: nandex.Database) -> None:
    words = random.Random(7).choices([f"word {number}" for number in range(500)], k=20_000)
    expected = collections.Counter(word.encode() for word in words)
    counter = db.counter("words", keys=10_000)
    counter.update(words)
    assert dict(counter.items()) == expected
    assert counter.most_common(10) == sorted(expected.items(), key=lambda item: (-item[1], item[0]))[:10]
    assert len(counter.most_common()) == len(expected) and set(counter) == set(expected)
    keys = ["word 1", "absent", "far too long a key to be in this counter"]
    assert counter.get_many(keys).tolist() == [expected[b"word 1"], 0, 0]
    assert counter.get_many(keys).dtype == np.uint64
    counter.subtract(words)
    assert list(counter) == [] and sum(counter.values()) == 0


def test_amounts_are_added_and_taken_away(db: nandex.Database) -> None:
    words = db.counter("words", keys=1000)
    words.add("the", 5)
    words.update({"the": 2}, cat=1)
    words.update()
    words.subtract({"the": 3})
    assert words["the"] == 4 and words["cat"] == 1 and words["dog"] == 0
    assert "the" in words and "dog" not in words and ("x" * 100) not in words
    del words["the"]
    del words["x" * 100]
    assert words["the"] == 0
    words.add("", 3)
    words.add("a\0", 1)
    assert dict(words.items()) == {b"": 3, b"a\0": 1, b"cat": 1}
    assert words.stats()["entries"] > 0


def test_keys_that_are_too_long_are_refused(db: nandex.Database) -> None:
    words = db.counter("words", keys=1000, longest=10)
    assert words.longest == 10
    with pytest.raises(nandex.InputError, match="at most 10 bytes"):
        words.update(["short", "much too long"])
    with pytest.raises(nandex.InputError, match="at most 10 bytes"):
        words.update({"much too long": 1})
    with pytest.raises(nandex.ConfigError, match="longest: 32; give a whole number from 1 to 31"):
        db.counter("other", longest=32)
    words.close()
    with pytest.raises(nandex.ConfigError, match="exists with keys of up to 10 bytes, and was asked for with 11"):
        db.counter("words", longest=11)
    assert db["words"].longest == 10
    db["words"].close()
    assert db.counter("words").longest == 10


def test_counters_are_merged(path: Path, tmp_path: Path) -> None:
    with (
        nandex.open(path, ram="32MiB", hash_key=7) as db,
        nandex.open(tmp_path / "other", ram="32MiB", hash_key=7) as other,
    ):
        words, more = db.counter("words", keys=1000), other.counter("words", keys=1000)
        words.update(["a", "b"])
        more.update(["b", "c"])
        words.merge(more)
        assert dict(words.items()) == {b"a": 1, b"b": 2, b"c": 1}
        # A removal comes before the merge that follows it, wherever either of them is.
        del words["b"]
        words.merge(more)
        assert dict(words.items()) == {b"a": 1, b"b": 1, b"c": 2}
        with pytest.raises(nandex.InputError, match="into itself"):
            words.merge(words)
        with pytest.raises(nandex.InputTypeError, match="a merge takes counters"):
            words.merge({"a": 1})  # type: ignore[arg-type]


def test_parameters_that_are_stated_are_those_of_the_counter_and_must_stay_so(db: nandex.Database) -> None:
    for _ in range(2):
        with db.counter("c", keys=1000, parameters={"discipline": "MB"}) as opened:
            assert opened.parameters["discipline"] == "MB"
    with pytest.raises(nandex.Error, match="exists with discipline = MB, and was required with MDB"):
        db.counter("c", keys=1000, parameters={"discipline": "MDB"})
    with pytest.raises(nandex.Error, match="is not a parameter; the parameters are"):
        db.counter("other", parameters={"colour": "red"})


def test_a_counter_has_the_operations_of_collections(db: nandex.Database) -> None:
    words = db.counter("words", keys=1000)
    assert not words and len(words) == 0 and words.total() == 0 and words == {}
    words.update("the cat and the hat".split())
    expected = collections.Counter(b"the cat and the hat".split())
    assert words and len(words) == 4 and words.total() == 5 and words == expected and expected == words
    assert sorted(words.elements()) == sorted(expected.elements())
    assert words.get("the") == 2 and words.get("dog") is None and words.get("dog", 0) == 0
    words["the"] = 7
    words["dog"] = 3
    words["cat"] = 0
    expected.update({b"the": 5, b"dog": 3, b"cat": -1})
    assert words["the"] == 7 and words == expected and len(words) == 4
    other = collections.Counter({"the": 1, "new": 2})
    total = expected + collections.Counter({b"the": 1, b"new": 2})
    assert type(words + other) is collections.Counter and words + other == other + words == total
    words += other
    assert isinstance(words, nandex.Counter) and words == total
    more = db.counter("more", keys=1000)
    more["x"] = 1
    assert words != more and words + more == total + collections.Counter({b"x": 1})
    words += more
    assert words["x"] == 1
    with pytest.raises(TypeError):
        words + {"a": 1}  # type: ignore[operator]
    with pytest.raises(nandex.InputTypeError, match="amount"):
        words["the"] = "many"  # type: ignore[assignment]
    words.clear()
    assert len(words) == 0 and words == {}
    words["the"] = -2
    words.add("the", 3)
    assert words["the"] == 1


def test_the_remedy_for_a_long_key_is_one_that_works(db: nandex.Database) -> None:
    with pytest.raises(nandex.InputError, match="larger `longest`, of 31 at most"):
        db.counter("short", keys=10, longest=8).add("nine byte")
    key = "a key of more than thirty-one bytes"
    words = db.counter("words", keys=10)
    with pytest.raises(nandex.InputError, match="no counter takes longer ones; count a digest") as refused:
        words.add(key)
    assert "hashlib.blake2b(key, digest_size=16).digest()" in str(refused.value)
    words.add(hashlib.blake2b(key.encode(), digest_size=16).digest())
    assert words.total() == 1


def test_a_counter_that_is_opened_for_text_returns_text(db: nandex.Database) -> None:
    words = db.counter("words", keys=100, text=True)
    words.update(["é", "é", b"b"])
    assert words.text and dict(words.items()) == {"é": 2, "b": 1} and words == collections.Counter({"é": 2, "b": 1})
    assert words.most_common(1) == [("é", 2)] and sorted(words.elements()) == ["b", "é", "é"]
    assert words + collections.Counter({b"b": 1, "c": 1}) == {"é": 2, "b": 2, "c": 1}
