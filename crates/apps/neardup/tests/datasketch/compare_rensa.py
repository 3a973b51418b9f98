"""Compares signatures with those of the installed rensa: the cases of one kind in a folder."""

import json
import sys
from pathlib import Path

import rensa


def lines(path):
    with open(path, encoding="utf-8") as file:
        for line in file:
            yield json.loads(line)


def values(case, shingles):
    sketch = rensa.RMinHash(case["permutations"], case["seed"])
    sketch.update(shingles)
    return sketch.digest()


def check(name, case, texts, found):
    count = 0
    for shingles, (expected, _) in zip(texts, found, strict=True):
        if values(case, shingles) != expected:
            sys.exit(f"{name}: other values for document {count}")
        count += 1
    if count < 1000:
        sys.exit(f"{name}: only {count} documents")
    print(f"{name}: {count} signatures of rensa are the same")


def main():
    folder, kind = Path(sys.argv[1]), sys.argv[2]
    cases = sorted(folder.glob(f"*.{kind}.jsonl"))
    for path in cases:
        found = lines(path)
        case = next(found)
        check(path.name, case, lines(folder / f"{case['texts']}.texts.jsonl"), found)
    if len(cases) < 2:
        sys.exit(f"only {len(cases)} cases of {kind}")


main()
