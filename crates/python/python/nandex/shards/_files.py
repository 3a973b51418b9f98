"""Files that are written whole and durable, or not at all."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable
from pathlib import Path


def sync_folder(folder: Path) -> None:
    opened = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


def copy_durably(source: Path, target: Path) -> None:
    """Copies a file, whole and durable, or not at all. Replaces an older one."""
    target.parent.mkdir(parents=True, exist_ok=True)
    unfinished = target.with_name(f"{target.name}.unfinished")
    shutil.copyfile(source, unfinished)
    with unfinished.open("rb") as copied:
        os.fsync(copied.fileno())
    unfinished.replace(target)
    sync_folder(target.parent)


def write_durably(target: Path, *parts: bytes | memoryview) -> None:
    """Writes a file, and replaces an older one."""
    write_chunks_durably(target, parts)


def write_chunks_durably(target: Path, chunks: Iterable[bytes | memoryview]) -> None:
    """Writes a file of chunks, and replaces an older one. If making the chunks fails, the older one stays."""
    target.parent.mkdir(parents=True, exist_ok=True)
    unfinished = target.with_name(f"{target.name}.unfinished")
    try:
        with unfinished.open("wb") as written:
            for chunk in chunks:
                written.write(chunk)
            written.flush()
            os.fsync(written.fileno())
    except BaseException:
        unfinished.unlink()
        raise
    unfinished.replace(target)
    sync_folder(target.parent)
