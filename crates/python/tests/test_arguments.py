"""Every number that a class or function of the package takes: one that does not fit is a `ValueError` or a `TypeError`
with the name of its argument, what it may be, and what it is."""

from __future__ import annotations

import ast
import enum
import fractions
import importlib
import inspect
import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nandex
from nandex import _nandex, datasketch, shards
from nandex.datasketch import MinHashLSH, MinHashLSHForest

STUB = Path(nandex.__file__).with_name("_nandex.pyi")
#: The functions that read numbers for the package's Python files: the other cases cover their values.
HELPERS = {"_size", "_count", "_integer", "_real"}
RAM = "32MiB"

#: Of no type that a number has.
NO_NUMBERS: list[Any] = [True, np.True_, b"1", [1], 1j, object]


@dataclass
class Given:
    """The arguments of calls."""

    folder: Path
    db: nandex.Database
    opened: dict[str, Any] = field(default_factory=dict)

    def once(self, name: str, make: Callable[[], Any]) -> Any:
        if name not in self.opened:
            self.opened[name] = make()
        return self.opened[name]

    def table(self) -> nandex.Table:
        table: nandex.Table = self.once("t", lambda: self.db.table("t", entries=10))
        return table

    def counter(self) -> nandex.Counter:
        counter: nandex.Counter = self.once("c", lambda: self.db.counter("c", keys=10))
        return counter

    def lsh(self) -> _nandex._Lsh:
        lsh: _nandex._Lsh = self.once("lsh", lambda: _lsh())
        return lsh


_Call = Callable[[Given, Any], object]


@dataclass(frozen=True)
class Case:
    """Values that an argument refuses."""

    call: _Call
    values: list[Any]
    #: Its name in messages, if that is another one.
    name: str | None = None
    raised: type[Exception] = nandex.Error


def whole(least: int, most: int, call: _Call, name: str | None = None, floats: bool = False) -> Case:
    """An argument that is a whole number."""
    no_floats: list[Any] = [1.5, math.nan, math.inf, np.float64(1.0)]
    values = [least - 1, most + 1, np.int64(-(2**63)), -(10**5000), 10**5000, "many", *NO_NUMBERS]
    return Case(call, values + ([] if floats else no_floats), name)


def real(least: float, most: float, call: _Call, name: str | None = None) -> Case:
    """An argument that is a real number."""
    outside: list[Any] = [math.nan, math.inf, -math.inf, least - 0.5, most * 2 + 0.5, 10**5000, np.float32("nan")]
    return Case(call, [*outside, "many", *NO_NUMBERS], name)


def amount(call: _Call, name: str | None = None) -> Case:
    """An argument that is a size or a count."""
    outside: list[Any] = [-1, 2**64, 10**5000, -0.5, 1.5, 1e30, math.nan, math.inf, np.int8(-1), "many", "-1", "\ud800"]
    return Case(call, [*outside, *NO_NUMBERS], name)


def _lsh() -> _nandex._Lsh:
    return _nandex._Lsh(None, ram="64MiB", documents=10, shape=(4, 2, 2), about="", pickles=True)


def _tfidf(given: Given, **changed: Any) -> _nandex._Tfidf:
    usual: dict[str, Any] = {"ram": "64MiB", "lowercase": True, "ngrams": (1, 1), "stop_words": None}
    return _nandex._Tfidf(given.folder / "terms.nandex", **{**usual, **changed})


def _fit(given: Given, **changed: Any) -> int:
    def make() -> _nandex._Tfidf:
        index = _tfidf(given)
        index.update(["red fish"], str, False)
        return index

    weighting = {"use_idf": True, "smooth_idf": True, "sublinear_tf": False, "binary": False, "norm": None}
    usual: dict[str, Any] = {"min_df": 1, "max_df": 1.0, "max_features": None, "weighting": weighting}
    fitted: int = given.once("tfidf", make).fit(**{**usual, **changed})
    return fitted


def _rows(count: int) -> Any:
    return np.zeros(count, np.uint64)


