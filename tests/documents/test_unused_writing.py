"""Options of writing and of tasks that a function does not use are refused, and no command has a flag for them."""

from typing import Any

import pytest

from neardup_gpu import Workers, Writing, audit, contaminated, passages, substrings
from neardup_gpu.cli.options import flags_of
from neardup_gpu.cli.process import main
from neardup_gpu.cli.substrings import substrings as command
from neardup_gpu.errors import ParameterError

TABLE = {"text": ["to be or not to be", "to be or not"]}


@pytest.mark.parametrize(
    ("function", "options", "says"),
    [
        (substrings, {"writing": Writing(counts=True)}, "counts: substrings does not use it"),
        (passages, {"writing": Writing(shared=True)}, "shared: passages does not use it"),
        (passages, {"writing": Writing(output_format="jsonl")}, "output_format: passages does not use it"),
        (contaminated, {"evals": {"e": TABLE}, "writing": Writing(check=3)}, "check: contaminated does not use it"),
        (contaminated, {"evals": {"e": TABLE}, "writing": Writing(shard_bytes=9)}, "action 'list' does not use it"),
        (audit, {"kept": TABLE, "writing": Writing(by="text")}, "by: audit does not use it"),
    ],
)
def test_options_without_effect_are_refused(function: Any, options: dict[str, Any], says: str) -> None:
    with pytest.raises(ParameterError, match=says):
        function(TABLE, **options)


def test_options_of_tasks_without_effect_are_refused(tmp_path) -> None:
    with pytest.raises(ParameterError, match="partitions: passages does not use it"):
        passages(TABLE, output=tmp_path / "out", workers=Workers(work_dir=str(tmp_path / "work"), partitions=3))


def test_a_check_of_what_is_not_verified_is_refused(tmp_path, capsys) -> None:
    (tmp_path / "a.txt").write_text("to be")
    assert main(["dedup", str(tmp_path / "a.txt"), "--dry-run", "--method", "simhash", "--check", "3"]) == 2
    assert "--check: nothing is verified" in capsys.readouterr().err


def test_commands_have_no_such_flags() -> None:
    assert "counts" not in {name for kind in flags_of(command) for name in kind.__annotations__}
