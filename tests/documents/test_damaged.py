"""Small files of every format, cut, changed and joined: what is read and what is counted as lost are those of oracles.

NEARDUP_MUTATIONS is how many mutations are read of each format; benchmarks/results/damage.json has the counts of more.
"""

import os
from pathlib import Path

import damaging
import pytest

import neardup_gpu as nd
from neardup_gpu.report import facts
from neardup_gpu.store.artefacts import read_report

COUNT = int(os.environ.get("NEARDUP_MUTATIONS", "30"))


@pytest.mark.parametrize("name", damaging.FORMATS)
def test_mutations(name):
    (counts,) = damaging.run(COUNT, 2, [name]).values()
    assert sum(number for said, number in counts.items() if "(" not in said) >= COUNT
    assert not [said for said in counts if said.startswith("WRONG")]


@pytest.mark.parametrize("name", damaging.FORMATS)
def test_a_file_that_was_not_changed_is_read_whole(name, tmp_path):
    good = damaging.FORMATS[name][0]()
    assert damaging.judged(tmp_path, name, good, "none", good) == "whole"


def test_the_judge_sees_a_loss(tmp_path, monkeypatch):
    outcome = damaging.outcome
    monkeypatch.setattr(damaging, "outcome", lambda *given: (outcome(*given)[0][1:], [], None))
    good = damaging.json_lines()
    assert damaging.judged(tmp_path, "x.jsonl", good, "none", good).startswith("WRONG: lost")


def written(folder: Path, kind: str) -> tuple[Path, int]:
    """A file of which more is lost than can be counted, and the bytes that are passed over."""
    path = folder / kind
    if kind == "x.csv":
        data = damaging.comma_separated().split(b"\n")
        place = len(b"\n".join(data[:2])) + 1
        path.write_bytes(b"\n".join([*data[:2], b'1,"open', *(line.replace(b'"', b"") for line in data[3:])]))
        return path, path.stat().st_size - place
    if kind == "b.parquet":
        (folder / "a.parquet").write_bytes(damaging.parquet())
        path.write_bytes(damaging.parquet()[:-100])
        return path, path.stat().st_size
    data = damaging.warc(packed=False)
    place = data.index(b"WARC/1.0", 10)
    length = data.index(b"WARC/1.0", place + 1) - place
    path.write_bytes(data[:place] + data[place:].replace(b"Content-Length", b"Content-Width", 1))
    return path, length - 1


@pytest.mark.parametrize("kind", ["x.csv", "b.parquet", "x.warc"])
def test_the_summary_does_not_count_too_low(kind, tmp_path, monkeypatch):
    (tmp_path / "in").mkdir()
    path, passed = written(tmp_path / "in", kind)
    monkeypatch.chdir(tmp_path)
    place = nd.Workers(work_dir="work", number=1)
    nd.dedup("in", output="out", reading=nd.Reading(on_error="skip"))
    nd.dedup("in", output="tasks", workers=place, reading=nd.Reading(on_error="skip"))
    for output in ("out", "tasks"):
        report = read_report(Path(output))
        assert report["skipped"] == {"rows": 1, "at_least": True, "bytes": passed, "files": [f"in/{path.name}"]}
        assert report["counts"]["skipped"] == 1
        (said,) = [line for label, line in facts(report) if label == "skipped"]
        assert said.startswith(f"at least 1 row ({passed:,} bytes of in/{path.name} passed over) that cannot be read")
