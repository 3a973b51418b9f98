"""Blocks of datasets, in batches that shards answer while the next one is made."""

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

#: The column that numbers rows, where the dataset has none that does.
ROW = "__nandex_row"

#: Rows of a block that are asked about at a time, and such batches that wait for answers.
_BATCH_ROWS = 1 << 20
_BATCHES_MAX = 2


def slices_of(block: pa.Table, rows: int = _BATCH_ROWS) -> Iterator[pa.Table]:
    """The rows of a block in batches."""
    return (block.slice(start, rows) for start in range(0, block.num_rows, rows))


def column_of(batch: pa.Table, name: str) -> Any:
    """A column, or an error that says which there are."""
    if name not in batch.column_names:
        columns = ", ".join(repr(it) for it in batch.column_names if it != ROW)
        raise InputError(f"no column {name!r}: the dataset has {columns}")
    return batch.column(name)


def mapped(dataset: Any, function: Callable[..., pa.Table], *arguments: Any) -> Any:
    """What a function makes of each block of a dataset, with these arguments."""
    return dataset.map_batches(
        function, batch_format="pyarrow", batch_size=None, zero_copy_batch=True, fn_args=arguments
    )


def parts_of(keys: NDArray[Any], actors: list[Any]) -> list[tuple[Any, NDArray[np.intp]]]:
    """The shards that have some of these keys, and the places of each one's."""
    return [(actor, at) for actor, at in zip(actors, split(keys, len(actors)), strict=True) if len(at)]


class Waiting:
    """Calls of shards whose answers are awaited in the order of their batches."""

    def __init__(self) -> None:
        self._batches: deque[tuple[Any, list[Any]]] = deque()

    def add(self, what: Any, calls: list[Any]) -> Iterator[tuple[Any, list[Any]]]:
        """Adds the calls of a batch. Gives what was added before and its answers, once there is more than may wait."""
        self._batches.append((what, calls))
        return self._answered(_BATCHES_MAX)

    def end(self) -> Iterator[tuple[Any, list[Any]]]:
        """Gives all that waits."""
        return self._answered(0)

    def end_block(self, block: pa.Table) -> pa.Table:
        """Awaits all, and tells how many rows the block had."""
        deque(self.end(), maxlen=0)
        return pa.table({"rows": pa.array([block.num_rows], pa.int64())})

    def _answered(self, most: int) -> Iterator[tuple[Any, list[Any]]]:
        while len(self._batches) > most:
            what, calls = self._batches.popleft()
            yield what, ray.get(calls)
