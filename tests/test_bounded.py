"""Jobs within a bound of memory: the same decisions, no more resident memory, and one line where it cannot be."""

import gzip
import os
import re
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from flat import flat
from grids import some
from page_of import page_of

import neardup_gpu as nd
from neardup_gpu import data
from neardup_gpu.arguments import Arguments
from neardup_gpu.cli import main
from neardup_gpu.documents.sources import Sources
from neardup_gpu.engine.settings import Engine
from neardup_gpu.jobs import bounded
from neardup_gpu.planning import forecast
from neardup_gpu.planning.settings import Workload
from neardup_gpu.recipe import Recipe
from neardup_gpu.stages.partners import Search
from neardup_gpu.store import spool
from neardup_gpu.store.artefacts import read_report

METHODS = {"exact": Recipe(), "minhash": Recipe(method="minhash"), "simhash": Recipe(method="simhash")}
MB = 10**6
TIGHT = 360 * MB
"""More than the interpreter, libraries and kernels take, and less than these documents do in memory."""

BOUND = 430 * MB
"""Some 420 MB more than a bare interpreter, and less than any of these jobs takes in memory."""


def write(path, documents, rows=5000):
    """Documents of 40 words with ids of 40 characters; a fiftieth are the document before but for the last word."""
    draw, words = np.random.default_rng(1), np.array([f"w{number}" for number in range(50_000)])
    with pq.ParquetWriter(path, pa.schema([("id", pa.string()), ("text", pa.string())])) as writer:
        for first in range(0, documents, rows):
            picked = draw.integers(0, len(words), (min(rows, documents - first), 40))
            picked[1::50] = picked[::50]
            picked[1::50, -1] = 7
            texts = [" ".join(row) for row in words[picked].tolist()]
            ids = [f"document-{number:031d}" for number in range(first, first + len(texts))]
            writer.write_table(pa.table({"id": ids, "text": texts}, writer.schema))
    return path


@pytest.fixture(scope="module")
def few(tmp_path_factory):
    return write(tmp_path_factory.mktemp("few") / "few.parquet", 3000, 500)


@pytest.fixture(scope="module")
def many(tmp_path_factory):
    return write(tmp_path_factory.mktemp("many") / "many.parquet", 60_000)


def plain(table):
    """The values of a table: where it was written in parts, each has a dictionary of its own."""
    return table.replace_schema_metadata(None).to_pydict()


# ------------------------------------------------------------------------------------------------------------ decisions


@pytest.mark.parametrize("method", METHODS)
def test_a_bounded_job_decides_as_any_other(few, tmp_path, method):
    options = {"id_column": "id", "recipe": METHODS[method], "engine": "cpu"}
    usual = flat(nd.dedup, few, **options)
    tight = flat(nd.dedup, few, memory=TIGHT, output=tmp_path / "tight", **options)
    assert "tasks" in tight.report and "tasks" not in usual.report
    assert plain(tight.documents) == plain(usual.documents) and plain(tight.pairs) == plain(usual.pairs)
    assert (tight.documents.schema, tight.pairs.schema) == (usual.documents.schema, usual.pairs.schema)
    assert len(tight.removed) == len(usual.removed) > 10
    for name in ("kept", "removed", "groups"):
        assert tight.report["counts"][name] == usual.report["counts"][name]
    assert nd.open_documents(tmp_path / "tight").num_rows == len(usual.kept)
    assert tight.explain(tight.removed["id"][0].as_py()).duplicate_of == usual.removed["duplicate_of"][0].as_py()
    assert [path.name for path in tmp_path.iterdir()] == ["tight"]  # no work is left beside it


def test_a_bounded_job_that_fits_runs_in_memory(few, tmp_path):
    result = nd.dedup(few, memory="2GB", output=tmp_path / "out", id_column="id", engine="cpu")
    assert "tasks" not in result.report and (tmp_path / "out" / "documents.parquet").exists()


def test_without_an_output_only_decisions_are_made(few, tmp_path):
    table = pq.read_table(few)
    result = nd.dedup(table, memory=TIGHT, id_column="id", engine=nd.Engine(backend="cpu", temp_dir=tmp_path))
    assert "tasks" in result.report and len(list(tmp_path.iterdir())) == 1
    assert len(result.removed) == 60
    del result  # whose tables were in a temporary folder
    assert not list(tmp_path.iterdir())


