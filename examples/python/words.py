"""Counts the words of files, with more different words than fit into RAM, and prints the most common.

Usage: python words.py words.txt
"""

import os
import sys
import tempfile

import nandex


def main(*paths: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        with nandex.open(os.path.join(folder, "words.nandex"), ram="64MiB", durability="never") as db:
            words = db.counter("words", keys=10_000_000)
            for path in paths:
                with open(path, encoding="utf-8", errors="replace") as lines:
                    # Words of more than 31 bytes are seldom words.
                    words.update(word for line in lines for word in line.split() if len(word.encode()) <= 31)
            for word, count in words.most_common(20):
                print(f"{count:>10,}  {word.decode()}")


if __name__ == "__main__":
    main(*sys.argv[1:])