U64 = 2**64 - 1
AMOUNT = 2**63 - 1
COUNTS = [whole(-AMOUNT, AMOUNT, call, "amount") for call in (
    lambda it, v: it.counter().add("a", v),
    lambda it, v: it.counter().update({"a": v}),
    lambda it, v: it.counter().update(None, a=v),
    lambda it, v: it.counter().subtract({"a": v}),
    lambda it, v: it.counter().subtract(None, a=v),
)]

#: The cases of the extension module, by class, function and argument.
CASES: dict[str, Case] = {
    "open.ram": amount(lambda it, v: nandex.open(it.folder / "n", ram=v)),
    "open.log": amount(lambda it, v: nandex.open(it.folder / "n", log=v)),
    "open.durability": real(0, 1e9, lambda it, v: nandex.open(it.folder / "n", durability=v)),
    "open.hash_key": whole(0, 2**128 - 1, lambda it, v: nandex.open(it.folder / "n", hash_key=v)),
    "advise.entries": amount(lambda it, v: nandex.advise(v)),
    "advise.key_bytes": whole(8, 32, lambda it, v: nandex.advise(10, key_bytes=v)),
    "advise.value_bytes": whole(0, 64, lambda it, v: nandex.advise(10, value_bytes=v)),
    "advise.ram": amount(lambda it, v: nandex.advise(10, ram=v)),
    "advise.flash": amount(lambda it, v: nandex.advise(10, flash=v)),
    "advise.inserts_per_s": real(0, 1e12, lambda it, v: nandex.advise(10, inserts_per_s=v)),
    "advise.lookups_per_s": real(0, 1e12, lambda it, v: nandex.advise(10, lookups_per_s=v)),
    "advise.miss_share": real(0, 1, lambda it, v: nandex.advise(10, miss_share=v)),
    "advise.update_share": real(0, 1, lambda it, v: nandex.advise(10, update_share=v)),
    "Database.table.entries": amount(lambda it, v: it.db.table("n", entries=v)),
    "Database.table.key": whole(8, 32, lambda it, v: it.db.table("n", key=v)),
    "Database.table.value": whole(0, 64, lambda it, v: it.db.table("n", value=v)),
    "Database.table.ram": amount(lambda it, v: it.db.table("n", ram=v)),
    "Database.table.cache": amount(lambda it, v: it.db.table("n", cache=v)),
    "Database.map.entries": amount(lambda it, v: it.db.map("n", entries=v)),
    "Database.map.bytes": amount(lambda it, v: it.db.map("n", bytes=v)),
    "Database.map.ram": amount(lambda it, v: it.db.map("n", ram=v)),
    "Database.map.cache": amount(lambda it, v: it.db.map("n", cache=v)),
    "Database.filter.keys": amount(lambda it, v: it.db.filter("n", keys=v)),
    "Database.filter.rate": real(0, 1, lambda it, v: it.db.filter("n", rate=v)),
    "Database.filter.ram": amount(lambda it, v: it.db.filter("n", ram=v)),
    "Database.counter.keys": amount(lambda it, v: it.db.counter("n", keys=v)),
    "Database.counter.longest": whole(1, 31, lambda it, v: it.db.counter("n", longest=v)),
    "Database.counter.ram": amount(lambda it, v: it.db.counter("n", ram=v)),
    "Database.dedup.average": amount(lambda it, v: it.db.dedup([], average=v)),
    "Database.dedup.workers": whole(1, U64, lambda it, v: it.db.dedup([], workers=v)),
    "Table.insert.key": whole(0, U64, lambda it, v: it.table().insert(v, 1)),
    "Table.insert.value": whole(0, U64, lambda it, v: it.table().insert(1, v)),
    "Table.get.key": whole(0, U64, lambda it, v: it.table().get(v)),
    "Table.remove.key": whole(0, U64, lambda it, v: it.table().remove(v)),
    "Table.get_or_insert.key": whole(0, U64, lambda it, v: it.table().get_or_insert(v, 1)),
    "Table.get_or_insert.value": whole(0, U64, lambda it, v: it.table().get_or_insert(1, v)),
    "Table.__getitem__.key": whole(0, U64, lambda it, v: it.table()[v]),
    "Table.__setitem__.key": whole(0, U64, lambda it, v: it.table().__setitem__(v, 1)),
    "Table.__setitem__.value": whole(0, U64, lambda it, v: it.table().__setitem__(1, v)),
    "Table.__delitem__.key": whole(0, U64, lambda it, v: it.table().__delitem__(v)),
    "Counter.add.amount": COUNTS[0],
    "Counter.update.keys": COUNTS[1],
    "Counter.update.named": COUNTS[2],
    "Counter.__setitem__.count": whole(-AMOUNT, AMOUNT, lambda it, v: it.counter().__setitem__("a", v), "amount"),
    "Counter.subtract.keys": COUNTS[3],
    "Counter.subtract.named": COUNTS[4],
    "Counter.most_common.n": whole(0, U64, lambda it, v: it.counter().most_common(v)),
    "_text_keys.num_perm": whole(1, 1024, lambda it, v: _nandex._text_keys([], num_perm=v, bands=(2, 2), shingle=1)),
    "_text_keys.bands": whole(
        1, 1024, lambda it, v: _nandex._text_keys([], num_perm=8, bands=(v, 2), shingle=1), "params"
    ),
    "_text_keys.shingle": whole(1, 64, lambda it, v: _nandex._text_keys([], num_perm=8, bands=(2, 2), shingle=v)),
    "_signature_keys.shape": whole(1, 2**20, lambda it, v: _nandex._signature_keys(_rows(4), (4, v, 1))),
    "_terms.ngrams": whole(
        1,
        U64,
        lambda it, v: _nandex._terms([], lowercase=True, ngrams=(v, 9), stop_words=None),
        "ngram_range",
    ),
    "_lsh_bands.threshold": real(0, 1, lambda it, v: _nandex._lsh_bands(v, 8, (0.5, 0.5))),
    "_lsh_bands.num_perm": whole(1, 1024, lambda it, v: _nandex._lsh_bands(0.5, v, (0.5, 0.5))),
    "_lsh_bands.weights": real(0, 1, lambda it, v: _nandex._lsh_bands(0.5, 8, (0.5, v))),
    "_Lsh.__new__.ram": amount(
        lambda it, v: _nandex._Lsh(None, ram=v, documents=10, shape=(4, 2, 2), about="", pickles=True)
    ),
    "_Lsh.__new__.documents": amount(
        lambda it, v: _nandex._Lsh(None, ram="64MiB", documents=v, shape=(4, 2, 2), about="", pickles=True)
    ),
    "_Lsh.__new__.shape": whole(
        1,
        2**20,
        lambda it, v: _nandex._Lsh(None, ram="64MiB", documents=10, shape=(v, 2, 2), about="", pickles=True),
    ),
    "_Lsh.hashes_in.row_values": whole(1, 2**20, lambda it, v: it.lsh().hashes_in(_rows(4), v)),
    "_Lsh.bucket.table": whole(0, 1, lambda it, v: it.lsh().bucket(v, bytes(8))),
    "_Lsh.scan.start": whole(0, U64, lambda it, v: it.lsh().scan(v)),
    "_Tfidf.__new__.ram": amount(lambda it, v: _tfidf(it, ram=v)),
    "_Tfidf.__new__.ngrams": whole(1, U64, lambda it, v: _tfidf(it, ngrams=(1, v)), "ngram_range"),
    "_Tfidf.check.ram": amount(lambda it, v: _nandex._Tfidf.check(it.folder / "n", ram=v)),
    "_Tfidf.fit.min_df": whole(0, U64, lambda it, v: _fit(it, min_df=v), floats=True),
    "_Tfidf.fit.max_df": real(0, 1, lambda it, v: _fit(it, max_df=v)),
    "_Tfidf.fit.max_features": whole(1, U64, lambda it, v: _fit(it, max_features=v)),
}

