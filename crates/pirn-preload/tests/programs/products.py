"""Products of matrices in eight threads at once, each by the threads of numpy's BLAS."""

import threading

import numpy

matrix = numpy.arange(360_000, dtype=float).reshape(600, 600) % 97
sums = []
threads = [threading.Thread(target=lambda: sums.append((matrix @ matrix).sum())) for _ in range(8)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(len(sums), len(set(sums)), sums[0])
print(round(numpy.linalg.svd(matrix[:200, :200], compute_uv=False).sum()))
