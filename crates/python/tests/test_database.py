"""Opening, sharing of RAM, closing, advice and duplicates of files."""

import asyncio
import errno
import gc
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import nandex


def test_modes_of_opening(path: Path) -> None:
    with pytest.raises(nandex.MissingError) as missing:
        nandex.open(path, mode="w")
    assert isinstance(missing.value, FileNotFoundError) and missing.value.errno == errno.ENOENT
    with nandex.open(path, ram="16MiB", mode="x") as db:
        db.map("m")["a"] = "1"
        db.filter("f", keys=1000).add("a")
        db.counter("c", keys=1000).add("a")
        db.table("t", entries=1000)[1] = 1
        assert not db.read_only and Path(db.path) == path
    with pytest.raises(nandex.ExistsError) as exists:
        nandex.open(path, mode="x")
    assert isinstance(exists.value, FileExistsError)
    with nandex.open(path, mode="r") as one, nandex.open(path, mode="r") as two:
        pages = one.map("m")
        assert one.read_only and pages["a"] == two.map("m")["a"] == b"1"
        seen, words, table = one.filter("f"), one.counter("c"), one.table("t")
        assert "a" in seen and words["a"] == 1 and table[1] == 1
        for call in (
            lambda: pages.update(a="2"),
            lambda: pages.pop("a"),
            lambda: pages.setdefault("b", "2"),
            lambda: pages.get_or_insert_many(["b"], ["2"]),
            lambda: seen.add("b"),
            lambda: words.add("b"),
            lambda: table.insert(2, 2),
        ):
            with pytest.raises(nandex.ReadOnlyError) as refused:
                call()
            assert isinstance(refused.value, OSError) and refused.value.errno == errno.EROFS
        with pytest.raises(nandex.ReadOnlyError):
            one.map("other")
        with pytest.raises(nandex.InUseError) as in_use:
            nandex.open(path)
        assert isinstance(in_use.value, OSError) and in_use.value.errno == errno.EAGAIN
    with pytest.raises(nandex.ConfigError, match='mode: "a" is none'):
        nandex.open(path, mode="a")  # type: ignore[arg-type]


def test_options_that_cannot_be_are_refused(path: Path) -> None:
    for ram in ("much", "1.5B", -1):
        with pytest.raises(nandex.ConfigError):
            nandex.open(path, ram=ram)
    with pytest.raises(nandex.InputTypeError, match="ram: .* of the type list"):
        nandex.open(path, ram=[1])  # type: ignore[arg-type]
    for durability in (-1.0, float("nan"), "sometimes"):
        with pytest.raises(nandex.ConfigError, match="durability"):
            nandex.open(path, durability=durability)  # type: ignore[arg-type]
    assert not path.exists()
    path.write_bytes(b"mine")
    with pytest.raises(nandex.DeviceError, match="cannot open"):
        nandex.open(path.parent)
    with pytest.raises(nandex.FormatError, match="not a nandex volume"):
        nandex.open(path)
    assert path.read_bytes() == b"mine"


@pytest.mark.parametrize("count", [0, 1, 2, 3, 7, 8, 9])
def test_structures_are_made_for_a_few_keys(count: int, db: nandex.Database) -> None:
    if count == 0:
        for make, stated in (
            (lambda: db.table("n", entries=0), "entries"),
            (lambda: db.map("n", entries=0), "entries"),
            (lambda: db.filter("n", keys=0), "keys"),
            (lambda: db.counter("n", keys=0), "keys"),
        ):
            with pytest.raises(nandex.ConfigError, match=f"{stated}: .*0"):
                make()
        return
    keys = [f"key {number}" for number in range(count)]
    for number, rate in enumerate((1e-9, 0.1, 0.9)):
        with db.filter(f"f{number}", keys=count, rate=rate, grow=False) as seen:
            seen.update(keys)
            assert seen.contains_many(keys).all()
    with db.table("t", entries=count) as table, db.map("m", entries=count) as pages, db.counter("c", keys=count) as words:
        table.insert_many(range(count), range(count))
        pages.put_many(keys, keys)
        words.update(keys)
        assert len(list(table.items())) == len(pages) == len(list(words.items())) == count


