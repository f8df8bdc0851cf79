"""Finding files, patterns and URIs, and the tables of other libraries."""

import fnmatch
import itertools
import logging
import os

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from flat import flat
from grids import fewer
from hypothesis import example, given, settings, strategies as st
from pyarrow import fs

import neardup_gpu as nd
from neardup_gpu import Reading
from neardup_gpu.definitions import METADATA_KEY
from neardup_gpu.documents import open_described, open_documents
from neardup_gpu.documents.columns import artefact_kind
from neardup_gpu.documents.files import File, relative_names
from neardup_gpu.documents.find import find_files
from neardup_gpu.documents.patterns import Pattern
from neardup_gpu.errors import ArgumentTypeError, InputError
from neardup_gpu.store.uris import is_masked, masked, masked_text, why_not_found


def reference(pattern: list[str], path: list[str]) -> bool:
    """The definition: ``**`` is any number of folders, and all names from there on where it comes last. A name that
    begins with a dot is matched only by a name of the pattern that begins with one."""
    if not pattern or not path:
        return not pattern and not path
    dots = [name.startswith(".") and name not in (".", "..") for name in path]
    if pattern[0] == "**":
        if len(pattern) == 1:
            return not any(dots)
        return any(reference(pattern[1:], path[i:]) for i in range(len(path)) if not any(dots[:i]))
    fits = fnmatch.fnmatchcase(path[0], pattern[0]) and (pattern[0].startswith(".") or not dots[0])
    return fits and reference(pattern[1:], path[1:])


NAMES = st.lists(st.text("ab.", min_size=1, max_size=4), min_size=1, max_size=5)


@settings(max_examples=fewer(500), deadline=None)
@given(
    st.lists(
        st.sampled_from(["**", "*", "a", "a*", "*b", "?", "[ab]", "[!a]*", "*a*", ".*", ".a"]), min_size=1, max_size=5
    ),
    NAMES,
)
@example(["**", "**", "a"], ["a"])
@example(["a", "**"], ["a"])
def test_patterns(pattern, path):
    read = Pattern("/".join(pattern))
    states, found = read.start, False
    for name in path:
        found, states = read.step(states, name)
    assert found == reference(pattern, path)


def test_patterns_say_where_nothing_can_match():
    pattern = Pattern("a/*/x*.txt")
    assert not pattern.step(pattern.start, "b")[1]
    found, below = pattern.step(pattern.start, "a")
    assert below and not found
    assert not pattern.step(pattern.step(below, "y")[1], "x1.txt")[1]
    assert Pattern("").step(Pattern("").start, "a")[0] is False


MASKED = {
    "s3://KEY:SECRET@bucket/x.parquet": "s3://***@bucket/x.parquet",
    "s3://KEY:SE/CRET@bucket/x": "s3://***@bucket/x",
    "s3://KEY:SE?CR@ET@bucket/x": "s3://***@bucket/x",
    "s3://KEY:7/CRET@bucket/x": "s3://***@bucket/x",
    "s3://KEY:SE@C/RET@bucket/x?region=eu": "s3://***@bucket/x?region=eu",
    "s3://KEY:SECRET@bucket/a@b/x?region=eu": "s3://***@b/x?region=eu",  # rather too much than too little
    "s3://bucket/a@b/x?region=eu&session_token=T": "s3://bucket/a@b/x?region=eu&session_token=***",
    "s3://bucket/x?endpoint_override=http://user:pw@host": "s3://bucket/x?endpoint_override=***",
    "s3://bucket/x?endpoint_override=user%3Apw%40host": "s3://bucket/x?endpoint_override=***",
    "s3://bucket/x?TOKENALONE": "s3://bucket/x?***",
    "https://host:8080/x@y": "https://host:8080/x@y",
    "https://TOKEN@host/x?sig=S;b=C": "https://***@host/x?sig=***;b=***",
    "hdfs://me@host:9000/x": "hdfs://me@host:9000/x",
    "abfss://container@account.dfs.core.windows.net/x": "abfss://container@account.dfs.core.windows.net/x",
    "abfss://container:KEY@account.dfs.core.windows.net/x": "abfss://***@account.dfs.core.windows.net/x",
    "gs://anonymous@bucket/x": "gs://anonymous@bucket/x",
    "simplecache::s3://KEY:SECRET@bucket/x": "simplecache::s3://***@bucket/x",
    "zip://a.csv::s3://KEY:SECRET@bucket/x.zip": "zip://a.csv::s3://***@bucket/x.zip",
    "file:///a/b@c?d": "file:///a/b@c?***",
    "folder/a@b:c?d=e": "folder/a@b:c?d=e",
}


