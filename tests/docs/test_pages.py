"""What the pages of the documentation show is what happens."""

import inspect
import os
import re
import runpy
import shlex
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from pages import DOCS, REPOSITORY, agrees, blocks, fences, pages, run_blocks, without_fences
from run_page import lines_of

import neardup_gpu
from neardup_gpu.cli.app import app

PAGES = pages()
TEXTS = {name: (DOCS / name).read_text() for name in PAGES}
SPHINX = ("-q", "-W", "--keep-going", "-b", "html", "-d")
README = (REPOSITORY / "README.md").read_text()


@pytest.mark.parametrize("name", [name for name in PAGES if blocks(TEXTS[name])])
@pytest.mark.skipif(os.name == "nt", reason="the pages' commands are for a POSIX shell")
def test_blocks(name: str, tmp_path: Path) -> None:
    for block, (status, printed, complaints) in run_blocks(blocks(TEXTS[name]), tmp_path):
        place = f"docs/{name}:{block.line}"
        assert status == 0, f"{place} ends with {status}\n{block.code}\n{printed}\n{complaints}"
        if block.output is not None:
            assert agrees(block.output, printed), f"{place} shows\n{block.output}\nand this prints\n{printed}"


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Path:
    """The site, as Sphinx makes it."""
    pytest.importorskip("sphinx")
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "sphinx",
            *SPHINX,
            folder / "trees",
            DOCS,
            folder / "html",
        ],
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return folder / "html"


def test_the_site_is_made_without_warnings(site: Path) -> None:
    for name in PAGES:
        assert (site / name).with_suffix(".html").exists(), name


def test_drawings_are_as_their_script_draws_them() -> None:
    for draw in runpy.run_path(str(DOCS / "pictures" / "draw.py"))["DRAWINGS"]:
        assert (DOCS / "pictures" / f"{draw.__name__}.svg").read_text() == draw().text()


def test_nothing_is_fetched_to_read_a_page(site: Path) -> None:
    fetched = re.compile(r'<(?:script|img|link)[^>]+(?:src|href)="(?:https?:)?//[^"]*"')
    for page in site.rglob("*.html"):
        assert not fetched.findall(page.read_text()), page


def test_names_of_the_package_lead_to_the_reference(site: Path) -> None:
    page = (site / "papers" / "broder_2000.html").read_text()
    assert 'href="../reference/api/neardup_gpu.theory.html#neardup_gpu.theory.pass_probability"' in page


