"""How a report reads: figures that say neither too much nor too little, in lines that fit."""

from __future__ import annotations

import json
import logging
import pickle
import shlex
import subprocess
import sys
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st
from rich.cells import cell_len
from rich.console import Console

import neardup_gpu as nd
from neardup_gpu import errors, report
from neardup_gpu.printable import encodable, printable, shell_path, shell_word

# Figures


@given(st.integers(1, 10**12), st.data())
def test_a_percentage_of_counts_is_100_or_0_only_where_it_is(whole: int, data: st.DataObject) -> None:
    part = data.draw(st.integers(0, whole) | st.integers(max(0, whole - 3), whole) | st.integers(0, min(3, whole)))
    text = report.percent(part / whole)
    assert (text == "100.0%") == (part == whole)
    assert (float(text.strip("%>")) == 0) == (part == 0)
    assert "e+" not in text
    exact = Fraction(100 * part, whole)
    assert text.startswith(">") or abs(Fraction(text.rstrip("%")) - exact) <= Fraction(1, 20)


def test_percentages() -> None:
    assert [report.percent(x) for x in (0, -0.0, 0.5, 1, 0.99996, 1 - 1e-12, 1e-6, 1 + 1e-16, 4999 / 5000)] == [
        "0.0%", "0.0%", "50.0%", "100.0%", "99.996%", ">99.9999%", "0.0001%", "100.0%", "99.98%",
    ]  # fmt: skip
    assert {report.percent(n / n) for n in range(1, 5000)} == {"100.0%"}


def test_resemblances() -> None:
    assert [report.resemblance(x) for x in (0, 1, 0.8, 39_999 / 40_000, 1 - 2**-53, 1e-7)] == [
        "0.0000", "1.0000", "0.8000", "0.99997", "0.9999999999999999", "1e-07",
    ]  # fmt: skip


def test_sizes_and_counts() -> None:
    assert [report.size(n) for n in (0, 1, 999, 1000, 27_500_000, 3.2e12)] == [
        "0 bytes", "1 byte", "999 bytes", "1.0 kB", "27.5 MB", "3.2 TB",
    ]  # fmt: skip
    assert [report.count(n, noun) for n, noun in ((1, "group"), (2, "copy"), (0, "pair"), (1234, "query"))] == [
        "1 group", "2 copies", "0 pairs", "1,234 queries",
    ]  # fmt: skip


def test_durations() -> None:
    assert [report.duration(s) for s in (0, 0.0001, 0.341, 9.996, 12.34, 99.97, 119.6, 245, 7384)] == [
        "0.00 s", "0.01 s", "0.34 s", "10.0 s", "12.3 s", "1 min 40 s", "2 min 00 s", "4 min 05 s", "2 h 03 min",
    ]  # fmt: skip


def test_histogram() -> None:
    assert report.histogram([]) == []
    assert report.histogram([[2, 9], [4, 1], [5, 2], [8, 1], [9, 1], [1025, 1]]) == [
        ("2", 9), ("4", 1), ("5 to 8", 3), ("9 to 16", 1), ("1,025 to 2,048", 1),
    ]  # fmt: skip


def test_time_of_compilation_is_no_part_of_the_rate() -> None:
    timings = {"sketch": 1.5, "compile": 60.0, "write": 0.25}
    assert report.times(timings, 62.0, 10_000_000, " (cpu)") == [
        ("time", "2.00 s, 5.0 MB/s (cpu)"),
        ("compiling", "60.0 s more, for the kernels"),
    ]
    assert report.times({"sketch": 0.001}, 0.002, 10**9) == [("time", "0.01 s")]
    assert report.times({}, 0.0, 5) == [("time", "0.00 s")]


# What comes from outside


@given(st.text() | st.binary().map(lambda name: name.decode("utf-8", "surrogateescape")))
def test_what_is_printable_steers_nothing(text: str) -> None:
    shown = printable(text)
    assert all(c.isprintable() or c in "\u200c\u200d" or c.isspace() for c in shown)
    assert not set(shown) & set("\n\r\t\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029")
    assert printable(shown) == shown
    assert printable(text, lines=True).split("\n") == [printable(line) for line in text.split("\n")]
    encodable(shown, "ascii").encode("ascii")


def test_what_is_printable_stays() -> None:
    for text in ("Straße", "漢字かな", "ไทย", "می‌خواهم", "👩‍👩‍👧", "a b", "\u3000", "é", "a/b\\c"):
        assert printable(text) == text
    assert [printable(c) for c in "\x1b\x9b\u202e\udcff\ud800\u200b\n"] == [
        "\\x1b", "\\x9b", "\\u202e", "\\xff", "\\ud800", "\\u200b", "\\n",
    ]  # fmt: skip


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX shells")
@pytest.mark.parametrize(
    "word", ["two words", "it's", "a\x1b[2J'\\\n\u202e9", "漢\x9b", "-x", "\udcff.txt", "$HOME`id`"]
)
def test_a_shell_reads_back_what_is_offered(word: str) -> None:
    offered = shell_word(word)
    assert printable(offered) == offered
    shell = ["bash", "-c", f"printf %s {offered}"]
    if "\n" not in word and printable(word) == word:
        assert shlex.split(offered) == [word]
    if word != "-x":
        assert subprocess.run(shell, capture_output=True, check=True).stdout == word.encode("utf-8", "surrogateescape")
    assert shell_path("-x") == "./-x"