def test_a_reference_set_and_frequencies(few, tmp_path):
    known = pq.read_table(few).slice(0, 100)
    known = known.set_column(0, "id", pa.array([f"known-{number}" for number in range(100)]))
    counted = nd.dedup(few, method=nd.MinHash(weighting="tfidf"), threshold=0.8, id_column="id", engine="cpu")
    options = {"against": known, "method": nd.MinHash(weighting="tfidf"), "threshold": 0.8, "id_column": "id"}
    options |= {"frequencies": counted.frequencies, "engine": "cpu"}
    usual, tight = flat(nd.dedup, few, **options), flat(nd.dedup, few, memory=TIGHT, **options)
    assert plain(tight.documents) == plain(usual.documents) and usual.report["counts"]["removed"] >= 100


def bounded_by(memory, report=False):
    """Return the arguments of a job with a bound of memory."""
    nothing = dict.fromkeys(("source", "against", "progress"))
    options = {"reading": nd.Reading(), "writing": nd.Writing(report=report), "recipe": Recipe()}
    return Arguments(**nothing, **options, output="out", engine=Engine(backend="cpu", threads=1), memory=memory)


def test_a_job_that_only_its_pairs_could_make_too_large_is_cut_for_all_of_them(few, monkeypatch):
    documents, work = nd.open_documents(few, id_column="id"), load(10**6)
    monkeypatch.setattr(forecast, "load_of", lambda *_, **__: work)
    memory = 2 * forecast.in_memory(work, Recipe(), 1).memory
    found = bounded.division_of(bounded_by(memory), Sources(documents), Recipe())
    assert found == forecast.divided(memory, work, Recipe(), 1, alike=True)
    assert found.partitions > forecast.divided(memory, work, Recipe(), 1).partitions


def test_a_page_is_made_beside_the_documents_of_a_job_in_memory(few, monkeypatch):
    documents = nd.open_documents(few, id_column="id")
    recipe, work = Recipe(max_partners=8), load(10**7)
    monkeypatch.setattr(forecast, "load_of", lambda *_, **__: work)
    least, with_page = forecast.at_most(work, recipe, 1), forecast.page_bytes(work, recipe)
    assert least < with_page
    for memory, page, divided in ((least, False, False), (least, True, True), (with_page, True, False)):
        found = bounded.division_of(bounded_by(memory, report=page), Sources(documents), recipe)
        assert (found is not None) == divided


# -------------------------------------------------------------------------------------------------------------- bounds


def resident_of_tree(process, with_files=True):
    """Most bytes that a process and those that it started held together, looked at every ten milliseconds.

    Pages of files that are mapped count, or not.
    """
    most, page = 0, os.sysconf("SC_PAGE_SIZE")
    while process.poll() is None:
        found = [process.pid]
        for pid in found:
            for children in Path(f"/proc/{pid}/task").glob("*/children"):
                found += [int(child) for child in read(children).split()]
        sizes = [read(Path(f"/proc/{pid}/statm")).split()[1:3] for pid in found]
        most = max(most, page * sum(int(each[0]) - (0 if with_files else int(each[1])) for each in sizes if each))
        time.sleep(0.01)
    return most


def read(path):
    try:
        return path.read_text()
    except OSError:  # it has ended
        return ""


