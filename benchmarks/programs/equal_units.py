"""Cut equal lines or paragraphs out of documents by a Python set, by DuckDB or by datatrove, and print how many.

    python equal_units.py set|duckdb|datatrove line|paragraph SOURCE.parquet FOLDER

Units are equal if their words are, whatever their letter case and punctuation; units without words stay. The texts
that are left are written below FOLDER. datatrove has lines alone, and its own normalisation.
"""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path

DIVIDERS = {"line": r"\r\n|\r|\n", "paragraph": r"\n[ \t\r]*\n\s*"}
JOINED_BY = {"line": "\n", "paragraph": "\n\n"}


def by_set(unit: str, source: str, folder: Path) -> int:
    """Read all texts, and keep the units whose words are not in a set yet."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    divider, words = re.compile(DIVIDERS[unit]), re.compile(r"\w+")
    table = pq.read_table(source, columns=["id", "text"])
    seen: set[str] = set()
    texts, removed = [], 0
    for text in table["text"].to_pylist():
        kept = []
        for part in divider.split(text or ""):
            key = " ".join(words.findall(part.lower()))
            if key in seen:
                removed += 1
                continue
            if key:
                seen.add(key)
            kept.append(part)
        texts.append(JOINED_BY[unit].join(kept))
    pq.write_table(pa.table({"id": table["id"], "text": texts}), folder / "kept.parquet", compression="zstd")
    return removed


def by_duckdb(unit: str, source: str, folder: Path) -> int:
    """Number equal units by a window function, in the order of the file."""
    import duckdb

    database = duckdb.connect()
    database.execute(f"SET temp_directory = '{folder}'")
    database.execute(
        """
        CREATE TABLE units AS
        WITH parts AS (
            SELECT file_row_number AS number, id, string_split_regex(coalesce(text, ''), $divider) AS parts
            FROM read_parquet($source, file_row_number = true)
        ), keys AS (
            SELECT number, id, generate_subscripts(parts, 1) AS place, unnest(parts) AS part,
                trim(regexp_replace(lower(part), '[^\\p{L}\\p{N}\\p{M}_]+', ' ', 'g')) AS key
            FROM parts
        )
        SELECT number, id, place, part,
            key = '' OR row_number() OVER (PARTITION BY key ORDER BY number, place) = 1 AS kept
        FROM keys
        """,
        {"divider": DIVIDERS[unit], "source": source},
    )
    database.execute(
        f"""
        COPY (
            SELECT any_value(id) AS id, string_agg(part, '{JOINED_BY[unit]}' ORDER BY place) FILTER (kept) AS text
            FROM units GROUP BY number ORDER BY number
        ) TO '{folder / "kept.parquet"}' (COMPRESSION zstd)
        """
    )
    ((removed,),) = database.execute("SELECT count(*) FROM units WHERE NOT kept").fetchall()
    return removed


def by_datatrove(unit: str, source: str, folder: Path) -> int:
    """Run its three steps of sentence deduplication on lines, with a task per processor where a step has several."""
    import pyarrow.parquet as pq
    from datatrove.executor import LocalPipelineExecutor
    from datatrove.pipeline.dedup import (
        SentDedupConfig,
        SentenceDedupFilter,
        SentenceDedupSignature,
        SentenceFindDedups,
    )
    from datatrove.pipeline.readers import ParquetReader
    from datatrove.pipeline.writers import ParquetWriter
    from datatrove.utils.text import TextNormConfig

    if unit != "line":
        raise SystemExit("datatrove divides texts at sentences or lines")
    tasks = os.cpu_count() or 1
    table = pq.read_table(source, columns=["id", "text"])
    (folder / "input").mkdir()
    for task in range(tasks):
        first, last = (len(table) * end // tasks for end in (task, task + 1))
        pq.write_table(table.slice(first, last - first), folder / "input" / f"{task}.parquet")
    numbers_count = TextNormConfig(norm_numbers=False, norm_weekdays=False, norm_monthnames=False)
    config = SentDedupConfig(
        n_sentences=1, split_sentences=False, min_doc_words=0, min_num_sentences=0, norm_config=numbers_count
    )
    reader = ParquetReader(str(folder / "input"), id_key="id")
    signatures, repeated, kept = (str(folder / name) for name in ("signatures", "repeated", "kept"))
    steps = [
        (tasks, [reader, SentenceDedupSignature(signatures, config=config)]),
        (1, [SentenceFindDedups(signatures, repeated, config=config)]),
        (tasks, [reader, SentenceDedupFilter(repeated, config=config), ParquetWriter(kept)]),
    ]
    for number, (parts, step) in enumerate(steps):
        LocalPipelineExecutor(step, tasks=parts, workers=tasks, logging_dir=str(folder / "logs" / str(number))).run()
    return sum(path.stat().st_size for path in Path(repeated).rglob("*.c4_dup")) // 6  # uint32 and uint16 per line


TOOLS = {"set": by_set, "duckdb": by_duckdb, "datatrove": by_datatrove}

if __name__ == "__main__":
    tool, unit, source, folder = sys.argv[1:]
    print(json.dumps({"removed": TOOLS[tool](unit, source, Path(folder))}))