NUM_PERM_MAX = 2**16
_NO_SKETCH: Any = None
SHARDS_MAX = shards.SHARDS_MAX


def _stored(**config: Any) -> MinHashLSH:
    return MinHashLSH(num_perm=8, params=(2, 2), storage_config=config)


def _small() -> MinHashLSH:
    return MinHashLSH(num_perm=8, params=(2, 2))


def _clusters(given: Given) -> shards.Clusters:
    clusters: shards.Clusters = given.once("clusters", lambda: shards.Clusters(given.folder, ram=RAM))
    return clusters


def _counts(given: Given) -> shards.Counts:
    counts: shards.Counts = given.once("counts", lambda: shards.Counts(given.folder, ram=RAM))
    return counts


#: Those of the modules in Python.
MODULES: dict[str, Case] = {
    "MinHashLSH.__init__.threshold": real(0, 1, lambda it, v: MinHashLSH(threshold=v)),
    "MinHashLSH.__init__.num_perm": whole(2, NUM_PERM_MAX, lambda it, v: MinHashLSH(num_perm=v)),
    "MinHashLSH.__init__.weights": real(0, 1, lambda it, v: MinHashLSH(weights=(v, 0.5))),
    "MinHashLSH.__init__.params": whole(0, NUM_PERM_MAX, lambda it, v: MinHashLSH(params=(2, v))),
    "MinHashLSH.storage_config.ram": amount(lambda it, v: _stored(ram=v)),
    "MinHashLSH.storage_config.documents": amount(lambda it, v: _stored(documents=v)),
    "MinHashLSH.insertion_session.buffer_size": whole(0, AMOUNT, lambda it, v: _small().insertion_session(v)),
    "MinHashLSH.deletion_session.buffer_size": whole(0, AMOUNT, lambda it, v: _small().deletion_session(v)),
    "MinHashLSHInsertionSession.__init__.buffer_size": whole(
        0, AMOUNT, lambda it, v: datasketch.MinHashLSHInsertionSession(_small(), v)
    ),
    "MinHashLSHDeletionSession.__init__.buffer_size": whole(
        0, AMOUNT, lambda it, v: datasketch.MinHashLSHDeletionSession(_small(), v)
    ),
    "MinHashLSHForest.__init__.num_perm": whole(1, NUM_PERM_MAX, lambda it, v: MinHashLSHForest(num_perm=v, l=1)),
    "MinHashLSHForest.__init__.l": whole(1, 16, lambda it, v: MinHashLSHForest(num_perm=16, l=v)),
    "MinHashLSHForest.query.k": whole(1, AMOUNT, lambda it, v: MinHashLSHForest(num_perm=8).query(_NO_SKETCH, v)),
    "MinHashLSHForest.query_many.k": whole(1, AMOUNT, lambda it, v: MinHashLSHForest(num_perm=8).query_many([], v)),
    "Bands.__init__.threshold": real(0, 1, lambda it, v: shards.Bands(threshold=v)),
    "Bands.__init__.num_perm": whole(1, NUM_PERM_MAX, lambda it, v: shards.Bands(num_perm=v)),
    "Bands.__init__.params": whole(1, 128, lambda it, v: shards.Bands(params=(v, 1))),
    "Bands.__init__.shingle": whole(1, 64, lambda it, v: shards.Bands(shingle=v)),
    "Clusters.end.number": whole(0, U64, lambda it, v: _clusters(it).end(v)),
    "Clusters.end_copy.number": whole(0, U64, lambda it, v: _clusters(it).end_copy(v)),
    "Clusters.join.number": whole(0, U64, lambda it, v: _clusters(it).join(v, _rows(0), _rows(0), _rows(0))),
    "UnionFind.__init__.shards": whole(1, SHARDS_MAX, lambda it, v: shards.UnionFind(v, lambda _: [])),
    "UnionFind.join.number": whole(
        0, U64, lambda it, v: shards.UnionFind(1, lambda _: []).join(v, _rows(0), _rows(0), _rows(0))
    ),
    "split.shards": whole(1, SHARDS_MAX, lambda it, v: shards.split(_rows(3), v)),
    "Counts.most_common.count": whole(0, U64, lambda it, v: _counts(it).most_common(v)),
    "Terms.most_common.count": whole(0, U64, lambda it, v: _counts(it).most_common(v)),
}