@pytest.mark.parametrize("uri", MASKED)
def test_masked(uri):
    assert masked(uri) == MASKED[uri]
    assert masked(masked(uri)) == masked(uri)
    assert is_masked(masked(uri)) == (masked(uri) != uri)
    assert not is_masked(uri)
    assert masked_text(f"cannot open '{uri}' now") == f"cannot open '{masked(uri)}' now"


def test_secrets_are_masked_wherever_an_error_repeats_them():
    told = masked_text("user KEYID, password pass/word, encoded pass%2Fword", "s3://KEYID:pass%2Fword@bucket/x")
    assert told == "user ***, password ***, encoded ***"


@pytest.mark.parametrize("missing", [True, False])
def test_why_a_file_was_not_found_tells_no_secret(missing):
    """fsspec says that a file is missing where the server refused it; its cause may repeat a part of the URI."""

    class Refusing:
        protocol = "https"

        def info(self, path):
            refused = PermissionError("no access by k3y-of-mine")
            if missing:
                raise FileNotFoundError(path) from refused
            raise refused

    system = fs.PyFileSystem(fs.FSSpecHandler(Refusing()))
    assert why_not_found(system, "x", "https://host/x?token=k3y-of-mine") == "no access by ***"


@settings(max_examples=fewer(300), deadline=None)
@given(st.text("abcXYZ019:/?#@&=+-_.%", max_size=12), st.sampled_from(["s3", "https", "nowhere", "zip://a::gs"]))
def test_no_password_is_shown(password, scheme):
    assert "SECRET" not in masked(f"{scheme}://key:SECRET{password}SECRET@bucket/x?region=eu")


# Files


def names(*sources, glob=None):
    return [file.name for file in find_files([str(source) for source in sources], glob).files]


def test_a_walk_does_not_depend_on_the_order_of_entries(tmp_path, monkeypatch):
    (tmp_path / "in/b").mkdir(parents=True)
    (tmp_path / "far/c").mkdir(parents=True)
    for name in ("in/b/x.txt", "in/y.txt", "far/z.txt", "far/c/w.txt"):
        (tmp_path / name).write_text("a")
    for link, target in {
        "in/a": "b",
        "in/p": "../far/c",
        "in/q": "../far",
        "in/b/up": "../..",
        "in/e.txt": "y.txt",
    }.items():
        os.symlink(target, tmp_path / link)
    expected = [f"{tmp_path}/in/{name}" for name in ("b/x.txt", "p/w.txt", "q/z.txt", "y.txt")]
    scandir = os.scandir

    class Listed(list):
        __enter__ = lambda self: self  # noqa: E731
        __exit__ = lambda self, *error: None  # noqa: E731

    for seed in range(5):

        def shuffled(path, seed=seed):
            entries = sorted(scandir(path), key=lambda entry: entry.name)
            return Listed(np.random.default_rng(seed).permutation(np.array(entries, object)))

        monkeypatch.setattr(os, "scandir", shuffled)
        assert names(tmp_path / "in") == expected


