"""A duplicate filter for Scrapy on flash: crawls of billions of requests in a fixed amount of RAM.

Settings of a project:

    DUPEFILTER_CLASS = "nandex.scrapy.DupeFilter"
    NANDEX_DUPEFILTER_RAM = "256MiB"

With `JOBDIR` the requests seen so far are in the file `requests.seen.nandex` of the job's directory, and a resumed
crawl knows them. Without it they are in a temporary file, which is removed at the end.
"""

from __future__ import annotations

import hashlib
import logging
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scrapy.dupefilters import BaseDupeFilter
from scrapy.utils.job import job_dir
from scrapy.utils.request import RequestFingerprinter, referer_str

import nandex
from nandex._nandex import _count, _real, _size

if TYPE_CHECKING:
    from scrapy.crawler import Crawler
    from scrapy.http.request import Request
    from scrapy.settings import BaseSettings
    from scrapy.spiders import Spider
    from scrapy.statscollectors import StatsCollector

__all__ = ["DupeFilter"]

#: Bytes of Scrapy's own fingerprints, and of other fingerprints after hashing.
_FINGERPRINT_BYTES = 20

_FILE = "requests.seen.nandex"


def _rate_of(given: Any) -> float | None:
    """Returns the rate of a setting, which is a text if it comes from a command line."""
    name = "NANDEX_DUPEFILTER_RATE"
    if given is None:
        return None
    try:
        rate = float(given) if isinstance(given, str) else given
    except ValueError as error:
        raise nandex.ConfigError(f"{name}: {given!r}; give a number between 0 and 1") from error
    return _real(rate, name, 0.0, 1.0)


class DupeFilter(BaseDupeFilter):
    """Filters out requests whose fingerprint was seen, as Scrapy's `RFPDupeFilter` does, in a fixed amount of RAM.

    Settings, all optional:

    NANDEX_DUPEFILTER_RAM: The RAM of the filter, 64 MiB by default. About a byte and a half a request.
    NANDEX_DUPEFILTER_KEYS: The number of requests that it is made for; it grows past them. A million by default.
    NANDEX_DUPEFILTER_RATE: The rate of false positives: the share of new requests that may be filtered out in error,
        such as 1e-6. A filter of that rate then takes 1 or 2 bytes of flash a request, and hardly any RAM. By default
        the filter is exact, and takes some 40 bytes of flash.
    NANDEX_DUPEFILTER_PATH: The file, in place of the one of `JOBDIR`.
    DUPEFILTER_DEBUG: Every filtered request is logged, as with Scrapy's own.

    A request costs a lookup in RAM, and a page read of about 100 microseconds if it was seen before and its page is not
    in memory; Scrapy waits for it. Requests are durable after 100 ms. Scrapy's statistics get `dupefilter/filtered`,
    and at the end `dupefilter/nandex/requests`, `ram_bytes` and `flash_bytes`.
    """

    def __init__(
        self,
        path: str | Path | None = None,
        *,
        ram: int | str = "64MiB",
        keys: float | str = 1_000_000,
        rate: float | None = None,
        debug: bool = False,
        fingerprinter: Any = None,
        stats: StatsCollector | None = None,
    ) -> None:
        rate = None if rate is None else _real(rate, "rate", 0.0, 1.0)
        self.path = None if path is None else Path(path)
        self.debug = debug
        self.fingerprinter = fingerprinter or RequestFingerprinter()
        self._options = (_size(ram, "ram"), _count(keys, "keys"), rate)
        self._stats = stats
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._db: nandex.Database | None = None
        self._requests: nandex.Table | nandex.Filter | None = None
        self._has_logged = False
        self._logger = logging.getLogger(__name__)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> DupeFilter:
        """Creates the filter with a crawler's settings."""
        return cls.from_settings(crawler.settings, fingerprinter=crawler.request_fingerprinter, stats=crawler.stats)

    @classmethod
    def from_settings(
        cls, settings: BaseSettings, *, fingerprinter: Any = None, stats: StatsCollector | None = None
    ) -> DupeFilter:
        """Creates the filter with these settings."""
        job = job_dir(settings)
        path = settings.get("NANDEX_DUPEFILTER_PATH") or (Path(job, _FILE) if job else None)
        return cls(
            path,
            ram=_size(settings.get("NANDEX_DUPEFILTER_RAM", "64MiB"), "NANDEX_DUPEFILTER_RAM"),
            keys=_count(settings.get("NANDEX_DUPEFILTER_KEYS", 1_000_000), "NANDEX_DUPEFILTER_KEYS"),
            rate=_rate_of(settings.get("NANDEX_DUPEFILTER_RATE")),
            debug=settings.getbool("DUPEFILTER_DEBUG"),
            fingerprinter=fingerprinter,
            stats=stats,
        )

    def open(self) -> None:
        """Opens the file, and makes it if it does not exist. One that another crawl has open raises
        `nandex.InUseError`."""
        self._opened()

    def _opened(self) -> nandex.Table | nandex.Filter:
        if self._requests is not None:
            return self._requests
        path = self.path
        if path is None:
            self._folder = tempfile.TemporaryDirectory(prefix="nandex-scrapy-")
            path = Path(self._folder.name, _FILE)
        ram, keys, rate = self._options
        self._db = nandex.open(path, ram=ram)
        if rate is None:
            self._requests = self._db.table("requests", entries=keys, key=_FINGERPRINT_BYTES, value=0, policy="grow")
        else:
            self._requests = self._db.filter("requests", keys=keys, rate=rate)
        return self._requests

    def request_seen(self, request: Request) -> bool:
        """Returns whether a request with this fingerprint was seen before, and records it."""
        requests, fingerprint = self._opened(), self._fingerprint(request)
        if isinstance(requests, nandex.Table):
            return requests.get_or_insert(fingerprint, b"") is not None
        if fingerprint in requests:
            return True
        requests.add(fingerprint)
        return False

    def _fingerprint(self, request: Request) -> bytes:
        fingerprint: bytes = self.fingerprinter.fingerprint(request)
        if len(fingerprint) == _FINGERPRINT_BYTES:
            return fingerprint
        return hashlib.blake2b(fingerprint, digest_size=_FINGERPRINT_BYTES).digest()

    def close(self, reason: str) -> None:
        """Makes everything durable, and removes the file if it is temporary."""
        requests, db = self._requests, self._db
        self._requests = self._db = None
        if requests is not None and self._stats is not None:
            figures = requests.stats()
            for name, figure in [("requests", "entries"), ("ram_bytes", "ram_bytes"), ("flash_bytes", "flash_bytes")]:
                self._stats.set_value(f"dupefilter/nandex/{name}", figures[figure])
        if db is not None:
            db.close()
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None

    def log(self, request: Request, spider: Spider) -> None:
        """Logs a filtered request: the first, or all with DUPEFILTER_DEBUG. Counts it."""
        if self.debug or not self._has_logged:
            message = "Filtered duplicate request: %(request)s (referer: %(referer)s)"
            if not self.debug:
                message += " - no more duplicates will be shown (see DUPEFILTER_DEBUG to show all duplicates)"
            arguments = {"request": request, "referer": referer_str(request)}
            self._logger.debug(message, arguments, extra={"spider": spider})
            self._has_logged = True
        stats = self._stats or spider.crawler.stats
        if stats is not None:
            stats.inc_value("dupefilter/filtered")
