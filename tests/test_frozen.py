"""Compare results with a table of results that may not change.

The table holds SHA-256 digests of documents and pairs, and counts and limits: of jobs in memory by fifteen recipes, of
jobs over files with their kept rows, of kept rows in every format, of indexes, clusters and fingerprints. Jobs that run
as tasks, or within a bound of memory, are compared with the job in memory.

A change of results raises `recipe.DEFINITIONS`, and then `python tests/test_frozen.py` writes the table again.
"""

import csv
import hashlib
import json
import os
import random
import sys
from functools import cache, partial
from itertools import product
from pathlib import Path

import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest
from flat import flat
from grids import some

from neardup_gpu import BottomK, Containment, Engine, Index, MinHash, Recipe, Shingles, SimHash, Workers, dedup
from neardup_gpu.errors import ParameterError
from neardup_gpu.fingerprint_options import Near, Query, TableOptions
from neardup_gpu.hamming import jobs
from neardup_gpu.sketches import clusters, pairs, sketch
from neardup_gpu.stages import Sketch
from neardup_gpu.store.artefacts import DOCUMENTS, PAIRS, parts_of, read_report

TABLE = Path(__file__).with_name("frozen.json")

RECIPES = {
    "exact": Recipe(),
    "exact, bag of 3, one partner": Recipe(threshold=0.5, shingles=Shingles(3, "bag"), max_partners=1, keep="date"),
    "exact against, components": Recipe(threshold=0.6, shingles=Shingles(2), cluster="components", max_partners=3),
    "minhash": Recipe(method="minhash"),
    "bag of 3": Recipe(method="minhash", threshold=0.7, shingles=Shingles(3, "bag")),
    "circular": Recipe(method="minhash", threshold=0.6, shingles=Shingles(4, "circular"), seed=7),
    "components": Recipe(method="minhash", threshold=0.75, cluster="components", keep="longest"),
    "Bing": Recipe(method=MinHash(filter="bing"), threshold=0.9),
    "AltaVista, 64 bits": Recipe(method=MinHash(k=6, s=14, r=2, bits=64), threshold=0.85, keep="date:desc"),
    "small buckets": Recipe(method=MinHash(bucket_limit=4, bucket_probe=2), keep="date"),
    "against": Recipe(method="minhash", shingles=Shingles(3)),
    "simhash": Recipe(method="simhash"),
    "simhash of 128 bits, components": Recipe(
        method=SimHash(radius=8, bits=128, elements="shingles", weighting="tf"),
        shingles=Shingles(2),
        cluster="components",
        keep="longest",
    ),
    "simhash by tf-idf, verified": Recipe(
        method=SimHash(radius=6, weighting="tfidf"), threshold=0.5, shingles=Shingles(3), keep="date"
    ),
    "simhash against, small buckets": Recipe(method=SimHash(radius=4, bucket_limit=4, bucket_probe=2)),
}
SKETCHED = [name for name, recipe in RECIPES.items() if isinstance(recipe.method, Sketch)]
MADE = ("edited", "template", "odd")
REAL = ("bills_116_small", "manpages", "winps_docs")
SOME_MADE = [*product(("minhash", "exact, bag of 3, one partner", "simhash by tf-idf, verified"), MADE[1:])]
SOME_REAL = [*product(("exact", "small buckets", "simhash"), REAL[:2]), ("circular", REAL[2]), ("against", REAL[1])]


def letters(number):
    return "".join(chr(97 + int(digit)) for digit in str(number))