@given(st.permutations(["in", "link", "in/b", "in/b/x.txt", "hard.txt", "soft.txt"]))
@settings(max_examples=fewer(30), deadline=None)
def test_sources_in_any_order(tmp_path_factory, order):
    folder = tmp_path_factory.mktemp("any")
    (folder / "in/b").mkdir(parents=True)
    (folder / "in/b/x.txt").write_text("a")
    os.symlink("in", folder / "link")
    os.symlink("in/b/x.txt", folder / "soft.txt")
    os.link(folder / "in/b/x.txt", folder / "hard.txt")
    (batch,) = open_documents([folder / source for source in order]).batches()
    assert batch.ids.to_pylist() == ["hard.txt"]  # found in the highest folder, and no link


def test_a_pattern_of_the_user_finds_files_behind_links(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "a/x.txt").write_text("a")
    os.symlink("a", tmp_path / "b")
    assert names(tmp_path / "b*/x.txt") == [f"{tmp_path}/b/x.txt"]
    assert names(tmp_path / "*/x.txt") == [f"{tmp_path}/a/x.txt"]
    assert names(tmp_path / "b") == [f"{tmp_path}/b/x.txt"]
    assert names(tmp_path / "**") == [f"{tmp_path}/a/x.txt"]


def test_what_is_left_out_is_told(tmp_path, caplog):
    caplog.set_level(logging.INFO, "neardup_gpu")
    pq.write_table(pa.table({"body": ["a"]}), tmp_path / "x.parquet")
    for name in ("README.md", "_y.parquet", "a.xml", "b.xml", ".hidden.xml", "_SUCCESS"):
        (tmp_path / name).write_text("a")
    for name in ("_temporary/0", ".git/objects"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "z.parquet").write_text("a")
    os.mkfifo(tmp_path / "pipe")
    documents = open_documents(tmp_path)
    described = documents.describe()["left_out"]
    assert described == documents.left_out
    assert {reason: (found["files"], found["folders"]) for reason, found in described.items()} == {
        "about_the_data": (1, 0),
        "hidden": (1, 1),
        "underscored": (2, 1),
        "other_kinds": (2, 0),
        "special": (1, 0),
    }
    assert described["other_kinds"]["first"] == [f"{tmp_path}/a.xml", f"{tmp_path}/b.xml"]
    assert described["hidden"]["first"] == [f"{tmp_path}/.git/", f"{tmp_path}/.hidden.xml"]
    assert described["underscored"]["first"] == [
        f"{tmp_path}/{name}" for name in ("_SUCCESS", "_temporary/", "_y.parquet")
    ]
    (line,) = [record.getMessage() for record in caplog.records if "left out" in record.getMessage()]
    assert f"files of other kinds: 2 ({tmp_path}/a.xml, {tmp_path}/b.xml)" in line
    assert f"names that begin with a dot: 2 ({tmp_path}/.git/, {tmp_path}/.hidden.xml)" in line
    assert "most files, 2 of 3, are of other kinds and are not read; --glob '*.xml' (glob='*.xml') reads" in line
    assert any("the text is column 'body'" in record.getMessage() for record in caplog.records)
    assert open_described(documents.describe()).num_files == 1
    assert "left_out" in open_documents(pa.table({"text": ["a"]})).describe()


TREE = (
    *("__init__.py", "a.py", "_b/__init__.py", "_b/c.py", "_b/.d/e.py", ".git/f.py", ".g.py", "h/_i.py", "h/j.txt"),
    *("h/.k/_l.py", "_m/n.txt"),
)
"""Files of a source tree with names that begin with underscores and dots."""

SELECTED = {
    "*.py": ("__init__.py", "_b/__init__.py", "_b/c.py", "a.py", "h/_i.py"),
    "_*.py": ("__init__.py", "_b/__init__.py", "h/_i.py"),
    "_b/*": ("_b/__init__.py", "_b/c.py"),
    "**/_b/**": ("_b/__init__.py", "_b/c.py"),
    ".*.py": (".g.py",),
    ".git/*": (".git/f.py",),
    "**/.*/*.py": (".git/f.py", "_b/.d/e.py", "h/.k/_l.py"),
    "h/.k/*": ("h/.k/_l.py",),
    "**/*.txt": ("_m/n.txt", "h/j.txt"),
    None: ("h/j.txt",),
}
"""What a pattern selects of the tree, and what is read without one."""

