"""Batches of every form that the packages of data have: taken, or refused with the call that works."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import nandex

NUMBERS = [7, 1, 7, 300]
TEXTS = ["a", "bcd", "a", "é"]

FORMS_OF_NUMBERS: dict[str, Callable[[list[int]], Any]] = {
    "list": list,
    "generator": iter,
    "int64": lambda it: np.array(it, np.int64),
    "int32": lambda it: np.array(it, np.int32),
    "uint16": lambda it: np.array(it, np.uint16),
    "big-endian": lambda it: np.array(it, ">u8"),
    "stride": lambda it: np.repeat(np.array(it, np.uint64), 2)[::2],
    "reversed": lambda it: np.array(it[::-1], np.uint64)[::-1],
    "objects": lambda it: np.array(it, object),
    "arrow int64": pa.array,
    "arrow dictionary": lambda it: pa.array(it, pa.uint64()).dictionary_encode(),
    "arrow chunks": lambda it: pa.chunked_array([it[:1], it[1:]]),
    "pandas": lambda it: pd.Series(it, index=range(5, 5 + len(it))),
    "pandas Int64": lambda it: pd.Series(it, dtype="Int64"),
    "pandas category": lambda it: pd.Series(it, dtype="category"),
    "pandas Arrow": lambda it: pd.Series(it, dtype=pd.ArrowDtype(pa.int64())),
    "pandas Index": pd.Index,
    "polars": lambda it: pl.Series("n", it),
    "polars UInt8": lambda it: pl.Series([number % 256 for number in it], dtype=pl.UInt8),
}

FORMS_OF_TEXTS: dict[str, Callable[[list[str]], Any]] = {
    "list": list,
    "numpy text": np.array,
    "numpy bytes": lambda it: np.array([text.encode() for text in it]),
    "objects": lambda it: np.array(it, object),
    "stride": lambda it: np.repeat(np.array([text.encode() for text in it]), 3)[::3],
    "arrow": pa.array,
    "arrow dictionary": lambda it: pa.array(it).dictionary_encode(),
    "arrow dictionary chunks": lambda it: pa.chunked_array([it[:1], it[1:]]).dictionary_encode(),
    "pandas": lambda it: pd.Series(it, index=range(5, 5 + len(it))),
    "pandas objects": lambda it: pd.Series(it, dtype=object),
    "pandas category": lambda it: pd.Series(it, dtype="category"),
    "pandas string": lambda it: pd.Series(it, dtype="string"),
    "pandas Arrow": lambda it: pd.Series(it, dtype=pd.ArrowDtype(pa.string())),
    "pandas Index": pd.Index,
    "polars": lambda it: pl.Series("n", it),
    "polars category": lambda it: pl.Series("n", it, dtype=pl.Categorical),
    "polars bytes": lambda it: pl.Series("n", [text.encode() for text in it]),
}


def plain(answer: Any) -> list[Any]:
    """The answers of any form as a list, with None for an absent key."""
    if isinstance(answer, tuple):
        values, found = answer
        return [value if is_there else None for value, is_there in zip(values.tolist(), found.tolist(), strict=True)]
    if isinstance(answer, pd.Series):
        return [None if pd.isna(value) else value for value in answer]
    return answer.to_pylist() if isinstance(answer, pa.Array) else list(answer)


def kind_of(batch: Any) -> Any:
    """The type of answers about a batch."""
    if isinstance(batch, (pd.Series, pd.Index)):
        return pd.Series
    if isinstance(batch, (pa.Array, pa.ChunkedArray)):
        return pa.Array
    return pl.Series if isinstance(batch, pl.Series) else list


@pytest.mark.parametrize("form", FORMS_OF_NUMBERS)
def test_numbers_of_every_form_are_keys_and_values_of_a_table(db: nandex.Database, form: str) -> None:
    of = FORMS_OF_NUMBERS[form]
    numbers = [number % 256 for number in NUMBERS] if "UInt8" in form else NUMBERS
    table = db.table("t", entries=1000)
    table.insert_many(of(numbers), of(numbers))
    assert dict(table.items()) == {number: number for number in numbers}
    asked = of([*numbers, 99])
    answer = table.get_many(asked)
    assert plain(answer) == [*numbers, None]
    assert isinstance(answer, tuple if isinstance(asked, np.ndarray) else kind_of(asked))
    assert table.contains_many(of([*numbers, 99])).tolist() == [True] * 4 + [False]
    assert plain(table.get_or_insert_many(of([99]), of([5]))) == [None] and table[99] == 5


@pytest.mark.parametrize("form", FORMS_OF_TEXTS)
def test_texts_of_every_form_are_keys_of_every_structure(db: nandex.Database, form: str) -> None:
    of = FORMS_OF_TEXTS[form]
    stored = [text.encode() for text in TEXTS]
    pages, seen, counts = db.map("m"), db.filter("f", keys=1000, rate=1e-6), db.counter("c", keys=1000)
    pages.put_many(of(TEXTS), of(TEXTS))
    assert pages == dict(zip(stored, stored, strict=True))
    asked = of([*TEXTS, "zz"])
    answer = pages.get_many(asked)
    assert plain(answer) == [*stored, None] and isinstance(answer, kind_of(asked))
    assert pages.contains_many(of([*TEXTS, "zz"])).tolist() == [True] * 4 + [False]
    seen.update(of(TEXTS))
    assert seen.contains_many(of([*TEXTS, "zz"])).tolist() == [True] * 4 + [False]
    counts.update(of(TEXTS))
    assert counts.get_many(of([*TEXTS, "zz"])).tolist() == [2, 1, 2, 1, 0]


def test_a_series_of_answers_has_the_index_or_the_name_of_the_keys(db: nandex.Database) -> None:
    pages = db.map("m")
    pages["a"] = "1"
    found = pages.get_many(pd.Series(["a", "x"], index=["p", "q"]))
    assert found["p"] == b"1" and found["q"] is None
    frame = pd.DataFrame({"key": [7, 8]}, index=[3, 4])
    table = db.table("t", entries=10)
    table[8] = 80
    frame["value"] = table.get_many(frame["key"])
    assert frame["value"].dtype == "UInt64" and frame["value"][4] == 80 and pd.isna(frame["value"][3])
    assert table.get_many(frame["key"], default=0).tolist() == [0, 80]
    answer = table.get_many(pl.Series("key", [7, 8]))
    assert answer.name == "key" and answer.dtype == pl.UInt64 and answer.to_list() == [None, 80]


@pytest.mark.parametrize("of", [pd.DataFrame, pl.DataFrame, pa.table])
def test_two_columns_are_keys_and_values(db: nandex.Database, of: Any) -> None:
    pages, table = db.map("m"), db.table("t", entries=10)
    pages.put_many(of({"key": ["a", "b"], "value": ["1", "2"]}))
    pages.update(of({"key": ["c"], "value": ["3"]}))
    table.insert_many(of({"key": [1, 2], "value": [10, 20]}))
    assert pages == {b"a": b"1", b"b": b"2", b"c": b"3"} and dict(table.items()) == {1: 10, 2: 20}
    with pytest.raises(nandex.InputError, match=r"1 columns|of 1 columns"):
        pages.put_many(of({"key": ["a"]}))


def test_a_series_of_pairs_is_its_index_and_its_values(db: nandex.Database) -> None:
    pages, words = db.map("m"), db.counter("c", keys=10)
    pages.update(pd.Series(["1", "2"], index=["a", "b"]))
    assert pages == {b"a": b"1", b"b": b"2"}
    words.update(pd.Series(["w", "w"]))
    assert words == {b"w": 2}


@pytest.mark.parametrize(
    ("keys", "error", "says"),
    [
        (pd.DataFrame({"a": ["x"]}), nandex.InputTypeError, "a DataFrame as keys: give one of its columns"),
        (pl.DataFrame({"a": ["x"]}), nandex.InputTypeError, "a DataFrame as keys: give one of its columns"),
        (pl.LazyFrame({"a": ["x"]}), nandex.InputTypeError, "give one of its columns"),
        (pd.Series(["x", None]), nandex.InputError, "a column with 1 missing values as keys: give column.dropna()"),
        (pl.Series(["x", None]), nandex.InputError, "a column with 1 nulls as keys: give column.drop_nulls()"),
        (pd.Series([0.5]), nandex.InputTypeError, "float64 as keys"),
        (pl.Series([0.5]), nandex.InputTypeError, "float64 as keys"),
        (pl.Series([[1]]), nandex.InputTypeError, "a column of List(Int64) as keys"),
        (pd.MultiIndex.from_tuples([("a", "b")]), nandex.InputTypeError, "get_level_values"),
        (np.zeros((2, 2)), nandex.InputError, "2 dimensions"),
        (np.array("a"), nandex.InputError, "0 dimensions"),
    ],
)
def test_what_is_no_batch_is_refused_with_the_call_that_works(
    db: nandex.Database, keys: Any, error: type[nandex.Error], says: str
) -> None:
    pages, words, seen = db.map("m"), db.counter("c", keys=10), db.filter("f", keys=10)
    for call in (pages.get_many, pages.contains_many, words.update, words.get_many, seen.update, seen.add_new_many):
        with pytest.raises(error) as refused:
            call(keys)
        assert says in str(refused.value)


@pytest.mark.parametrize("pairs", [7, [1, 2], [("a", "b", "c")], pl.LazyFrame({"a": ["x"], "b": ["y"]}), None])
def test_what_are_no_pairs_is_refused(db: nandex.Database, pairs: Any) -> None:
    for call in (db.map("m").put_many, db.table("t", entries=10).insert_many):
        with pytest.raises(nandex.InputTypeError):
            call(pairs)
