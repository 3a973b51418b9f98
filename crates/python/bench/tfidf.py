"""TfidfVectorizer next to scikit-learn's: documents a second of `fit_transform`, with single words and with pairs."""

from __future__ import annotations

import argparse
import gc
import tempfile
import time
from pathlib import Path

import numpy as np
from nandex.sklearn import TfidfVectorizer
from sklearn.feature_extraction import text


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--documents", type=int, default=50_000)
    parser.add_argument("--words", type=int, default=200, help="words of a document, on average")
    parser.add_argument("--vocabulary", type=int, default=200_000, help="different words")
    parser.add_argument("--ram", default="256MiB", help="RAM of nandex's index")
    parser.add_argument("--ngrams", type=int, default=1, help="words of a term, at most")
    parser.add_argument("--runs", type=int, default=3)
    return parser.parse_args()


def documents(options: argparse.Namespace) -> list[str]:
    """Texts whose words are as frequent as those of a language: the n-th one n times less than the first."""
    numbers = np.random.default_rng(7)
    letters = np.array(list("etaoinshrdlcumwfgypb"))
    lengths = 2 + numbers.geometric(0.2, options.vocabulary)
    words = ["".join(letters[numbers.integers(0, len(letters), length)]) for length in lengths]
    weights = 1 / np.arange(1, options.vocabulary + 1)
    lengths = numbers.poisson(options.words, options.documents)
    chosen = iter(numbers.choice(options.vocabulary, lengths.sum(), p=weights / weights.sum()).tolist())
    return [" ".join(words[next(chosen)] for _ in range(length)) for length in lengths]


def main() -> None:
    options = arguments()
    texts = documents(options)
    ngrams = (1, options.ngrams)
    rates: dict[str, list[float]] = {"nandex": [], "scikit-learn": []}
    for _ in range(options.runs):
        with tempfile.TemporaryDirectory() as folder:
            gc.collect()
            start = time.perf_counter()
            with TfidfVectorizer(path=Path(folder, "terms.nandex"), ram=options.ram, ngram_range=ngrams) as vectorizer:
                ours = vectorizer.fit_transform(texts)
            rates["nandex"].append(len(texts) / (time.perf_counter() - start))
        gc.collect()
        start = time.perf_counter()
        theirs = text.TfidfVectorizer(ngram_range=ngrams).fit_transform(texts)
        rates["scikit-learn"].append(len(texts) / (time.perf_counter() - start))
        assert ours.shape == theirs.shape and abs(ours - theirs).max() < 1e-12
    print(f"{len(texts)} documents, {ours.shape[1]} terms of 1 to {options.ngrams} words, {options.ram} of RAM")
    for name, found in rates.items():
        print(f"{name:14}{np.median(found):12,.0f} documents/s ({min(found):,.0f} to {max(found):,.0f})")
    print(f"{'ratio':14}{np.median(rates['nandex']) / np.median(rates['scikit-learn']):12.1f}")


if __name__ == "__main__":
    main()
