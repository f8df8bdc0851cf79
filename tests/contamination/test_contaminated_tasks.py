"""A check that tasks do: the bytes of one in memory, however it is cut, killed or continued."""

import json
import random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import troubled
from chores import no_mark
from dead_drivers import killed_after_each
from grids import weekly

from neardup_gpu import Engine, Reading, Workers, Writing, contaminated, dedup
from neardup_gpu.engine.tasks import TaskFailedError
from neardup_gpu.errors import DamagedError, InputError, OutputError, ParameterError
from neardup_gpu.jobs.info import check

STAGES = ["search", "write"]


def documents(folder, number=200):
    """Make three files of documents, one of them without rows, that share runs of few words with the items."""
    draw = random.Random(3)
    texts = [" ".join(draw.choices("abc", k=draw.randrange(40))) for _ in range(number)]
    ids = [f"d{i}" for i in range(number)]
    table = pa.table({"id": ids, "text": texts}, schema=pa.schema({"id": pa.string(), "text": pa.string()}))
    folder.mkdir()
    for name, rows in (("a", table[:110]), ("b", table[:0]), ("c", table[110:])):
        pq.write_table(rows, folder / f"{name}.parquet", row_group_size=25)
    return table


def items():
    """Return two evaluation sets: short items, items of several fields, and some that stand nowhere."""
    draw = random.Random(5)
    question, answer = ([" ".join(draw.choices("abc", k=draw.randrange(30))) for _ in range(40)] for _ in range(2))
    return {"one": {"id": [f"q{i}" for i in range(40)], "question": question, "answer": answer}, "two": {"x": ["y z"]}}


def checked(folder, source=None, output="out", **options):
    source = folder / "in" if source is None else source
    return contaminated(source, items(), output=folder / output, **{"id_column": "id", "engine": "cpu", **options})


def in_tasks(folder, source=None, output="tasks", *, cut=None, **options):
    given = {"work_dir": str(folder / "work"), "number": 1, "slice_bytes": 600, **(cut or {})}
    return checked(folder, source, output, workers=Workers(**given), **options)


def bytes_of(folder):
    """Return the bytes of all files but the certificate and kept/, and what the certificate says of them."""
    found = {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}
    told = json.loads(found.pop("certificate.json"))
    left_out = {"timings", "seconds", "tasks", "files", "checksums", "checksum"}
    return found, {name: value for name, value in told.items() if name not in left_out}


def rows_of(folder):
    """Return the kept rows, in their order."""
    if (folder / "kept").exists() and any(path.suffix == ".jsonl" for path in (folder / "kept").iterdir()):
        return "".join(path.read_text() for path in sorted((folder / "kept").iterdir()))
    return pq.read_table(folder / "kept").to_pylist() if (folder / "kept").exists() else None


def same(one, other):
    assert bytes_of(one) == bytes_of(other)
    assert rows_of(one) == rows_of(other)


@pytest.fixture
def box(tmp_path):
    documents(tmp_path / "in")
    return tmp_path


@pytest.mark.parametrize("action", ["list", "drop", "cut", "mark"])
def test_the_bytes_of_every_file(box, action):
    here = checked(box, action=action)
    assert here.counts["documents_hit"] > 20 and here.counts["hits"] > 100
    there = in_tasks(box, action=action, cut={"number": 2 if action == "cut" else 1})
    same(box / "out", box / "tasks")
    assert there.report["tasks"]["slices"] > 4 and there.report["tasks"]["resumed"] == 0
    assert there.hits.equals(here.hits) and there.evals.equals(here.evals) and there.counts == here.counts
    assert not (box / "work").exists()
    in_tasks(box, output="large", action=action, cut={"slice_bytes": "1MB"})
    same(box / "out", box / "large")


@pytest.mark.parametrize("kind", ["rows", "lines", "texts", "table", "shards"])
def test_inputs(box, tmp_path, kind):
    table, source, options = pq.read_table(box / "in"), box / "in", {"id_column": None, "action": "cut"}
    if kind == "lines":
        source = tmp_path / "lines"
        source.mkdir()
        for name, rows in (("a", table[:90]), ("b", table[90:])):
            lines = [json.dumps(row) for row in rows.to_pylist()]
            (source / f"{name}.jsonl").write_text("\n".join([*lines[:50], "{not json", *lines[50:]]) + "\n")
        options["reading"] = Reading(on_error="skip")
    elif kind == "texts":
        source, options["action"] = tmp_path / "texts", "list"
        source.mkdir()
        for id, text in zip(*table.to_pydict().values(), strict=True):
            (source / f"{id}.txt").write_text(text)
    elif kind == "table":
        source, options = table, {"action": "mark"}
    elif kind == "shards":
        options["writing"] = Writing(output_format="parquet", shard_bytes="2KB")
    checked(box, source, **options)
    in_tasks(box, source, **options)
    same(box / "out", box / "tasks")
    if kind == "lines":
        assert pq.read_table(box / "tasks" / "skipped.parquet").num_rows == 2


