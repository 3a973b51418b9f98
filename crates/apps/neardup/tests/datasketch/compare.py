"""Compares signatures, bands and candidates with those of datasketch."""

import json
import sys
from pathlib import Path

import datasketch
from datasketch.lsh import _optimal_param


def lines(path):
    with open(path, encoding="utf-8") as file:
        for line in file:
            yield json.loads(line)


def fail(text):
    sys.exit(f"{text}\ndatasketch {datasketch.__version__}")


def check_bands(path):
    count = 0
    for threshold, permutations, positives, negatives, bands, rows in lines(path):
        expected = _optimal_param(threshold, permutations, positives, negatives)
        if expected != (bands, rows):
            fail(f"bands for {threshold}, {permutations}, {positives}: {(bands, rows)}, expected {expected}")
        count += 1
    if count < 20:
        fail(f"only {count} choices of bands")
    print(f"bands: {count} choices are the same")


def check_datasketch(name, case, texts, found):
    start = datasketch.MinHash(case["permutations"], seed=case["seed"], scheme=case["scheme"])
    lsh = datasketch.MinHashLSH(num_perm=case["permutations"], params=tuple(case["bands"]))
    sketches, ours = [], []
    for number, (shingles, (values, candidates)) in enumerate(zip(texts, found, strict=True)):
        sketch = start.copy()
        sketch.update_batch([shingle.encode("utf-8") for shingle in shingles])
        if sketch.hashvalues.tolist() != values:
            fail(f"{name}: other values for document {number}")
        sketches.append(datasketch.LeanMinHash(sketch))
        ours.append(candidates)
        lsh.insert(number, sketch, check_duplication=False)
    pairs = bounded = 0
    for number, (sketch, candidates) in enumerate(zip(sketches, ours, strict=True)):
        expected = set(lsh.query(sketch))
        ranges = zip(lsh.hashranges, lsh.hashtables, strict=True)
        sizes = [len(table.get(lsh._H(sketch.hashvalues[start:end]))) for (start, end), table in ranges]
        pairs += len(candidates) - 1
        if max(sizes) > case["bucket_ids_max"]:
            # A bucket keeps its oldest ids, so some candidates are missing, and none is added.
            bounded += 1
            if not set(candidates) <= expected:
                fail(f"{name}: candidates of document {number} that datasketch does not have")
        elif set(candidates) != expected or len(candidates) != len(expected):
            fail(f"{name}: candidates of document {number}: {candidates}, expected {sorted(expected)}")
    if pairs < 100:
        fail(f"{name}: only {pairs} candidates")
    print(
        f"{name}: {len(ours)} documents have the same signatures, and {len(ours) - bounded} the same candidates, "
        f"{pairs} in all; {bounded} share a bucket with more than {case['bucket_ids_max']}"
    )


def main():
    folder = Path(sys.argv[1])
    check_bands(folder / "bands.jsonl")
    cases = sorted(folder.glob("*.datasketch.jsonl"))
    for path in cases:
        found = lines(path)
        case = next(found)
        texts = lines(folder / f"{case['texts']}.texts.jsonl")
        check_datasketch(path.name, case, texts, found)
    if len(cases) < 4:
        fail(f"only {len(cases)} cases")


main()
