"""scikit-learn's text vectorizers with a vocabulary that is bigger than RAM.

>>> vectorizer = TfidfVectorizer(path=path)
>>> rows = vectorizer.fit_transform(["red fish, blue fish", "red cat"])
>>> vectorizer.get_feature_names_out().tolist(), rows.shape
(['blue', 'cat', 'fish', 'red'], (2, 4))
>>> _ = vectorizer.partial_fit(["a dog"])
>>> vectorizer.transform(["red dog"]).shape
(1, 5)
>>> vectorizer.close()

Terms and their counts are in a file, and learning them takes the RAM that is stated. The columns and numbers are
scikit-learn's.
"""

from __future__ import annotations

import os
import pickle
import tempfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction import text as _text

from nandex._errors import ConfigError, InputError
from nandex._nandex import _integer, _Tfidf

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["CountVectorizer", "TfidfVectorizer"]

_RAM = "256MiB"

#: The only supported token pattern: two or more word characters in a row.
_TOKENS = r"(?u)\b\w\w+\b"

#: The maximum number of words of a term in messages; the index states its own limit.
_NGRAM_MAX = 1 << 31

#: Bytes of a spooled document's length.
_LENGTH_BYTES = 8


def _aligned(rows: Any) -> Any:
    """Returns a sparse matrix in the form that scikit-learn's configuration asks for."""
    align = getattr(_text, "_align_api_if_sparse", None)
    return rows if align is None else align(rows)