def bound(kind: Any, call: Callable[[Any, Given, Any], object]) -> _Call:
    """A call of a class."""
    return lambda it, v: call(kind, it, v)


for of in (shards.FirstRows, shards.Buckets, shards.Counts, shards.Terms, shards.Clusters):
    MODULES |= {
        f"{of.__name__}.{name}": case
        for name, case in {
            "__init__.shard": whole(0, 1, bound(of, lambda kind, it, v: kind(it.folder, v, 2, ram=RAM))),
            "__init__.shards": whole(1, SHARDS_MAX, bound(of, lambda kind, it, v: kind(it.folder, 0, v, ram=RAM))),
            "__init__.ram": amount(bound(of, lambda kind, it, v: kind(it.folder / "n", ram=v))),
            "__init__.entries": whole(1, U64, bound(of, lambda kind, it, v: kind(it.folder, ram=RAM, entries=v))),
            "path_of.shard": whole(0, 1, bound(of, lambda kind, it, v: kind.path_of(it.folder, v, 2))),
            "path_of.shards": whole(1, SHARDS_MAX, bound(of, lambda kind, it, v: kind.path_of(it.folder, 0, v))),
            "restore.shard": whole(0, 1, bound(of, lambda kind, it, v: kind.restore(it.folder, it.folder, v, 2))),
            "restore.shards": whole(1, SHARDS_MAX, bound(of, lambda kind, it, v: kind.restore("", it.folder, 0, v))),
            "missing.shards": whole(1, SHARDS_MAX, bound(of, lambda kind, it, v: kind.missing(it.folder, v))),
        }.items()
    }


