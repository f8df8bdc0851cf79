"""Pictures of the documentation: drawn by the script beside them, in use, and said in words as well."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
SCRIPT = DOCS / "pictures" / "make.py"
NAMED = re.compile(r"!\[([^\]]*)\]\((?:\.\./)?pictures/([\w.]+)\)")


@pytest.fixture(scope="module")
def drawn(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pictures")
    subprocess.run([sys.executable, SCRIPT, folder], check=True, capture_output=True)
    return folder


def test_each_is_drawn_by_the_script_and_is_in_use(drawn):
    made = {path.name for path in drawn.iterdir()}
    assert len(made) >= 10
    assert all((DOCS / "pictures" / name).stat().st_size < 100_000 for name in made)
    used = {name for page in DOCS.rglob("*.md") for _, name in NAMED.findall(page.read_text(encoding="utf-8"))}
    assert made <= used


def test_their_labels_are_those_that_the_script_draws(drawn):
    """matplotlib writes each text that it draws as a comment."""
    for path in drawn.iterdir():
        now, committed = (re.findall(r"<!-- (.*?) -->", p.read_text()) for p in (path, DOCS / "pictures" / path.name))
        assert sorted(now) == sorted(committed), path.name


def test_each_says_in_words_what_it_shows():
    for page in DOCS.rglob("*.md"):
        for words, name in NAMED.findall(page.read_text(encoding="utf-8")):
            assert (DOCS / "pictures" / name).exists(), (page.name, name)
            assert len(words.split()) >= 5, (page.name, name)
