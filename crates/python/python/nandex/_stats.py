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