def optional() -> Iterator[tuple[str, Case]]:
    """The arguments of modules that need packages which may not be installed."""
    try:
        from nandex import sklearn
    except ImportError:
        return
    for kind in (sklearn.CountVectorizer, sklearn.TfidfVectorizer):

        def fit(name: str, kind: Any = kind) -> _Call:
            return lambda it, v: kind(**{"ram": "64MiB", name: v}).fit(["red fish"])

        of = f"{kind.__name__}.__init__"
        yield f"{of}.ram", amount(fit("ram"))
        yield f"{of}.ngram_range", whole(
            1, 2**31, bound(kind, lambda kind, it, v: kind(ngram_range=(v, 2)).fit(["red fish"]))
        )
        yield f"{of}.min_df", Case(fit("min_df"), [-1, 2**70, 1.5, math.nan, math.inf, "many", *NO_NUMBERS])
        yield f"{of}.max_df", Case(fit("max_df"), [-1, 1.5, math.nan, math.inf, "many", *NO_NUMBERS])
        yield f"{of}.max_features", Case(fit("max_features"), [-1, 0, 2**70, 1.5, math.nan, "many", *NO_NUMBERS])
    try:
        from nandex.scrapy import DupeFilter
    except ImportError:
        return
    from scrapy.settings import Settings

    def of_setting(name: str) -> _Call:
        return lambda it, v: DupeFilter.from_settings(Settings({name: v}))

    yield "DupeFilter.__init__.ram", amount(lambda it, v: DupeFilter(ram=v))
    yield "DupeFilter.__init__.keys", amount(lambda it, v: DupeFilter(keys=v))
    yield "DupeFilter.__init__.rate", real(0, 1, lambda it, v: DupeFilter(rate=v))
    for name, case in (("RAM", amount), ("KEYS", amount)):
        yield f"DupeFilter.from_settings.{name}", case(of_setting(f"NANDEX_DUPEFILTER_{name}"))
    yield "DupeFilter.from_settings.RATE", real(0, 1, of_setting("NANDEX_DUPEFILTER_RATE"))