SKIPPED = {
    "*.py": {"hidden": [".g.py", ".git/", "_b/.d/", "h/.k/"]},
    ".*.py": {"hidden": [".git/", "_b/.d/", "h/.k/"]},
    "**/*.txt": {"hidden": [".git/", "_b/.d/", "h/.k/"]},
    "_b/*": {},
    "**/_b/**": {"hidden": [".git/", "_b/.d/", "h/.k/"]},
    ".git/*": {},
    None: {
        "hidden": [".g.py", ".git/", "h/.k/"],
        "other_kinds": ["a.py"],
        "underscored": ["__init__.py", "_b/", "_m/", "h/_i.py"],
    },
}
"""What is skipped by its name."""


def of_tree(folder, glob, scheme=""):
    found = find_files([f"{scheme}{folder}"], glob)
    short = len(f"{scheme}{folder}/")
    return [file.name[short:] for file in found.files], {
        reason: [name[short:] for name in names] for reason, names in found.left_out.items()
    }


@pytest.mark.parametrize("glob", SELECTED)
def test_a_pattern_of_the_user_is_obeyed_and_what_is_skipped_is_named(tmp_path, glob):
    fsspec = pytest.importorskip("fsspec")
    memory = fsspec.filesystem("memory")
    for name in TREE:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("words")
    memory.pipe({f"/tree/{name}": b"words" for name in TREE})
    try:
        here = of_tree(tmp_path, glob)
        there = of_tree("tree", glob, "memory://")
    finally:
        memory.rm("/tree", recursive=True)
    assert here[0] == there[0] == list(SELECTED[glob])
    if glob is not None:
        by_pattern = names(f"{tmp_path}/{glob if '/' in glob else f'**/{glob}'}")
        assert [name[len(str(tmp_path)) + 1 :] for name in by_pattern] == here[0]
    # A store has no folders, only files that a pattern selects; a local folder is not looked into.
    assert {name for each in there[1].values() for name in each} <= {name for each in here[1].values() for name in each}
    if glob in SKIPPED:
        assert here[1] == SKIPPED[glob]
    if glob in (None, "*.py"):
        assert here == there


def test_a_named_file_is_read_whatever_its_name(tmp_path, caplog):
    for name in ("__init__.py", ".hidden.txt", "_a.jsonl", "part-0"):
        (tmp_path / name).write_text('{"text": "words"}\n')
        # Without an extension, the first bytes decide.
        assert read(tmp_path / name) == ["words" if name in ("_a.jsonl", "part-0") else '{"text": "words"}\n'], name
    (tmp_path / "Makefile").write_text("all: words")
    assert read(tmp_path / "Makefile") == ["all: words"]
    warned = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert [line.partition(":")[0] for line in warned] == [f"{tmp_path}/__init__.py", f"{tmp_path}/Makefile"]
    (tmp_path / "x.pdf").write_bytes(b"%PDF-1.4\n\x00\x01")
    with pytest.raises(InputError, match=r"x\.pdf: unknown kind of file, not text"):
        open_documents(tmp_path / "x.pdf")