def test_ram_is_shared_and_said(path: Path) -> None:
    with nandex.open(path, ram="16MiB") as db:
        table = db.table("t", entries=100_000, ram="8MiB")
        with pytest.raises(nandex.RamError, match=r"nandex.open\(path, ram=") as refused:
            db.map("m", ram="15MiB")
        assert isinstance(refused.value, MemoryError)
        with pytest.raises(nandex.InUseError, match="open already"):
            db.table("t")
        table.close()
        db.map("m", ram="12MiB")
        with pytest.raises(nandex.ConfigError, match='db.table\\("t"\\)'):
            db.map("t")


@pytest.mark.parametrize("durability", ["always", "never", 0.5])
def test_durabilities_are_taken(path: Path, durability: float) -> None:
    with nandex.open(path, ram="16MiB", log="32MiB", durability=durability) as db:
        pages = db.map("m")
        pages.put_many({"a": "1"})
        pages.sync()
        pages.flush()


def test_closing_closes_all_and_says_so(path: Path) -> None:
    db = nandex.open(path, ram="32MiB")
    table, pages = db.table("t", entries=1000), db.map("m")
    seen, words = db.filter("f", keys=1000), db.counter("c", keys=1000)
    db.close()
    db.close()
    pages.close()
    assert db.closed and table.closed and pages.closed and seen.closed and words.closed
    assert repr(pages) == '<closed nandex map "m">' and repr(db).startswith("<closed nandex database")
    for call in (lambda: table[1], lambda: pages["a"], lambda: "a" in seen, lambda: words["a"], db.structures):
        with pytest.raises(ValueError, match="is closed; open it again") as closed:
            call()
        assert isinstance(closed.value, nandex.ClosedError)
    with pytest.raises(nandex.ClosedError):
        db.map("n")


def test_a_structure_without_references_is_closed(path: Path) -> None:
    db = nandex.open(path, ram="16MiB")
    db.map("m")["a"] = "1"
    gc.collect()
    pages = db.map("m")
    del db
    gc.collect()
    assert pages["a"] == b"1", "it keeps the file open"


def test_threads_and_async_programs_use_it_at_once(db: nandex.Database) -> None:
    pages, seen = db.map("m"), db.filter("f", keys=100_000)
    keys = [f"key {number}" for number in range(2000)]
    barrier = threading.Barrier(4)

    def work(mine: int) -> int:
        barrier.wait()
        for key in keys[mine::4]:
            pages[key] = key
        return int(seen.add_new_many(keys).sum())

    with ThreadPoolExecutor(4) as pool:
        added = sum(pool.map(work, range(4)))
    assert abs(added - 2000) < 100, "each key is new to one thread"
    assert pages.get_many(keys) == [key.encode() for key in keys]

    async def read() -> list[bytes | None]:
        return await asyncio.to_thread(pages.get_many, keys[:5])

    assert asyncio.run(read()) == [key.encode() for key in keys[:5]]


def test_a_close_waits_for_calls_of_other_threads(db: nandex.Database) -> None:
    table = db.table("t", entries=100_000)
    ended: list[type[BaseException]] = []
    begun = threading.Event()

    def work() -> None:
        number = 0
        try:
            while True:
                table[number % 1000] = number
                number += 1
                begun.set()
        except nandex.Error as error:
            ended.append(type(error))

    thread = threading.Thread(target=work)
    thread.start()
    begun.wait(10)
    table.close()
    thread.join(10)
    assert ended == [nandex.ClosedError]


def test_advice_is_a_dict_that_shows_its_reasons() -> None:
    advice = nandex.advise("1e9", ram="1GiB")
    assert advice["structure"] in advice["candidates"] and advice["reasons"]
    assert advice["ram_bytes"] <= 1 << 30 and "slicehash" in repr(advice).lower()
    with pytest.raises(nandex.ConfigError, match="flash"):
        nandex.advise(1_000_000_000, flash="1MiB")
    with pytest.raises(nandex.ConfigError, match="policy"):
        nandex.advise(1000, policy="never")