def of_ray() -> Iterator[tuple[str, Case]]:
    """The arguments of `nandex.ray`. Impossible values are refused before Ray is called."""
    try:
        from nandex import ray
    except ImportError:
        return
    whole_shards = "shards", lambda call: whole(1, SHARDS_MAX, call)
    cpus = "num_cpus", lambda call: real(0, 1e6, call)
    most = [whole_shards, ("ram", amount), cpus]
    keys, documents = ("keys", lambda call: whole(0, U64, call)), ("documents", lambda call: whole(0, 2**48, call))
    bands = [
        ("threshold", lambda call: real(0, 1, call)),
        ("num_perm", lambda call: whole(1, NUM_PERM_MAX, call)),
        ("shingle", lambda call: whole(1, 64, call)),
    ]
    makers: list[tuple[str, Any, list[tuple[str, Callable[[_Call], Case]]]]] = [
        ("Dedup.__init__", ray.Dedup, [*most, keys]),
        ("Count.__init__", ray.Count, [*most, keys]),
        ("Tfidf.__init__", ray.Tfidf, [*most, keys]),
        ("NearDup.__init__", ray.NearDup, [*most, documents]),
        ("count", lambda path, **given: ray.count(None, "k", path=path, **given), [whole_shards, most[1], keys]),
        ("dedup", lambda path, **given: ray.dedup(None, "k", path=path, **given), [*most, keys]),
        ("tfidf", lambda path, **given: ray.tfidf(None, "t", path=path, **given), [*most, keys]),
        ("near_dup", lambda path, **given: ray.near_dup(None, "t", path=path, **given), [*most, documents, *bands]),
    ]
    for of, make, arguments in makers:
        for name, case in arguments:
            yield f"{of}.{name}", case(bound((make, name), lambda it, given, v: it[0](given.folder, **{it[1]: v})))
        if of.startswith(("Tfidf", "tfidf")):
            call = bound(make, lambda make, it, v: make(it.folder, ngram_range=(v, 9)))
            yield f"{of}.ngram_range", whole(1, U64, call)
    params = bound(ray.near_dup, lambda make, it, v: make(None, "t", path=it.folder, params=(v, 1)))
    yield "near_dup.params", whole(1, 128, params)
    for kind in (ray.Dedup, ray.Count, ray.Tfidf, ray.NearDup):
        call = bound(kind, lambda kind, it, v: kind.restore(it.folder, it.folder, shards=v))
        yield f"{kind.__name__}.restore.shards", whole(1, SHARDS_MAX, call)
    unmade: Any = object.__new__(ray.Count)
    yield "Count.most_common.count", whole(0, U64, lambda it, v: unmade.most_common(v))
    weighing: Any = object.__new__(ray.Tfidf)
    min_df = whole(0, U64, lambda it, v: weighing.transform(None, "t", min_df=v), floats=True)
    yield "Tfidf.transform.min_df", min_df
    yield "Tfidf.transform.max_df", real(0, 1, lambda it, v: weighing.transform(None, "t", max_df=v))


RAY = {f"ray.{name}": case for name, case in of_ray()}
OPTIONAL = dict(optional())
ALL = {**CASES, **MODULES, **OPTIONAL, **RAY}


@pytest.fixture
def given(tmp_path: Path) -> Iterator[Given]:
    with nandex.open(tmp_path / "all.nandex", ram="128MiB", hash_key=7) as db:
        yield Given(tmp_path, db)


@pytest.mark.parametrize("name", ALL)
def test_what_does_not_fit_is_refused_by_its_name(name: str, given: Given) -> None:
    case, argument = ALL[name], name.rsplit(".", 1)[1]
    argument = case.name or argument
    for value in case.values:
        with pytest.raises((ValueError, TypeError)) as refused:
            case.call(given, value)
        told = str(refused.value)
        assert argument in told, f"{value!r:.40}: {told}"
        assert re.search(r"\bgive\b|\bmust be\b|has numbers from|\bhas uint64\b|is not a unit", told), told
        is_shown = isinstance(value, int) and abs(value) > 2**200 or shown(value) in told
        assert is_shown, f"{value!r:.40}: {told}"
        assert isinstance(refused.value, nandex.Error) or type(refused.value).__name__ == "InvalidParameterError"