def test_a_pattern_is_suggested_where_most_files_are_not_read(tmp_path):
    (tmp_path / "a.txt").write_text("words")
    for i in range(4):
        (tmp_path / f"{i}.py").write_text("print()")
        (tmp_path / f"{i}.png").write_bytes(b"\x89PNG\r\n\x1a\n\0")
    (tmp_path / "4.png").write_bytes(b"\x89PNG\r\n\x1a\n\0")
    assert open_documents(tmp_path).left_out["other_kinds"]["suggested_glob"] == "*.py"
    assert "suggested_glob" not in open_documents(tmp_path, reading=Reading(glob="*.txt")).left_out
    for i in range(9):
        (tmp_path / f"{i}.txt").write_text("words")
    assert "suggested_glob" not in open_documents(tmp_path).left_out["other_kinds"]  # most are read
    (tmp_path / "in").mkdir()
    (tmp_path / "in/a.py").write_text("print()")
    with pytest.raises(InputError, match=r"no file to read.*glob='\*\.py'"):
        open_documents(tmp_path / "in")
    (tmp_path / "in/a.py").rename(tmp_path / "in/_a.txt")
    with pytest.raises(InputError, match=r"no file to read.*in/_a\.txt.*glob="):
        open_documents(tmp_path / "in")
    (tmp_path / "in/_a.txt").rename(tmp_path / "in/.a.txt")
    with pytest.raises(InputError, match=r"no file matches '\*\.txt'; names that begin with a dot.*in/\.a\.txt"):
        open_documents(tmp_path / "in", reading=Reading(glob="*.txt"))


def test_relative_names():
    def files(*paths, system=None):
        system = system or fs.LocalFileSystem()
        return [File(system, path, path, path.rpartition("/")[0]) for path in paths]

    assert relative_names(files("/a/b/x", "/a/bc/y")) == ["b/x", "bc/y"]
    assert relative_names(files("/a/b/x", "/a/b/y")) == ["x", "y"]
    assert relative_names(files("bucket/x")) == ["x"]
    assert relative_names(files("/x", "/a/y")) == ["x", "a/y"]
    store = fs.SubTreeFileSystem("/tmp", fs.LocalFileSystem())
    assert relative_names([*files("/a/x"), *files("b/x", system=store)]) == ["a/x", "b/x"]
    for bad in (["b/../x", "b/y/z"], ["b//x", "b/y/z"], ["b/./x", "b/y/z"], ["b/x", "b/x/y"], ["b/x\0", "b/y/z"]):
        with pytest.raises(InputError):
            relative_names(files(*bad))
    with pytest.raises(InputError, match="two files are called 'b/x'"):
        relative_names([*files("b/x"), *files("b/x", system=store)])


def test_stores_of_fsspec(tmp_path):
    fsspec = pytest.importorskip("fsspec")
    memory = fsspec.filesystem("memory")
    memory.pipe({"/in/a.txt": b"one", "/in/b c.txt": b"two", "/in/sub/d.txt": b"three", "/up/../../e.txt": b"out"})
    try:
        for uri in ("memory://in", "fsspec+memory://in"):
            documents = open_documents(uri)
            (batch,) = documents.batches()
            assert batch.ids.to_pylist() == ["a.txt", "b c.txt", "sub/d.txt"]
        documents.write_kept(tmp_path / "kept", np.ones(3, bool))
        assert (tmp_path / "kept/sub/d.txt").read_text() == "three"
        assert open_documents("memory://in/*.txt").num_files == 2
        assert open_described(documents.describe()).num_files == 3
        with pytest.raises(InputError, match=r"'\.\.'"):
            open_documents("memory://up")
        with pytest.raises(InputError, match="no such file"):
            open_documents("memory://nothing")
        assert names(f"local://{tmp_path}/kept", tmp_path / "kept") == [
            f"{tmp_path}/kept/{name}" for name in ("a.txt", "b c.txt", "sub/d.txt")
        ]
    finally:
        memory.rm("/", recursive=True)
    with pytest.raises(InputError, match="nowhere://"):
        open_documents("nowhere://bucket/x")


# Columns and tables


def test_what_neardup_wrote_is_no_text():
    metadata = {METADATA_KEY: "{}"}

    def kind(**columns):
        return artefact_kind(
            pa.table({name: [value] for name, value in columns.items()}).replace_schema_metadata(metadata).schema
        )

    assert kind(id="a", num_tokens=1, signature=[1]) == "sketches"
    assert kind(id="a", num_tokens=1, simhash=1) == "sketches"
    assert kind(id="a", kept=True, duplicate_of="b", group="b") == "documents"
    assert kind(id_a="a", id_b="b") == "pairs"
    assert kind(query_id="a", id="b") == "matches"
    assert kind(token=1, documents=2) == "frequencies"
    assert kind(id="a", duplicate_of="b", body="words") is None
    assert artefact_kind(pa.schema([("id", pa.string()), ("signature", pa.int64())])) is None


