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
    with nandex.open(path, ram="32MiB") as opened:
        yield opened
