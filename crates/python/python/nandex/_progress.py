"""The progress of long calls, and the package's logger."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from nandex import _nandex

LOGGER = logging.getLogger("nandex")
# A library says nothing unless the program asks for it.
LOGGER.addHandler(logging.NullHandler())

#: What is counted, how many are done, and how many there are, if that is known.
Report = Callable[[str, int, "int | None"], object]

_LOCK = threading.Lock()


@contextmanager
def progress(report: Report | None = None) -> Iterator[None]:
    """Reports the progress of batched calls and of `db.compact` while the block runs, those of all threads.

    `report(what, done, total)` is called with the number of keys that are done, after each 8192, and in hundredths for a
    compaction; `total` is None for an iterable without a length. What it raises ends a batch. Without `report` there is
    a bar of tqdm, or lines of the logger `nandex` where tqdm is not installed.

    >>> seen, steps = db.filter("seen", keys=100_000), []
    >>> with nandex.progress(lambda what, done, total: steps.append((what, done, total))):
    ...     seen.update([str(number) for number in range(10_000)])
    >>> steps
    [('key', 0, 10000), ('key', 8192, 10000), ('key', 10000, 10000)]
    """
    chosen = report if report is not None else _usual()
    with _LOCK:
        before = _nandex._report_to(chosen)
    try:
        yield
    finally:
        with _LOCK:
            _nandex._report_to(before)
        if isinstance(chosen, _Bars):
            chosen.close()


def _usual() -> Report:
    try:
        from tqdm.auto import tqdm
    except ImportError:
        return _log
    return _Bars(tqdm)


def _log(what: str, done: int, total: int | None) -> None:
    LOGGER.info("%ss: %s of %s", what, f"{done:,}", "unknown" if total is None else f"{total:,}")


class _Bars:
    """A bar for each call, of each thread."""

    def __init__(self, make: Any) -> None:
        self._make = make
        self._bars: dict[int, Any] = {}

    def __call__(self, what: str, done: int, total: int | None) -> None:
        thread = threading.get_ident()
        bar = self._bars.get(thread)
        if done == 0 or bar is None:
            if bar is not None:
                bar.close()
            bar = self._bars[thread] = self._make(total=total, unit=f" {what}s", unit_scale=True)
        bar.update(done - bar.n)
        if done == total:
            bar.close()
            del self._bars[thread]

    def close(self) -> None:
        for bar in self._bars.values():
            bar.close()
        self._bars.clear()
