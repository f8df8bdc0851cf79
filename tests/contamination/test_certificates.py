"""`neardup info --check` repeats the scan of a certificate, and notices what has changed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import neardup_gpu as nd
from neardup_gpu import cli
from neardup_gpu.errors import DamagedError, InputError
from neardup_gpu.jobs import info

ITEM = "When in the course of human events it becomes necessary for one people to dissolve the political bands"


def write(path: Path, texts: list[str], column: str = "text") -> None:
    path.write_text("".join(json.dumps({"id": f"d{i}", column: text}) + "\n" for i, text in enumerate(texts)))


@pytest.fixture
def certificate(tmp_path: Path) -> Path:
    write(tmp_path / "train.jsonl", ["nothing", f"He read: {ITEM}!", "something else"])
    write(tmp_path / "evals.jsonl", [ITEM, "short"], "question")
    source = tmp_path / "train.jsonl"
    nd.contaminated(source, tmp_path / "evals.jsonl", output=tmp_path / "out", id_column="id", engine="cpu")
    return tmp_path / "out"


def test_the_whole_scan_is_repeated(certificate: Path) -> None:
    told = info.check(certificate)
    assert told == f"all 4 files of {certificate}, and its 1 hit and verdicts (by another scan of 3 documents)"


def test_only_the_hits_are_checked(certificate: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["info", str(certificate), "--check", "--hits-only"]) == 0
    assert "and its 1 hit (by a scan of 1 document alone: no document without a listed hit was looked through) are" in (
        capsys.readouterr().out
    )


@pytest.mark.parametrize(
    ("texts", "whole", "hits"),
    [
        (["nothing", f"He read: {ITEM}!", "something new"], "the training text: not what is found now", None),
        (
            ["nothing", "He read: nothing", "something else"],
            "the training text: not what is found now",
            "the table of hits: not what is found now",
        ),
        (
            ["nothing", f"He  read: {ITEM}!", "something else"],
            "the training text: not what is found now",
            "the table of hits: not what is found now",
        ),
        ([ITEM, f"He read: {ITEM}!", "something else"], "the training text: not what is found now", None),
    ],
)
def test_a_changed_training_text(certificate: Path, texts: list[str], whole: str, hits: str | None) -> None:
    write(certificate.parent / "train.jsonl", texts)
    with pytest.raises(DamagedError, match=whole):
        info.check(certificate)
    if hits is None:
        info.check(certificate, hits_only=True)
    else:
        with pytest.raises(DamagedError, match=hits):
            info.check(certificate, hits_only=True)


def test_changed_evaluation_sets(certificate: Path) -> None:
    write(certificate.parent / "evals.jsonl", [ITEM, "another"], "question")
    with pytest.raises(DamagedError, match="the evaluation sets: not what is found now"):
        info.check(certificate)
    (certificate.parent / "evals.jsonl").unlink()
    with pytest.raises(InputError, match="no such file or folder"):
        info.check(certificate)


def test_a_changed_file(certificate: Path) -> None:
    changed = bytearray((certificate / "hits.parquet").read_bytes())
    changed[20] ^= 1
    (certificate / "hits.parquet").write_bytes(changed)
    with pytest.raises(DamagedError, match=r"hits\.parquet: has changed since it was written"):
        info.check(certificate)


def test_a_training_text_with_seams(certificate: Path, tmp_path: Path) -> None:
    """Both checks read the seams: across them, nothing is found."""
    texts = [f"a {ITEM}", ITEM]
    lines = [
        {"id": i, "text": text, "seams": seams} for i, (text, seams) in enumerate(zip(texts, ("", "23"), strict=True))
    ]
    (tmp_path / "cut.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    out = tmp_path / "cut"
    found = nd.contaminated(tmp_path / "cut.jsonl", tmp_path / "evals.jsonl", output=out, length=14, engine="cpu")
    assert found.hits["id"].to_pylist() == [0]
    assert "1 hit and verdicts (by another scan of 2 documents" in info.check(out)
    assert "1 hit (by a scan of 1 document" in info.check(out, hits_only=True)


def test_documents_in_memory_cannot_be_scanned_again(tmp_path: Path) -> None:
    nd.contaminated({"text": [ITEM]}, {"s": {"q": [ITEM]}}, output=tmp_path / "out", engine="cpu")
    assert "no scan was made again" in info.check(tmp_path / "out")


@pytest.mark.parametrize("of", ["out", "out/report.json", "work", "work/job.json"])
def test_only_certificates_have_hits(tmp_path: Path, of: str) -> None:
    write(tmp_path / "in.jsonl", [ITEM, ITEM])
    workers = nd.Workers(work_dir=tmp_path / "work", keep_work=True)
    nd.dedup(tmp_path / "in.jsonl", output=tmp_path / "out", engine="cpu", workers=workers)
    info.check(tmp_path / of)
    with pytest.raises(InputError, match="not a certificate"):
        info.check(tmp_path / of, hits_only=True)
