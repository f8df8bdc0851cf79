"""The fields of errors: they are there, and go with an error to other processes."""

import inspect
import json
import os
import pickle
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import neardup_gpu as nd
from neardup_gpu import checks, errors
from neardup_gpu.engine.processors import check_environment
from neardup_gpu.jobs.bounded import temporary_folder
from neardup_gpu.store.checksums import seal
from neardup_gpu.store.spool import another_disk, disk_full, unwritable

KINDS = [kind for kind in vars(errors).values() if inspect.isclass(kind) and issubclass(kind, errors.NeardupError)]


@pytest.mark.parametrize("kind", KINDS)
def test_fields_go_to_other_processes(kind):
    error = kind("a.jsonl line 3: is wrong; mend it", parameter="text", path="a.jsonl", row=3)
    for each in (error, pickle.loads(pickle.dumps(error))):
        assert type(each) is kind and str(each) == "a.jsonl line 3: is wrong; mend it"
        assert (each.parameter, each.path, each.row, each.hint) == ("text", "a.jsonl", 3, "mend it")
    plain = pickle.loads(pickle.dumps(kind("it is wrong")))
    assert (plain.parameter, plain.path, plain.row, plain.hint) == (None, None, None, None)


def raised(function, *arguments, **options):
    with pytest.raises(errors.NeardupError) as found:
        function(*arguments, **options)
    return found.value


def test_an_error_of_a_parameter_names_it():
    assert raised(nd.dedup, ["a"], threshold=1.5).parameter == "threshold"
    assert raised(nd.Recipe, seed=-1).parameter == "seed"
    assert raised(nd.Reading, on_error="go").parameter == "on_error"
    assert raised(nd.Reading, max_document_bytes="1").parameter == "max_document_bytes"
    assert raised(nd.Reading, glob=3).parameter == "glob"
    error = raised(checks.text, "glob", 3, "give a pattern")
    assert (error.parameter, error.hint) == ("glob", "give a pattern")
    assert raised(checks.texts, "texts", pa.array([1])).parameter == "texts"
    assert raised(checks.array, "rows", [0.5], "int64").parameter == "rows"


def test_an_error_of_a_file_names_it_and_the_row(tmp_path):
    missing, broken = tmp_path / "missing.parquet", tmp_path / "a.jsonl"
    assert raised(nd.open_documents, missing).path == str(missing)
    assert raised(nd.open_documents, tmp_path).path == str(tmp_path)
    broken.write_text(json.dumps({"text": "a b"}) + "\n{\n" + json.dumps({"text": "c d"}) + "\n")
    error = raised(nd.dedup, broken)
    assert (error.path, error.row) == (str(broken), 2)
    missing.write_bytes(b"PAR1")
    assert raised(nd.dedup, missing).path == str(missing)
    (tmp_path / "x.pdf").write_bytes(b"%PDF\0")
    assert raised(nd.dedup, tmp_path / "x.pdf").path == str(tmp_path / "x.pdf")


def test_a_parquet_that_is_nested_too_deeply_says_what_its_user_can_do(tmp_path):
    value = pa.array([1])
    for _ in range(100):
        value = pa.StructArray.from_arrays([value], ["f"])
    pq.write_table(pa.table({"text": ["a b"], "deep": value}), tmp_path / "deep.parquet")
    error = raised(nd.open_documents, tmp_path / "deep.parquet")
    assert error.path == str(tmp_path / "deep.parquet") and "write the columns that you need" in error.hint
    assert "increasing" not in str(error)


def test_a_full_disk_under_the_output_asks_for_another_output(tmp_path):
    error = disk_full(tmp_path / ".out.partial/new/out", 10)
    assert error.path == str(tmp_path) and ".partial" not in str(error)
    assert str(error).endswith(
        "; name an output on a larger disk, or another disk for temporary files with temp_dir=..."
    )
    assert str(disk_full(tmp_path, 10)).endswith("; name a larger disk with temp_dir=...")


