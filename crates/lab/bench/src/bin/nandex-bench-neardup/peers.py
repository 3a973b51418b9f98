"""What datasketch or rensa makes of a file of JSON lines: is each document near an earlier one? Prints figures as JSON."""

import json
import re
import resource
import sys
import time


def words_of(path, documents_max):
    word = re.compile(r"\w+")
    with open(path, encoding="utf-8") as file:
        for number, line in enumerate(file):
            if number == documents_max:
                return
            yield word.findall(json.loads(line)["text"].lower())


def shingles_of(words):
    if len(words) < 3:
        return [" ".join(words)] if words else []
    return [" ".join(words[at : at + 3]) for at in range(len(words) - 2)]


def datasketch_index(permutations, bands, threshold):
    import datasketch

    lsh = datasketch.MinHashLSH(num_perm=permutations, params=(bands, permutations // bands))
    start = datasketch.MinHash(num_perm=permutations, seed=1)
    kept = []

    def is_near(number, shingles):
        sketch = start.copy()
        sketch.update_batch([shingle.encode("utf-8") for shingle in shingles])
        found = lsh.query(sketch)
        near = any(kept[other].jaccard(sketch) >= threshold for other in found)
        kept.append(datasketch.LeanMinHash(sketch))
        lsh.insert(number, sketch, check_duplication=False)
        return near

    return is_near, datasketch.__version__, bands


def rensa_index(permutations, bands, threshold):
    from importlib.metadata import version

    import rensa

    # rensa takes bands that divide the permutations.
    bands = next(it for it in range(bands, permutations + 1) if permutations % it == 0)
    lsh = rensa.RMinHashLSH(threshold=threshold, num_perm=permutations, num_bands=bands)
    kept = []

    def is_near(number, shingles):
        sketch = rensa.RMinHash(num_perm=permutations, seed=1)
        sketch.update(shingles)
        near = any(kept[other].jaccard(sketch) >= threshold for other in lsh.query(sketch))
        kept.append(sketch)
        lsh.insert(number, sketch)
        return near

    return is_near, version("rensa"), bands


def main():
    name, path, documents_max, permutations, bands, threshold = sys.argv[1:]
    indexes = {"datasketch": datasketch_index, "rensa": rensa_index}
    is_near, version, bands = indexes[name](int(permutations), int(bands), float(threshold))
    rss_before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start, cpu_start = time.perf_counter(), time.process_time()
    near = count = 0
    for count, words in enumerate(words_of(path, int(documents_max)), 1):
        near += is_near(count - 1, shingles_of(words))
    seconds, cpu_seconds = time.perf_counter() - start, time.process_time() - cpu_start
    rss_after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(
        json.dumps(
            {
                "name": name,
                "version": version,
                "bands": bands,
                "documents": count,
                "near": near,
                "documents_per_s": count / seconds,
                "documents_per_cpu_s": count / cpu_seconds,
                "ram_bytes_per_document": (rss_after - rss_before) * 1024 / max(count, 1),
            }
        )
    )


main()
