"""`--config FILE.toml` of every command: what it says is what flags say, and flags take its place."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from neardup_gpu.cli.process import main

TEXTS = ["to be or not to be that is the question", "to be or not to be that is the question now", "another text"]


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    pq.write_table(pa.table({"key": list("abc"), "body": TEXTS}), tmp_path / "in.parquet")
    return tmp_path / "in.parquet"


def written(folder: Path, text: str) -> str:
    (folder / "job.toml").write_text(text)
    return str(folder / "job.toml")


def recipe_in(folder: Path) -> dict[str, Any]:
    return json.loads((folder / "report.json").read_text())["recipe"]


def test_a_file_says_what_flags_say(corpus: Path, tmp_path: Path) -> None:
    options = f"""
        [dedup]
        input = ["{corpus}"]
        text-column = ["body"]
        id-column = "key"
        shingle-size = 2
        threshold = 0.6
        keep = "longest,first"
        quiet = true
        ids-only = true

        [audit]
        by = "site"
    """
    config = written(tmp_path, options)
    assert main(["dedup", "--config", config, "--output", str(tmp_path / "one")]) == 0
    words = (
        "--text-column body --id-column key --shingle-size 2 --threshold 0.6 --keep longest,first --quiet --ids-only"
    )
    assert main(["dedup", str(corpus), *words.split(), "--output", str(tmp_path / "two")]) == 0
    assert recipe_in(tmp_path / "one") == recipe_in(tmp_path / "two")
    tables = [pq.read_table(tmp_path / f"{name}/documents.parquet").to_pylist() for name in ("one", "two")]
    assert tables[0] == tables[1] and (tmp_path / "one/kept_ids.parquet").exists()


def test_flags_take_the_place_of_entries(corpus: Path, tmp_path: Path) -> None:
    options = '[dedup]\ninput = "missing.parquet"\nthreshold = 0.6\ntext-column = ["other"]\nid-column = "key"\n'
    config = written(tmp_path, options)
    words = ["dedup", str(corpus), f"--config={config}", "--threshold", "0.9", "--text-column", "body", "--quiet"]
    assert main([*words, "--output", str(tmp_path / "out")]) == 0
    assert recipe_in(tmp_path / "out")["threshold"] == 0.9


def test_a_result_holds_the_options_that_repeat_it(corpus: Path, tmp_path: Path) -> None:
    words = ["dedup", str(corpus), "--text-column", "body", "--id-column", "key", "--method", "minhash", "--filter"]
    words += ["6,14,2", "--shingle-size", "2", "--keep", "key:desc,longest", "--ids-only", "--quiet"]
    assert main([*words, "--output", str(tmp_path / "one")]) == 0
    job = tmp_path / "one" / "job.toml"
    assert main(["dedup", "--config", str(job), "--output", str(tmp_path / "two"), "--quiet"]) == 0
    assert job.read_text() == (tmp_path / "two" / "job.toml").read_text()
    assert recipe_in(tmp_path / "one") == recipe_in(tmp_path / "two")
    assert main(["info", str(tmp_path / "two"), "--check"]) == 0
    assert "job.toml" in json.loads((tmp_path / "one" / "report.json").read_text())["files"]


def test_commands_of_commands_and_words_that_may_have_a_value(corpus: Path, tmp_path: Path, capsys: Any) -> None:
    index = str(tmp_path / "index")
    config = written(
        tmp_path,
        f'[index.create]\nthreshold = 0.7\n[index.add]\ninput = ["{index}", "{corpus}"]\n'
        'text-column = ["body"]\nid-column = "key"\nhtml = "tree"\n',
    )
    assert main(["index", "create", index, "--config", config]) == 0
    assert main(["index", "add", "--config", config]) == 0
    capsys.readouterr()
    assert main(["index", "info", index, "--json", "--config", config]) == 0
    info = json.loads(capsys.readouterr().out)
    assert info["documents"] == 3 and info["recipe"]["threshold"] == 0.7


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("[dedup]\nkept = 'first'", "no option"),
        ("keep = 'first'", "keep is in no table; write it below the command's name"),
        ("[dedup\n", "is not TOML"),
        ("[dedup]\nthreshold = 'x'", "'x' is not a number"),
        ("[dedup]\ninput = 5", "input is 5; give a path or a list of paths"),
        ("[dedup]\nkeep = 'first,longest'", "nothing is left to decide after first"),
    ],
)
def test_mistakes_are_one_line(text: str, why: str, corpus: Path, tmp_path: Path, capsys: Any) -> None:
    config = written(tmp_path, text)
    assert main(["dedup", str(corpus), "--text-column", "body", "--dry-run", "--config", config]) == 2
    said = capsys.readouterr().err
    assert why in said and said.count("\n") == 1


def test_a_file_that_is_missing(capsys: Any) -> None:
    assert main(["dedup", "in.parquet", "--config", "no-such.toml"]) == 2
    assert "no-such.toml: No such file or directory; name a file of options" in capsys.readouterr().err
    assert main(["dedup", "in.parquet", "--config"]) == 2
    assert "--config needs a value" in capsys.readouterr().err


def test_the_help_of_each_command_names_it(capsys: Any) -> None:
    for words in (["dedup"], ["index", "add"], ["hamming", "pairs"], ["doctor"]):
        assert main([*words, "--help"]) == 0
        assert "--config FILE" in capsys.readouterr().out
