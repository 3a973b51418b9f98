"""Filters: sets of keys with false positives, their merges and deletions."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import nandex


def test_what_was_added_is_there_and_what_was_discarded_is_not(db: nandex.Database) -> None:
    seen = db.filter("seen", keys=100_000, rate=0.001)
    seen.add("a")
    seen.add("a")
    assert "a" in seen and b"a" in seen and "b" not in seen
    seen.discard("a")
    assert "a" in seen, "it was added twice"
    seen.discard("a")
    seen.discard("never added")
    assert "a" not in seen
    assert seen.add_new("b") and not seen.add_new("b")
    seen.remove("b")
    with pytest.raises(KeyError):
        seen.remove("b")


def test_batches_of_every_form_are_added(path: Path) -> None:
    # Chosen by a hash key with which few keys share a fingerprint.
    db = nandex.open(path, ram="32MiB", hash_key=7)
    seen = db.filter("seen", keys=100_000, rate=0.001)
    words = [f"word {number}" for number in range(20_000)]
    seen.update(words, (word for word in ["generated"]), {"of", "sets"}, pa.array(["arrow"]))
    seen.update(np.arange(1000, dtype=np.uint64))
    assert seen.contains_many(words).all()
    others = [f"other {number}" for number in range(20_000)]
    assert seen.contains_many(others).mean() < 0.003
    assert seen.contains_many(["generated", "of", "sets", "arrow"]).all()
    assert (999).to_bytes(8, "little") in seen
    assert seen.approx_items >= 21_000
    new = seen.add_new_many(np.array([b"word 1", b"x", b"x"]))
    assert new.dtype == np.bool_ and new.tolist() == [False, True, False]
    assert seen.stats()["rate_made_for"] == 0.001
    db.close()


def test_filters_are_merged(path: Path, tmp_path: Path) -> None:
    with (
        nandex.open(path, ram="32MiB", hash_key=7) as db,
        nandex.open(tmp_path / "other", ram="32MiB", hash_key=7) as other,
        nandex.open(tmp_path / "third", ram="32MiB") as third,
    ):
        seen = db.filter("seen", keys=10_000)
        more = other.filter("seen", keys=10_000)
        seen.update(["a"])
        more.update(["b"])
        seen.merge(more)
        assert seen.contains_many(["a", "b"]).all() and "a" not in more
        here = db.filter("here", keys=10_000)
        here.add("c")
        seen |= here
        assert "c" in seen
        with pytest.raises(nandex.ConfigError):
            seen.merge(third.filter("seen", keys=10_000))
        with pytest.raises(nandex.InputError, match="into itself"):
            seen.merge(seen)
        with pytest.raises(nandex.InputTypeError, match="a merge takes filters"):
            seen.merge({"a"})  # type: ignore[arg-type]
        here.close()
        with pytest.raises(nandex.ClosedError, match='filter "here"'):
            seen.merge(here)


def test_a_filter_that_may_not_grow_refuses(db: nandex.Database) -> None:
    seen = db.filter("seen", keys=1000, grow=False)
    with pytest.raises(nandex.FullError, match="was made for"):
        seen.update([str(number) for number in range(100_000)])
    with pytest.raises(nandex.ConfigError, match="rate"):
        db.filter("other", rate=2.0)


def test_parameters_that_are_stated_are_those_of_the_filter_and_must_stay_so(db: nandex.Database) -> None:
    for _ in range(2):
        with db.filter("f", keys=1000, parameters={"fan_out": "8"}) as opened:
            assert opened.parameters["fan_out"] == "8"
    with pytest.raises(nandex.Error, match="exists with fan_out = 8, and was required with 9"):
        db.filter("f", keys=1000, parameters={"fan_out": "9"})
    with pytest.raises(nandex.Error, match="is not a parameter; the parameters are"):
        db.filter("other", parameters={"colour": "red"})


def test_a_filter_is_cleared(path: Path) -> None:
    with nandex.open(path, ram="32MiB", hash_key=7) as db:
        seen = db.filter("seen", keys=100_000, rate=0.001, grow=False)
        keys = [f"key {number}" for number in range(50_000)]
        made = seen.parameters
        for _ in range(3):
            assert seen.add_new_many(keys).mean() > 0.99
            seen.clear()
            assert not seen.contains_many(keys).any() and seen.approx_items == 0
        assert seen.parameters == made and list(db) == ["seen"]
        seen.add("a")
        other = db.filter("other", keys=100_000, rate=0.001, grow=False)
        with pytest.raises(nandex.UnsupportedError, match="merge"):
            seen | other
        seen |= other
    with nandex.open(path, ram="32MiB") as db:
        seen = db.filter("seen", keys=100_000, rate=0.001, grow=False)
        assert "a" in seen and seen.contains_many(keys).mean() < 0.01
        seen.close()
        with pytest.raises(nandex.ClosedError):
            seen.clear()
    with nandex.open(path, mode="r") as db, pytest.raises(nandex.ReadOnlyError):
        db.filter("seen").clear()
