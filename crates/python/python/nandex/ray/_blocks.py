"""Blocks of datasets, in batches that shards answer while the next batch is made."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import ray

from nandex._errors import InputError
from nandex.shards import split

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

#: The column that numbers rows, if the dataset has no such column.
ROW = "__nandex_row"

#: The rows of a block that one batch of calls has, and the number of such batches that wait for answers.
_BATCH_ROWS = 1 << 20
_BATCHES_MAX = 2


def slices_of(block: pa.Table, rows: int = _BATCH_ROWS) -> Iterator[pa.Table]:
    """Yields the rows of a block in batches."""
    return (block.slice(start, rows) for start in range(0, block.num_rows, rows))


def column_of(batch: pa.Table, name: str) -> Any:
    """Returns a column; raises an error that lists the columns if it is missing."""
    if name not in batch.column_names:
        columns = ", ".join(repr(it) for it in batch.column_names if it != ROW)
        raise InputError(f"no column {name!r}: the dataset has {columns}")
    return batch.column(name)


def mapped(dataset: Any, function: Callable[..., pa.Table], *arguments: Any) -> Any:
    """Maps each block of a dataset through a function with these arguments."""
    return dataset.map_batches(
        function, batch_format="pyarrow", batch_size=None, zero_copy_batch=True, fn_args=arguments
    )


def parts_of(keys: NDArray[Any], actors: list[Any]) -> list[tuple[Any, NDArray[np.intp]]]:
    """Returns the shards that have some of these keys, and the positions of each one's keys."""
    return [(actor, at) for actor, at in zip(actors, split(keys, len(actors)), strict=True) if len(at)]


class Waiting:
    """Calls of shards, whose answers are awaited in the order of their batches."""

    def __init__(self) -> None:
        self._batches: deque[tuple[Any, list[Any]]] = deque()

    def add(self, what: Any, calls: list[Any]) -> Iterator[tuple[Any, list[Any]]]:
        """Adds the calls of a batch. Yields earlier batches with their answers, once too many are waiting."""
        self._batches.append((what, calls))
        return self._answered(_BATCHES_MAX)

    def end(self) -> Iterator[tuple[Any, list[Any]]]:
        """Yields all batches that wait."""
        return self._answered(0)

    def end_block(self, block: pa.Table) -> pa.Table:
        """Awaits all answers, and returns the number of rows of the block."""
        deque(self.end(), maxlen=0)
        return pa.table({"rows": pa.array([block.num_rows], pa.int64())})

    def _answered(self, most: int) -> Iterator[tuple[Any, list[Any]]]:
        while len(self._batches) > most:
            what, calls = self._batches.popleft()
            yield what, ray.get(calls)
