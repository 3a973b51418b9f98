"""Prints each line that was not seen before, in this run or an earlier one: `sort -u` for files larger than RAM.

Usage: python seen.py words.txt seen.nandex
"""

import itertools
import sys

import nandex

BATCH = 100_000


def main(lines_path: str, seen_path: str) -> None:
    with nandex.open(seen_path, ram="64MiB") as db, open(lines_path, "rb") as lines:
        seen = db.filter("lines", keys=10_000_000, rate=0.0001)
        while batch := list(itertools.islice(lines, BATCH)):
            for line, is_new in zip(batch, seen.add_new_many(batch)):
                if is_new:
                    sys.stdout.buffer.write(line)


if __name__ == "__main__":
    main(*sys.argv[1:])
