"""The program that measures maps next to SQLite and LMDB, on few pairs."""

import json
import subprocess
import sys
from pathlib import Path

MAPS = Path(__file__).resolve().parents[1] / "bench/maps.py"


def run(path: Path, *arguments: str) -> str:
    small = ["--pairs", "1000", "--operations", "500", "--batch", "64", "--ram", "16MiB", "--path", str(path)]
    command = [sys.executable, str(MAPS), *small, *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def test_maps_are_measured_next_to_others_whose_answers_are_right(tmp_path: Path) -> None:
    report = json.loads(run(tmp_path, "--json"))
    names = [name.split()[0] for name in report["rates"]]
    assert names == ["nandex", "SQLite"] + ([] if report["skipped"] else ["LMDB"])
    assert (report["pairs"], report["value_bytes"]) == (1000, 100)
    for rates in report["rates"].values():
        assert list(rates) == ["load", "get", "get_many", "put", "put_many"]
        assert min(rates.values()) > 0
    table = run(tmp_path, "--value-bytes", "9")
    assert "1000 pairs of 8 + 9 bytes" in table and "put_many" in table
    assert not list(tmp_path.iterdir())