def test_duplicates_of_files_are_found(db: nandex.Database, tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).write_bytes(b"the same words")
    found = db.dedup([tmp_path / "a", tmp_path / "b"])
    assert (found["total_bytes"], found["duplicate_bytes"], found["files"]) == (28, 14, 2)
    assert db.dedup(str(tmp_path / "a"))["duplicate_bytes"] == 14, "the database remembers it"
    compared = db.dedup([tmp_path / "a", tmp_path / "b"], average="4KiB", hash="sha1", compare=True)
    assert compared["comparison"]
    with pytest.raises(FileNotFoundError):
        db.dedup(tmp_path / "absent")
    with pytest.raises(nandex.ConfigError, match="chunker"):
        db.dedup(tmp_path, chunker="scissors")  # type: ignore[arg-type]


def test_every_exception_is_an_error_and_a_builtin_one() -> None:
    for name in nandex.__all__:
        value = getattr(nandex, name)
        if name.endswith("Error") and name != "Error":
            assert issubclass(value, nandex.Error) and len(value.__bases__) == 2, name
            assert value.__bases__[1].__module__ == "builtins" and value.__module__ == "nandex"


def test_all_that_a_kind_can_be_told_is_listed_with_what_it_may_be() -> None:
    listed = {it["name"]: it for it in nandex.parameters("bufferhash")}
    assert listed["filter.bits"]["kept"] and not listed["read_depth"]["kept"]
    assert listed["read_depth"]["values"] == "1 to 4,096" and listed["read_depth"]["default"] == "32"
    with pytest.raises(nandex.ConfigError, match="there are bufferhash, slicehash"):
        nandex.parameters("generation")


def test_a_database_is_a_collection_of_its_structures(path: Path) -> None:
    with nandex.open(path, ram="64MiB") as db:
        assert db and len(db) == 0 and list(db) == []
        with db.map("m") as opened:
            opened["a"] = "1"
        db.table("t", entries=1000).insert(7, 8)
        db.table("d", key=20, value=4, entries=1000).insert(b"k" * 20, b"v" * 4)
        db.table("g", policy="grow").insert(1, 2)
        db.filter("f", keys=1000).add("x")
        db.counter("c", keys=1000, longest=10).add("w")
        kinds = {"m": "map", "t": "bufferhash", "d": "bufferhash", "g": "growing", "f": "cascade", "c": "counting"}
        assert db.structures() == list(kinds.items()) and list(db) == list(kinds) and len(db) == 6
        assert "m" in db and "m-keys" not in db and 7 not in db
    with nandex.open(path, ram="64MiB") as db:
        pages = db["m"]
        assert type(pages) is nandex.Map and pages["a"] == b"1"
        assert db["m"]["a"] == b"1", "a structure that is open is returned again"
        assert db["t"][7] == 8 and db["d"][b"k" * 20] == b"v" * 4 and db["g"][1] == 2
        assert "x" in db["f"] and db["c"]["w"] == 1 and db["c"].longest == 10
        with pytest.raises(KeyError, match='the file has no structure named "absent"') as refused:
            db["absent"]
        assert isinstance(refused.value, nandex.Error) and "it has" in str(refused.value)
        with pytest.raises(nandex.InUseError, match="close it first"):
            del db["m"]
        pages.close()
        assert db["m"]["a"] == b"1"


def test_a_dropped_structure_gives_its_space_back(path: Path) -> None:
    with nandex.open(path, ram="64MiB") as db:

        def fill(name: str) -> None:
            with db.map(name) as pages:
                pages.put_many([b"%d" % number for number in range(2000)], [bytes(1000)] * 2000)

        fill("m0")
        sizes = []
        for number in range(1, 6):
            del db[f"m{number - 1}"]
            fill(f"m{number}")
            sizes.append(path.stat().st_size)
        assert list(db) == ["m5"]
        # The log may grow once more, by less than a map takes.
        assert sizes[-1] < sizes[0] + 2_000_000, "each map took the space of the one before"
        assert db.drop("m5") > 2_000_000 and len(db) == 0
        with pytest.raises(nandex.KeyNotFoundError, match="it has nothing"):
            del db["m5"]
        assert len(db.map("m5")) == 0
    with nandex.open(path, mode="r") as db, pytest.raises(nandex.ReadOnlyError):
        del db["m5"]
