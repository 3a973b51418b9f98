"""Views of a map that read its entries in one pass."""

from __future__ import annotations

from collections.abc import ItemsView, Iterator, KeysView, ValuesView

from nandex._nandex import Map


class MapKeys(KeysView[bytes]):
    """The keys of a map, in no order."""

    _mapping: Map


class MapValues(ValuesView[bytes]):
    """The values of a map, in no order."""

    _mapping: Map

    def __iter__(self) -> Iterator[bytes]:
        return self._mapping._walk_values()


class MapItems(ItemsView[bytes, bytes]):
    """The keys and values of a map, in no order."""

    _mapping: Map

    def __iter__(self) -> Iterator[tuple[bytes, bytes]]:
        return self._mapping._walk_items()
