"""The terms of datasets of texts, and their weights in each text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from nandex import _nandex
from nandex._errors import ConfigError, InputError
from nandex.ray._actors import Shards
from nandex.ray._blocks import Waiting, column_of, mapped, slices_of
from nandex.ray._count import copy_counts, counts_of, executed, name_of, send_counts
from nandex.shards import Terms
from nandex.shards._shard import NUMBER_MAX

if TYPE_CHECKING:
    import os

    from numpy.typing import NDArray

    _Amount = int | float | str
    _Path = str | os.PathLike[str]
    _Norm = Literal["l1", "l2"] | None
    _Counts = NDArray[np.int64]

#: The number of documents of a block that are analysed at a time.
_BATCH_ROWS = 1 << 14

#: The length of the longest term that is stored as it is. Longer terms become digests after a zero byte, which no term
#: has.
_TERM_BYTES_MAX = 31

#: The key of the number of documents, which is no term either.
_DOCUMENTS = b"\0documents"

#: The columns of an answer.
_COLUMNS = ("terms", "weights")


class _Analysed:
    """The terms of a batch of documents."""

    def __init__(self, documents: Any, analysis: dict[str, Any]) -> None:
        self.starts, self.numbers, self.counts, data, offsets = _nandex._terms(documents, **analysis)
        buffers = [None, pa.py_buffer(offsets), pa.py_buffer(data)]
        #: Each different term once.
        self.terms = pa.Array.from_buffers(pa.large_string(), len(offsets) - 1, buffers)

    def keys(self) -> pa.Array:
        """Returns the terms in the form in which shards store them."""
        return _keys(self.terms)

    def documents(self) -> _Counts:
        """Returns the number of documents that contain each term."""
        return np.bincount(self.numbers, minlength=len(self.terms))


@dataclass(frozen=True)
class _Weighing:
    """The options of `Tfidf.transform`."""

    min_df: int | float = 1
    max_df: int | float = 1.0
    norm: _Norm = "l2"
    use_idf: bool = True
    smooth_idf: bool = True
    sublinear_tf: bool = False
    binary: bool = False

    def __post_init__(self) -> None:
        if self.norm not in ("l1", "l2", None):
            raise ConfigError(f"norm: {self.norm!r}; give 'l1', 'l2' or None")
        for name, given in (("min_df", self.min_df), ("max_df", self.max_df)):
            if isinstance(given, float):
                _nandex._real(given, name, 0.0, 1.0)
            else:
                _nandex._integer(given, name, 0, NUMBER_MAX)

    def is_kept(self, found: NDArray[np.uint64], documents: int) -> NDArray[np.bool_]:
        """Returns which terms stay, given the number of documents of each."""
        least, most = _limit(self.min_df, documents), _limit(self.max_df, documents)
        return np.asarray((found >= max(1, least)) & (found <= most))

    def idf(self, found: NDArray[np.uint64], documents: int) -> NDArray[np.float64]:
        """Returns the inverse document frequency of each term, given the number of its documents."""
        if not self.use_idf:
            return np.ones(len(found))
        more = int(self.smooth_idf)
        return np.asarray(np.log((documents + more) / np.maximum(found + more, 1)) + 1.0)

    def weights(self, counts: NDArray[np.float64], idf: NDArray[np.float64]) -> NDArray[np.float64]:
        """Returns the weights of terms, given their counts in their rows."""
        if self.binary:
            counts = np.ones_like(counts)
        if self.sublinear_tf:
            counts = np.log(counts) + 1.0
        return counts * idf


def _limit(given: int | float, documents: int) -> float:
    """Returns a number of documents, given a number or a share."""
    return given * documents if isinstance(given, float) else given


class Tfidf(Shards):
    """Shards that count the documents of each term, for several datasets, one after another or at once.

    The vocabulary is on the disks of the nodes, whatever its size. A term is a word of two or more characters, or up to
    `ngram_range[1]` consecutive words, as scikit-learn's `TfidfVectorizer` finds them; `lowercase` and `stop_words`
    ("english", a list, or None) are its options too. Pass the same options for everything under one path.

    `path` is a folder, on each node of its own. `shards` is their number, which is fixed for the path. `ram` is the RAM
    of each, at least 32 MiB. `keys` is the expected number of different terms in all; a shard grows past its share. An
    actor claims `num_cpus` of its node. A term takes some 40 bytes of flash.
    """

    _KIND = Terms

    def __init__(
        self,
        path: _Path,
        *,
        shards: int = 1,
        ram: _Amount = "256MiB",
        keys: int | None = None,
        num_cpus: float = 0,
        ngram_range: tuple[int, int] = (1, 1),
        lowercase: bool = True,
        stop_words: str | list[str] | None = None,
    ) -> None:
        self._analysis = {"lowercase": lowercase, "ngrams": ngram_range, "stop_words": stop_words}
        # Impossible options are refused here.
        _Analysed([], self._analysis)
        super().__init__(path, shards=shards, ram=ram, keys=keys, num_cpus=num_cpus)

    def add(self, dataset: Any, text: str) -> int:
        """Adds the documents of a Ray dataset, in a column of texts, and returns their number.

        The dataset is executed here. Each batch has a name, and a shard records which it has counted, so that a task or
        an actor that fails and is restarted counts nothing twice. If the job itself ends before this returns, some
        documents are counted and others not: take a snapshot before, and restore it then.
        """
        return executed(dataset, text, _counted, self._actors, text, self._analysis)

    def copy_to(self, other: Tfidf) -> int:
        """Adds the counts of these shards to those of another `Tfidf`, such as an empty one of more shards, as
        `Count.copy_to` does; returns the number of terms.

        # Errors
        A `ConfigError` if the others find other terms.
        """
        if other._analysis != self._analysis:
            raise ConfigError(f"{other._analysis}: give those of the shards that are copied, {self._analysis}")
        return max(0, copy_counts(self, other) - 1)

    @property
    def documents(self) -> int:
        """Returns the number of documents added."""
        return int(counts_of(self._actors, pa.array([_DOCUMENTS]))[0])

    def documents_of(self, terms: list[str]) -> NDArray[np.uint64]:
        """Returns the number of documents that contain each of these terms; 0 for a term that never occurred."""
        return counts_of(self._actors, _keys(pa.array(terms, pa.large_string())))

    def transform(
        self,
        dataset: Any,
        text: str,
        *,
        min_df: int | float = 1,
        max_df: int | float = 1.0,
        norm: _Norm = "l2",
        use_idf: bool = True,
        smooth_idf: bool = True,
        sublinear_tf: bool = False,
        binary: bool = False,
    ) -> Any:
        """Returns the dataset with two more columns: `terms`, a list of the terms of each row in the order of their
        bytes, and `weights`, a list of 64-bit floats of the same length. It is lazy.

        The weights are those of scikit-learn's `TfidfVectorizer` with these options, for the documents added so far.
        `min_df` and `max_df` exclude terms that are in fewer or more of them: a number of documents if it is an int, a
        share if it is a float. Terms that were never added are excluded too.
        """
        weighing = _Weighing(min_df, max_df, norm, use_idf, smooth_idf, sublinear_tf, binary)
        return mapped(dataset, _weighed, self._actors, text, self._analysis, weighing, self.documents)


def tfidf(
    dataset: Any,
    text: str,
    *,
    path: _Path,
    shards: int = 1,
    ram: _Amount = "256MiB",
    keys: int | None = None,
    num_cpus: float = 0,
    ngram_range: tuple[int, int] = (1, 1),
    lowercase: bool = True,
    stop_words: str | list[str] | None = None,
    **weighing: Any,
) -> Any:
    """Returns the weights of the terms of a Ray dataset: `Tfidf` with these options, its `add`, and its `transform`,
    which gets all other options. The dataset is executed here, and again whenever the result is read."""
    # Impossible options are refused before anything is counted.
    _Weighing(**weighing)
    analysis: dict[str, Any] = {"ngram_range": ngram_range, "lowercase": lowercase, "stop_words": stop_words}
    terms = Tfidf(path, shards=shards, ram=ram, keys=keys, num_cpus=num_cpus, **analysis)
    terms.add(dataset, text)
    return terms.transform(dataset, text, **weighing)


def _keys(terms: pa.Array) -> pa.Array:
    keys = terms.cast(pa.large_binary())
    is_long = pc.greater(pc.binary_length(keys), _TERM_BYTES_MAX)
    longer = keys.filter(is_long)
    if not len(longer):
        return keys
    digests = [b"\0" + digest for digest in _nandex._digests(longer).view("V16").tolist()]
    return pc.replace_with_mask(keys, is_long, pa.array(digests, pa.large_binary()))


def _counted(block: pa.Table, actors: list[Any], text: str, analysis: dict[str, Any], salt: bytes) -> pa.Table:
    """Sends the number of documents of each term of a block to the shards, and returns the block's number of rows."""
    waiting = Waiting()
    for batch in slices_of(block, _BATCH_ROWS):
        analysed = _Analysed(column_of(batch, text), analysis)
        keys = pa.concat_arrays([analysed.keys(), pa.array([_DOCUMENTS], pa.large_binary())])
        amounts = np.append(analysed.documents(), batch.num_rows)
        send_counts(actors, name_of(batch, salt), keys, amounts, waiting)
    return waiting.end_block(block)


