"""MinHashLSH: compared with datasketch's own on the same signatures."""

import pickle
import random
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import datasketch
import numpy as np
import pytest

import nandex
from nandex.datasketch import MinHashLSH, MinHashLSHForest

PERMUTATIONS = 64


def signatures(count: int, seed: int = 7) -> list[Any]:
    """Signatures of sets, many near one another."""
    choose = random.Random(seed)
    shared = [[f"{group} {word}".encode() for word in range(40)] for group in range(count // 8 + 1)]
    sets = [choose.sample(choose.choice(shared), 32) + [str(number).encode()] for number in range(count)]
    return [sketch(words) for words in sets]


def sketch(words: list[bytes], permutations: int = PERMUTATIONS) -> Any:
    minhash = datasketch.MinHash(num_perm=permutations)
    minhash.update_batch(words)
    return minhash


def in_file(path: Path, **more: Any) -> dict[str, Any]:
    return {"type": "nandex", "path": path, "ram": "64MiB", **more}


@pytest.mark.parametrize("place", ["ram", "file"])
def test_candidates_are_those_of_datasketch(place: str, path: Path) -> None:
    config = {"type": "dict", "documents": 100} if place == "ram" else in_file(path, documents=100)
    ours = MinHashLSH(threshold=0.5, num_perm=PERMUTATIONS, storage_config=config)
    theirs = datasketch.MinHashLSH(threshold=0.5, num_perm=PERMUTATIONS)
    assert (ours.b, ours.r) == (theirs.b, theirs.r)
    minhashes = signatures(1500)
    for key, minhash in enumerate(minhashes[:100]):
        ours.insert(key, minhash)
        theirs.insert(key, minhash)
    ours.insert_many(range(100, 1500), minhashes[100:])
    for key in range(100, 1500):
        theirs.insert(key, minhashes[key])
    for key in range(0, 300, 3):
        ours.remove(key)
    # One is gone, one was never there, and one comes twice.
    others = [*range(300, 1500, 3), 0, 1500, 300]
    assert ours.remove_many(others).tolist() == [True] * 400 + [False] * 3
    for key in range(0, 1500, 3):
        theirs.remove(key)
    found = ours.query_many(np.stack([minhash.hashvalues for minhash in minhashes]))
    assert [sorted(row) for row in found] == [sorted(theirs.query(minhash)) for minhash in minhashes]
    assert max(map(len, found)) > 3
    assert [row == sorted(row) for row in found] == [True] * len(found)
    assert len(ours) == 1000 and ours.stats()["generations"] > 1
    assert [key in ours for key in range(9)] == [key in theirs for key in range(9)]
    counts = [sorted(band.values()) for band in theirs.get_counts()]
    # Keys that datasketch has removed leave no empty buckets.
    assert [sorted(band.values()) for band in ours.get_counts()] == counts
    ours.close()


def test_a_file_has_what_was_inserted(path: Path) -> None:
    minhashes = signatures(300)
    keys: list[Any] = ["text", b"bytes", 17, -1, 2**40, ("a", 1), 1.5, "", "ü\0"]
    with MinHashLSH(num_perm=PERMUTATIONS, params=(8, 8), storage_config=in_file(path)) as lsh:
        lsh.insert_many(keys, minhashes[: len(keys)])
        assert lsh.query(minhashes[5]) == [("a", 1)]
    with MinHashLSH(num_perm=PERMUTATIONS, params=(8, 8), storage_config=in_file(path)) as lsh:
        assert list(lsh.keys) == keys and len(lsh) == len(keys)
        assert [lsh.query(minhash)[0] for minhash in minhashes[: len(keys)]] == keys
        assert lsh.contains_many([*keys, "other", 18]).tolist() == [True] * len(keys) + [False, False]
        lsh.remove("text")
        lsh.insert("text", minhashes[200])
        assert lsh.query(minhashes[200]) == ["text"] and "text" not in lsh.query(minhashes[0])
    with MinHashLSH(num_perm=PERMUTATIONS, params=(8, 8), storage_config=in_file(path)) as lsh:
        assert lsh.query(minhashes[200]) == ["text"]
        assert "17 keys" not in repr(lsh) and f"{len(keys)} keys" in repr(lsh)
    assert "closed" in repr(lsh)


def test_an_index_that_was_not_closed_counts_again(path: Path, tmp_path: Path) -> None:
    minhashes = signatures(50)
    lsh = MinHashLSH(num_perm=PERMUTATIONS, params=(8, 8), storage_config=in_file(path))
    lsh.insert_many(range(50), minhashes)
    lsh.remove(7)
    lsh.insert(8, minhashes[0], check_duplication=False)
    lsh.sync()
    copy = tmp_path / "copy"
    copy.write_bytes(path.read_bytes())
    with MinHashLSH(num_perm=PERMUTATIONS, params=(8, 8), storage_config=in_file(copy)) as crashed:
        assert len(crashed) == 49 and 7 not in crashed and 8 in crashed
        crashed.insert(7, minhashes[7])
        assert set(crashed.query(minhashes[7])) == {7, *lsh.query(minhashes[7])}
    lsh.close()


def test_a_key_that_is_there_is_refused_and_those_before_it_are_in() -> None:
    minhashes = signatures(4)
    lsh = MinHashLSH(num_perm=PERMUTATIONS, params=(8, 8))
    lsh.insert("a", minhashes[0])
    with pytest.raises(ValueError, match="'a'.*remove it first"):
        lsh.insert("a", minhashes[1])
    with pytest.raises(nandex.InputError, match="already exists: 'b'"):
        lsh.insert_many(["b", "c", "b", "d"], minhashes)
    assert list(lsh.keys) == ["a", "b", "c"]
    lsh.insert("a", minhashes[3], check_duplication=False)
    assert "a" in lsh.query(minhashes[0]) and "a" in lsh.query(minhashes[3])
    assert lsh.query_many([minhashes[0]])[0].count("a") == 1 and len(lsh) == 3
    lsh.remove("a")
    assert "a" not in lsh and "a" not in lsh.query(minhashes[0]) and "a" not in lsh.query(minhashes[3])
    with pytest.raises(ValueError, match="does not exist: 'a'"):
        lsh.remove("a")


def test_sessions_buffers_and_views_are_datasketchs() -> None:
    minhashes = signatures(30)
    lsh = MinHashLSH(num_perm=PERMUTATIONS, params=(16, 4))
    assert lsh.is_empty() and lsh
    with lsh.insertion_session(buffer_size=7) as session:
        for key, minhash in enumerate(minhashes):
            session.insert(str(key), minhash)
    assert not lsh.is_empty() and list(lsh.keys) == [str(key) for key in range(30)]
    for band, bucket in enumerate(lsh.keys["3"]):
        assert "3" in lsh.hashtables[band][bucket] and bucket in lsh.hashtables[band]
        assert lsh.hashtables[band].itemcounts()[bucket] == len(lsh.hashtables[band][bucket])
    assert lsh.keys.get("other") == [] and lsh.hashtables[0].get(b"absent") == set()
    assert sum(lsh.get_subset_counts("3", "4")[0].values()) == 2
    lsh.add_to_query_buffer(minhashes[3])
    lsh.add_to_query_buffer(minhashes[3])
    assert lsh.collect_query_buffer() == lsh.query(minhashes[3])
    assert lsh.collect_query_buffer() == []
    with lsh.deletion_session() as deletion:
        deletion.remove("3")
    assert "3" not in lsh and len(lsh.keys) == 29


def test_an_index_is_merged_and_copied(path: Path) -> None:
    minhashes = signatures(40)
    one, other = (MinHashLSH(num_perm=PERMUTATIONS, params=(8, 8)) for _ in range(2))
    one.insert_many(range(20), minhashes[:20])
    other.insert_many(range(20, 40), minhashes[20:])
    one.merge(other, check_overlap=True)
    assert sorted(one.keys) == list(range(40))
    with pytest.raises(ValueError, match="overlapping"):
        one.merge(other, check_overlap=True)
    with pytest.raises(ValueError, match="different initialization"):
        one.merge(MinHashLSH(num_perm=PERMUTATIONS, params=(4, 8)))
    copy = pickle.loads(pickle.dumps(one))
    assert [copy.query(minhash) for minhash in minhashes] == [one.query(minhash) for minhash in minhashes]
    kept = MinHashLSH(num_perm=PERMUTATIONS, params=(8, 8), storage_config=in_file(path))
    kept.merge(one)
    pickled = pickle.dumps(kept)
    with pytest.raises(nandex.InUseError):
        pickle.loads(pickled)
    kept.close()
    with pickle.loads(pickled) as opened:
        assert len(opened) == 40


def test_other_sketches_and_hash_functions_work() -> None:
    generator = datasketch.WeightedMinHashGenerator(10, 32)
    weighted = [generator.minhash(np.random.default_rng(seed).uniform(1, 10, 10)) for seed in range(9)]
    lsh = MinHashLSH(threshold=0.5, num_perm=32)
    lsh.insert_many("abcdefghi", weighted)
    assert all(key in found for key, found in zip("abcdefghi", lsh.query_many(weighted), strict=True))
    minhashes = signatures(50)

    def digest(band: bytes) -> bytes:
        return band[:8]

    hashed, theirs = (
        kind(num_perm=PERMUTATIONS, params=(8, 8), hashfunc=digest) for kind in (MinHashLSH, datasketch.MinHashLSH)
    )
    for key, minhash in enumerate(minhashes):
        hashed.insert(key, minhash)
        theirs.insert(key, minhash)
    assert [sorted(hashed.query(it)) for it in minhashes] == [sorted(theirs.query(it)) for it in minhashes]


def test_more_bands_than_an_index_has_tables_are_spread() -> None:
    minhashes = [sketch([word, b"x"], 600) for word in (b"a", b"b", b"c")]
    lsh = MinHashLSH(num_perm=600, params=(150, 4))
    lsh.insert_many("abc", minhashes)
    assert [found[0] for found in lsh.query_many(minhashes[:1])] == ["a"]
    assert len(lsh.keys["b"]) == 150 and "c" in lsh.hashtables[149][lsh.keys["c"][149]]


def small(**more: Any) -> MinHashLSH:
    return MinHashLSH(num_perm=8, params=(2, 4), **more)


def alike(count: int) -> list[Any]:
    """Signatures whose shared prefixes have many lengths."""
    choose = random.Random(3)
    base = [[f"{group} {word}".encode() for word in range(60)] for group in range(5)]
    return [sketch(choose.sample(choose.choice(base), choose.randrange(20, 60))) for _ in range(count)]


@pytest.mark.parametrize("place", ["ram", "file"])
def test_the_keys_of_a_forest_are_those_of_datasketch(place: str, path: Path) -> None:
    config = None if place == "ram" else in_file(path)
    minhashes = alike(300)
    theirs = datasketch.MinHashLSHForest(num_perm=PERMUTATIONS, l=4)
    forest = MinHashLSHForest(num_perm=PERMUTATIONS, l=4, storage_config=config)
    assert (forest.l, forest.k, forest.hashranges) == (theirs.l, theirs.k, theirs.hashranges)
    for key, minhash in enumerate(minhashes[:250]):
        theirs.add(key, minhash)
    forest.add(0, minhashes[0])
    forest.add_many(range(1, 250), minhashes[1:250])
    assert forest.is_empty() and forest.query(minhashes[0], 3) == [] and 3 in forest and 250 not in forest
    forest.index()
    theirs.index()
    assert not forest.is_empty() and len(forest) == 250
    if place == "file":
        forest.close()
        forest = MinHashLSHForest(num_perm=PERMUTATIONS, l=4, storage_config=config)
        assert not forest.is_empty()
    values = np.stack([minhash.hashvalues for minhash in minhashes[:250]])
    for k in (1, 30, 250):
        for minhash, found in zip(minhashes, forest.query_many(minhashes, k), strict=True):
            deepest = dict(enumerate(depths_of(theirs, minhash, values)))
            assert len(found) == len(set(found)) == len(theirs.query(minhash, k))
            # The longest prefixes come first, and no other key has a longer one than the last.
            depths = [deepest[key] for key in found]
            assert depths == sorted(depths, reverse=True)
            others = [depth for key, depth in deepest.items() if key not in found]
            assert not depths or max(others, default=0) <= depths[-1]
            if k == 250:
                assert set(found) == set(theirs.query(minhash, k))
    assert forest.query(minhashes[7], 1) == [7]
    for key in (0, 7, 249):
        found_values = forest.get_minhash_hashvalues(key)
        assert found_values.dtype == values.dtype and (found_values == values[key]).all()
    forest.close()


def depths_of(forest: Any, minhash: Any, values: Any) -> list[int]:
    """The longest prefix of a part that each signature shares with this one."""
    same = (values == minhash.hashvalues).reshape(-1, forest.l, forest.k)
    depths: list[int] = np.cumprod(same, axis=2).sum(axis=2).max(axis=1).tolist()
    return depths


def test_a_forest_has_signatures_of_every_width() -> None:
    for scheme in ("affine32", "affine64", "legacy"):
        forest = MinHashLSHForest(num_perm=16, l=1)
        minhash = datasketch.MinHash(num_perm=16, scheme=scheme)
        minhash.update(b"a")
        forest.add("a", minhash)
        values = forest.get_minhash_hashvalues("a")
        assert values.dtype == minhash.hashvalues.dtype and (values == minhash.hashvalues).all()
        with pytest.raises(ValueError, match="does not match scheme"):
            forest.query(datasketch.MinHash(num_perm=16, scheme="legacy" if scheme != "legacy" else "affine32"), 1)
    weighted = datasketch.WeightedMinHashGenerator(10, 32).minhash(range(1, 11))
    forest = MinHashLSHForest(num_perm=32, l=4)
    forest.add(("a", 1), weighted)
    forest.index()
    assert forest.query(weighted, 2) == [("a", 1)]
    with pytest.raises(nandex.InputError, match="WeightedMinHash"):
        forest.get_minhash_hashvalues(("a", 1))
    copy = pickle.loads(pickle.dumps(forest))
    assert copy.keys == forest.keys and copy.hashtables == forest.hashtables and copy.query(weighted, 2) == [("a", 1)]


REFUSED: list[tuple[Callable[[], object], type[Exception], str]] = [
    (lambda: MinHashLSH(threshold=1.5), ValueError, "threshold: 1.5; give a number from 0 to 1"),
    (lambda: MinHashLSH(num_perm=1), ValueError, "num_perm: 1; give a whole number from 2 to"),
    (lambda: MinHashLSH(weights=(0.9, 0.9)), ValueError, "sum to 1"),
    (lambda: MinHashLSH(num_perm=16, params=(8, 8)), ValueError, "more than num_perm"),
    (lambda: MinHashLSH(params=(1, 8)), ValueError, "2 bands or more"),
    (lambda: MinHashLSH(storage_config={"type": "redis"}), nandex.ConfigError, "'redis'; give 'nandex'"),
    (lambda: MinHashLSH(storage_config={"type": "dict", "path": "x"}), ValueError, "path with the type 'dict'"),
    (lambda: MinHashLSH(storage_config={"basename": b"x"}), ValueError, "'basename'; it has type, path"),
    (lambda: MinHashLSH(storage_config={"ram": "much"}), ValueError, "ram"),
    (lambda: MinHashLSH(storage_config={"documents": 0}), ValueError, "documents: 0"),
    (lambda: MinHashLSH(storage_config={"ram": "1MiB"}), MemoryError, "ram"),
    (lambda: small().insert("a", sketch([b"a"], 16)), ValueError, "length 8, got 16"),
    (lambda: small().insert_many(["a"], np.zeros((2, 8), int)), ValueError, "1 keys and 2"),
    (lambda: small().query_many(np.zeros(8, int)), ValueError, "shape"),
    (lambda: small().query_many(np.zeros((1, 8))), TypeError, "float64"),
    (lambda: small(prepickle=False).insert((1,), sketch([b"a"], 8)), TypeError, "tuple"),
    (lambda: MinHashLSHForest(num_perm=0), ValueError, "num_perm: 0; give a whole number from 1 to"),
    (lambda: MinHashLSHForest(num_perm=4, l=8), ValueError, "l: 8; give a whole number from 1 to 4"),
    (lambda: MinHashLSHForest(num_perm=16).add("a", sketch([b"a"], 8)), ValueError, "out of range"),
    (lambda: MinHashLSHForest(num_perm=16).query(sketch([b"a"], 16), 0), ValueError, "k: 0; give a whole number from 1 to"),
    (lambda: MinHashLSHForest(num_perm=16).add_many("ab", [sketch([b"a"], 16)]), ValueError, "2 keys and 1"),
    (lambda: MinHashLSHForest(num_perm=16).get_minhash_hashvalues("a"), KeyError, "does not exist"),
    (lambda: MinHashLSHForest(num_perm=16, storage_config={"type": "redis"}), nandex.ConfigError, "'redis'"),
]


@pytest.mark.parametrize(("call", "kind", "message"), REFUSED)
def test_what_cannot_be_is_refused(call: Callable[[], object], kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message) as refused:
        call()
    assert isinstance(refused.value, nandex.Error)


def test_files_of_others_are_refused(path: Path, tmp_path: Path) -> None:
    config = in_file(path)
    lsh = MinHashLSH(num_perm=PERMUTATIONS, params=(8, 8), storage_config=config)
    with pytest.raises(nandex.InUseError):
        MinHashLSH(num_perm=PERMUTATIONS, params=(8, 8), storage_config=config)
    lsh.insert(("a", "tuple"), signatures(1)[0])
    lsh.close()
    with pytest.raises(nandex.ClosedError):
        lsh.query(signatures(1)[0])
    with pytest.raises(nandex.ConfigError, match="was made with"):
        MinHashLSH(num_perm=PERMUTATIONS, params=(4, 8), storage_config=config)
    with (
        MinHashLSH(num_perm=PERMUTATIONS, params=(8, 8), storage_config=config, prepickle=False) as careful,
        pytest.raises(nandex.InputTypeError, match="pickled keys"),
    ):
        careful.query(signatures(1)[0])
    (tmp_path / "text").write_text("no index " * 9999)
    with pytest.raises(nandex.FormatError):
        MinHashLSH(storage_config=in_file(tmp_path / "text"))
    with nandex.open(tmp_path / "db", ram="16MiB") as db:
        db.table("seen", entries=1000).close()
    with pytest.raises(nandex.Error):
        MinHashLSH(storage_config=in_file(tmp_path / "db"))
    # A database without any structure holds nothing that could be mistaken for an index.
    nandex.open(tmp_path / "empty", ram="16MiB").close()
    MinHashLSH(num_perm=PERMUTATIONS, params=(8, 8), storage_config=in_file(tmp_path / "empty")).close()


def test_schemes_are_not_mixed() -> None:
    lsh = MinHashLSH(num_perm=16, params=(4, 4))
    lsh.insert("a", sketch([b"a"], 16))
    other = datasketch.MinHash(num_perm=16, scheme="affine64")
    for call in (lambda: lsh.insert("b", other), lambda: lsh.query(other)):
        with pytest.raises(ValueError, match="does not match scheme"):
            call()


def test_a_file_knows_the_scheme_of_its_signatures(path: Path) -> None:
    made, other = (datasketch.MinHash(num_perm=16, scheme=scheme) for scheme in ("affine64", "affine32"))

    def opened() -> MinHashLSH:
        return MinHashLSH(num_perm=16, params=(4, 4), storage_config=in_file(path))

    with opened() as lsh:
        # Hash values alone do not tell it, so any is queried.
        lsh.insert_many(["a"], made.hashvalues[np.newaxis])
        assert (lsh.query(made), lsh.query_many([made, made])) == (["a"], [["a"], ["a"]])
        with pytest.raises(ValueError, match="does not match scheme"):
            lsh.query_many([made, other])
        lsh.insert("b", made)
    with opened() as lsh:
        assert (lsh.query(made), lsh.query_many([made])) == (["a", "b"], [["a", "b"]])
        for call in (lambda: lsh.query(other), lambda: lsh.query_many([other]), lambda: lsh.insert("c", other)):
            with pytest.raises(ValueError, match="does not match scheme"):
                call()
    in_ram = MinHashLSH(num_perm=16, params=(4, 4))
    in_ram.insert("a", made)
    with pytest.raises(ValueError, match="does not match scheme"):
        pickle.loads(pickle.dumps(in_ram)).query(other)


def test_threads_insert_and_query_together(path: Path) -> None:
    minhashes = signatures(800)
    lsh = MinHashLSH(num_perm=PERMUTATIONS, params=(8, 8), storage_config=in_file(path))
    failures: list[BaseException] = []

    def work(start: int) -> None:
        try:
            for key in range(start, 800, 4):
                lsh.insert(key, minhashes[key])
                assert key in lsh.query(minhashes[key])
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(start,)) for start in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures and len(lsh) == 800
    lsh.close()
