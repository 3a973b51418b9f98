"""A union-find whose nodes are spread over shards."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from nandex import _nandex
from nandex._errors import InputError
from nandex.shards._keys import SHARDS_MAX, split
from nandex.shards._shard import NUMBER_MAX

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from nandex.shards._clusters import Clusters

    _Numbers = NDArray[np.uint64]
    #: A shard, one of its methods, and the arguments.
    _Call = tuple[int, str, tuple[Any, ...]]


class UnionFind:
    """Joins rows whose nodes are in one or more `Clusters`; `split` decides which.

    `ask` takes calls of the shards and returns their answers: `UnionFind.of` makes one for shards of this process. Any
    number of processes may join at one time, and each call may be repeated.

    Only the shard that has a root puts it below another node, while it is a root, and only below a smaller one: one of
    an earlier pass, or of the same pass with a smaller number. So there are no cycles, the root of connected rows is
    the least of them in any order of the pairs, and a caller that finds that a row is no longer a root continues with
    its parent.

    A batch of pairs costs its shards two syncs, and one call for each step up the trees, which searches keep short.
    """

    def __init__(self, shards: int, ask: Callable[[list[_Call]], list[Any]]) -> None:
        self._shards, self._ask = _nandex._integer(shards, "shards", 1, SHARDS_MAX), ask

    @classmethod
    def of(cls, shards: list[Clusters]) -> UnionFind:
        """Creates the union-find over shards of this process, all of them in order."""
        return cls(len(shards), lambda calls: [getattr(shards[shard], method)(*given) for shard, method, given in calls])

    def join(self, number: int, rows: _Numbers, left: _Numbers, right: _Numbers) -> None:
        """Adds rows in a pass, and pairs of them or of others. All of it is durable when this returns."""
        number = _nandex._integer(number, "number", 0, NUMBER_MAX)
        if len(left) != len(right):
            raise InputError(f"pairs of {len(left)} and {len(right)} rows: give two arrays of one length")
        told = np.unique(np.concatenate([rows, left, right]))
        self._each("add", told, np.full(len(told), number, np.uint64))
        while len(left):
            left, right = self._link(number, left, right)

    def copy(self, rows: _Numbers, above: _Numbers, passes: _Numbers) -> None:
        """Adds nodes of other shards, as `Clusters.nodes` returns them, between `begin_copy` and `end_copy` of all."""
        self._each("add", rows, passes)
        is_below = above != rows
        self._each("link", rows[is_below], above[is_below])

    def keep(self, rows: _Numbers) -> NDArray[np.bool_]:
        """Returns which rows are the first of their clusters, rows without pairs included.

        # Errors
        An `InputError` if a row was never added.
        """
        rows = np.ascontiguousarray(rows).astype(np.uint64, copy=False)
        return np.asarray(self._above(rows)[0] == rows)

    def roots(self, rows: _Numbers) -> _Numbers:
        """Returns the first row of the cluster of each row; any of several that came in earlier passes. Its errors are
        those of `keep`."""
        rows, places = np.unique(np.asarray(rows).astype(np.uint64, copy=False), return_inverse=True)
        return self._find(rows)[0][places]

    def _link(self, number: int, left: _Numbers, right: _Numbers) -> tuple[_Numbers, _Numbers]:
        """Puts roots of this pass that pairs connect below the least of them. Returns the pairs of rows that are no
        longer roots."""
        paired, places = np.unique(np.concatenate([left, right]), return_inverse=True)
        found, since = self._find(paired)
        roots, first = np.unique(found, return_index=True)
        order = np.lexsort((roots, since[first]))
        rank = np.empty(len(roots), np.intp)
        rank[order] = np.arange(len(roots))
        ends = rank[np.searchsorted(roots, found[places])]
        label = _connected(len(roots), ends[: len(left)], ends[len(left) :])
        roots, passes = roots[order], since[first][order]
        below = np.flatnonzero((label != np.arange(len(label))) & (passes >= number))
        rows, onto = roots[below], roots[label[below]]
        (above,) = self._each("link", rows, onto)
        is_other = above != onto
        return rows[is_other], onto[is_other]

    def _find(self, rows: _Numbers) -> tuple[_Numbers, _Numbers]:
        """Returns the root of each row, and the pass of the root. Rows far from their root are put right below it."""
        roots, since = self._above(rows)
        far = np.zeros(len(rows), bool)
        left = np.flatnonzero(roots != rows)
        while len(left):
            asked, places = np.unique(roots[left], return_inverse=True)
            above, passes = self._above(asked)
            above, since[left] = above[places], passes[places]
            is_moved = above != roots[left]
            left = left[is_moved]
            roots[left] = above[is_moved]
            far[left] = True
        self._each("shorten", rows[far], roots[far])
        return roots, since

    def _above(self, rows: _Numbers) -> tuple[_Numbers, _Numbers]:
        """Returns the parent of each row, which is the row itself if it is a root, and the pass of the row."""
        above, since = self._each("above", rows, answers=2)
        return above, since

    def _each(self, method: str, rows: _Numbers, *more: _Numbers, answers: int = 1) -> list[_Numbers]:
        """Calls each shard with its rows and their arguments. The answers are in the order of the rows."""
        if not len(rows):
            return [rows] * answers
        parts = [(shard, at) for shard, at in enumerate(split(rows, self._shards)) if len(at)]
        calls: list[_Call] = [(shard, method, (rows[at], *(it[at] for it in more))) for shard, at in parts]
        made = [np.zeros(len(rows), np.uint64) for _ in range(answers)]
        for (_, at), answered in zip(parts, self._ask(calls), strict=True):
            for whole, part in zip(made, answered, strict=False):
                whole[at] = part
        return made


def _connected(count: int, left: NDArray[np.intp], right: NDArray[np.intp]) -> NDArray[np.intp]:
    """Returns, for each node, the smallest node that pairs connect it with."""
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
