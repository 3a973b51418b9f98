"""What structures share with the mappings of Python: views that read the entries in one pass, and comparison."""

from __future__ import annotations

import collections
import itertools
from collections.abc import ItemsView, Iterator, KeysView, Mapping, ValuesView
from typing import Any

from nandex._nandex import Counter, Map

_ABSENT = object()


class MapKeys(KeysView[Any]):
    """The keys of a map, in no order."""

    _mapping: Map[Any]


class MapValues(ValuesView[Any]):
    """The values of a map, in no order."""

    _mapping: Map[Any]

    def __iter__(self) -> Iterator[Any]:
        return self._mapping._walk_values()


class MapItems(ItemsView[Any, Any]):
    """The keys and values of a map, in no order."""

    _mapping: Map[Any]

    def __iter__(self) -> Iterator[tuple[Any, Any]]:
        return self._mapping._walk_items()


def is_equal(this: Map[Any], other: object) -> Any:
    """Whether a mapping has the same keys and values. Reads the map once, and holds neither of them in RAM."""
    if not isinstance(other, Mapping):
        return NotImplemented
    if this is other:
        return True
    length = 0
    for key, value in this.items():
        found = other.get(key, _ABSENT)
        if found is _ABSENT or found != value:
            return False
        length += 1
    return length == len(other)


def elements(counts: Counter[Any]) -> Iterator[Any]:
    """Returns the keys, each as often as its count."""
    return itertools.chain.from_iterable(itertools.repeat(key, count) for key, count in counts.items())


def sum_of(counts: Counter[Any], other: object) -> Any:
    """Returns the sum of two counters, in RAM, with counts above 0 alone."""
    if not isinstance(other, (Counter, collections.Counter)):
        return NotImplemented
    total: collections.Counter[Any] = collections.Counter(dict(counts.items()))
    for key, count in other.items():
        if isinstance(key, bytes) and counts.text:
            key = key.decode()
        elif isinstance(key, str) and not counts.text:
            key = key.encode()
        total[key] += count
    return +total


def have_equal_counts(counts: Counter[Any], other: object) -> Any:
    """Whether a mapping, or another counter, has the same counts above 0, and none below."""
    if not isinstance(other, (Counter, Mapping)):
        return NotImplemented
    if counts is other:
        return True
    length = 0
    for key, count in counts.items():
        if other.get(key, 0) != count:
            return False
        length += 1
    return length == sum(1 for count in other.values() if count != 0)