@pytest.mark.parametrize(
    ("folder", "advice"),
    [
        ("work", "name a larger disk with temp_dir=..."),
        (".neardup-x/temporary", "name a larger disk with temp_dir=..."),
        (
            ".neardup-x.partial/temporary",
            "name an output on a larger disk, or another disk for temporary files with temp_dir=...",
        ),
    ],
)
def test_a_full_disk_under_temporary_files_asks_for_another(tmp_path, folder, advice):
    place = tmp_path / folder
    place.mkdir(parents=True)
    shown = place if folder == "work" else tmp_path
    for error in (disk_full(place, 10), unwritable(place, "Input/output error")):
        assert error.path == str(shown) and str(error).startswith(f"{shown}: ") and str(error).endswith(f"; {advice}")


def test_a_job_within_a_bound_says_where_its_output_is(tmp_path):
    with temporary_folder(tmp_path / "new" / "out", None) as beside:
        pass
    with temporary_folder(tmp_path / "out", tmp_path) as elsewhere:
        pass
    assert "output" in another_disk(Path(beside))[1] and "output" not in another_disk(Path(elsewhere))[1]


VARIABLES = [
    *(("NUMBA_NUM_THREADS", value) for value in ("0", "-2", "abc", "100000", "9" * 5000)),
    ("NUMBA_DISABLE_JIT", "1"),
]


@pytest.mark.parametrize(("name", "value"), VARIABLES)
def test_a_wrong_variable_of_numba_is_one_line(monkeypatch, name, value):
    monkeypatch.setenv(name, value)
    error = raised(check_environment)
    assert error.parameter == name and repr(value) in str(error) and "unset it" in error.hint


def test_too_many_threads_of_numba_that_is_imported_are_one_line():
    code = "import numba, neardup_gpu as nd\ntry:\n    nd.dedup\nexcept nd.NeardupError as error:\n    print(error)"
    command, environment = [sys.executable, "-c", code], {**os.environ, "NUMBA_NUM_THREADS": "100000"}
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)
    assert "NUMBA_NUM_THREADS must be a whole number between 1 and " in ended.stdout


@pytest.mark.parametrize("value", ["100000", "9" * 30, "abc", "-3", "0", ""])
def test_no_variable_of_openmp_ends_in_a_traceback(tmp_path, value):
    (tmp_path / "a.txt").write_text("words")
    command = [sys.executable, "-m", "neardup_gpu", "dedup", "a.txt", "--dry-run", "--quiet"]
    environment = {**os.environ, "OMP_NUM_THREADS": value}
    ended = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60)
    assert ended.returncode == 0 and "Traceback" not in ended.stderr
    assert ended.stderr.replace("libgomp: Invalid value for environment variable OMP_NUM_THREADS", "").strip() == ""


def test_a_wrong_variable_of_numba_is_one_line_of_the_command(tmp_path):
    name = "NUMBA_NUM_THREADS"
    (tmp_path / "a.txt").write_text("words")
    command = [sys.executable, "-m", "neardup_gpu", "dedup", "a.txt", "--dry-run"]
    ended = subprocess.run(command, cwd=tmp_path, env={**os.environ, name: "0"}, capture_output=True, text=True)
    assert ended.returncode == 2 and ended.stdout == ""
    assert ended.stderr.count("\n") == 1 and f"{name} must be" in ended.stderr
    code = "import neardup_gpu as nd\ntry:\n    nd.dedup\nexcept nd.NeardupError as error:\n    print(error.parameter)"
    ended = subprocess.run([sys.executable, "-c", code], env={**os.environ, name: "0"}, capture_output=True, text=True)
    assert (ended.stdout, ended.stderr) == (f"{name}\n", "")


def test_a_file_that_is_no_longer_parquet_gets_no_checksums(tmp_path):
    path = tmp_path / "documents.parquet"
    path.write_bytes(b"written by another program")
    with pytest.raises(nd.errors.OutputError, match="does not end as the Parquet file that was written"):
        seal(path)
    assert path.read_bytes() == b"written by another program"


@pytest.mark.parametrize("words", [["--help"], ["hamming", "--help"], ["index", "--help"], ["dedup", "--help"]])
def test_help_without_docstrings(words):
    command = [sys.executable, "-OO", "-m", "neardup_gpu", *words]
    ended = subprocess.run(command, capture_output=True, text=True)
    assert ended.returncode == 0 and ended.stdout.startswith("Usage: neardup") and ended.stderr == ""
    assert "Python strips the descriptions of commands with -OO" in " ".join(ended.stdout.split())
    assert "dedup" not in words or ("--id-column NAME" in ended.stdout and "Column of unique ids" in ended.stdout)
