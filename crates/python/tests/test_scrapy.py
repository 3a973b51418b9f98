"""The duplicate filter, in crawls of the real Scrapy that fetch `data:` addresses, and on its own."""

import json
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest
from scrapy import Request, Spider
from scrapy.dupefilters import RFPDupeFilter
from scrapy.settings import Settings
from scrapy.utils.test import get_crawler

import nandex
from nandex.scrapy import DupeFilter

CRAWL = """
import json, sys, scrapy
from scrapy.crawler import CrawlerProcess

class Pages(scrapy.Spider):
    name = "pages"
    async def start(self):
        for number in range(int(sys.argv[1]), int(sys.argv[2])):
            for _ in range(2):
                yield scrapy.Request(f"data:,page%20{number}")
    def parse(self, response):
        yield {"text": response.text}

settings = {"DUPEFILTER_CLASS": "nandex.scrapy.DupeFilter", "TELNETCONSOLE_ENABLED": False, "LOG_LEVEL": "ERROR"}
settings.update(json.loads(sys.argv[3]))
process = CrawlerProcess(settings)
crawler = process.create_crawler(Pages)
process.crawl(crawler)
process.start()
print(json.dumps({name: value for name, value in crawler.stats.get_stats().items() if isinstance(value, int)}))
"""


def crawl(first: int, end: int, folder: Path, **settings: Any) -> dict[str, int]:
    """Figures of a crawl of pages, each requested twice."""
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(CRAWL), str(first), str(end), json.dumps(settings)],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0 and not done.stderr, done.stderr
    figures: dict[str, int] = json.loads(done.stdout.splitlines()[-1])
    return figures


@pytest.mark.parametrize("rate", [None, 1e-6])
def test_a_crawl_that_goes_on_knows_what_was_seen(rate: float | None, tmp_path: Path) -> None:
    settings = {"JOBDIR": str(tmp_path / "job"), "NANDEX_DUPEFILTER_RATE": rate}
    first = crawl(0, 20, tmp_path, **settings)
    assert first["item_scraped_count"] == 20 and first["dupefilter/filtered"] == 20
    assert first["dupefilter/nandex/requests"] == 20 and first["dupefilter/nandex/ram_bytes"] > 0
    assert (tmp_path / "job" / "requests.seen.nandex").exists()
    second = crawl(10, 30, tmp_path, **settings)
    assert second["item_scraped_count"] == 10 and second["dupefilter/filtered"] == 30


def test_a_crawl_without_a_folder_leaves_no_file(tmp_path: Path) -> None:
    figures = crawl(0, 5, tmp_path)
    assert figures["item_scraped_count"] == 5 and figures["dupefilter/filtered"] == 5
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("rate", [None, 1e-6])
def test_it_says_what_scrapys_own_says(rate: float | None, path: Path) -> None:
    # By a random hash key, two of the 1,500 requests would share a fingerprint once in a million runs.
    nandex.open(path, ram="16MiB", hash_key=7).close()
    ours, theirs = DupeFilter(path, rate=rate), RFPDupeFilter()
    ours.open()
    for number in [*range(500), *range(250, 750)]:
        for url in (f"https://example.org/?b={number}&a=1", f"https://example.org/?a=1&b={number}"):
            for method in ("GET", "POST"):
                request = Request(url, method=method, body=b"" if method == "GET" else str(number).encode())
                assert ours.request_seen(request) == theirs.request_seen(request)
    ours.close("finished")
    again = DupeFilter(path, rate=rate)
    assert again.request_seen(Request("https://example.org/?a=1&b=1"))
    assert not again.request_seen(Request("https://example.org/?a=1&b=-1"))
    again.close("finished")
    again.close("finished")


def test_settings_say_what_it_is(tmp_path: Path) -> None:
    settings = {
        "JOBDIR": str(tmp_path / "job"),
        "NANDEX_DUPEFILTER_RAM": "16MiB",
        "NANDEX_DUPEFILTER_KEYS": "100k",
        "NANDEX_DUPEFILTER_PATH": str(tmp_path / "elsewhere"),
        "DUPEFILTER_DEBUG": True,
    }
    crawler = get_crawler(Spider, settings)
    made = DupeFilter.from_crawler(crawler)
    assert made.path == tmp_path / "elsewhere" and made.debug
    assert not made.request_seen(Request("https://example.org/"))
    other = DupeFilter.from_settings(Settings(settings))
    with pytest.raises(nandex.InUseError):
        other.open()
    made.close("finished")
    with pytest.raises(nandex.ConfigError, match="not a filter"):
        DupeFilter(tmp_path / "elsewhere", rate=0.01).open()


class LongFingerprints:
    """A fingerprinter of another length."""

    def fingerprint(self, request: Request) -> bytes:
        return request.url.encode()


def test_other_fingerprints_work(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    crawler = get_crawler(Spider)
    made = DupeFilter(path, fingerprinter=LongFingerprints(), stats=crawler.stats)
    requests = [Request("https://example.org/" + "x" * number) for number in range(40)]
    assert [made.request_seen(request) for request in requests + requests] == [False] * 40 + [True] * 40
    spider = Spider.from_crawler(crawler, name="pages")
    caplog.set_level("DEBUG")
    for request in requests[:3]:
        made.log(request, spider)
    assert len([it for it in caplog.records if "no more duplicates" in it.getMessage()]) == 1
    made.close("finished")
    assert crawler.stats is not None
    assert crawler.stats.get_value("dupefilter/filtered") == 3
    assert crawler.stats.get_value("dupefilter/nandex/requests") == 40