def peak(source, output, *flags, verb="dedup", with_files=True):
    """Most resident memory of a command and of all its processes."""
    command = [sys.executable, "-c", "from neardup_gpu.cli.process import run; run()", verb, str(source)]
    command += ["--id-column", "id", "--output", str(output), "--quiet", "--engine", "cpu", *flags]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    process = subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True)
    errors = []
    reader = threading.Thread(target=lambda: errors.append(process.stderr.read()))
    reader.start()
    most = resident_of_tree(process, with_files)
    reader.join()
    assert process.returncode == 0, errors
    return most


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="what is resident is read in /proc")
@pytest.mark.parametrize("method", some(METHODS, ["exact"]))
def test_the_whole_command_stays_within_its_bound(many, tmp_path, method):
    flags = ("--method", method, *(("--threshold", "0.8") if method == "simhash" else ()), "--memory", str(BOUND))
    held = peak(many, tmp_path / "out", *flags)
    assert "tasks" in read_report(tmp_path / "out")
    assert 150 * MB < held <= BOUND


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="what is resident is read in /proc")
def test_repeated_passages_are_found_within_a_bound(corpora, tmp_path):
    """Without a bound it takes 530 to 600 MB besides pages of files, and 440 in the arrays that grow with the text."""
    flags = "--memory", "434MB", "--action", "list"
    held = peak(corpora / "bills_116.parquet", tmp_path / "out", *flags, verb="substrings", with_files=False)
    assert 150 * MB < held <= 434 * MB


# ----------------------------------------------------------------------------------------------------------- arithmetic


def load(documents, text_bytes=None, **others):
    return forecast.Load(Workload(documents=documents, text_bytes=text_bytes or 240 * documents), **others)


