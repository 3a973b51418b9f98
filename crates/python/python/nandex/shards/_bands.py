"""The common keys of near-duplicates: the bucket keys of their signatures."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nandex import _nandex
from nandex._errors import ConfigError, InputError, InputTypeError

_Keys = NDArray[np.uint64]

#: Distinguishes the bands of signatures: an odd number, whose multiples are as good as random.
_BAND = np.uint64(0x9E3779B97F4A7C15)


#: The maximum number of values in a signature, and of words in a shingle.
_NUM_PERM_MAX = 1 << 16
_SHINGLE_MAX = 64


@dataclass(frozen=True)
class Bands:
    """The computation of a document's keys: documents with a key in common are likely near-duplicates.

    threshold: The Jaccard similarity at which documents share a key, 0 to 1.
    num_perm: The number of values in a signature.
    params: The number of bands, and of values in each; by default those that are best for the threshold.
    shingle: The number of words in a shingle, 1 to 64. A text with fewer is one shingle.

    The bands are those of `nandex.datasketch.MinHashLSH` with the same parameters.
    """

    threshold: float = 0.8
    num_perm: int = 128
    params: tuple[int, int] | None = None
    shingle: int = 3

    def __post_init__(self) -> None:
        num_perm = _nandex._integer(self.num_perm, "num_perm", 1, _NUM_PERM_MAX)
        threshold = _nandex._real(self.threshold, "threshold", 0.0, 1.0)
        shingle = _nandex._integer(self.shingle, "shingle", 1, _SHINGLE_MAX)
        if self.params is None:
            params = _nandex._lsh_bands(threshold, num_perm, (0.5, 0.5))
        else:
            count, values = (_nandex._integer(number, "params", 1, num_perm) for number in self.params)
            params = count, values
        checked = {"threshold": threshold, "num_perm": num_perm, "params": params, "shingle": shingle}
        for name, value in checked.items():
            object.__setattr__(self, name, value)
        count, values = params
        if count * values > num_perm:
            raise ConfigError(f"params: {self.params}; give bands of at most {self.num_perm} values in all")

    @property
    def shape(self) -> tuple[int, int]:
        """Returns the number of bands, and of values in each."""
        assert self.params is not None
        return self.params

    def __str__(self) -> str:
        count, values = self.shape
        return f"{count}x{values}-of-{self.num_perm}-shingles-of-{self.shingle}"

    def of_texts(self, texts: Any) -> _Keys:
        """Returns the keys of texts, one row each: a list, or an Arrow array.

        Words are runs of letters, numbers, marks and `_`, without case. Texts without words share keys if they are
        equal. Costs about a microsecond for each 10 shingles, with the interpreter's lock released.
        """
        keys = _nandex._text_keys(texts, num_perm=self.num_perm, bands=self.shape, shingle=self.shingle)
        return keys.reshape(-1, self.shape[0])

    def of_signatures(self, signatures: Any) -> _Keys:
        """Returns the keys of signatures that were made elsewhere, such as `MinHash.hashvalues`: an array of integers
        with a row of `num_perm` for each. They differ from those of texts."""
        rows = np.asarray(signatures)
        if rows.ndim < 2 or rows.shape[1] != self.num_perm:
            raise InputError(f"an array of the shape {rows.shape} as signatures: give rows of {self.num_perm}")
        if rows.dtype.kind not in "ui":
            raise InputTypeError(f"an array of {rows.dtype} as signatures: give integers, such as MinHash.hashvalues")
        count, values = self.shape
        width = int(np.prod(rows.shape[2:]))
        flat = np.ascontiguousarray(rows).astype(np.uint64, copy=False).reshape(-1)
        keys = _nandex._signature_keys(flat, (self.num_perm * width, values * width, count)).reshape(-1, count)
        return np.asarray(keys ^ (np.arange(1, count + 1, dtype=np.uint64) * _BAND))
