"""The library names parameters, the command line flags."""

from __future__ import annotations

import pytest

from neardup_gpu.cli.dedup import dedup
from neardup_gpu.cli.errors import in_flags, names_of
from neardup_gpu.cli.hamming import build


@pytest.mark.parametrize(
    ("says", "shown"),
    [
        ("threads 0: expect 1 to 64", "--threads 0: expect 1 to 64"),
        ("gpu_memory: 0 bytes", "--gpu-memory: 0 bytes"),
        ("memory://folder/file.parquet: no such file", "memory://folder/file.parquet: no such file"),
        ("bucket_limit must be >= 2, got 1", "--bucket-limit must be >= 2, got 1"),
        ("filter and recall: leave one out", "--filter and --recall: leave one out"),
        ("filter, recall and threshold each choose", "--filter, --recall and --threshold each choose"),
        ("there is no GPU; use backend='cpu'", "there is no GPU; use --engine cpu"),
        ("read others with glob='*.py'", "read others with --glob '*.py'"),
        ("exists already; pass overwrite=True", "exists already; pass --overwrite"),
        ("ask for fewer by threads=...", "ask for fewer by --threads"),
        ("ask for fewer, such as threads=1.", "ask for fewer, such as --threads 1."),
        (
            "d.parquet: no column 'a'; name one with text_columns.",
            "d.parquet: no column 'a'; name one with --text-column.",
        ),
        ("no column 'id_column' here", "no column 'id_column' here"),
        ("/tmp/temp_dir/x: is full; name another temp_dir", "/tmp/temp_dir/x: is full; name another --temp-dir"),
        ("temp_dir.parquet: no such file", "temp_dir.parquet: no such file"),
        ("the threshold is high, keep is not", "the threshold is high, keep is not"),
        ("thresholds differ", "thresholds differ"),
        ("", ""),
    ],
)
def test_parameters_are_shown_as_flags(says: str, shown: str) -> None:
    assert in_flags(says, names_of(dedup)) == shown


def test_a_command_has_its_own_flags() -> None:
    assert names_of(dedup)["text_columns"] == "--text-column"
    assert names_of(dedup)["gpu_memory"] == "--gpu-memory"
    assert names_of(build)["num_queries"] == "--queries"
    assert in_flags("num_tables, leading_bits and table_memory: one", names_of(build)).startswith(
        "--tables, --leading-bits and --memory: one"
    )
    assert in_flags("threads 0: none", {}) == "threads 0: none"
