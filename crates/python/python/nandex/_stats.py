"""Figures as dicts whose `repr` is a table, on a terminal and in a notebook."""

from __future__ import annotations

import html
from collections.abc import Iterator, Mapping
from typing import Any


def _shown(name: str, value: Any) -> str:
    if isinstance(value, float):
        return f"{value:,.4g}" if abs(value) < 1000 else f"{value:,.0f}"
    if isinstance(value, bool) or not isinstance(value, int):
        return str(value)
    if "bytes" not in name or value < 1 << 10:
        return f"{value:,}"
    number = float(value)
    for unit in ("KiB", "MiB", "GiB", "TiB"):
        number /= 1024
        if number < 1024 or unit == "TiB":
            break
    return f"{number:.1f} {unit}"


class Stats(dict[str, Any]):
    """Figures of a structure: a dict whose `repr` is a table."""

    __module__ = "nandex"

    def __init__(self, what: str, figures: Mapping[str, Any]) -> None:
        super().__init__(figures)
        self.what = what

    def _rows(self) -> Iterator[tuple[str, str]]:
        return ((name, _shown(name, value)) for name, value in self.items())

    def __repr__(self) -> str:
        width = max((len(name) for name in self), default=0)
        return "\n".join([self.what, *(f"  {name:<{width}}  {value}" for name, value in self._rows())])

    def __reduce__(self) -> tuple[type[Stats], tuple[str, dict[str, Any]]]:
        return Stats, (self.what, dict(self))

    def _repr_html_(self) -> str:
        cells = (f"<tr><th>{html.escape(n)}</th><td>{html.escape(v)}</td></tr>" for n, v in self._rows())
        return f"<table><caption>{html.escape(self.what)}</caption>{''.join(cells)}</table>"

    def __rich_repr__(self) -> Iterator[tuple[str, Any]]:
        yield from self.items()


class Advice(Stats):
    """The recommended structure and its figures: a dict whose `repr` is the reasons and a table."""

    __module__ = "nandex"

    def __init__(self, what: str, figures: Mapping[str, Any]) -> None:
        super().__init__("advice", figures)
        self.text = what

    def __repr__(self) -> str:
        return self.text

    def __reduce__(self) -> tuple[type[Stats], tuple[str, dict[str, Any]]]:
        return Advice, (self.text, dict(self))


def structure_html(structure: Any, kind: str) -> str:
    """Returns an open structure as HTML: its name, the three numbers of its costs, and its other figures folded."""
    title = html.escape(repr(structure))
    if structure.closed:
        return f"<p>{title}</p>"
    figures = structure.stats()
    rows = "".join(f"<tr><th>{name}</th><td>{value}</td></tr>" for name, value in costs(kind, figures))
    table = f"<table><caption>{title}</caption>{rows}</table>"
    return f"{table}<details><summary>all figures</summary>{figures._repr_html_()}</details>"


def costs(kind: str, figures: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Returns the three numbers of a structure's costs, with their names; reads and writes since it was opened."""
    shares = {"map": _of_map, "table": _of_table}.get(kind, _of_filter)
    reads, lookups, written, stored = shares(figures)
    return [
        ("entries", f"{figures['entries']:,}"),
        ("RAM bytes per entry", _share(figures["ram_bytes"], figures["entries"])),
        ("flash reads per lookup", _share(reads, lookups)),
        ("bytes written per byte stored", _share(written, stored)),
    ]


def _share(part: float, whole: float) -> str:
    return f"{part / whole:,.3g}" if whole else "-"


# Reads, lookups, bytes written, and bytes of what was put.
_Shares = tuple[float, float, float, float]


def _of_map(it: Mapping[str, Any]) -> _Shares:
    reads = it["values_reads"] + it["table_hit_reads"] + it["table_miss_reads"]
    written = it["values_written_bytes"] + it["table_data_bytes_written"] + it["table_log_bytes_written"]
    return reads, it["hits"] + it["misses"], written, it["values_appended_bytes"] - it["values_copied_bytes"]


def _of_table(it: Mapping[str, Any]) -> _Shares:
    written = it["data_bytes_written"] + it["log_bytes_written"]
    return it["hit_reads"] + it["miss_reads"], it["hits"] + it["misses"], written, it["inserts"] * it["entry_bytes"]


def _of_filter(it: Mapping[str, Any]) -> _Shares:
    written = it["data_bytes_written"] + it["log_bytes_written"]
    stored = it["inserts"] * it["bits_per_entry_on_flash"] / 8
    return it["lookup_reads"], it["positives"] + it["negatives"], written, stored
