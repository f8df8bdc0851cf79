"""Flags are those of the settings: their names, types, words and defaults."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import get_args

import pytest
from cyclopts import App, CycloptsError

from neardup_gpu.cli.options import RUNNING, ReadingFlags, given, method_flags, refuse_others
from neardup_gpu.documents.reading_options import Reading
from neardup_gpu.errors import ParameterError
from neardup_gpu.settings import setting


@dataclass(frozen=True, kw_only=True)
class Round:
    width: int = setting(3, "How wide.", metavar="N")
    share: float | None = setting(None, "How much.", shown="all")
    names: str | Sequence[str] | None = setting(None, "What of.", flag="--name -n")


@dataclass(frozen=True, kw_only=True)
class Square:
    width: int = setting(5, "How broad.", metavar="N")
    size: str | int | None = setting(None, "How large.")
    plain: bool = setting(False, "Without colours.")
    filled: bool | None = setting(None, "With a colour.")


SHAPES = {"round": (Round,), "square": (Square,)}
ShapeFlags = method_flags(RUNNING, SHAPES)


def parsed(words: str):
    app = App()

    @app.default
    def command(*, shape: ShapeFlags = None):
        return shape

    _, bound, _ = app.parse_args(words.split(), exit_on_error=False, print_error=False)
    return bound.arguments.get("shape")


def test_only_what_was_given_is_there() -> None:
    assert given(parsed("")) == {}
    words = "--width -4 --share 0.5 --name none -n {} --size 2GB --plain"
    assert given(parsed(words)) == {"width": -4, "share": 0.5, "names": ["none", "{}"], "size": "2GB", "plain": True}
    for wrong in ("--width 1.5", "--share x", "--names a", "--no-plain", "--width"):
        with pytest.raises(CycloptsError):
            parsed(wrong)


def test_a_flag_whose_default_is_decided_later_can_be_refused() -> None:
    assert given(parsed("--filled")) == {"filled": True} and given(parsed("--no-filled")) == {"filled": False}
    assert given(parsed("--width 4")) == {"width": 4}


def test_the_first_class_describes_a_field_of_several() -> None:
    hint = next(field.type for field in dataclasses.fields(get_args(ShapeFlags)[0]) if field.name == "width")
    parameter = hint.__metadata__[-1]
    assert parameter.help == "How wide."
    assert parameter.show_default == "3"


def test_what_the_chosen_settings_lack_is_refused() -> None:
    values = parsed("--width 4 --share 0.5")
    refuse_others("round", values)
    with pytest.raises(ParameterError, match=r"^--share is for --method round; leave it out$"):
        refuse_others("square", values)


def test_the_library_takes_what_flags_give() -> None:
    fields = dataclasses.fields(get_args(ReadingFlags)[0])
    assert [field.name for field in fields] == [field.name for field in dataclasses.fields(Reading)]
    assert Reading(**given(None)) == Reading()


@pytest.mark.parametrize("words", [["doctor", "--json"], ["dedup", "a.html", "--html", "--dry-run"]])
def test_commands_are_understood_where_pydantic_is_imported(words: list[str], tmp_path: Path) -> None:
    """It would refuse None for flags that are not given, and True for --html: services and notebooks import it."""
    pytest.importorskip("pydantic")
    (tmp_path / "a.html").write_text("<p>To be, or not to be.")
    code = f"import pydantic; from neardup_gpu.cli.process import main; raise SystemExit(main({words!r}))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
