"""`neardup compare`: two texts from files."""

import json

import pytest

from neardup_gpu import cli


@pytest.fixture
def run(capsys):
    def call(*arguments):
        status = cli.main([str(argument) for argument in arguments])
        said = capsys.readouterr()
        return status, said.out, said.err

    return call


@pytest.fixture
def files(tmp_path):
    for name, text in (
        ("a.txt", "to be or not to be"),
        ("b.txt", "to be or not"),
        ("c.html", "<p>to be <b>or</b> not</p>"),
    ):
        (tmp_path / name).write_text(text)
    return tmp_path


def test_both_measures_and_the_words(run, files):
    status, out, _ = run("compare", files / "a.txt", files / "b.txt", "--shingle-size", 2)
    assert status == 0
    assert "resemblance  0.7500 (3 of 4 shingles shared)" in out
    assert "containment  75.0% of A in B, 100.0% of B in A" in out
    assert "[-to be-]" in out


def test_json(run, files):
    status, out, _ = run("compare", files / "a.txt", files / "b.txt", "--shingle-size", 2, "--json")
    found = json.loads(out)
    assert status == 0
    assert (found["resemblance"], found["containment_a"], found["containment_b"]) == (0.75, 0.75, 1.0)
    assert ["removed", "to be"] in found["words"]


def test_html(run, files):
    status, out, _ = run("compare", files / "b.txt", files / "c.html", "--html", "--json")
    assert (status, json.loads(out)["resemblance"]) == (0, 1.0)


@pytest.mark.parametrize(
    ("name", "message"),
    [("missing.txt", "no such file"), ("folder", "not a file of text or HTML")],
)
def test_what_is_no_text(run, files, name, message):
    (files / "folder").mkdir()
    for each in ("x.txt", "y.txt"):
        (files / "folder" / each).write_text("a b c")
    status, out, err = run("compare", files / "a.txt", files / name)
    assert (status, out) == (2, "")
    assert message in err.splitlines()[-1]