def _weighed(
    block: pa.Table, actors: list[Any], text: str, analysis: dict[str, Any], weighing: _Weighing, documents: int
) -> pa.Table:
    """Returns the block with the terms of its rows and their weights."""
    taken = [name for name in _COLUMNS if name in block.column_names]
    if taken:
        raise InputError(f"a dataset with a column {taken[0]!r}: rename it, the answer has one of that name")
    batches = slices_of(block, _BATCH_ROWS)
    lists = [_lists(actors, _Analysed(column_of(batch, text), analysis), weighing, documents) for batch in batches]
    kinds = (pa.large_list(pa.large_string()), pa.large_list(pa.float64()))
    for place, (name, kind) in enumerate(zip(_COLUMNS, kinds, strict=True)):
        block = block.append_column(name, pa.chunked_array([part[place] for part in lists], kind))
    return block


def _lists(
    actors: list[Any], analysed: _Analysed, weighing: _Weighing, documents: int
) -> tuple[pa.Array, pa.Array]:
    """Returns the terms of the rows of a batch, and their weights."""
    found = counts_of(actors, analysed.keys())
    stays = weighing.is_kept(found, documents)[analysed.numbers]
    numbers, counts = analysed.numbers[stays], analysed.counts[stays].astype(np.float64)
    starts = np.append(0, np.cumsum(stays))[analysed.starts]
    weights = weighing.weights(counts, weighing.idf(found, documents)[numbers])
    terms = pa.LargeListArray.from_arrays(starts, analysed.terms.take(pa.array(numbers)))
    return terms, pa.LargeListArray.from_arrays(starts, _scaled(weights, starts, weighing.norm))


def _scaled(weights: NDArray[np.float64], starts: _Counts, norm: _Norm) -> NDArray[np.float64]:
    """Returns the weights of rows, each divided by its length."""
    if norm is None:
        return weights
    rows = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    squares = np.bincount(rows, weights**2 if norm == "l2" else np.abs(weights), len(starts) - 1)
    lengths = np.sqrt(squares) if norm == "l2" else squares
    return weights / lengths[rows]
