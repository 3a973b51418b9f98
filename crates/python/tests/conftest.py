"""A fresh database for each test."""

from collections.abc import Iterator
from pathlib import Path

import pytest

import nandex


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "t.nandex"


@pytest.fixture
def db(path: Path) -> Iterator[nandex.Database]:
    # By a fixed hash key, every run finds the same false positives.
    with nandex.open(path, ram="32MiB", hash_key=7) as opened:
        yield opened
