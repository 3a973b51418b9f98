"""Columns of pandas and polars as batches, and answers in their form. Neither package is imported before it is used."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from nandex._errors import InputError, InputTypeError


def library_of(given: Any) -> str:
    """Returns the package that the object's class is of, such as "pandas"."""
    return type(given).__module__.partition(".")[0]


def is_frame(given: Any) -> bool:
    """Whether the object is a table of columns of pandas or polars."""
    return library_of(given) in ("pandas", "polars") and type(given).__name__ in ("DataFrame", "LazyFrame")


def columns_of(frame: Any) -> tuple[Any, Any]:
    """Returns the two columns of a frame: keys and values."""
    if type(frame).__name__ == "LazyFrame":
        raise InputTypeError("a LazyFrame: give frame.collect()")
    if frame.shape[1] != 2:
        raise InputError(f"a DataFrame of {frame.shape[1]} columns: give keys and values, in two columns")
    if library_of(frame) == "pandas":
        return frame.iloc[:, 0], frame.iloc[:, 1]
    return frame.to_series(0), frame.to_series(1)


def plain(column: Any, what: str) -> Any:
    """Returns a column of pandas or polars as a numpy array, an Arrow array or a list."""
    if is_frame(column):
        raise InputTypeError(f"a DataFrame as {what}s: give one of its columns, such as frame[{what!r}]")
    if library_of(column) == "pandas":
        return _of_pandas(column, what)
    if type(column).__name__ != "Series":
        raise InputTypeError(f"a {type(column).__name__} of polars as {what}s: give a Series")
    return _of_polars(column, what)


def _of_pandas(column: Any, what: str) -> Any:
    import pandas as pd

    if not isinstance(column, (pd.Series, pd.Index, pd.api.extensions.ExtensionArray)):
        raise InputTypeError(f"a {type(column).__name__} of pandas as {what}s: give a Series")
    if isinstance(column, pd.MultiIndex):
        raise InputTypeError(f"a MultiIndex as {what}s: give one of its levels, such as index.get_level_values(0)")
    missing = int(np.count_nonzero(column.isna()))
    if missing:
        raise InputError(f"a column with {missing} missing values as {what}s: give column.dropna()")
    if isinstance(column.dtype, pd.CategoricalDtype):
        column = column.astype(column.dtype.categories.dtype)
    if isinstance(column.dtype, np.dtype):
        return np.asarray(column)
    number = getattr(column.dtype, "numpy_dtype", None)
    if isinstance(number, np.dtype) and number.kind in "iufb":
        return np.asarray(column, dtype=number)
    return column.tolist()


def _of_polars(column: Any, what: str) -> Any:
    import polars as pl

    if column.null_count():
        raise InputError(f"a column with {column.null_count()} nulls as {what}s: give column.drop_nulls()")
    if column.dtype in (pl.Categorical, pl.Enum):
        column = column.cast(pl.String)
    if column.dtype in (pl.String, pl.Binary):
        return column.to_list()
    if column.dtype.is_numeric() or column.dtype == pl.Boolean:
        return column.to_numpy()
    raise InputTypeError(f"a column of {column.dtype} as {what}s: give bytes, text or whole numbers")


def numbers_in_form(form: str, given: Any, values: NDArray[Any], found: NDArray[np.bool_], default: Any) -> Any:
    """Returns numbers as a column of the form of the keys."""
    if default is not None:
        pairs = zip(values.tolist(), found.tolist(), strict=True)
        return in_form(form, given, [value if is_there else default for value, is_there in pairs])
    if form == "pandas":
        import pandas as pd

        return pd.Series(pd.arrays.IntegerArray(values, ~found), index=_index(given))
    import polars as pl

    marked = pl.select(pl.when(pl.lit(pl.Series(found))).then(pl.lit(pl.Series(values)))).to_series()
    return marked.alias(given.name)


def in_form(form: str, given: Any, answers: list[Any]) -> Any:
    """Returns answers as a column of the form of the keys, in their order; for pandas, with their index."""
    if form == "pandas":
        import pandas as pd

        return pd.Series(answers, index=_index(given), dtype=object)
    import polars as pl

    return pl.Series(given.name, answers)


def _index(given: Any) -> Any:
    index = getattr(given, "index", None)
    return None if callable(index) else index
