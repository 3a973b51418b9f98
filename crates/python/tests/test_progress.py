"""The progress of long calls, the logger, and structures in notebooks."""

import logging
import re
import sys
from typing import Any

import numpy as np
import pytest

import nandex


def test_progress_is_reported_after_each_slice(db: nandex.Database) -> None:
    steps: list[Any] = []

    def note(what: str, done: int, total: int | None) -> None:
        steps.append((what, done, total))

    pages, table = db.map("m"), db.table("t", entries=100_000)
    keys = np.arange(20_000, dtype=np.uint64)
    table.insert_many(keys, keys)
    assert steps == []
    expected = [("key", done, 20_000) for done in (0, 8192, 16384, 20_000)]
    with nandex.progress(note):
        table.insert_many(keys, keys)
        assert steps == expected
        table.get_many(keys)
        assert steps == 2 * expected
        steps.clear()
        pages.put_many((str(number), "v") for number in range(10_000))
        assert steps == [("key", 0, 10_000), ("key", 8192, 10_000), ("key", 10_000, 10_000)]
        steps.clear()
        db.filter("f", keys=10_000).update(iter(["a"]))
        assert steps == [("key", 0, None), ("key", 1, 1)]
        steps.clear()
        for number in range(9_000):
            del pages[str(number)]
        pages.close()
        assert db.compact("m")["entries"] == 1000
        assert steps and steps[-1] == ("percent", 100, 100)
    steps.clear()
    table.get_many(keys)
    assert steps == []


def test_what_a_report_raises_ends_the_call(db: nandex.Database) -> None:
    def stop(what: str, done: int, total: int | None) -> None:
        if done > 0:
            raise RuntimeError("enough")

    seen = db.filter("f", keys=100_000, rate=1e-6)
    with nandex.progress(stop), pytest.raises(RuntimeError, match="enough"):
        seen.update([str(number) for number in range(20_000)])
    assert seen.approx_items == 8192


def test_without_tqdm_progress_is_logged(
    db: nandex.Database, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "tqdm", None)
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    with caplog.at_level(logging.INFO, "nandex"), nandex.progress():
        db.filter("f", keys=10_000).update(["a", "b"])
    assert [record.getMessage() for record in caplog.records] == ["keys: 0 of 2", "keys: 2 of 2"]


def test_openings_drops_and_compactions_are_logged(
    tmp_path: Any, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, "nandex"), nandex.open(tmp_path / "l", ram="32MiB") as db:
        db.map("m").close()
        db.compact("m")
        db.drop("m")
    lines = [record.getMessage() for record in caplog.records]
    assert [line.split()[0] for line in lines] == ["opened", "compacted", "dropped"]
    assert all(record.name == "nandex" for record in caplog.records)


def test_a_structure_shows_its_three_numbers_in_a_notebook(db: nandex.Database) -> None:
    pages, table = db.map("m"), db.table("t", entries=1000)
    seen, words = db.filter("f", keys=1000), db.counter("c", keys=1000)
    for number in range(100):
        pages[str(number)] = bytes(100)
        table[number] = number
        seen.add(str(number))
        words.add(str(number))
    for structure in (pages, table, seen, words):
        structure.flush()
        shown = structure._repr_html_()
        rows = dict(re.findall("<tr><th>([^<]*)</th><td>([^<]*)</td></tr>", shown.partition("<details>")[0]))
        names = ["entries", "RAM bytes per entry", "flash reads per lookup", "bytes written per byte stored"]
        assert list(rows) == names, shown
        assert rows["entries"] == "100" and float(rows["RAM bytes per entry"].replace(",", "")) > 0
        written = rows["bytes written per byte stored"]
        # Keys of filters and counters that are not merged yet have no bytes on flash.
        assert written == "-" if isinstance(structure, (nandex.Filter, nandex.Counter)) else float(written) > 1
        structure.close()
        assert "closed" in structure._repr_html_()