def test_the_text_does_not_depend_on_which_file_comes_first(tmp_path):
    pq.write_table(pa.table({"body": ["a"], "n": [1]}), tmp_path / "a.parquet")
    pq.write_table(pa.table({"body": ["a"], "text": ["b"]}), tmp_path / "b.parquet")
    for first, second in itertools.permutations("ab"):
        with pytest.raises(InputError, match=r"a\.parquet: no column 'text'"):
            open_documents([tmp_path / f"{first}.parquet", tmp_path / f"{second}.parquet"])


def read(source, **options):
    return [
        batch.text[i].tobytes().decode()
        for batch in flat(open_documents, source, **options).batches()
        for i in range(batch.num_rows)
    ]


def test_hugging_face_datasets(tmp_path):
    datasets = pytest.importorskip("datasets")
    data = datasets.Dataset.from_dict({"id": list(range(2500)), "text": [f"text {i}" for i in range(2500)]})
    assert read(data) == data["text"][:]
    chosen = data.select([7, 3, 5, 11]).with_format("numpy", columns=["id"])
    assert read(chosen, id_column="id") == ["text 7", "text 3", "text 5", "text 11"]
    documents = open_documents(chosen, id_column="id")
    assert documents.rewindable
    documents.write_kept(tmp_path, np.array([True, False, True, True]))
    assert pq.read_table(tmp_path / "part-00000.parquet")["id"].to_pylist() == [7, 5, 11]
    assert read(data.select([])) == []
    with pytest.raises(InputError, match=r"\.map\(\)"):
        open_documents(data.with_transform(lambda rows: rows))


def test_dask():
    dask = pytest.importorskip("dask.dataframe")
    pandas = pytest.importorskip("pandas")
    frame = dask.from_pandas(pandas.DataFrame({"text": ["a", "b"]}), npartitions=2)
    with pytest.raises(InputError, match=r"\.compute\(\)"):
        open_documents(frame)
    assert read(frame.compute()) == ["a", "b"]


def test_texts():
    for texts in (np.array(["a", None], object), pa.array(["a", None]), pa.chunked_array([["a"], [None]])):
        assert open_documents(texts).texts([0, 1]) == {0: "a", 1: ""}
    for wrong in (np.array([1.5, 2.5]), pa.array([1]), pa.array([["a"]]), np.array(["a", 1], object)):
        with pytest.raises(ArgumentTypeError, match="source"):
            open_documents(wrong)
    assert open_documents({"text": []}).texts([]) == {}


@pytest.mark.parametrize("verb", ["contaminated", "substrings", "passages", "audit"])
def test_folders_of_other_results_are_read_as_those_of_dedup(verb, tmp_path, caplog):
    rows = {"id": ["a", "b"], "text": ["one two three four five six seven eight", "nothing that anybody said before"]}
    pq.write_table(pa.table(rows), tmp_path / "rows.parquet")
    changes = {
        "contaminated": {"evals": {"set": {"text": rows["text"][:1]}}, "action": "drop"},
        "substrings": {"length": 8},
        "passages": {"length": 8},
        "audit": {"kept": {"id": ["a"]}},
    }[verb]
    out = tmp_path / "results" / verb
    getattr(nd, verb)(rows, id_column="id", output=out, **changes)
    pq.write_table(pa.table(rows), tmp_path / "results" / "rows.parquet")
    assert names(tmp_path / "results") == [f"{tmp_path}/results/rows.parquet"]
    if verb in ("contaminated", "substrings"):
        kept = [id for batch in open_documents(out, id_column="id").batches() for id in batch.ids.to_pylist()]
        assert kept == (["b"] if verb == "contaminated" else ["a", "b"])
    else:
        with pytest.raises(InputError, match="a result of neardup without a folder kept/"):
            open_documents(out)
