"""Options of writing and of tasks that a function does not use are refused, and no command has a flag for them."""

from pathlib import Path
from typing import Any

import pytest

from neardup_gpu import Engine, SimHash, Workers, Writing, audit, contaminated, dedup, passages, substrings
from neardup_gpu.cli.options import flags_of
from neardup_gpu.cli.process import main
from neardup_gpu.cli.substrings import substrings as command
from neardup_gpu.errors import OutputError, ParameterError
from neardup_gpu.sketches import sketch

TABLE = {"text": ["to be or not to be", "to be or not"]}


@pytest.mark.parametrize(
    ("function", "options", "says"),
    [
        (substrings, {"writing": Writing(counts=True)}, "counts: substrings does not use it"),
        (passages, {"writing": Writing(shared=True)}, "shared: passages does not use it"),
        (passages, {"writing": Writing(output_format="jsonl")}, "output_format: passages does not use it"),
        (contaminated, {"evals": {"e": TABLE}, "writing": Writing(check=3)}, "check: contaminated does not use it"),
        (contaminated, {"evals": {"e": TABLE}, "writing": Writing(shard_bytes=9)}, "action 'list' does not use it"),
        (substrings, {"writing": Writing(shard_bytes=9)}, "shard_bytes: a search without output=... does not use it"),
        (audit, {"kept": TABLE, "writing": Writing(by="text")}, "by: audit does not use it"),
        (audit, {"kept": TABLE, "cluster_column": "c"}, "cluster_column: names a column of clusters"),
        (audit, {"kept": TABLE, "by_text": True, "kept_id_column": "c"}, "kept_id_column and by_text: "),
    ],
)
def test_options_without_effect_are_refused(function: Any, options: dict[str, Any], says: str) -> None:
    with pytest.raises(ParameterError, match=says):
        function(TABLE, **options)


def test_options_of_tasks_without_effect_are_refused(tmp_path) -> None:
    with pytest.raises(ParameterError, match="partitions: passages does not use it"):
        passages(TABLE, output=tmp_path / "out", workers=Workers(work_dir=str(tmp_path / "work"), partitions=3))


@pytest.mark.parametrize(
    ("function", "options"),
    [
        (substrings, {}),
        (substrings, {"memory": "1GB"}),
        (contaminated, {"evals": {"e": TABLE}}),
        (passages, {"memory": "1GB"}),
        (dedup, {"method": "identical"}),
        (dedup, {"method": SimHash(weighting="tfidf")}),
        (dedup, {"method": "simhash", "memory": "1GB"}),
        (sketch, {"output": "sketches"}),
        (sketch, {"output": "sketches", "method": SimHash(weighting="tfidf")}),
    ],
)
def test_a_folder_for_temporary_files_is_taken_by_all_jobs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, function: Any, options: dict[str, Any]
) -> None:
    monkeypatch.chdir(tmp_path)
    function(TABLE, engine=Engine(backend="cpu", temp_dir=str(tmp_path)), **options)


def test_an_audit_writes_the_split_corpus_next_to_its_output_or_into_the_named_folder(tmp_path: Path) -> None:
    corpus = {"id": [1, 2], **TABLE}
    there = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("neardup_gpu.auditing.audit.write_parts", lambda _, __, masks: there.extend(masks) or 1 / 0)
        for engine, folder in ((Engine(), tmp_path), (Engine(temp_dir=tmp_path / "other"), tmp_path / "other")):
            folder.mkdir(exist_ok=True)
            with pytest.raises(ZeroDivisionError):
                audit(corpus, kept={"id": [1]}, id_column="id", output=tmp_path / "out", engine=engine)
            assert {path.parent.parent for path in there} == {folder}
            there.clear()
    with pytest.raises(OutputError, match=r"none: No such file or directory; name another folder with temp_dir=..."):
        audit(corpus, kept={"id": [1]}, id_column="id", engine=Engine(temp_dir=tmp_path / "none"))


def test_a_check_of_what_is_not_verified_is_refused(tmp_path, capsys) -> None:
    (tmp_path / "a.txt").write_text("to be")
    assert main(["dedup", str(tmp_path / "a.txt"), "--dry-run", "--method", "simhash", "--check", "3"]) == 2
    assert "--check: nothing is verified" in capsys.readouterr().err


def test_a_choice_of_hits_without_a_check_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["info", str(tmp_path), "--hits-only"]) == 2
    assert "--hits-only: belongs to --check; give that as well" in capsys.readouterr().err


def test_commands_have_no_such_flags() -> None:
    assert "counts" not in {name for kind in flags_of(command) for name in kind.__annotations__}
