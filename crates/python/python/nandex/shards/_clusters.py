"""Which rows pairs connect: a union-find whose nodes are on flash."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np

import nandex
from nandex._errors import ConfigError, InputError
from nandex.shards._shard import Shard

if TYPE_CHECKING:
    from numpy.typing import NDArray

    _Numbers = NDArray[np.uint64]

#: The table of nodes; what made them follows in its name.
_NODES = "nodes-of-"

#: The table with the number of the latest pass that has ended, and its RAM. The nodes have the rest.
_PASSES = "passes"
_PASSES_RAM = "2MiB"

#: A node: its parent, which is the node itself at the root of a cluster, and the pass in which it came.
_NODE = np.dtype([("parent", "<u8"), ("since", "<u8")])


class Clusters(Shard):
    """Which rows are connected by pairs: one shard, in a file of a folder.

    Rows are numbers, and come in passes, such as one for each dataset. Of the rows of a pass that are connected the one
    with the smallest number is the first, unless any of them is connected with a row of an earlier pass. A row that is
    first when its pass ends stays so: pairs of later passes do not join two clusters of earlier ones.

    Pairs and rows that are told again change nothing, and a pass that was broken off goes on when the next one begins.
    So whoever asks again, after a failure of any part, gets the same answer. The rows are the nodes of trees, and a
    cluster's root is its first row.

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
        """Begins a pass over rows whose pairs are made in the way that `of` names, or goes on with one that did not end,
        and returns its number.

        # Errors
        A `ConfigError` if the rows that are there were paired in another way.
        """
        if self.of not in (None, of):
            raise ConfigError(
                f"{of}: {self.path} has clusters by {self.of}; give what it was made with, or another path"
            )
        self.of = of
        self._opened()
        return int(self._passes.get(0, 0)) + 1

    def end(self, number: int) -> None:
        """Ends a pass, durably."""
        self._passes[0] = max(number, int(self._passes.get(0, 0)))
        self._passes.sync()

    def join(self, number: int, rows: _Numbers, left: _Numbers, right: _Numbers) -> None:
        """Adds rows in a pass, and pairs of them or of others. All of it is durable when this returns."""
        if len(left) != len(right):
            raise InputError(f"pairs of {len(left)} and {len(right)} rows: give as many of ones as of the others")
        nodes = self._opened()
        self._add(number, np.unique(np.concatenate([rows, left, right])))
        if len(left):
            paired, places = np.unique(np.concatenate([left, right]), return_inverse=True)
            roots, since = self._find(paired)
            ends = (roots[places[: len(left)]], roots[places[len(left) :]])
            self._unite(number, ends, *_each_once(roots, since))
        nodes.sync()

    def keep(self, rows: _Numbers) -> NDArray[np.bool_]:
        """Which rows are the first of their clusters, among them rows that no pair has.

        # Errors
        An `InputError` if a row was never told.
        """
        return np.asarray(self.roots(rows) == rows)

    def roots(self, rows: _Numbers) -> _Numbers:
        """The first row of the cluster of each row; of several that came in earlier passes, any. Its errors are those of
        `keep`."""
        rows = np.ascontiguousarray(rows).astype(np.uint64, copy=False)
        return self._find(rows)[0]

    def stats(self) -> nandex.Stats:
        """How many rows there are, and what their table says of itself."""
        figures: dict[str, Any] = {"entries": 0}
        if self.of is not None:
            figures = dict(self._opened().stats())
        figures["passes"] = int(self._passes.get(0, 0))
        return nandex.Stats(f"shard {self.path}", figures)

    def _opened(self) -> nandex.Table:
        if self.of is None:
            raise InputError(f"{self.path} has no rows: begin a pass first")
        if self._nodes is None:
            name = f"{_NODES}{self.of}"
            self._nodes = self._db.table(name, entries=self._entries, value=_NODE.itemsize, policy="grow")
        return self._nodes

    def _add(self, number: int, rows: _Numbers) -> None:
        values = np.empty(len(rows), _NODE)
        values["parent"], values["since"] = rows, number
        self._opened().get_or_insert_many(rows, values.view("V16"))

    def _read(self, rows: _Numbers) -> NDArray[Any]:
        values, found = self._opened().get_many(rows)
        if not found.all():
            missing = rows[~found]
            raise InputError(
                f"{len(missing)} rows that {self.path} was never told, such as {missing[0]}: tell all rows first, and do "
                "not change them meanwhile"
            )
        return np.asarray(values.view(_NODE))

    def _find(self, rows: _Numbers) -> tuple[_Numbers, _Numbers]:
        """The root of each row, and the pass in which that came. Rows that were far from it are put next to it."""
        if not len(rows):
            return rows, rows
        own = self._read(rows)
        roots, since = own["parent"].copy(), own["since"].copy()
        far = np.zeros(len(rows), bool)
        left = np.flatnonzero(roots != rows)
        while len(left):
            above = self._read(roots[left])
            since[left] = above["since"]
            is_moved = above["parent"] != roots[left]
            left = left[is_moved]
            roots[left] = above["parent"][is_moved]
            far[left] = True
        if far.any():
            nearer = own[far].copy()
            nearer["parent"] = roots[far]
            self._opened().insert_many(rows[far], nearer.view("V16"))
        return roots, since

    def _unite(self, number: int, pairs: tuple[_Numbers, _Numbers], roots: _Numbers, passes: _Numbers) -> None:
        """Puts roots of this pass that pairs connect below the first of them. `roots` has each once, in order."""
        left, right = pairs
        order = np.lexsort((roots, passes))
        rank = np.empty(len(roots), np.intp)
        rank[order] = np.arange(len(roots))
        label = _connected(len(roots), rank[np.searchsorted(roots, left)], rank[np.searchsorted(roots, right)])
        ordered = roots[order]
        below = np.flatnonzero((label != np.arange(len(label))) & (passes[order] >= number))
        values = np.empty(len(below), _NODE)
        values["parent"], values["since"] = ordered[label[below]], passes[order][below]
        self._opened().insert_many(ordered[below], values.view("V16"))


def _each_once(roots: _Numbers, since: _Numbers) -> tuple[_Numbers, _Numbers]:
    """Each root once, in order, and its pass."""
    unique, places = np.unique(roots, return_index=True)
    return unique, since[places]


def _connected(count: int, left: NDArray[np.intp], right: NDArray[np.intp]) -> NDArray[np.intp]:
    """The smallest of the nodes that pairs connect each of them with."""
    label = np.arange(count)
    while True:
        of_left, of_right = label[left], label[right]
        is_apart = of_left != of_right
        if not is_apart.any():
            return label
        left, right = left[is_apart], right[is_apart]
        of_left, of_right = of_left[is_apart], of_right[is_apart]
        np.minimum.at(label, np.maximum(of_left, of_right), np.minimum(of_left, of_right))
        while (label[label] != label).any():
            label = label[label]