@pytest.mark.parametrize("by", ["site", "year", "file"])
def test_counts_by_value(box, by):
    """Of each value: its documents, those with a hit, the items that stand in them, and the hits."""
    for name in ("a", "b", "c"):
        table = pq.read_table(box / "in" / f"{name}.parquet")
        site = pa.array([None if row % 7 == 0 else f"s{row % 3}" for row in range(len(table))], pa.string())
        year = pa.array([row % 2 for row in range(len(table))], pa.int16())
        pq.write_table(table.append_column("site", site).append_column("year", year), box / "in" / f"{name}.parquet")
    here = checked(box, writing=Writing(by=by))
    in_tasks(box, writing=Writing(by=by))
    same(box / "out", box / "tasks")
    values = {"site": [], "year": [], "file": []}
    for name in ("a", "b", "c"):
        table = pq.read_table(box / "in" / f"{name}.parquet")
        values["site"] += table["site"].to_pylist()
        values["year"] += map(str, table["year"].to_pylist())
        values["file"] += [f"{name}.parquet"] * len(table)
    of = dict(zip((f"d{row}" for row in range(200)), values[by], strict=True))
    expected = {}
    for value in of.values():
        expected.setdefault(value, {"documents": 0, "hit": set(), "items": set(), "hits": 0})["documents"] += 1
    for hit in here.hits.to_pylist():
        found = expected[of[hit["id"]]]
        found["hit"].add(hit["id"])
        found["items"].add((hit["eval_set"], hit["eval_id"]))
        found["hits"] += 1
    told = here.report["by"]
    assert (told["column"], told["num_values"]) == (by, len(expected))
    assert {row.pop("value"): row for row in told["values"]} == {
        value: {
            "documents": found["documents"],
            "documents_hit": len(found["hit"]),
            "items": len(found["items"]),
            "hits": found["hits"],
        }
        for value, found in expected.items()
    }
    assert f"<h2>By {by}</h2>" in (box / "out" / "contaminated.html").read_text()


@pytest.mark.parametrize("kind", ["parquet", "lines"])
def test_seams(box, kind):
    """A second check reads the seams of the first one, and a third check with more items adds its own."""
    writing = Writing(output_format="jsonl") if kind == "lines" else None
    first = checked(box, action="cut", writing=writing, length=10)
    assert first.counts["across_seams"] > 0
    in_tasks(box, action="cut", writing=writing, length=10)
    same(box / "out", box / "tasks")
    for name, length in (("same", 10), ("more", 6)):
        here = checked(box, box / "out" / "kept", f"{name}-here", action="cut", length=length)
        there = in_tasks(box, box / "out" / "kept", f"{name}-there", action="cut", length=length)
        assert there.report["tasks"]["slices"] > 2 and (here.counts["hits"] > 0) == (name == "more")
        same(box / f"{name}-here", box / f"{name}-there")
        again = in_tasks(box, box / f"{name}-here" / "kept", f"{name}-again", length=length)
        assert again.counts["hits"] == 0
    assert rows_of(box / "same-here") == rows_of(box / "out")


def test_seams_that_hold_something_else(box):
    table = pq.read_table(box / "in" / "c.parquet")
    pq.write_table(table.append_column("seams", [["zigzag"] * len(table)]), box / "in" / "c.parquet")
    for run in (checked, in_tasks):
        with pytest.raises(InputError, match=r"^column 'seams': holds something else [^\n]*; rename it$"):
            run(box, output="none")
    assert not (box / "none").exists()


def test_columns_that_cannot_be_counted_by(box):
    for by, says in (("nowhere", "no column 'nowhere'"), ("file", "documents in memory have no files")):
        with pytest.raises(InputError, match=says):
            checked(box, pq.read_table(box / "in"), writing=Writing(by=by))
    assert not (box / "out").exists()


