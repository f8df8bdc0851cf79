"""Sketches that tasks make: the bytes of those of a job in one process, however it is cut, killed or continued."""

import json
import random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import troubled
from chores import no_mark
from dead_drivers import killed_after_each

from neardup_gpu import BottomK, MinHash, ModM, Reading, SimHash, Workers, dedup
from neardup_gpu.engine.tasks import TaskFailedError
from neardup_gpu.errors import InputError, OutputError, ParameterError
from neardup_gpu.jobs.info import check
from neardup_gpu.results.sketch_writing import frequencies_path, skipped_path
from neardup_gpu.sketches import pairs, sketch

METHODS = {
    "min-hash": MinHash(),
    "one bit": MinHash(sample_bits=1, candidates="segments"),
    "tf-idf": MinHash(weighting="tfidf"),
    "bottom-k": BottomK(),
    "mod-m": ModM(),
    "simhash": SimHash(),
    "simhash, 128 bits, tf-idf": SimHash(bits=128, radius=8, weighting="tfidf"),
}
STAGES = ["sketch", "unique", "write"]


def documents(folder, number=200):
    """Four files of documents, one of them without rows; some documents are empty."""
    draw = random.Random(3)
    words = [f"word{i}" for i in range(300)]
    texts = [" ".join(draw.choices(words, k=draw.randrange(40))) for _ in range(number)]
    schema = pa.schema({"id": pa.string(), "text": pa.string()})
    table = pa.table({"id": [f"d{i}" for i in range(number)], "text": texts}, schema=schema)
    folder.mkdir()
    for name, rows in (("a", table[:60]), ("b", table[:0]), ("c", table[60:150]), ("d", table[150:])):
        pq.write_table(rows, folder / f"{name}.parquet", row_group_size=25)
    return table


def workers(folder, **settings):
    return Workers(**{"work_dir": str(folder / "work"), "number": 1, "slice_bytes": 3000, **settings})


def in_tasks(folder, source=None, output="tasks.parquet", *, cut=None, **options):
    given = {"id_column": "id", "engine": "cpu", "workers": workers(folder, **(cut or {})), **options}
    return sketch(folder / "in" if source is None else source, folder / output, **given)


def same_report(here, there):
    left_out = {"timings", "device", "tasks", "frequencies", "shards"}
    assert {name: value for name, value in here.items() if name not in left_out} == {
        name: value for name, value in there.items() if name not in left_out
    }


@pytest.fixture
def box(tmp_path):
    documents(tmp_path / "in")
    return tmp_path


@pytest.mark.parametrize("method", METHODS)
def test_the_bytes_of_one_file(box, method):
    chosen = METHODS[method]
    here = sketch(box / "in", box / "s.parquet", id_column="id", method=chosen, engine="cpu")
    there = in_tasks(box, method=chosen)
    assert there["tasks"]["slices"] > 4 and there["tasks"]["resumed"] == 0
    same_report(here, there)
    assert (box / "tasks.parquet").read_bytes() == (box / "s.parquet").read_bytes()
    assert not (box / "work").exists()
    counted = frequencies_path(box / "s.parquet")
    assert counted.exists() == ("tf-idf" in method)
    if counted.exists():
        other = frequencies_path(box / "tasks.parquet")
        assert there["frequencies"] == str(other) and pq.read_table(other).equals(pq.read_table(counted))
        by_path = type(chosen)(**{**vars(chosen), "frequencies": str(counted)})
        in_tasks(box, output="again.parquet", method=by_path)
        assert (box / "again.parquet").read_bytes() == (box / "s.parquet").read_bytes()


@pytest.mark.parametrize("kind", ["rows", "lines", "texts", "table", "processes"])
def test_inputs_and_workers(box, tmp_path, kind):
    table, source, options, cut = pq.read_table(box / "in"), box / "in", {"id_column": None}, {}
    if kind == "lines":
        source = tmp_path / "lines"
        source.mkdir()
        for name, rows in (("a", table[:90]), ("b", table[90:])):
            lines = [json.dumps(row) for row in rows.to_pylist()]
            (source / f"{name}.jsonl").write_text("\n".join([*lines[:50], "{not json", *lines[50:]]))
        options["reading"] = Reading(on_error="skip")
    elif kind == "texts":
        source = tmp_path / "texts"
        source.mkdir()
        for id, text in zip(*table.to_pydict().values(), strict=True):
            (source / f"{id}.txt").write_text(text)
    elif kind == "table":
        source, options = table, {}
    elif kind == "processes":
        cut = {"number": 2}
    here = sketch(source, box / "s.parquet", engine="cpu", **{"id_column": "id", **options})
    there = in_tasks(box, source, cut=cut, **options)
    same_report(here, there)
    assert (box / "tasks.parquet").read_bytes() == (box / "s.parquet").read_bytes()
    if kind == "lines":
        assert here["skipped"] == 2
        both = [pq.read_table(skipped_path(box / name)) for name in ("s.parquet", "tasks.parquet")]
        assert both[0].equals(both[1])


