"""One job in a process of its own, after a small one for which kernels are compiled.

python one_job.py SOURCE METHOD THRESHOLD
"""

import json
import sys
import time

import pyarrow as pa

import neardup_gpu

source, method, threshold = sys.argv[1], sys.argv[2], float(sys.argv[3])
words = [" ".join(f"w{(page * 7919 + i) % 997}" for i in range(60)) for page in range(300)]
neardup_gpu.dedup(pa.table({"text": words + [f"{text} end" for text in words]}), method=method, threshold=threshold)
begin, busy = time.perf_counter(), time.process_time()
result = neardup_gpu.dedup(source, method=method, threshold=threshold, text_columns="text")
seconds, cpu_seconds = time.perf_counter() - begin, time.process_time() - busy
report = result.report
print(
    json.dumps(
        {
            "seconds": round(seconds, 4),
            "cpu_seconds": round(cpu_seconds, 4),
            "documents": report["counts"]["documents"],
            "kept": report["counts"]["kept"],
            "candidate_pairs": report["counts"]["candidate_pairs"],
            "verified_pairs": report["counts"]["verified_pairs"],
            "limits": report["limits"],
            "stages": report["timings"],
        }
    )
)
