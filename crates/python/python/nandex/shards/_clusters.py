"""Clusters of rows that pairs connect: the nodes of a union-find, on flash."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

import nandex
from nandex import _nandex
from nandex._errors import ConfigError, InputError
from nandex.shards._shard import NUMBER_MAX, Shard
from nandex.shards._union_find import UnionFind

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    _Numbers = NDArray[np.uint64]

#: The table of nodes; its name ends with the origin of the pairs.
_NODES = "nodes-of-"

#: The table with the number of the latest finished pass, and its RAM. The nodes have the rest.
_PASSES = "passes"
_PASSES_RAM = "2MiB"

#: The keys of that table: the number, and whether the nodes of other shards are being copied to this one.
_ENDED, _COPYING = 0, 1

#: The number of nodes in a batch of all.
_BATCH_NODES = 1 << 17

#: A node: its parent, which is the node itself at the root of a cluster, and the pass in which it was added.
_NODE = np.dtype([("parent", "<u8"), ("since", "<u8")])


class Clusters(Shard):
    """Clusters of rows that pairs connect: one shard, in a file of a folder, with the nodes of its rows.

    `join`, `keep` and `roots` are for one shard that has all rows; `UnionFind` does the same over several.

    Rows are numbers, and come in passes, such as one for each dataset. Of the connected rows of a pass, the one with
    the smallest number is the first, unless any of them is connected with a row of an earlier pass. A row that is first
    when its pass ends stays first: pairs of later passes do not join two clusters of earlier ones.

    Pairs and rows that are added again change nothing, and an interrupted pass continues when the next one begins. So a
    caller that repeats a call, after a failure of any part, gets the same answer. The rows are the nodes of trees, and
    a cluster's root is its first row.

    A row takes some 36 bytes of flash. A batch costs a sync, and some page reads for each row that is not in RAM. The
    parameters are those of `FirstRows`.
    """

    KIND = "clusters"

    def _open(self, mode: Literal["c", "w", "x"]) -> None:
        super()._open(mode)
        self._passes = self._db.table(_PASSES, entries=1000, policy="grow", ram=_PASSES_RAM)
        names = [name for name, _ in self._db.structures() if name.startswith(_NODES)]
        self.of = names[0].removeprefix(_NODES) if names else None
        self._nodes: nandex.Table | None = None

    def begin(self, of: str) -> int:
        """Begins a pass over rows whose pairs are made in the way that `of` names, or continues an unfinished one, and
        returns its number.

        # Errors
        A `ConfigError` if the present rows were paired in another way, or are a part of those of other shards.
        """
        if self._passes.get(_COPYING, 0):
            raise ConfigError(f"{self.path} has a part of the rows of other shards: copy them again, to the end")
        self._name(of)
        return self._ended() + 1

    def end(self, number: int) -> None:
        """Ends a pass, durably."""
        number = _nandex._integer(number, "number", 0, NUMBER_MAX)
        self._passes[_ENDED] = max(number, self._ended())
        self._passes.sync()

    def told(self) -> tuple[str | None, int]:
        """Returns the way in which its rows were paired, if there are any, and the number of the latest finished
        pass."""
        return self.of, self._ended()

    def begin_copy(self, of: str) -> None:
        """Begins to copy the nodes of other shards, whose rows were paired in the way `of`; or begins again.

        # Errors
        A `ConfigError` if there are rows of its own.
        """
        if not self._passes.get(_COPYING, 0) and self.stats()["entries"]:
            raise ConfigError(f"{self.path} has rows of its own: copy to shards that have none")
        self._name(of)
        self._passes[_COPYING] = 1
        self._passes.sync()

    def end_copy(self, number: int) -> None:
        """Ends the copy, durably, with the number of the latest pass of the others."""
        number = _nandex._integer(number, "number", 0, NUMBER_MAX)
        self._passes[_ENDED], self._passes[_COPYING] = number, 0
        self._passes.sync()

    def nodes(self) -> Iterator[tuple[_Numbers, _Numbers, _Numbers]]:
        """Yields all rows, their parents, and their passes, in batches of no order."""
        entries = iter(()) if self.of is None else self._opened().items()
        while batch := list(islice(entries, _BATCH_NODES)):
            values = np.frombuffer(b"".join(bytes(value) for _, value in batch), _NODE)
            yield np.array([row for row, _ in batch], np.uint64), values["parent"].copy(), values["since"].copy()

    def join(self, number: int, rows: _Numbers, left: _Numbers, right: _Numbers) -> None:
        """Adds rows in a pass, and pairs of them or of others. All of it is durable when this returns."""
        UnionFind.of([self]).join(number, rows, left, right)

    def keep(self, rows: _Numbers) -> NDArray[np.bool_]:
        """Returns which rows are the first of their clusters, rows without pairs included.

        # Errors
        An `InputError` if a row was never added.
        """
        return UnionFind.of([self]).keep(rows)

    def roots(self, rows: _Numbers) -> _Numbers:
        """Returns the first row of the cluster of each row; any of several that came in earlier passes. Its errors are
        those of `keep`."""
        return UnionFind.of([self]).roots(rows)

    def add(self, rows: _Numbers, passes: _Numbers) -> tuple[()]:
        """Adds rows of these passes, as roots, durably. Rows that are present stay as they are."""
        values = np.empty(len(rows), _NODE)
        values["parent"], values["since"] = rows, passes
        nodes = self._opened()
        nodes.get_or_insert_many(rows, values.view("V16"))
        nodes.sync()
        return ()

    def above(self, rows: _Numbers) -> tuple[_Numbers, _Numbers]:
        """Returns the parent of each row, which is the row itself at a root, and the pass of the row.

        # Errors
        An `InputError` if a row was never added.
        """
        nodes = self._read(rows)
        return nodes["parent"], nodes["since"]

    def link(self, rows: _Numbers, onto: _Numbers) -> tuple[_Numbers]:
        """Puts each row below another, if it is a root, durably. Returns the parent of each afterwards."""
        nodes = self._read(rows)
        is_root = nodes["parent"] == rows
        nodes["parent"][is_root] = onto[is_root]
        if is_root.any():
            self._opened().insert_many(rows[is_root], nodes[is_root].view("V16"))
            self._opened().sync()
        return (nodes["parent"],)

    def shorten(self, rows: _Numbers, above: _Numbers) -> tuple[()]:
        """Puts rows that are no roots below other ancestors of theirs."""
        nodes = self._read(rows)
        is_below = nodes["parent"] != rows
        nodes["parent"] = above
        self._opened().insert_many(rows[is_below], nodes[is_below].view("V16"))
        return ()

    def stats(self) -> nandex.Stats:
        """Returns the number of rows, and the figures of their table."""
        figures: dict[str, Any] = {"entries": 0}
        if self.of is not None:
            figures = dict(self._opened().stats())
        figures["passes"] = self._ended()
        return nandex.Stats(f"shard {self.path}", figures)

    def _ended(self) -> int:
        return int(self._passes.get(_ENDED, 0))

    def _name(self, of: str) -> None:
        if self.of not in (None, of):
            raise ConfigError(
                f"{of}: {self.path} has clusters by {self.of}; give what it was made with, or another path"
            )
        self.of = of
        self._opened()

    def _opened(self) -> nandex.Table:
        if self.of is None:
            raise InputError(f"{self.path} has no rows: begin a pass first")
        if self._nodes is None:
            name = f"{_NODES}{self.of}"
            self._nodes = self._db.table(name, entries=self._entries, value=_NODE.itemsize, policy="grow")
        return self._nodes

    def _read(self, rows: _Numbers) -> NDArray[Any]:
        values, found = self._opened().get_many(rows)
        if not found.all():
            missing = rows[~found]
            raise InputError(
                f"{self.path} lacks {len(missing)} of the rows, such as {missing[0]}: add all rows first, and do not "
                "change them meanwhile"
            )
        return np.array(values.view(_NODE))