def leaf_commands(parent=app, words: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    """The words that name each command that does something."""
    found = [
        command
        for name in parent
        if not name.startswith("-")
        for command in leaf_commands(parent[name], (*words, name))
    ]
    return found or [words]


def options_of(words: tuple[str, ...]) -> set[str]:
    command = app
    for word in words:
        command = command[word]
    return {name for each in command.assemble_argument_collection() for name in each.names if name.startswith("--")}


def test_every_command_and_option_has_its_place_in_the_reference(site: Path) -> None:
    assert len(leaf_commands()) > 12
    for words in leaf_commands():
        page = (site / "reference" / "commands" / f"{words[0]}.html").read_text()
        assert f"<h{len(words)}>neardup {' '.join(words)}<" in page
        shown = set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", page))
        assert options_of(words) <= shown, words


def test_every_public_name_has_a_page(site: Path) -> None:
    reference = (site / "reference" / "python.html").read_text()
    modules = [value for name in neardup_gpu.__all__ if inspect.ismodule(value := getattr(neardup_gpu, name))]
    found = {
        f"{each.__name__}.{name}": getattr(each, name) for each in (neardup_gpu, *modules) for name in each.__all__
    }
    del found["neardup_gpu.errors.NeardupError"]  # which is neardup_gpu.NeardupError
    for name in [name for name, value in found.items() if callable(value) or inspect.ismodule(value)]:
        module = site / "reference" / "api" / f"{name.rpartition('.')[0]}.html"
        described = reference + (module.read_text() if module.exists() else "")
        page = module.with_name(f"{name}.html")
        assert page.exists() or f'id="{name}"' in described or f'id="module-{name}"' in described, name


def test_every_column_and_entry_of_files_is_explained() -> None:
    text = TEXTS["reference/files.md"]
    printed = {re.split(r"[ :]", line)[0] for block in blocks(text) for line in (block.output or "").splitlines()}
    assert len(printed) > 60
    rows = re.findall(r"^\| (`.*?) \|", text, re.MULTILINE)
    explained = {name for row in rows for name in re.findall(r"`([^`]+)`", row)}
    assert printed <= explained | {"counts"}


KNOWN = {"--help", "--version", "--config"}.union(*(options_of(words) for words in leaf_commands()))


def foreign(code: str) -> bool:
    """Whether these words are a call of another program than neardup."""
    words = code.split()
    return len(words) > 1 and not words[0].startswith("-") and "neardup" not in words[0]


@pytest.mark.parametrize(("name", "text"), [("README.md", README), *TEXTS.items()])
def test_every_option_exists(name: str, text: str) -> None:
    found: set[str] = set()
    for language, code, _ in fences(text):
        if language in ("sh", "console"):
            for line in lines_of(code):
                called = re.search(r"(?<![\w./-])neardup (?!-).*", line.removeprefix("$ "))
                found.update(re.findall(r"(?<![\w-])--[a-z][a-z-]*", called[0] if called else ""))
    prose = re.sub(r"`([^`]+)`", lambda code: "" if foreign(code[1]) else code[0], without_fences(text))
    found.update(re.findall(r"(?<![\w-])--[a-z][a-z-]*", prose))
    installs = "--install-completion"  # a command that looks like an option
    assert found <= KNOWN | options_of((installs,)) | {installs}


@pytest.mark.parametrize(("name", "text"), TEXTS.items())
def test_commands_that_are_not_run_are_understood(name: str, text: str) -> None:
    """Commands that need a cluster, a GPU or somebody's files, up to their being called."""
    for language, code, line in fences(text):
        if language != "console":
            continue
        for command in lines_of(code):
            words = shlex.split(command.removeprefix("$ "), comments=True)
            if words[:1] == ["neardup"]:
                ends = [at for at, word in enumerate(words) if re.match(r"[|&;<>]|2>", word)]
                try:
                    app.parse_args(words[1 : min(ends, default=None)], exit_on_error=False, print_error=False)
                except Exception as error:
                    raise AssertionError(f"docs/{name}:{line}: {command}") from error


def test_lines_are_short() -> None:
    """But those of tables, which cannot be divided, and of code, which is what it is."""
    for path in (*REPOSITORY.glob("*.md"), *REPOSITORY.glob("benchmarks/*.md"), *(DOCS / name for name in PAGES)):
        for line in without_fences(path.read_text()).splitlines():
            assert len(line) <= 120 or line.startswith("|"), f"{path.relative_to(REPOSITORY)}: {line}"


def anchors_of(text: str) -> set[str]:
    """Anchors of headings, as a page of Markdown has them on the web."""
    titles = re.findall(r"^#+ (.*)$", without_fences(text), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize(("name", "text"), [("README.md", README), *((f"docs/{page}", TEXTS[page]) for page in PAGES)])
def test_links_lead_somewhere(name: str, text: str) -> None:
    for target in re.findall(r"\]\(<?([^)>\s]+)>?\)", without_fences(text)):
        url = urlsplit(target)
        if url.scheme:
            assert url.scheme == "https" and "." in url.netloc, f"{name}: {target}"
            continue
        path = (REPOSITORY / name).parent / url.path if url.path else REPOSITORY / name
        assert path.exists(), f"{name}: {target}"
        assert REPOSITORY in path.resolve().parents, f"{name}: {target} is outside of the repository"
        if url.fragment and name == "README.md":  # those of the site are Sphinx's to follow
            assert url.fragment in anchors_of(path.read_text()), f"{name}: {target}"


@pytest.mark.corpus
@pytest.mark.skipif(os.name == "nt", reason="the page's commands are for a POSIX shell")
def test_a_job_of_tasks_is_killed_and_gone_on_with(corpora: Path, tmp_path: Path) -> None:
    (tmp_path / "bills.parquet").symlink_to(corpora / "bills_116.parquet")
    (tmp_path / "neardup").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m neardup_gpu "$@"\n')
    (tmp_path / "neardup").chmod(0o755)
    page = TEXTS["how_to/many_machines.md"]
    begun, killed, again = re.findall(r"^\$ ((?:neardup .* --work-dir work .*|sleep .*))$", page, re.MULTILINE)
    assert begun == f"{again} &"
    environment = {**os.environ, "PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}"}
    script = f"{begun}\n{killed}\ntest ! -e scaled || exit 9\n{again}\n"
    done = subprocess.run(
        ["sh", "-c", script], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "scaled" / "report.json").exists() and not (tmp_path / "work" / "job.json").exists()