class _OnFlash:
    """The common part of both vectorizers, before scikit-learn's classes."""

    path: str | os.PathLike[str] | None
    ram: int | float | str
    _index: _Tfidf | None = None
    _folder: tempfile.TemporaryDirectory[str] | None = None
    #: The index learns its terms.
    fixed_vocabulary_ = False
    _parameters_of_its_own = {"path": [str, os.PathLike, None], "ram": [str, int, float]}

    def fit(self: Any, raw_documents: Iterable[Any], y: None = None) -> Any:
        """Learns the terms of documents. An index at `path` is replaced after this has succeeded."""
        self._fit(raw_documents)
        return self

    def fit_transform(self: Any, raw_documents: Iterable[Any], y: None = None) -> Any:
        """Learns the terms of documents, and returns their rows.

        Reads the documents twice. Those of an iterator, which can be read only once, are stored in a temporary file.
        """
        if iter(raw_documents) is not raw_documents:
            self._fit(raw_documents)
            return self._rows(raw_documents)
        with tempfile.TemporaryFile() as spool:
            prepare, _ = self._preparation()
            self._fit(_spooled(raw_documents, prepare, spool), is_prepared=True)
            return self._rows(_unspooled(spool), is_prepared=True)

    def partial_fit(self: Any, raw_documents: Iterable[Any], y: None = None) -> Any:
        """Adds documents to those learned before, also by an earlier process. Columns are chosen again afterwards.

        After an error, a part of the documents is added: all of them, or those of whole batches.
        """
        self._check()
        self._refuse_text(raw_documents)
        if self._index is None:
            self._index = self._open(self._place())
        self._index.update(raw_documents, *self._preparation())
        return self

    def transform(self: Any, raw_documents: Iterable[Any]) -> Any:
        """Returns the rows of documents, a sparse matrix in RAM. Reads the documents once, and stores none."""
        self._refuse_text(raw_documents)
        return self._rows(raw_documents)

    def get_feature_names_out(self: Any, input_features: Any = None) -> NDArray[np.object_]:
        """Returns the terms of all columns, in RAM."""
        return np.asarray(self._chosen().vocabulary()[0], dtype=object)

    @property
    def vocabulary_(self: Any) -> dict[str, int]:
        """The column of each term: a dict in RAM, which is made at each access."""
        try:
            terms = self._chosen().vocabulary()[0]
        except NotFittedError as error:
            raise AttributeError(str(error)) from error
        return {term: column for column, term in enumerate(terms)}

    def stats(self: Any) -> dict[str, int]:
        """Documents, occurrences of terms, and RAM of the index's tables."""
        index: _Tfidf = self._opened()
        return index.stats()

    def close(self: Any) -> None:
        """Makes everything durable and closes the file; a temporary one is removed. The next call opens it again."""
        index, self._index = self._index, None
        if index is not None:
            index.close()
        folder, self._folder = self._folder, None
        if folder is not None:
            folder.cleanup()

    def __enter__(self: Any) -> Any:
        return self

    def __exit__(self: Any, *_: object) -> None:
        self.close()

    def __sklearn_is_fitted__(self: Any) -> bool:
        return self._index is not None or (self.path is not None and Path(self.path).exists())

    def __getstate__(self: Any) -> dict[str, Any]:
        if self._index is not None and self.path is None:
            raise pickle.PicklingError(
                "a fitted vectorizer without a path has a temporary file, which no pickle can have; give it a path"
            )
        state: dict[str, Any] = super().__getstate__()  # type: ignore[misc]
        return {name: value for name, value in state.items() if name not in ("_index", "_folder")}

    def _fit(self: Any, documents: Iterable[Any], is_prepared: bool = False) -> None:
        self._check()
        self._refuse_text(documents)
        if self.path is not None and Path(self.path).exists() and self._index is None:
            _Tfidf.check(os.fspath(self.path), ram=self.ram)
        self.close()
        place = self._place()
        new = place.with_name(place.name + ".new")
        new.unlink(missing_ok=True)
        index = self._open(new)
        try:
            prepare = (str, False) if is_prepared else self._preparation()
            index.update(documents, *prepare)
            self._choose(index)
        except BaseException:
            index.close()
            new.unlink()
            raise
        new.replace(place)
        self._index = index

    def _rows(self: Any, documents: Iterable[Any], is_prepared: bool = False) -> Any:
        index = self._chosen()
        prepare = (str, False) if is_prepared else self._preparation()
        starts, columns, values = index.transform(documents, *prepare)
        if starts[-1] <= np.iinfo(np.int32).max:
            starts = starts.astype(np.int32)
        else:
            columns = columns.astype(np.int64)
        shape = (len(starts) - 1, index.columns())
        return _aligned(sp.csr_array((values.astype(self._dtype(), copy=False), columns, starts), shape=shape))

    def _place(self: Any) -> Path:
        if self.path is not None:
            return Path(self.path)
        if self._folder is None:
            self._folder = tempfile.TemporaryDirectory(prefix="nandex-sklearn-")
        return Path(self._folder.name, "terms.nandex")

    def _open(self: Any, place: Path) -> _Tfidf:
        stop_words = self.stop_words
        if stop_words is not None and not isinstance(stop_words, str):
            stop_words = list(stop_words)
        return _Tfidf(
            os.fspath(place),
            ram=self.ram,
            lowercase=bool(self.lowercase) and not self._prepares_all(),
            ngrams=tuple(self.ngram_range),
            stop_words=stop_words,
        )

    def _opened(self: Any) -> _Tfidf:
        if self._index is None:
            if self.path is None or not Path(self.path).exists():
                raise NotFittedError("Vocabulary not fitted or provided: call fit, or give the path of an index")
            self._check()
            self._index = self._open(Path(self.path))
        index: _Tfidf = self._index
        return index

    def _chosen(self: Any) -> _Tfidf:
        index: _Tfidf = self._opened()
        if index.columns() is None:
            self._choose(index)
        return index

    def _choose(self: Any, index: _Tfidf) -> None:
        if index.stats()["documents"] == 0:
            raise InputError("empty vocabulary: there are no documents; give one or more")
        index.fit(
            min_df=self.min_df,
            max_df=self.max_df,
            max_features=self.max_features,
            weighting={**self._weighting(), "binary": bool(self.binary)},
        )

    def _prepares_all(self: Any) -> bool:
        return self.preprocessor is not None or self.strip_accents is not None

    def _preparation(self: Any) -> tuple[Callable[[Any], str], bool]:
        """Returns the preparation of documents, and whether it is for all of them or only for those that are no str."""
        if not self._prepares_all():
            return self.decode, self.input != "content"
        preprocess = self.build_preprocessor()
        return lambda document: preprocess(self.decode(document)), True

    def _check(self: Any) -> None:
        """Refuses parameters of scikit-learn that are not supported."""
        if hasattr(self, "_validate_params"):
            self._validate_params()
        for words in self.ngram_range:
            _integer(words, "ngram_range", 1, _NGRAM_MAX)
        self._validate_ngram_range()
        usual = {"tokenizer": None, "token_pattern": _TOKENS, "analyzer": "word", "vocabulary": None}
        for name, value in usual.items():
            found = getattr(self, name)
            if found is not value and found != value:
                raise ConfigError(
                    f"{name}={found!r}: the index has words of two or more characters and its own vocabulary; leave "
                    f"out {name}, or use scikit-learn's {type(self).__name__}"
                )
        # Warns of stop words that cannot be tokens.
        self._check_stop_words_consistency(self.get_stop_words(), self.build_preprocessor(), self.build_tokenizer())

    @staticmethod
    def _refuse_text(documents: Iterable[Any]) -> None:
        if isinstance(documents, str):
            raise InputError("Iterable over raw text documents expected, string object received.")

    def _check_vocabulary(self: Any) -> None:
        self._opened()


def _spooled(documents: Iterable[Any], prepare: Callable[[Any], str], spool: IO[bytes]) -> Iterator[str]:
    """Yields the prepared documents, and writes them to a file as they pass."""
    for document in documents:
        text = prepare(document)
        content = text.encode()
        spool.write(len(content).to_bytes(_LENGTH_BYTES, "little"))
        spool.write(content)
        yield text


def _unspooled(spool: IO[bytes]) -> Iterator[str]:
    spool.seek(0)
    while length := spool.read(_LENGTH_BYTES):
        yield spool.read(int.from_bytes(length, "little")).decode()