@cache
def made(name):
    """A corpus and a reference set: of edited copies, of pages of one template, or of odd texts."""
    draw = random.Random(name)
    words = ["w" + letters(draw.randrange(3000)) for _ in range(4000)]
    texts = []
    if name == "edited":
        for _ in range(60):
            page = draw.choices(words, k=draw.randrange(8, 160))
            texts.append(page)
            for _ in range(draw.randrange(4)):
                copy = list(page)
                for _ in range(draw.randrange(1 + len(page) // 16)):
                    copy[draw.randrange(len(copy))] = draw.choice(words)
                texts.append(copy)
    elif name == "template":
        frame = draw.choices(words, k=60)
        texts = [frame + draw.choices(words, k=draw.randrange(0, 24)) for _ in range(90)]
    else:
        odd = [
            "",
            " . ",
            "one",
            "one two",
            "ﬁne Straße",
            "fine STRASSE",
            "日本語の文章です。",
            "日本語の文章です",
            "a\u0301 b c d e",
        ]
        texts = [
            [draw.choice(odd)] * draw.randrange(1, 4) + draw.choices(words[:6], k=draw.randrange(7)) for _ in range(120)
        ]
    draw.shuffle(texts)
    rows = {
        "id": [f"{name} {i}" for i in range(len(texts))],
        "text": [None if draw.random() < 0.02 else " ".join(text) for text in texts],
        "date": [draw.choice([None, draw.randrange(20)]) for _ in texts],
    }
    table, known = pa.table(rows), len(texts) // 5
    return table.slice(known), table.slice(0, known)


def digest(value):
    return hashlib.sha256(json.dumps(value, default=str).encode()).hexdigest()


def digest_in_any_order(value):
    """Return the digest of a value in which the order of names does not count."""
    return digest(json.loads(json.dumps(value, default=str, sort_keys=True)))


def decided(table, known, recipe_name, backend):
    recipe = RECIPES[recipe_name]
    against = known if "against" in recipe_name else None
    result = dedup(table, id_column="id", text_columns="text", against=against, recipe=recipe, engine=backend)
    sampled, counts = result.report["recall"]["sampled"], dict(result.report["counts"])
    limits = dict(result.report["limits"])
    if not limits.get("all_counted", True):
        del limits["unlisted_pairs"]  # a lower bound, which depends on how partners are looked for
    if recipe.verifies:  # these depend on the size of a table that is no part of the recipe
        del counts["candidate_pairs"], counts["comparisons"]
    # When the table was written there were no partners in the reference set; test_against.py says what they are.
    counts.pop("near_reference", None)
    del counts["replaced_text"], counts["garbled_text"]  # nor were these
    names = {"near_reference", "reference_resemblance", "reference_containment", "kind"}  # test_kinds.py checks kinds
    documents = result.documents.drop(sorted(names & set(result.documents.column_names)))
    return {
        "documents": digest(documents.to_pydict()),
        "pairs": digest(result.pairs.drop_columns("kind").to_pydict()),
        "counts": counts,
        "limits": limits,
        "recall": None if sampled is None else digest(sampled),
    }


def sketched(table, recipe_name, backend, folder):
    """Digests of a sketch file, and of the pairs that are found in it."""
    file = folder / "sketches.parquet"
    options = {"id_column": "id", "text_columns": "text", "engine": backend, "overwrite": True}
    flat(sketch, table, file, recipe=RECIPES[recipe_name], **options)
    columns = pq.read_table(file).to_pydict()
    columns.pop("num_shingles", None)  # which files lacked when the table was written; its own tests say what it holds
    found = {"sketches": digest(list(columns.values()))}
    if RECIPES[recipe_name].method.name == "minhash":
        found["pairs"] = digest(pairs(file, engine=backend).to_pydict())
    return found


def real(name, corpora):
    table = pq.read_table(Path(corpora) / f"{name}.parquet", columns=["id", "text"])
    table = table.append_column("date", pa.array([row % 100 for row in range(len(table))]))
    known = len(table) // 5
    return table.slice(known), table.slice(0, known)


@cache
def frozen():
    return json.loads(TABLE.read_text())


@pytest.mark.quick
@pytest.mark.parametrize("corpus", MADE)
@pytest.mark.parametrize("recipe", RECIPES)
def test_made(recipe, corpus):
    assert decided(*made(corpus), recipe, "cpu") == frozen()[corpus][recipe]


@pytest.mark.parametrize(("recipe", "corpus"), some(product(RECIPES, MADE), SOME_MADE))
def test_made_by_definitions(recipe, corpus):
    """A job by the definitions of kernels gives these results; test_agreement.py compares each kernel with its own."""
    assert decided(*made(corpus), recipe, "reference") == frozen()[corpus][recipe]


@pytest.mark.quick
@pytest.mark.parametrize("recipe", SKETCHED)
def test_sketches(recipe, tmp_path):
    assert sketched(made("edited")[0], recipe, "cpu", tmp_path) == frozen()["sketches"][recipe]


@pytest.mark.parametrize("recipe", some(SKETCHED, ["AltaVista, 64 bits", "simhash of 128 bits, components"]))
def test_sketches_by_definitions(recipe, tmp_path):
    assert sketched(made("edited")[0], recipe, "reference", tmp_path) == frozen()["sketches"][recipe]


@pytest.mark.corpus
@pytest.mark.parametrize(("recipe", "corpus"), some(product(RECIPES, REAL), SOME_REAL))
def test_real(recipe, corpus, corpora):
    assert decided(*real(corpus, corpora), recipe, "cpu") == frozen()[corpus][recipe]


# --------------------------------------------------------------------------------------------- whole jobs and kept rows

JOBS = {
    "exact": Recipe(),
    "exact, longest, components": Recipe(
        threshold=0.6, shingles=Shingles(3, "bag"), keep="longest", cluster="components", max_partners=2
    ),
    "exact against alone": Recipe(threshold=0.6, only_against=True, max_partners=1),
    "exact by spots": Recipe(threshold=0.5, shingles=Shingles(2, "spots", ["one", "two", "fine", "b", "d"])),
    "containment": Recipe(method="containment", threshold=0.7, keep="date"),
    "containment against, either": Recipe(method=Containment(direction="either"), threshold=0.7),
    "minhash": Recipe(method="minhash"),
    "minhash against, small buckets": Recipe(
        method=MinHash(bucket_limit=4, bucket_probe=2), keep="date:desc", max_partners=1
    ),
    "minhash by tf-idf": Recipe(method=MinHash(weighting="tfidf"), threshold=0.6, keep="longest"),
    "bottomk, small buckets": Recipe(method=BottomK(s=60, candidates="groups", bucket_limit=4, bucket_probe=2)),
    "modm, components": Recipe(method="modm", threshold=0.7, cluster="components"),
    "simhash against": Recipe(method=SimHash(radius=4)),
    "simhash by tf-idf, verified": Recipe(
        method=SimHash(radius=6, bits=128, weighting="tfidf"), threshold=0.5, keep="date"
    ),
}
SAID = ("measure", "counts", "limits", "group_sizes", "largest_groups", "candidates", "recall", "warnings")
"""The entries of a report that state the result. The others state the settings, the place and the time."""

ENGINE = Engine(backend="cpu", threads=2)
FORMATS = ("parquet", "jsonl", "csv", "arrow", "txt", "warc", "memory")
REWRITTEN = {
    "memory": "jsonl",
    "parquet": "jsonl.gz",
    "jsonl": "parquet",
    "csv": "jsonl",
    "arrow": "jsonl.zst",
    "txt": "parquet",
    "warc": "arrow",
}


def mixed():
    """Return all made corpora one after another, and all their reference sets."""
    documents, known = zip(*map(made, ("edited", "template", "odd")), strict=True)
    return pa.concat_tables(documents), pa.concat_tables(known)


@pytest.fixture(scope="module")
def sources(tmp_path_factory):
    return written_sources(tmp_path_factory.mktemp("sources"))


def written_sources(folder):
    """Write the mixed corpus in every format, in three files each, and the reference set as `known`."""
    table, known = mixed()
    pq.write_table(known, folder / "known.parquet")
    for format in FORMATS[:-1]:
        (folder / format).mkdir()
    third = -(-len(table) // 3)
    for number in range(3):
        part = table.slice(third * number, third)
        pq.write_table(part, folder / "parquet" / f"{number}.parquet", row_group_size=11)
        feather.write_feather(part, folder / "arrow" / f"{number}.arrow", "uncompressed", chunksize=13)
        rows = part.to_pylist()
        lines = [json.dumps(row, ensure_ascii=bool(row["date"])) + "\n" for row in rows]
        (folder / "jsonl" / f"{number}.jsonl").write_text("".join(lines), encoding="utf-8")
        with open(folder / "csv" / f"{number}.csv", "w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, ["id", "text", "date"])
            writer.writeheader()
            writer.writerows(rows)
        with open(folder / "warc" / f"{number}.warc", "wb") as file:
            file.writelines(map(record, rows))
        for row in rows[::3]:
            (folder / "txt" / f"{row['id']}.txt").write_text(row["text"] or "", encoding="utf-8")
    return folder


def record(row):
    """Return a row as a WARC record of plain text."""
    text = (row["text"] or "").encode()
    head = f"WARC/1.0\r\nWARC-Type: conversion\r\nWARC-Target-URI: http://example.org/{row['id'].replace(' ', '/')}\r\n"
    head += f"WARC-Date: 2024-05-31T00:00:00Z\r\nWARC-Record-ID: <urn:x:{row['id'].replace(' ', '-')}>\r\n"
    return f"{head}Content-Type: text/plain\r\nContent-Length: {len(text)}\r\n\r\n".encode() + text + b"\r\n\r\n"


def job_options(sources, name):
    options = {"id_column": "id", "text_columns": "text", "recipe": JOBS[name], "check": 50}
    return options | ({"against": sources / "known.parquet"} if "against" in name else {})


def in_memory(source, **options):
    return flat(dedup, source, engine=ENGINE, **options).report


def in_tasks(source, *, output, **options):
    work = Workers(work_dir=f"{output}.work", number=1, slice_bytes=40_000, partitions=2)
    report = flat(dedup, source, output=output, workers=work, engine=ENGINE, **options).report
    assert report["tasks"]["slices"] > 1
    return report


def said(report):
    """Return what a report states of the result: counts and limits as they are, the other entries as a digest."""
    found = {name: report[name] for name in SAID if name in report}
    return {"counts": found.pop("counts"), "limits": found.pop("limits"), "others": digest(found)}


def alike(tasks, memory):
    """Return whether tasks report what the job in memory reports, except for the amount of work.

    Where shingles are joined, tasks look at other pairs; they may count all pairs where a job in memory did not.
    """
    counts, limits = memory["counts"], memory["limits"]
    free = {"comparisons", "candidate_pairs"} if counts["comparisons"] else set()
    counts = counts | {name: tasks["counts"][name] for name in free}
    if not limits.get("all_counted", True):
        limits = limits | {name: tasks["limits"][name] for name in ("unlisted_pairs", "all_counted")}
    return tasks == {**memory, "counts": counts, "limits": limits}


def digest_of(table):
    """Return the digest of the names and the types of all columns, and of all rows in their order."""
    return digest([[(field.name, str(field.type)) for field in table.schema], table.to_pydict()])


def tables_of(folder):
    """Return the digests of the tables that a job wrote, in one file each or in parts."""
    files, found = read_report(folder)["files"], {}
    for name in (DOCUMENTS, PAIRS):
        parts = [pq.read_table(path).replace_schema_metadata() for path in parts_of(folder, files, name)]
        found[name] = digest_of(pa.concat_tables(parts))
    return found


def content_of(path):
    """Return the head of a file (its schema, or the header of CSV) and its rows."""
    if path.suffix in (".parquet", ".arrow"):
        table = pq.read_table(path) if path.suffix == ".parquet" else feather.read_table(path, memory_map=False)
        return str(table.schema.remove_metadata()), table.to_pylist()
    codec = {".gz": "gzip", ".zst": "zstd"}.get(path.suffix)
    with pa.input_stream(path, compression=codec) as stream:
        content = stream.read().decode()
    if path.suffix == ".txt":
        return "", [[path.name, content]]
    lines = content.splitlines(keepends=True)
    return (lines[0], lines[1:]) if path.suffix == ".csv" else ("", lines)


def kept_of(folder):
    """Return two digests of the kept rows: one of all files with their names, one of the rows in whatever files."""
    paths = sorted(path for name in ("kept", "kept_ids") for path in folder.glob(f"{name}/**/*.*"))
    paths += folder.glob("kept_ids.parquet")
    assert paths
    content = [content_of(path) for path in paths]
    names = [str(path.relative_to(folder)) for path in paths]
    rows = [row for _, part in content for row in part]
    return {"files": digest([names, content]), "rows": digest([sorted({head for head, _ in content}), rows])}


def job(sources, folder, name, run=in_memory):
    report = run(sources / "parquet", output=folder, **job_options(sources, name))
    return tables_of(folder) | {"kept": kept_of(folder), "said": said(report)}


@pytest.mark.parametrize("name", JOBS)
def test_jobs(name, sources, tmp_path):
    """A job over files gives these tables, kept rows and counts."""
    assert job(sources, tmp_path / "out", name) == frozen()["jobs"][name]


@pytest.mark.parametrize("name", some(JOBS, list(JOBS)[::4]))
def test_tasks(name, sources, tmp_path):
    """A job that is cut into tasks gives the result of the job in memory."""
    found, expected = job(sources, tmp_path / "out", name, in_tasks), frozen()["jobs"][name]
    assert alike(found["said"], expected["said"])
    assert found["kept"]["rows"] == expected["kept"]["rows"]
    assert (found[DOCUMENTS], found[PAIRS]) == (expected[DOCUMENTS], expected[PAIRS])


def kept(sources, folder, format, run=in_memory, **options):
    """Return the digests of the rows that are kept of a source in a format."""
    source = mixed()[0] if format == "memory" else sources / format
    columns = {"txt": {}, "warc": {"id_column": "url"}}.get(format, {"id_column": "id", "text_columns": "text"})
    run(source, output=folder, **columns, **options)
    return kept_of(folder)


KEPT = {
    **{format: {"format": format} for format in FORMATS},
    **{f"{format} as {new}": {"format": format, "output_format": new} for format, new in REWRITTEN.items()},
    **{f"shards of {format}": {"format": format, "shard_bytes": 30_000} for format in ("parquet", "jsonl", "arrow")},
    "shards of txt as arrow": {"format": "txt", "shard_bytes": 20_000, "output_format": "arrow"},
    "ids of csv": {"format": "csv", "ids_only": True},
    "ids of memory": {"format": "memory", "ids_only": True},
}
"""The format of the documents, and options for the kept rows."""


@pytest.mark.parametrize("name", KEPT)
def test_kept(name, sources, tmp_path):
    """Kept rows of each format: which files they are in, their bytes where they are text, else values and types."""
    assert kept(sources, tmp_path / "out", **KEPT[name]) == frozen()["kept"][name]


FEW = ("parquet", "txt", "memory", "jsonl as parquet", "ids of csv")


@pytest.mark.parametrize("name", some(KEPT, FEW))
def test_kept_by_tasks(name, sources, tmp_path):
    found = kept(sources, tmp_path / "out", run=in_tasks, **KEPT[name])
    assert found["rows"] == frozen()["kept"][name]["rows"]


# ---------------------------------------------------------------------------------------------------- bounds of memory


@cache
def long_texts():
    """Return documents with more shingles than a job within the smaller bounds of `test_memory` holds at once."""
    draw = random.Random("long")
    words, texts = ["w" + letters(draw.randrange(5000)) for _ in range(5000)], []
    for number in range(400):
        texts.append(draw.choices(words, k=1500) if number % 4 else list(texts[-1] if texts else words))
        for _ in range(draw.randrange(60)):
            texts[-1][draw.randrange(len(texts[-1]))] = draw.choice(words)
    return pa.table({"id": range(len(texts)), "text": [" ".join(text) for text in texts]})


@pytest.mark.parametrize(
    ("method", "memory"),
    some(
        product(["exact", "minhash", "simhash"], ["2GB", "least"]),
        [("exact", "2GB"), ("minhash", "least"), ("simhash", "least")],
    ),
)
def test_memory(method, memory, tmp_path):
    """A job within a bound gives what it gives without one: in memory, or as tasks."""
    options = {"id_column": "id", "text_columns": "text", "method": method, "engine": ENGINE}
    usual = dedup(long_texts(), output=tmp_path / "usual", **options)
    if memory == "least":
        with pytest.raises(ParameterError, match="give at least") as refused:
            dedup(long_texts(), memory="50MB", **options)
        memory, tasks = str(refused.value).rpartition(" ")[2], True
    else:
        tasks = False
    bounded = dedup(long_texts(), output=tmp_path / "bounded", memory=memory, **options)
    assert ("tasks" in bounded.report) == tasks
    assert tables_of(tmp_path / "bounded") == tables_of(tmp_path / "usual")
    assert kept_of(tmp_path / "bounded")["rows"] == kept_of(tmp_path / "usual")["rows"]
    assert digest_of(bounded.documents) == digest_of(usual.documents)
    assert digest_of(bounded.pairs) == digest_of(usual.pairs)
    assert alike(said(bounded.report), said(usual.report))


# ------------------------------------------------------------------------------------- the index, clusters and hamming

INDEXES = {
    "exact": {"recipe": Recipe(threshold=0.6)},
    "exact by bags, two partners": {
        "recipe": Recipe(threshold=0.7, shingles=Shingles(3, "bag"), max_partners=2),
        "containment": 2,
    },
    "minhash": {"recipe": Recipe(method="minhash"), "containment": 4},
    "minhash without sets": {"recipe": Recipe(method="minhash", threshold=0.7), "sets": False},
    "simhash": {"recipe": Recipe(method="simhash"), "expected": 1000},
    "simhash, verified": {"recipe": Recipe(method=SimHash(radius=8, bits=128), threshold=0.6)},
}
INFO = ("documents", "entries", "pairs", "dead_documents", "next_sequence", "ids", "inputs")


def decided_by(index, keep, cluster="greedy"):
    result = index.decide(keep=keep, cluster=cluster)
    return [digest_of(result.documents), digest_of(result.pairs), digest_in_any_order(said(result.report))]


def asked(index, settings):
    """Return the digests of everything that an index returns: answers, and decisions by three rules."""
    texts = mixed()[1]["text"].to_pylist()[::2] + mixed()[0]["text"].to_pylist()[::9]
    texts = pa.array([text or "" for text in texts])
    found = {
        "all": flat(index.query, texts=texts, columns="date"),
        "nearest": flat(index.query, texts=texts, nearest=2),
    }
    if "containment" in settings:
        for direction in ("in", "of", "either"):
            found[direction] = flat(index.query, texts=texts, containment=0.6, direction=direction)
    rules = [("first", "greedy"), ("longest", "greedy"), ("date:desc", "components")]
    return {name: digest_of(table.drop_columns("awaits")) for name, table in found.items()} | {
        f"{keep}, {cluster}": decided_by(index, keep, cluster) for keep, cluster in rules
    }


def grown(folder, name):
    """Return the digests of an index after each change."""
    settings = INDEXES[name]
    documents, known = mixed()
    third, columns = -(-len(documents) // 3), {"id_column": "id", "text_columns": "text"}
    life = {}
    with Index.create(folder / "index", columns="date", engine=ENGINE, **settings) as index:
        parts = [known, *(documents.slice(third * number, third) for number in range(3))]
        added = []
        for number, part in enumerate(parts):
            output = folder / f"{number}.parquet"
            counts = index.add(part, output=output, commit_every=37, **columns)
            added.append([counts, digest_of(pq.read_table(output).replace_schema_metadata())])
        life["added"] = added
        life["asked"] = asked(index, settings)
        removed = [index.remove(documents["id"].to_pylist()[5:90:4]), index.remove(before=3, column="date")]
        removed = [each.documents for each in removed]
        again = documents.slice(6, 60).set_column(1, "text", documents["text"].slice(80, 60))
        life["changed"] = [*removed, index.add(again, replace=True, **columns)]
        life["asked of the rest"] = asked(index, settings)
        life["info"] = {key: index.info()[key] for key in INFO}
        index.compact()
        assert asked(index, settings) == life["asked of the rest"]
        life["info when merged"] = {key: index.info()[key] for key in INFO}
    with Index.open(folder / "index", engine=ENGINE) as index:
        index.check(all=True)
        assert asked(index, settings) == life["asked of the rest"]
    return json.loads(json.dumps(life, default=str))


@pytest.mark.parametrize("name", INDEXES)
def test_index(name, tmp_path):
    """An index that is filled, changed, merged and opened again gives these answers and decisions."""
    assert grown(tmp_path, name) == frozen()["index"][name]


def clustered(folder, representative, threshold):
    file = folder / "bottomk.parquet"
    sketch(mixed()[0], file, id_column="id", text_columns="text", method=BottomK(s=40), overwrite=True, engine=ENGINE)
    return digest_of(clusters(file, representative=representative, threshold=threshold).replace_schema_metadata())


CLUSTERS = {f"{name}, {least}": (name, least) for name in ("first", "commonest") for least in (0.3, 0.8)}


@pytest.mark.parametrize("name", CLUSTERS)
def test_clusters(name, tmp_path):
    assert clustered(tmp_path, *CLUSTERS[name]) == frozen()["clusters"][name]


HAMMING = {
    "64 bits": (SimHash(radius=6), {}),
    "128 bits": (SimHash(bits=128, radius=12), {"tables": TableOptions(leading_bits=5)}),
    "compressed": (SimHash(radius=3), {"tables": TableOptions(compress=True, num_tables=4)}),
    "leading bits": (SimHash(radius=4), {"tables": TableOptions(leading_bits=20)}),
}


def hamming_of(folder, name):
    """Return the reports of all jobs on simhashes, and the digests of what they wrote."""
    method, design = HAMMING[name]
    files = {"documents": mixed()[0], "known": mixed()[1]}
    for each, table in files.items():
        files[each] = folder / f"{each}.parquet"
        sketch(table, files[each], id_column="id", text_columns="text", method=method, overwrite=True, engine=ENGINE)
    index, out, small = folder / "simhashes.index", folder / "out.parquet", Near(bucket_limit=3, bucket_probe=1)
    options = {"overwrite": True, "engine": ENGINE}
    found = {"build": jobs.build(files["documents"], index, **design, **options)}
    runs = {
        "query": partial(jobs.query, index, files["known"], out),
        "nearest": partial(jobs.query, index, files["known"], out, query=Query(nearest=1, radius=2)),
        "join": partial(jobs.join, files["documents"], files["known"], out),
        "pairs": partial(jobs.pairs, files["documents"], out),
        "pairs in small buckets": partial(jobs.pairs, files["documents"], out, near=small),
    }
    for each, run in runs.items():
        found[each] = [run(**options), digest_of(pq.read_table(out).replace_schema_metadata())]
    for report in [found["build"], *(each[0] for each in list(found.values())[1:])]:
        for key in ("backend", "timings", "file_bytes", "recipe"):
            report.pop(key, None)
    return json.loads(json.dumps(found, default=str))


@pytest.mark.parametrize("name", HAMMING)
def test_hamming(name, tmp_path):
    assert hamming_of(tmp_path, name) == frozen()["hamming"][name]


def test_limits_and_edges_are_reached():
    """The table shows what it is to guard: large buckets, exact and near duplicates, and empty documents."""
    template, odd = frozen()["template"], frozen()["odd"]
    assert template["exact, bag of 3, one partner"]["limits"]["all_counted"] is False
    assert template["simhash against, small buckets"]["limits"]["uncompared_pairs"] > 0
    assert odd["minhash"]["counts"]["empty"] > 0 and odd["minhash"]["counts"]["removed_same_words"] > 0
    assert all(each["counts"]["removed_near"] > 0 for each in frozen()["edited"].values())


def main():
    import tempfile

    corpora = os.environ["NEARDUP_CORPORA"]
    table = {name: {r: decided(*made(name), r, "reference") for r in RECIPES} for name in MADE}
    with tempfile.TemporaryDirectory() as top:

        def folder():
            return Path(tempfile.mkdtemp(dir=top))

        table["sketches"] = {r: sketched(made("edited")[0], r, "reference", folder()) for r in SKETCHED}
        sources = written_sources(folder())
        table["jobs"] = {name: job(sources, folder() / "out", name) for name in JOBS}
        table["kept"] = {name: kept(sources, folder() / "out", **options) for name, options in KEPT.items()}
        table["index"] = {name: grown(folder(), name) for name in INDEXES}
        table["clusters"] = {name: clustered(folder(), *options) for name, options in CLUSTERS.items()}
        table["hamming"] = {name: hamming_of(folder(), name) for name in HAMMING}
    table |= {name: {r: decided(*real(name, corpora), r, "cpu") for r in RECIPES} for name in REAL}
    TABLE.write_text(json.dumps(table, indent=1) + "\n")


if __name__ == "__main__":
    sys.exit(main())