def shown(value: Any) -> str:
    """The part of a message that shows a value."""
    return repr(value)[1:-1] if isinstance(value, str) else repr(value)


class Number(enum.IntEnum):
    EIGHT = 8


def test_all_that_stands_for_a_number_is_one(given: Given) -> None:
    for entries in (8, 8.0, "8", "8e0", np.int8(8), np.float32(8), np.array(8), Number.EIGHT, fractions.Fraction(8)):
        given.db.table("sized", entries=entries, cache=0).close()  # type: ignore[arg-type]
    for bytes_each in (8, np.uint16(8), Number.EIGHT):
        given.db.table("wide", entries=8, key=bytes_each).close()
    for rate in (0.5, np.float32(0.5), fractions.Fraction(1, 2)):
        given.db.filter("f", keys=8, rate=rate).close()  # type: ignore[arg-type]
    table = given.table()
    table[np.uint64(7)] = Number.EIGHT
    assert table[7] == 8
    assert table.get_many([np.uint64(7), 2**64 - 1]) == [8, None]
    for batch in ([True], [1, np.True_], (it for it in [False])):
        with pytest.raises(nandex.InputTypeError, match="a key that is a bool"):
            table.get_many(batch)
    with pytest.raises(nandex.InputTypeError, match="a key that is not an int"):
        table.get_many(1.5)


#: The annotations of number arguments.
_NUMBER = re.compile(r"\b(int|float|_Amount|_Kind)\b")


def of_stub() -> Iterator[str]:
    """The numbers among the arguments in the extension module's stub."""
    for node in ast.parse(STUB.read_text()).body:
        functions = [node] if isinstance(node, ast.FunctionDef) else getattr(node, "body", [])
        of = f"{node.name}." if isinstance(node, ast.ClassDef) else ""
        for function in functions:
            if not isinstance(function, ast.FunctionDef) or function.name in HELPERS:
                continue
            arguments = function.args
            named = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
            named += [arguments.kwarg] if arguments.kwarg else []
            for argument in named:
                if argument.annotation is not None and _NUMBER.search(ast.unparse(argument.annotation)):
                    yield f"{of}{function.name}.{argument.arg}"


def of_module(name: str) -> Iterator[str]:
    """The numbers among the arguments of a Python module's exports."""
    module = importlib.import_module(name)
    for shown_name in module.__all__:
        value = getattr(module, shown_name)
        if inspect.isfunction(value):
            yield from of_function(shown_name, value)
        if inspect.isclass(value) and value is not shards.Shard:
            for method in dir(value):
                function = inspect.getattr_static(value, method)
                function = getattr(function, "__func__", function)
                is_ours = inspect.isfunction(function) and function.__module__.startswith("nandex")
                is_shown = method == "__init__" or not method.startswith("_")
                if is_shown and (is_ours or method == "__init__" and inspect.isfunction(function)):
                    yield from of_function(f"{shown_name}.{method}", function)


def of_function(name: str, function: Any) -> Iterator[str]:
    for argument in inspect.signature(function).parameters.values():
        if _NUMBER.search(str(argument.annotation)):
            yield f"{name}.{argument.name}"


IN_PYTHON = [f"nandex.{name}" for name in ("datasketch", "shards", "sklearn", "scrapy", "ray")]


@pytest.mark.parametrize("module", [None, *IN_PYTHON])
def test_no_number_is_left_out(module: str | None) -> None:
    if module is not None:
        pytest.importorskip(module)
    found = set(of_stub() if module is None else of_module(module))
    if module == "nandex.ray":
        found = {f"ray.{name}" for name in found}
    assert found, "none is found"
    assert sorted(found - ALL.keys()) == []
