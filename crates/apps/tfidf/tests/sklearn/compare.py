"""Compares matrices and tokens of nandex-tfidf with those of scikit-learn.

The argument is a folder written by tests/sklearn.rs:
  cases.jsonl       a case in each line: options of TfidfVectorizer, and files in the folder
  characters.jsonl  the tokens of a text around each character
  stop_words.txt    the English stop words
Each difference is printed on a line, and makes the exit code 1.
"""

import json
import pathlib
import sys
import unicodedata

import numpy as np
import scipy.sparse
from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS, CountVectorizer, TfidfVectorizer
from sklearn.metrics.pairwise import cosine_similarity

TOLERANCE = 1e-6
# A small letter in Unicode 14, and without case in later versions, where a sigma before it is a final one.
CHANGED = {"\u0295"}
FOLDER = pathlib.Path(sys.argv[1])
DIFFERENCES = []


def differ(name, text):
    DIFFERENCES.append(f"{name}: {text}")


def lines(path):
    with open(FOLDER / path, encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def texts(path):
    return [line["text"] for line in lines(path)]


def fitted(options, documents, terms):
    """Returns the vectorizer of these options. If the limit of features divides equally frequent terms, numpy's sort
    decides which are kept, so the choice is checked and then adopted."""
    options = dict(options, ngram_range=tuple(options["ngram_range"]))
    limit = options.get("max_features")
    if limit is None:
        return TfidfVectorizer(**options).fit(documents)
    without = dict(options, max_features=None)
    for key in ("norm", "use_idf", "smooth_idf", "sublinear_tf"):
        without.pop(key, None)
    counter = CountVectorizer(**without)
    counts = np.asarray(counter.fit_transform(documents).sum(axis=0)).ravel()
    names = counter.get_feature_names_out()
    order = np.lexsort((np.arange(len(names)), -counts))[:limit]
    expected = sorted(names[order])
    own = sorted(TfidfVectorizer(**options).fit(documents).get_feature_names_out())
    frequency = dict(zip(names, counts))
    # scikit-learn's own choice has the same frequencies, whichever of the equal terms it keeps.
    if sorted(frequency[t] for t in own) != sorted(frequency[t] for t in expected):
        differ("reference", "scikit-learn keeps other frequencies than the rule of this test")
    if terms != expected:
        differ("max_features", f"kept {len(terms)} terms, not the first {len(expected)} of the most frequent")
    chosen = dict(options, max_features=None, vocabulary=expected, min_df=1, max_df=1.0)
    return TfidfVectorizer(**chosen).fit(documents)


def check_matrix(name, found, expected):
    expected = scipy.sparse.csr_matrix(expected)
    expected.sort_indices()
    if found.shape != expected.shape:
        return differ(name, f"shape {found.shape}, expected {expected.shape}")
    if found.dtype != np.float64 or found.indices.dtype != expected.indices.dtype:
        differ(name, f"types {found.dtype} and {found.indices.dtype}, expected {expected.indices.dtype}")
    if not np.array_equal(found.indptr, expected.indptr) or not np.array_equal(found.indices, expected.indices):
        return differ(name, "entries are not in the same places")
    worst = float(np.abs(found.data - expected.data).max(initial=0.0))
    if not worst <= TOLERANCE:
        differ(name, f"a value differs by {worst}")
    return worst


def check_case(case):
    name = case["name"]
    documents = texts(case["documents"])
    vocabulary = lines(case["vocabulary"])
    terms = [line["term"] for line in vocabulary]
    if [line["column"] for line in vocabulary] != list(range(len(terms))):
        differ(name, "columns of the vocabulary are not in order")
    vectorizer = fitted(case["options"], documents, terms)
    expected = list(vectorizer.get_feature_names_out())
    if terms != expected:
        extra, missing = sorted(set(terms) - set(expected))[:5], sorted(set(expected) - set(terms))[:5]
        return differ(name, f"{len(terms)} terms, expected {len(expected)}; too many {extra}, missing {missing}")
    if case["options"].get("use_idf", True):
        idf = np.array([line["idf"] for line in vocabulary])
        if not np.allclose(idf, vectorizer.idf_, rtol=0, atol=TOLERANCE):
            differ(name, "the inverse document frequencies differ")
    matrix = vectorizer.transform(documents)
    worst = check_matrix(name, scipy.sparse.load_npz(FOLDER / case["matrix"]), matrix)
    if "ranks" in case:
        check_ranks(name, case, vectorizer, matrix)
        check_keywords(name, case, terms, matrix)
    return worst


def check_ranks(name, case, vectorizer, matrix):
    cosines = cosine_similarity(vectorizer.transform([case["query"]]), matrix).ravel()
    best = [row for row in np.argsort(-cosines, kind="stable") if cosines[row] > 0][: case["count"]]
    found = case["ranks"]
    if len(found) != len(best):
        return differ(name, f"{len(found)} documents ranked, expected {len(best)}")
    for (row, cosine), expected in zip(found, best):
        if abs(cosine - cosines[row]) > TOLERANCE or abs(cosine - cosines[expected]) > TOLERANCE:
            differ(name, f"row {row} ranked with {cosine}, expected {expected} with {cosines[expected]}")


def check_keywords(name, case, terms, matrix):
    columns = {term: column for column, term in enumerate(terms)}
    for row, found in enumerate(case["keywords"]):
        weights = np.sort(matrix[row].data)[::-1][: case["count"]]
        if len(found) != len(weights) or not np.allclose([value for _, value in found], weights, atol=TOLERANCE):
            differ(name, f"keywords of row {row} have other weights")
        for term, value in found:
            if abs(matrix[row, columns[term]] - value) > TOLERANCE:
                differ(name, f"keyword {term!r} of row {row} weighs {value}")


def check_characters():
    analyse = {lowercase: CountVectorizer(lowercase=lowercase).build_analyzer() for lowercase in (True, False)}
    newer = checked = 0
    for line in lines("characters.jsonl"):
        character = chr(line["character"])
        if unicodedata.category(character) == "Cn" or character in CHANGED:
            newer += 1
            continue
        checked += 1
        for lowercase, found in ((True, line["lowered"]), (False, line["kept"])):
            expected = analyse[lowercase](line["text"])
            if found != expected:
                differ("characters", f"U+{line['character']:04X} {lowercase=}: {found}, expected {expected}")
    print(f"{checked} characters agree; {newer} are newer than Unicode {unicodedata.unidata_version} of this Python")
    if checked < 100_000:
        differ("characters", f"only {checked} were compared")


def main():
    worst = 0.0
    cases = lines("cases.jsonl")
    for case in cases:
        worst = max(worst, check_case(case) or 0.0)
    check_characters()
    words = (FOLDER / "stop_words.txt").read_text(encoding="utf-8").splitlines()
    if words != sorted(ENGLISH_STOP_WORDS):
        differ("stop words", f"{len(words)} words are not the {len(ENGLISH_STOP_WORDS)} of scikit-learn")
    print(f"{len(cases)} cases; values differ by {worst} at most")
    print("\n".join(DIFFERENCES[:50]))
    return 1 if DIFFERENCES else 0


sys.exit(main())