def test_ids_of_both_kinds_of_integers(tmp_path):
    """Ids from 2**63 on make all ids unsigned, wherever slices and batches end."""
    text = " ".join(items()["one"]["question"])
    rows = [{"id": 2**63 + i if i in (0, 33) else i, "text": "nothing" if i == 33 else text} for i in range(40)]
    (tmp_path / "in.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    small = Engine(backend="cpu", batch_bytes=500)
    found = [checked(tmp_path, tmp_path / "in.jsonl", name, engine=small) for name in ("out",)]
    found.append(checked(tmp_path, tmp_path / "in.jsonl", "whole"))
    found.append(in_tasks(tmp_path, tmp_path / "in.jsonl"))
    assert {str(each.hits.schema.field("id").type) for each in found} == {"uint64"}
    same(tmp_path / "out", tmp_path / "tasks")
    same(tmp_path / "out", tmp_path / "whole")


def test_a_certificate_of_tasks_is_checked(box):
    (box / "evals.jsonl").write_text("".join(json.dumps({"q": text}) + "\n" for text in items()["one"]["question"]))
    workers = Workers(work_dir=str(box / "work"), number=1, slice_bytes=600)
    contaminated(box / "in", box / "evals.jsonl", output=box / "out", id_column="id", engine="cpu", workers=workers)
    assert "by another scan of 200 documents" in check(box / "out")
    table = pq.read_table(box / "in" / "a.parquet")
    pq.write_table(table.slice(1), box / "in" / "a.parquet")
    with pytest.raises(DamagedError, match="the training text: not what is found now"):
        check(box / "out")


def test_no_documents(tmp_path):
    documents(tmp_path / "in", 0)
    checked(tmp_path)
    in_tasks(tmp_path)
    same(tmp_path / "out", tmp_path / "tasks")
    (tmp_path / "in.jsonl").write_text("{not json\n")
    reading = Reading(on_error="skip")
    for run in (checked, in_tasks):
        with pytest.raises(InputError, match="holds no documents that can be read"):
            run(tmp_path, tmp_path / "in.jsonl", "none", id_column=None, text_columns="text", reading=reading)


class TestFaults:
    @weekly  # a driver that is killed after each stage leaves the same to be done
    def test_workers_that_are_killed(self, box, monkeypatch):
        in_tasks(box, output="calm", action="cut")
        troubled.trouble(monkeypatch.setattr, troubled.killed_twice, box / "marks")
        in_tasks(box, cut={"number": 2}, action="cut")
        same(box / "tasks", box / "calm")
        assert all((box / "marks" / f"{stage}-second").exists() for stage in STAGES)

    def test_a_driver_that_is_killed_and_started_again(self, box):
        in_tasks(box, output="calm", action="cut")
        killed_after_each(STAGES, box, __file__, options=', action="cut"')
        same(box / "tasks", box / "calm")
        done = (box / "marks" / "log").read_text().splitlines()
        assert len(done) == len(set(done)), "no task was done twice"

    def test_other_items_are_searched_for_anew(self, box, monkeypatch):
        """A work folder that was left by an interrupted check serves another one with other items."""
        troubled.trouble(monkeypatch.setattr, troubled.failing, box / "marks")
        (box / "marks" / "search-1").touch()
        with pytest.raises(TaskFailedError, match=r"^task 1 of stage search .* failed 3 times"):
            in_tasks(box)
        assert not (box / "tasks").exists()
        (box / "marks" / "search-1").unlink()
        workers = Workers(work_dir=str(box / "work"), number=1, slice_bytes=600)
        other = {"two": {"x": ["a b c a b c a b"]}}
        found = contaminated(box / "in", other, output=box / "other", id_column="id", engine="cpu", workers=workers)
        assert found.report["tasks"]["resumed"] == 0 and not (box / "work").exists()

    def test_a_damaged_file_is_made_again(self, box, monkeypatch):
        in_tasks(box, output="calm", action="cut")

        def damaging(folder, perform, shared, stage, number, *others):
            if stage == "write" and no_mark(folder / "damaged"):
                troubled.damage(box / "work" / "search" / "000002-found", "cut")
            return perform(shared, stage, number, *others)

        troubled.trouble(monkeypatch.setattr, damaging, box / "marks")
        in_tasks(box, action="cut", cut={"number": 1})
        same(box / "tasks", box / "calm")

    def test_impossible_settings(self, box):
        with pytest.raises(ParameterError, match="work_dir: tasks need a folder"):
            in_tasks(box, cut={"work_dir": None})
        with pytest.raises(ParameterError, match="spool: `neardup contaminated` keeps no shingles; leave it out"):
            in_tasks(box, cut={"spool": True})
        with pytest.raises(InputError, match="is a stream"):
            in_tasks(box, pq.read_table(box / "in").to_reader())
        with pytest.raises(OutputError, match="output: tasks write their result into a folder; name one"):
            contaminated(box / "in", items(), workers=Workers(work_dir=str(box / "work")))
        with pytest.raises(OutputError, match="tasks: is not apart from the work folder"):
            in_tasks(box, cut={"work_dir": str(box / "tasks" / "work")})
        many = {"set": {"q": [" ".join(f"w{i}" for i in range(400_000))]}}
        with pytest.raises(ParameterError, match=r"task_memory 17MB: each task holds the items .* up to 18MB; allow"):
            workers = Workers(work_dir=str(box / "work"), task_memory="16MiB")
            contaminated(box / "in", many, output=box / "tasks", workers=workers)
        assert not (box / "tasks").exists()

    def test_work_of_another_command(self, box):
        workers = Workers(work_dir=str(box / "work"), number=1, slice_bytes=600, keep_work=True)
        dedup(box / "in", id_column="id", output=box / "kept", workers=workers)
        with pytest.raises(OutputError, match=r"work: holds the work of `neardup dedup`; name another work_dir"):
            in_tasks(box)


@weekly  # the workers are those of tests/tasks/test_sketch_job.py
def test_ray(box, ray_here):
    checked(box, action="cut")
    in_tasks(box, cut={"number": 2, "runner": "ray"}, action="cut")
    same(box / "tasks", box / "out")
