"""Arguments of the command line: what is taken for what, and one line for what is none."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from neardup_gpu import cli

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    def call(*arguments: object) -> tuple[int, str, str]:
        status = cli.main([str(a) for a in arguments])
        return status, *capsys.readouterr()

    return call


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ("dedpu", "there is no command 'dedpu'; did you mean dedup? See neardup --help."),
        ("hamming quer", "there is no command 'quer'; did you mean query? See neardup hamming --help."),
        ("zzz", "there is no command 'zzz'. See neardup --help."),
        ("--foo", "there is no option --foo before a command. See neardup --help."),
        ("dedup", "INPUT is missing. See neardup dedup --help."),
        ("hamming query", "INDEX is missing. See neardup hamming query --help."),
        ("explain out", "ID is missing. See neardup explain --help."),
        ("explain a b c", "'c' is one argument too many. See neardup explain --help."),
        ("dedup x --treshold 1", "there is no option --treshold; did you mean --threshold? See neardup dedup --help."),
        ("dedup x --treshold=1", "there is no option --treshold; did you mean --threshold? See neardup dedup --help."),
        ("curve -z", "there is no option -z. See neardup curve --help."),
        ("explain out -x", "there is no option -x. See neardup explain --help."),
        ("dedup x --no-html", "there is no option --no-html; did you mean --html? See neardup dedup --help."),
        ("dedup x --threshold", "--threshold needs a value. See neardup dedup --help."),
        (
            "dedup x --html=foo",
            "--html: invalid value 'foo'; use --html or --html tree. See neardup dedup --help.",
        ),
        ("sketch x -o", "-o needs a value. See neardup sketch --help."),
        ("dedup x --threshold high", "--threshold: 'high' is not a number. See neardup dedup --help."),
        ("dedup x --threshold=", "--threshold: '' is not a number. See neardup dedup --help."),
        ("dedup x --threads 1.5", "--threads: '1.5' is not a whole number. See neardup dedup --help."),
        ("dedup x --device none", "--device: 'none' is not a whole number. See neardup dedup --help."),
        ("curve --json=3", "--json=3: leave out the value, or say true or false. See neardup curve --help."),
        ("sketch x --radius=3", "--radius is for --method simhash; leave it out"),
        (
            "dedup x --dry-run --method simhash --recall 0.9",
            "--recall is for --method minhash, bottomk or modm; leave it out",
        ),
        (
            "dedup x --dry-run --method x",
            "--method 'x' is not one of exact, containment, identical, minhash, bottomk, modm, simhash",
        ),
        ("sketch x --method exact", "--method exact keeps no sketches; choose minhash, bottomk, modm or simhash"),
        (
            "dedup x --dry-run --bucket-limit 100",
            "--bucket-limit is for --method minhash, bottomk, modm or simhash; leave it out",
        ),
        ("dedup x --dry-run --method exact --filter bands", "--filter is for --method minhash; leave it out"),
        ("dedup x --dry-run --max-partners some", "--max-partners some: give a whole number, or all"),
        ("dedup x --dry-run --max-partners 0", "--max-partners must be between 1 and 2147483647, got 0"),
        ("dedup x --dry-run --max-comparisons 0", "--max-comparisons must be >= 1, got 0"),
        (
            "dedup x --dry-run --method minhash --bucket-limit 1",
            "--bucket-limit must be between 2 and 2147483647, got 1",
        ),
        ("dedup x --dry-run --gpu-memory x", "--gpu-memory 'x' is not a size; write 20GB, 20GiB or a number of bytes"),
    ],
)
def test_one_line_for_each_mistake(run: Run, arguments: str, says: str) -> None:
    assert run(*arguments.split()) == (2, "", f"neardup: {says}\n")


@pytest.mark.parametrize(
    ("arguments", "names"),
    [
        ("dedup --dry-run -- -x", "-x: no such file"),
        ("dedup none --threshold 0.7 -vqo/tmp/x --against=x=y", "none: no such file"),
        ("dedup none --id-column --json -ob", "none: no such file"),
        ("explain -1 -2", "-1: not a finished result"),
        ("explain none none", "none: not a finished result"),
        ("info --check [1]", "[1]: no such file"),
        ('info {"a":1}', '{"a":1}: no such file'),
        ("curve --filter -1", "--filter '-1': neither three"),
        ("curve --filter --json", "--filter '--json': neither three"),
        ("curve --filter [1,2]", "--filter '[1,2]': neither three"),
        ("dedup none --dry-run --device -1", "--device must be >= 0, got -1"),
    ],
)
def test_words_are_taken_as_they_are(run: Run, arguments: str, names: str) -> None:
    status, out, err = run(*arguments.split())
    assert (status, out) == (2, "")
    assert err.startswith(f"neardup: {names}")


def test_inputs_may_stand_between_flags(run: Run, tmp_path) -> None:
    for i, word in enumerate(["one", "two", "three"]):
        (tmp_path / f"{i}.jsonl").write_text(json.dumps({"a": word, "b": "words"}) + "\n")
    first, second, third = sorted(tmp_path.iterdir())
    status, out, _ = run("dedup", first, "--text-column", "a", second, "--text-column=b", "--dry-run", "--json", third)
    assert status == 0
    assert json.loads(out)["counts"]["documents"] == 3


def test_the_last_of_a_flag_given_twice_counts(run: Run) -> None:
    said = run("curve", "--filter=bands", "--filter", "bing", "--json", "--json")[1]
    assert json.loads(said)["filter"] == "6,5,4"


@pytest.mark.parametrize(
    "words", [[], ["-h"], ["--help"], ["dedup", "x", "-h"], ["hamming"], ["hamming", "join", "-h"]]
)
def test_help_whatever_else_there_is(run: Run, words: list[str]) -> None:
    status, out, err = run(*words)
    assert (status, err) == (0, "")
    assert out.startswith(f"Usage: neardup {' '.join(word for word in words if word in ('dedup', 'hamming', 'join'))}")


def test_what_is_one_is_singular(run: Run, tmp_path) -> None:
    (tmp_path / "bad.jsonl").write_text("nothing of JSON\n")
    said = run("dedup", tmp_path / "bad.jsonl", "--dry-run", "--on-error", "skip", "--quiet")[2]
    assert f"no documents that can be read: 1 row left out, the first in {tmp_path / 'bad.jsonl'}" in said, said
    (tmp_path / "one.jsonl").write_text('{"text": "to be or not to be"}\n')
    said = run("dedup", tmp_path / "one.jsonl", "--dry-run", "--memory", "1MB", "--engine", "cpu", "--quiet")[2]
    assert "not enough for 1 document in 31 bytes of text" in said, said