def test_shards(box):
    sketch(box / "in", box / "s.parquet", id_column="id", engine="cpu")
    report = in_tasks(box, output="shards", shard_bytes=20_000, method=MinHash(weighting="tfidf"))
    names = sorted(path.name for path in (box / "shards" / "sketches").iterdir())
    assert len(names) == report["shards"] > report["tasks"]["slices"]
    assert {name[:10] for name in names} == {f"part-{i:05}" for i in range(report["tasks"]["slices"])}
    assert report["frequencies"] == str(box / "shards" / "frequencies.parquet")
    assert check(box / "shards") == f"all {len(names) + 2} files of {box / 'shards'}"
    in_tasks(box, output="shards", shard_bytes=20_000, overwrite=True)
    assert pq.read_table(box / "shards" / "sketches").equals(pq.read_table(box / "s.parquet"))
    assert not (box / "shards" / "frequencies.parquet").exists()
    assert pairs(box / "shards").equals(pairs(box / "s.parquet"))


def test_no_documents(tmp_path):
    table = documents(tmp_path / "in", 0)
    for name, source in (("files", None), ("table", table)):
        sketch(tmp_path / "in" if source is None else source, tmp_path / "s.parquet", id_column="id", overwrite=True)
        in_tasks(tmp_path, source, f"{name}.parquet")
        assert (tmp_path / f"{name}.parquet").read_bytes() == (tmp_path / "s.parquet").read_bytes()
        in_tasks(tmp_path, source, name, shard_bytes="1MB")
        assert pairs(tmp_path / name).num_rows == 0


class TestFaults:
    def test_workers_that_are_killed(self, box, monkeypatch):
        in_tasks(box, output="calm.parquet")
        troubled.trouble(monkeypatch.setattr, troubled.killed_twice, box / "marks")
        in_tasks(box, cut={"number": 2})
        assert (box / "tasks.parquet").read_bytes() == (box / "calm.parquet").read_bytes()
        assert all((box / "marks" / f"{stage}-second").exists() for stage in STAGES)

    def test_a_driver_that_is_killed_and_started_again(self, box):
        in_tasks(box, output="calm.parquet")
        killed_after_each(STAGES, box, __file__, output="tasks.parquet")
        assert (box / "tasks.parquet").read_bytes() == (box / "calm.parquet").read_bytes()
        done = (box / "marks" / "log").read_text().splitlines()
        assert len(done) == len(set(done)), "no task was done twice"

    def test_a_task_that_fails_thrice(self, box, monkeypatch):
        troubled.trouble(monkeypatch.setattr, troubled.failing, box / "marks")
        (box / "marks" / "write-0").touch()
        with pytest.raises(TaskFailedError, match=r"^task 0 of stage write .* failed 3 times"):
            in_tasks(box)
        assert not (box / "tasks.parquet").exists()
        (box / "marks" / "write-0").unlink()
        report = in_tasks(box)
        assert report["tasks"]["resumed"] >= report["tasks"]["slices"]

    def test_a_damaged_file_is_made_again(self, box, monkeypatch):
        in_tasks(box, output="calm.parquet")

        def damaging(folder, perform, shared, stage, number, *others):
            if stage == "write" and no_mark(folder / "damaged"):
                path = box / "work" / "sketch" / "000002-sketches"
                data = bytearray(path.read_bytes())
                data[len(data) // 2] ^= 1
                path.write_bytes(data)
            return perform(shared, stage, number, *others)

        troubled.trouble(monkeypatch.setattr, damaging, box / "marks")
        in_tasks(box)
        assert (box / "tasks.parquet").read_bytes() == (box / "calm.parquet").read_bytes()

    def test_ids_that_come_again(self, box):
        pq.write_table(pa.table({"id": ["d3"], "text": ["once more"]}), box / "in" / "z.parquet")
        said = []
        for run in (in_tasks, lambda folder: sketch(folder / "in", folder / "s.parquet", id_column="id")):
            with pytest.raises(InputError, match="d3") as error:
                run(box)
            said.append(str(error.value))
        assert said[0] == said[1]

    def test_work_of_another_command(self, box):
        dedup(box / "in", id_column="id", output=box / "out", workers=workers(box, keep_work=True))
        with pytest.raises(OutputError, match=r"work: holds the work of `neardup dedup`; name another work_dir"):
            in_tasks(box)
        in_tasks(box, cut={"work_dir": str(box / "other"), "keep_work": True})
        with pytest.raises(OutputError, match=r"other: holds the work of `neardup sketch`"):
            dedup(box / "in", id_column="id", output=box / "out2", workers=workers(box, work_dir=str(box / "other")))

    def test_impossible_settings(self, box):
        with pytest.raises(ParameterError, match="work_dir: tasks need a folder"):
            in_tasks(box, cut={"work_dir": None})
        with pytest.raises(ParameterError, match="spool: sketching keeps no shingles; leave it out"):
            in_tasks(box, cut={"spool": True})
        with pytest.raises(InputError, match="is a stream"):
            in_tasks(box, pq.read_table(box / "in").to_reader())
        with pytest.raises(OutputError, match="work: is not apart from the work folder"):
            in_tasks(box, output="work")
        assert not (box / "tasks.parquet").exists()


def test_ray(box, ray_here):
    in_tasks(box, output="calm.parquet")
    in_tasks(box, cut={"number": 2, "runner": "ray"})
    assert (box / "tasks.parquet").read_bytes() == (box / "calm.parquet").read_bytes()
