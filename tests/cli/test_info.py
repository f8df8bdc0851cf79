"""`neardup info` of every kind of artefact, as a table and as JSON."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from flat import flat

import neardup_gpu as nd
from neardup_gpu import cli, demo
from neardup_gpu.hamming import jobs

LIBRARY = demo.FILES[0]
READING = {"text_columns": "text", "id_column": "id"}

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    def call(*arguments: object) -> tuple[int, str, str]:
        capsys.readouterr()
        status = cli.main([str(each) for each in arguments])
        said = capsys.readouterr()
        return status, said.out, said.err

    return call


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with an artefact of each kind."""
    folder = tmp_path_factory.mktemp("artefacts")
    flat(nd.dedup, LIBRARY, **READING, on_error="skip", output=folder / "out")
    weighed = nd.Recipe(method=nd.SimHash(weighting="tfidf"))
    flat(nd.sketches.sketch, LIBRARY, folder / "weighed.parquet", **READING, recipe=weighed)
    flat(nd.sketches.sketch, LIBRARY, folder / "sketches.parquet", **READING, method="simhash")
    flat(nd.sketches.sketch, LIBRARY, folder / "bottomk.parquet", **READING, method="bottomk")
    nd.sketches.pairs(folder / "bottomk.parquet", folder / "pairs.parquet")
    nd.sketches.clusters(folder / "bottomk.parquet", folder / "clusters.parquet")
    jobs.build(folder / "sketches.parquet", folder / "made.index")
    jobs.query(folder / "made.index", folder / "sketches.parquet", output=folder / "matches.parquet")

    def stop(stage: str, *_: object) -> None:
        if stage == "write":
            raise KeyboardInterrupt

    workers = nd.Workers(work_dir=str(folder / "work"), number=1)
    with pytest.raises(KeyboardInterrupt):
        flat(nd.dedup, LIBRARY, **READING, output=folder / "parts", workers=workers, progress=stop)
    shutil.copytree(folder / "work", folder / "begun")
    flat(nd.dedup, LIBRARY, **READING, output=folder / "parts", workers=workers)
    flat(nd.dedup, LIBRARY, **READING, output=folder / "ids", ids_only=True, workers=workers)
    return folder


@pytest.mark.parametrize(
    ("name", "kind", "says"),
    [
        ("out", "result", "239"),
        ("parts", "result", "239"),
        ("out/report.json", "result", "239"),
        ("out/documents.parquet", "documents", "rows           239"),
        ("parts/documents/part-00000.parquet", "documents", "rows           239"),
        ("out/pairs.parquet", "pairs", "rows"),
        ("out/skipped.parquet", "skipped", "columns        file, row, rows, bytes, reason"),
        ("sketches.parquet", "sketches", "rows           239"),
        ("weighed.parquet", "sketches", "tfidf"),
        ("weighed.frequencies.parquet", "frequencies", "rows"),
        ("pairs.parquet", "pairs", "columns        id_a, id_b"),
        ("clusters.parquet", "clusters", "rows           239"),
        ("made.index", "index", "fingerprints   239"),
        ("matches.parquet", "matches", "columns        query_id"),
        ("begun", "work", "  sketch"),
        ("begun/job.json", "work", "  sketch"),
    ],
)
def test_every_kind(run: Run, made: Path, name: str, kind: str, says: str) -> None:
    status, said, errors = run("info", made / name)
    assert (status, errors) == (0, "")
    assert said.startswith(kind) and says in said
    status, said, _ = run("info", made / name, "--json")
    assert status == 0 and json.loads(said)["kind"] == kind


def test_a_plan_that_was_kept(run: Run, tmp_path: Path) -> None:
    plan = tmp_path / "plan.json"
    plan.write_text(run("plan", "--documents", "1e8", "--text", "500GB", "--json")[1])
    status, said, _ = run("info", plan)
    assert status == 0 and said.startswith("plan")
    (line,) = [line for line in said.splitlines() if line.split()[:1] == ["sketch"]]
    (sketch,) = [stage for stage in json.loads(plan.read_text())["stages"] if stage["name"] == "sketch"]
    assert line.split()[1] == f"{sketch['tasks']:,}"
    assert "slice_bytes" in said


def test_stages_of_a_work_folder(run: Run, made: Path) -> None:
    found = json.loads(run("info", made / "begun", "--json")[1])
    assert next(iter(found["stages"])) == "sketch" and "listed" not in found["stages"]
    held = sum(path.stat().st_size for path in (made / "begun").glob("*/*") if path.suffix != ".json")
    assert found["counts"]["file_bytes"] == held
    assert found["counts"]["tasks"] == sum(stage["tasks"] for stage in found["stages"].values())


def test_a_work_folder_is_checked(run: Run, made: Path, tmp_path: Path) -> None:
    work = shutil.copytree(made / "begun", tmp_path / "work")
    status, said, _ = run("info", work, "--check")
    assert status == 0 and "checked: sizes and seals of all" in said
    file = next(path for path in (work / "sketch").iterdir() if path.suffix != ".json")
    file.write_bytes(file.read_bytes()[:-1])
    status, said, errors = run("info", work, "--check")
    assert (status, said, errors.count("\n")) == (2, "", 1) and file.name in errors
    record = work / "sketch" / "000000.json"
    record.write_text(record.read_text() + "x")
    status, said, errors = run("info", work)
    assert (status, said, errors.count("\n")) == (2, "", 1) and record.name in errors


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("out/kept", "kept rows"),
        ("parts/documents", "a table of the result"),
        ("ids/kept_ids", "a table of the result"),
        ("begun/sketch", "a file that tasks exchange"),
        ("begun/sketch/000000.json", "a file that tasks exchange"),
        (".", "not a finished result"),
    ],
)
def test_parts_name_the_whole(run: Run, made: Path, name: str, says: str) -> None:
    status, said, errors = run("info", made / name)
    assert (status, said, errors.count("\n")) == (2, "", 1)
    assert says in errors
    assert name == "." or f"try neardup info {made / name.partition('/')[0]}" in errors


OTHER = ["", "[]", "{}", '{"stages": 3}', '{"stages": [{"name": 1}], "counts": {}}', "\x00"]


@pytest.mark.parametrize("text", OTHER)
def test_other_json(run: Run, tmp_path: Path, text: str) -> None:
    (tmp_path / "other.json").write_text(text)
    (tmp_path / "job.json").write_text(text)
    for path in (tmp_path / "other.json", tmp_path / "job.json", tmp_path):
        status, said, errors = run("info", path)
        assert (status, said, errors.count("\n")) == (2, "", 1), path


def test_a_plan_of_other_types(run: Run, tmp_path: Path) -> None:
    plan = json.loads(run("plan", "--documents", "1e8", "--text", "500GB", "--json")[1])
    plan["stages"][0]["tasks"] = "many"
    (tmp_path / "plan.json").write_text(json.dumps(plan))
    status, said, errors = run("info", tmp_path / "plan.json")
    assert (status, said, errors.count("\n")) == (2, "", 1) and "not an artefact" in errors