@pytest.mark.parametrize("recipe", METHODS.values(), ids=METHODS)
def test_more_documents_need_more_and_the_least_bound_fits(recipe):
    needs = [forecast.in_memory(load(number), recipe, 2) for number in (10**5, 10**6, 10**7, 10**9)]
    assert needs == sorted(needs) and all(a.memory < b.memory for a, b in zip(needs, needs[1:], strict=False))
    for number in (10**4, 10**6, 10**8):
        least = forecast.least(load(number), recipe)
        found = forecast.divided(least, load(number), recipe, 1)
        assert found is not None and found.need.memory <= least * 1.001
        assert forecast.divided(least * 9 // 10, load(number), recipe, 1) is None
    assert forecast.divided(8 * 10**9, load(10**8), recipe, 4).workers == 4
    assert forecast.divided(500 * MB, load(10**6), recipe, 4).workers == 1  # two interpreters alone take more


@pytest.mark.parametrize("recipe", METHODS.values(), ids=METHODS)
def test_the_least_bound_fits_where_much_is_alike(recipe):
    work = load(10**7)
    least = forecast.least(work, recipe, alike=True)
    assert least > forecast.least(work, recipe)
    assert forecast.divided(least, work, recipe, 1, alike=True) is not None
    assert forecast.divided(least * 9 // 10, work, recipe, 1, alike=True) is None


@pytest.mark.parametrize("name", ["docs/concepts/performance.md", "docs/how_to/memory.md", "neardup_gpu/jobs/dedup.py"])
def test_what_a_process_takes_has_one_figure(name):
    text = " ".join((Path(__file__).parent.parent / name).read_text().split())
    (figure,) = re.findall(r"(?:process takes|process of|each holds|process holds) about (\d+) MB", text)
    assert int(figure) == round(forecast.PROCESS / MB, -1)


def test_what_cannot_be_divided_needs_more():
    whole = forecast.least(load(10**7, largest=240 * 10**7), Recipe())
    assert whole > 1.5 * forecast.least(load(10**7), Recipe())


def test_a_job_runs_in_memory_only_if_all_pairs_that_may_be_listed_fit(few):
    documents = nd.open_documents(few, id_column="id")
    most = forecast.at_most(forecast.load_of(Sources(documents), 0, ask=True), Recipe(), 1)
    assert bounded.division_of(bounded_by(most), Sources(documents), Recipe()) is None
    assert bounded.division_of(bounded_by(most - 1), Sources(documents), Recipe()) is not None
    assert forecast.in_memory(forecast.load_of(Sources(documents), 0, ask=True), Recipe(), 1).memory < most - 1
    fewer, all_pairs = Recipe(max_partners=1), Recipe(max_partners=None)
    needs = [forecast.at_most(load(10**6), recipe, 1) for recipe in (fewer, Recipe(), all_pairs)]
    assert needs == sorted(needs) and needs[0] < needs[1] < needs[2]


def test_candidates_that_are_verified_together_are_as_many_as_the_bound_has_room_for(few, monkeypatch):
    monkeypatch.setattr(forecast, "LEAST_TOGETHER", 300)
    found = forecast.load_of(Sources(nd.open_documents(few, id_column="id")), 0, ask=True)
    most = forecast.at_most(found, Recipe(), 1)
    numbers = [forecast.candidates_at_once(most + more, found, Recipe(), 1) for more in (0, MB, 10**10)]
    assert numbers == [300, 300 + int(MB / (forecast.MARGIN * forecast.TOGETHER_BYTES)), forecast.TOGETHER]
    together, verify = [], Search._verify

    def noted(search, waiting, *more):
        together.append(sum(len(rows) for rows, *_ in waiting))
        verify(search, waiting, *more)

    monkeypatch.setattr(Search, "_verify", noted)
    page, engine = " ".join(f"word{number}" for number in range(60)), Engine(backend="cpu", threads=1)
    texts = {"text": [f"{page} {number}" for number in range(500)]}
    usual = nd.dedup(texts, engine=engine)
    assert max(together) > 600
    together.clear()
    most = forecast.at_most(forecast.load_of(Sources(nd.open_documents(texts)), 0, ask=True), Recipe(), 1)
    bounded_job = nd.dedup(texts, engine=engine, memory=most)
    assert max(together) <= 600
    assert bounded_job.documents.equals(usual.documents) and bounded_job.pairs.equals(usual.pairs)


def refused(source, **options):
    with pytest.raises(nd.NeardupError) as caught:
        flat(nd.dedup, source, **{"id_column": "id", "engine": "cpu", **options})
    return str(caught.value)


def test_what_cannot_be_bounded_is_one_line(few, tmp_path):
    least = refused(few, memory="100MB")
    assert least.startswith("100.0 MB of memory is not enough for 3,000 documents in ")
    given = least.rpartition("give at least ")[2]
    assert "tasks" in nd.dedup(few, id_column="id", engine="cpu", memory=given).report
    stream = pa.RecordBatchReader.from_batches(pq.read_schema(few), pq.read_table(few).to_batches())
    assert refused(stream, memory="1GB").startswith("a stream gives its rows only once")
    assert "by the backend cpu, not by reference" in refused(few, memory="1GB", engine="reference")
    assert refused(few, memory="lots").startswith("memory 'lots' is not a size")
    assert refused(few, memory=TIGHT, temp_dir=tmp_path / "none", output=tmp_path / "out").endswith("temp_dir=...")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["d.jsonl", "d.csv", "d.jsonl.gz", "d.parquet"])
def test_no_documents_at_all_fit_into_any_memory(few, tmp_path, name):
    path = tmp_path / name
    if name.endswith(".parquet"):
        pq.write_table(pq.read_table(few).slice(0, 0), path)
    else:
        text = b"id,text\n" if name.endswith(".csv") else b""
        path.write_bytes(gzip.compress(text) if name.endswith(".gz") else text)
    (warning,) = nd.dedup(path, id_column="id", engine="cpu", memory="1GB").warnings
    assert warning.startswith("the input holds no documents")


def test_flags(few, tmp_path, capsys):
    base = ["dedup", str(few), "--id-column", "id", "--engine", "cpu"]
    assert main([*base, "--output", str(tmp_path / "o"), "--memory", "1GB", "--work-dir", str(tmp_path / "w")]) == 2
    assert "--task-memory" in capsys.readouterr().err
    assert main([*base, "--output", str(tmp_path / "o"), "--memory", "lots"]) == 2
    assert "memory 'lots'" in capsys.readouterr().err
    assert main([*base, "--dry-run", "--memory", str(TIGHT)]) == 0
    told = capsys.readouterr()
    assert "of memory" in told.err and "runs as tasks over files" in told.err and "2,940" in told.out
    assert not list(tmp_path.iterdir())


# ----------------------------------------------------------------------------------------------------- what is foretold


def test_large_jobs_are_foretold_and_small_ones_are_not(few, monkeypatch, caplog):
    documents = nd.open_documents(few, id_column="id")
    with monkeypatch.context() as patch:
        patch.setattr(forecast, "load_of", lambda *_, **__: pytest.fail("a small job is planned"))
        assert bounded.foretold(Sources(documents), Recipe(), 0) is None
    monkeypatch.setattr(bounded, "FORECAST_BYTES", 1)
    need = bounded.foretold(Sources(documents), Recipe(), 0)
    assert need.documents == 3000 and 200 * 3000 < need.text_bytes < 400 * 3000
    assert 3 * need.text_bytes // 4 < need.disk < 3 * need.text_bytes and 1 < need.seconds < 5
    with caplog.at_level("INFO", "neardup_gpu"):
        nd.dedup(few, id_column="id", engine=Engine(backend="cpu"))
    (line,) = [record.getMessage() for record in caplog.records if "temporary disk" in record.getMessage()]
    assert line.startswith("3,000 documents, ") and line.endswith(" are needed")


@pytest.mark.parametrize(
    ("recipe", "check"),
    [(Recipe(), 0), (Recipe(), 200), (Recipe(method="containment"), 200), (Recipe(ignore_common=1000), 0)],
    ids=["exact", "checked", "containment", "ignore common"],
)
def test_temporary_files_are_as_large_as_foretold(few, monkeypatch, recipe, check):
    """All shingles are distinct, 36 of each document. Sets that are written again are counted as half of them."""
    counted, made, files = forecast.expected, spool.temporary_file, []

    def noted(folder):
        file = made(folder)
        files.append(os.dup(file.fileno()))
        return file

    monkeypatch.setattr(bounded, "FORECAST_BYTES", 1)
    monkeypatch.setattr(forecast, "expected", lambda *given: replace(counted(*given), shingles=36 * 3000))
    monkeypatch.setattr(spool, "temporary_file", noted)
    need = bounded.foretold(Sources(nd.open_documents(few, id_column="id")), recipe, check)
    nd.dedup(few, id_column="id", recipe=recipe, engine=Engine(backend="cpu"), writing=nd.Writing(check=check))
    sizes = [os.stat(file).st_size for file in files]
    [os.close(file) for file in files]
    if recipe.method.name == "exact" and check:
        assert sizes[0] == 8 * 36 * 3000 and 0 < sizes[1] <= sizes[0] and need.disk == 12 * 36 * 3000
    else:  # the third file is that of a sample
        assert sum(sizes[:2]) == need.disk == 8 * 36 * 3000 * (1 if recipe.ignore_common is None else 2)


# ------------------------------------------------------------------------------------------------------ ids beyond 2 GB


@pytest.fixture
def short_offsets(monkeypatch):
    """Offsets of 32 bits that tell a hundred bytes, not two billion."""
    monkeypatch.setattr(data, "MOST_STRING_BYTES", 100)


def test_long_columns_are_joined_taken_and_compared(short_offsets):
    chunks = pa.chunked_array([["a" * 60, "b"], ["c" * 60]])
    assert data.one_array(chunks).type == pa.large_string() and data.one_array(chunks[:1]).type == pa.string()
    assert data.one_array(pa.chunked_array([[b"a" * 60], [b"b" * 60]])).type == pa.large_binary()
    rows = pa.array([2, None, 0, 1, 2])
    taken = data.taken(chunks.combine_chunks(), rows)
    assert taken.num_chunks > 1 and taken.type == pa.string() and taken.to_pylist() == chunks.take(rows).to_pylist()
    tables = pa.table({"id": chunks, "kept": [True] * 3}), pa.table({"id_a": ["b"]})
    large = data.large_tables(*tables)
    assert [table.schema.field(0).type for table in large] == [pa.large_string()] * 2
    assert [table.to_pydict() for table in large] == [table.to_pydict() for table in tables]


def test_a_job_whose_ids_are_long(few, short_offsets):
    options = {"id_column": "id", "method": "minhash", "engine": "cpu"}
    found = flat(nd.dedup, few, **options)
    assert found.documents.schema.field("id").type == pa.large_string() and len(found.removed) == 60
    page = pytest.importorskip("jinja2") and page_of(found, text=True)
    assert "document-" in page.html


def test_comparisons_are_not_bounded_as_well(few):
    assert refused(few, memory="2GB", max_comparisons=10).startswith("max_comparisons and memory: ")