class CountVectorizer(_OnFlash, _text.CountVectorizer):  # type: ignore[misc]
    """scikit-learn's `CountVectorizer`, with its vocabulary on flash.

    path: The file of the index, which `fit` or `partial_fit` makes, and which is opened if it exists. Copies of the
        vectorizer share it, and only one at a time can have it open. None for a temporary file.
    ram: The RAM of the index, 256 MiB by default and at least 64 MiB. The matrix of `transform` and the lists of
        `get_feature_names_out` and `vocabulary_` come in addition.

    The other parameters are scikit-learn's; `tokenizer`, `token_pattern`, `analyzer` and `vocabulary` must have
    their default values. Of equally frequent terms, `max_features` keeps the first.
    """

    _parameter_constraints = {**_text.CountVectorizer._parameter_constraints, **_OnFlash._parameters_of_its_own}

    def __init__(
        self,
        *,
        path: str | os.PathLike[str] | None = None,
        ram: int | float | str = _RAM,
        input: str = "content",
        encoding: str = "utf-8",
        decode_error: str = "strict",
        strip_accents: Any = None,
        lowercase: bool = True,
        preprocessor: Callable[[str], str] | None = None,
        tokenizer: Any = None,
        stop_words: Any = None,
        token_pattern: str = _TOKENS,
        ngram_range: tuple[int, int] = (1, 1),
        analyzer: str = "word",
        max_df: int | float = 1.0,
        min_df: int | float = 1,
        max_features: int | None = None,
        vocabulary: Any = None,
        binary: bool = False,
        dtype: Any = np.int64,
    ) -> None:
        super().__init__(
            input=input,
            encoding=encoding,
            decode_error=decode_error,
            strip_accents=strip_accents,
            lowercase=lowercase,
            preprocessor=preprocessor,
            tokenizer=tokenizer,
            stop_words=stop_words,
            token_pattern=token_pattern,
            ngram_range=ngram_range,
            analyzer=analyzer,
            max_df=max_df,
            min_df=min_df,
            max_features=max_features,
            vocabulary=vocabulary,
            binary=binary,
            dtype=dtype,
        )
        self.path = path
        self.ram = ram

    def _weighting(self) -> dict[str, Any]:
        return {"use_idf": False, "smooth_idf": False, "sublinear_tf": False, "norm": None}

    def _dtype(self) -> Any:
        return self.dtype


class TfidfVectorizer(_OnFlash, _text.TfidfVectorizer):  # type: ignore[misc]
    """scikit-learn's `TfidfVectorizer`, with its vocabulary on flash.

    `path` and `ram` are those of `CountVectorizer`, and so are the limits of the others. `idf_` cannot be set.
    """

    _parameter_constraints = {**_text.TfidfVectorizer._parameter_constraints, **_OnFlash._parameters_of_its_own}

    def __init__(
        self,
        *,
        path: str | os.PathLike[str] | None = None,
        ram: int | float | str = _RAM,
        input: str = "content",
        encoding: str = "utf-8",
        decode_error: str = "strict",
        strip_accents: Any = None,
        lowercase: bool = True,
        preprocessor: Callable[[str], str] | None = None,
        tokenizer: Any = None,
        analyzer: str = "word",
        stop_words: Any = None,
        token_pattern: str = _TOKENS,
        ngram_range: tuple[int, int] = (1, 1),
        max_df: int | float = 1.0,
        min_df: int | float = 1,
        max_features: int | None = None,
        vocabulary: Any = None,
        binary: bool = False,
        dtype: Any = np.float64,
        norm: str | None = "l2",
        use_idf: bool = True,
        smooth_idf: bool = True,
        sublinear_tf: bool = False,
    ) -> None:
        super().__init__(
            input=input,
            encoding=encoding,
            decode_error=decode_error,
            strip_accents=strip_accents,
            lowercase=lowercase,
            preprocessor=preprocessor,
            tokenizer=tokenizer,
            analyzer=analyzer,
            stop_words=stop_words,
            token_pattern=token_pattern,
            ngram_range=ngram_range,
            max_df=max_df,
            min_df=min_df,
            max_features=max_features,
            vocabulary=vocabulary,
            binary=binary,
            dtype=dtype,
            norm=norm,
            use_idf=use_idf,
            smooth_idf=smooth_idf,
            sublinear_tf=sublinear_tf,
        )
        self.path = path
        self.ram = ram

    @property
    def idf_(self) -> NDArray[Any]:
        """The inverse document frequency of each column, of the `dtype`."""
        if not self.use_idf:
            raise AttributeError("idf_ with use_idf=False: no inverse document frequencies are used")
        try:
            return self._chosen().vocabulary()[1].astype(self._dtype(), copy=False)
        except NotFittedError as error:
            raise AttributeError(str(error)) from error

    @idf_.setter
    def idf_(self, value: Any) -> None:
        raise ConfigError("idf_ follows from the index, and cannot be set; use scikit-learn's TfidfVectorizer for that")

    def _weighting(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in ("use_idf", "smooth_idf", "sublinear_tf", "norm")}

    def _dtype(self) -> Any:
        self._check_params()
        return self.dtype if self.dtype in (np.float32, np.float64) else np.float64