def test_errors_are_printable_wherever_they_are_shown() -> None:
    for kind in vars(errors).values():
        if isinstance(kind, type) and issubclass(kind, nd.NeardupError):
            assert str(kind("no\x1b[2J\n\u202efile")) == "no\\x1b[2J\\n\\u202efile"
            assert str(pickle.loads(pickle.dumps(kind("\x9b")))) == "\\x9b"


def test_what_is_logged_is_printable(caplog: pytest.LogCaptureFixture) -> None:
    from neardup_gpu.log import log

    with caplog.at_level(logging.INFO, "neardup_gpu"):
        log.info("read %s of %d", "\x1b]0;title\x07\n", 3)
    assert caplog.messages == ["read \\x1b]0;title\\x07\\n of 3"]


@given(st.text(), st.integers(8, 40))
def test_what_is_shortened_fits(text: str, width: int) -> None:
    shown = report.shorten(text, width)
    assert cell_len(shown) <= width
    if cell_len(printable(text)) <= width:
        assert shown == printable(text)


def test_the_middle_is_left_out() -> None:
    assert report.shorten("x" * 100, 20) == "x" * 8 + "..." + "x" * 9
    assert report.shorten("漢" * 30, 21) == "漢" * 4 + "..." + "漢" * 4


# A whole report


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    out = tmp_path_factory.mktemp("report") / "out"
    texts = [" ".join(f"w{i}{j}" for j in range(30)) for i in range(5)]
    import pyarrow as pa

    table = pa.table({"id": [f"{i}[red]\x1b[2J" for i in range(8)], "text": [*texts, *texts[:3]]})
    result = nd.dedup(table, id_column="id", method="minhash", output=out)
    found = json.loads((out / "report.json").read_text())
    assert found == {**found, **json.loads(json.dumps(result.report))}
    yield found


def drawn(parts: list[Any], width: int = 80) -> str:
    console = Console(width=width, color_system=None, markup=False, force_terminal=False)
    with console.capture() as captured:
        for part in parts:
            console.print(part, soft_wrap=True)
    return captured.get()


def test_a_stored_report_knows_the_time_of_writing(stored: dict[str, Any]) -> None:
    assert {"sketch", "collide", "verify", "decide", "check", "write"} <= set(stored["timings"])
    assert stored["timings"]["write"] > 0
    assert stored["seconds"] >= sum(stored["timings"].values()) - 0.001


def test_a_summary_shows_ids_as_they_are(stored: dict[str, Any]) -> None:
    said = drawn(report.summary(stored, output="o\x1b[2J", example="3[bold]\x1b[2J", verbose=True))
    assert "\x1b" not in said
    assert "        2  0[red]\\x1b[2J" in said
    assert "neardup explain $'o\\033[2J' $'3[bold]\\033[2J'" in said
    assert "kept       5 (62.5%)" in said


@pytest.mark.parametrize("width", [40, 60, 80, 100])
def test_a_summary_fits_its_width(stored: dict[str, Any], width: int) -> None:
    long = {**stored, "largest_groups": [{"id": "漢字" * 100, "size": 7}], "group_sizes": [[2, 10**6], [1025, 1]]}
    said = drawn(report.summary(long, width), width)
    blocks = said[said.index("groups by size") : said.index("written")]
    assert all(cell_len(line.rstrip()) <= width for line in blocks.splitlines())
    assert all("█" in line or "▏" in line or "▎" in line for line in blocks.splitlines()[1:3])


def test_all_kept_is_100_percent(stored: dict[str, Any]) -> None:
    for number in (3, 49, 98, 103, 107):  # number * (1 / number) is not 1 for some of them
        counts = {**stored["counts"], "documents": number, "kept": number, "removed": 0}
        rows = dict(report.facts({**stored, "counts": counts}))
        assert (rows["kept"], rows["removed"]) == (f"{number} (100.0%)", "0 (0.0%)")


def test_one_of_each_is_singular(stored: dict[str, Any]) -> None:
    rows = dict(report.facts({**stored, "counts": {**stored["counts"], "invalid_utf8": 1, "tokens": 1}}))
    assert rows["odd text"] == "1 invalid UTF-8 byte"
    assert rows["documents"].endswith(", 1 token")


def test_html_escapes_what_comes_from_outside(stored: dict[str, Any]) -> None:
    hostile = "<script>alert(1)</script>\u202e\x1b"
    page = report.html({**stored, "largest_groups": [{"id": hostile, "size": 2}], "backend": hostile})
    assert "<script" not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;\\u202e\\x1b" in page
    assert page.count("<tr>") == page.count("</tr>")


def test_results_show_themselves_in_notebooks(tmp_path: Path) -> None:
    import pyarrow as pa

    table = pa.table({"id": ["<b>", "&"], "text": ["one two three", "one two three"]})
    page = nd.dedup(table, id_column="id", writing=nd.Writing(check=0))._repr_html_()
    assert "&lt;b&gt;" in page
    assert "<b>" not in page
