"""Read a Parquet file and write it again by pyarrow alone; print the seconds.

python read_and_write.py INPUT OUTPUT
"""

import sys
import time

import pyarrow.parquet as pq

start = time.perf_counter()
pq.write_table(pq.read_table(sys.argv[1]), sys.argv[2], compression="zstd")
print(time.perf_counter() - start)
