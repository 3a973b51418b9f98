"""Hash tables, maps, filters and counters on flash, for keys that no longer fit into RAM.

>>> with nandex.open(path, ram="32MiB") as db:
...     pages = db.map("pages")
...     pages["https://example.org/"] = b"<html>..."
...     seen = db.filter("seen", keys=100_000)
...     seen.update(["https://example.org/", "https://example.com/"])
...     "https://example.com/" in seen
True

Keys and values are `bytes`, or `str` as UTF-8. Batches are lists, arrays of numpy or Arrow, and columns of pandas or
polars. What a call raises for what it was given or found is a `nandex.Error` and the built-in exception that fits.
"""

from __future__ import annotations

import atexit
import os
from collections.abc import MutableMapping

from nandex import _nandex
from nandex._errors import *  # noqa: F403
from nandex._errors import __all__ as _errors
from nandex._nandex import Counter, Database, Filter, Map, Table, __version__, advise, open, parameters
from nandex._progress import progress
from nandex._stats import Advice, Stats

__all__ = [
    "Advice",
    "Counter",
    "Database",
    "Filter",
    "Map",
    "Stats",
    "Table",
    "__version__",
    "advise",
    "open",
    "parameters",
    "progress",
    *_errors,
]

MutableMapping.register(Map)
# A child has no threads of its parent's structures, and must not write to their file.
os.register_at_fork(after_in_child=_nandex._after_fork)
# Open structures are saved and closed before the interpreter ends.
atexit.register(_nandex._close_all)
