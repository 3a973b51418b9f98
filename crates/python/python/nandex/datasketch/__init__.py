"""`MinHashLSH` and `MinHashLSHForest` as in datasketch, with an index that is bigger than RAM.

It takes datasketch's own `MinHash` and `WeightedMinHash`, and everything else that has `hashvalues`. Without a
`storage_config` the index is in RAM and ends with the object. With one it is a file:

>>> lsh = MinHashLSH(num_perm=4, params=(2, 2), storage_config={"type": "nandex", "path": path, "ram": "64MiB"})
>>> lsh.insert_many(["a", "b"], np.array([[1, 2, 3, 4], [1, 2, 5, 6]]))
>>> lsh.query_many(np.array([[1, 2, 9, 9], [7, 7, 5, 6]]))
[['a', 'b'], ['b']]
>>> lsh.close()
"""

from nandex.datasketch._forest import MinHashLSHForest
from nandex.datasketch._lsh import MinHashLSH, MinHashLSHDeletionSession, MinHashLSHInsertionSession

__all__ = ["MinHashLSH", "MinHashLSHDeletionSession", "MinHashLSHForest", "MinHashLSHInsertionSession"]
