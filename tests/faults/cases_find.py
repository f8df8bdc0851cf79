"""What is found, what of it is text, and what was meant: links, patterns, keys, credentials, results, tables."""

import json
import os
import socket

import pyarrow as pa
import pyarrow.parquet as pq

from .judge import case

TEXTS = "[' '.join(f'{w}{i}' for w in 'bill amend title united states code improve care'.split()) for i in range(5)]"


def report_of(box):
    return json.loads((box / "out/report.json").read_text())


def counted(documents, files=None):
    """A check that a run read so many documents, of so many files."""

    def then(box, ended):
        report = report_of(box)
        assert report["counts"]["documents"] == documents, report["counts"]
        assert files is None or report["input"]["num_files"] == files, report["input"]

    return then


def texts(box, folder, num=6):
    for row in box.rows(num):
        box.write(f"{folder}/{row['id']}.txt", row["text"])


# ------------------------------------------------------------------------------------------- what is never text


@case(says=("no column of text", "id, paragraphs", "--text-column"))
def the_only_strings_are_ids(box):
    box.lines("d.jsonl", {"id": "NEWS-2024-01", "paragraphs": ["a"]}, {"id": "news 2024 01", "paragraphs": ["b"]})
    return ["dedup", "d.jsonl", "--id-column", "id", "-o", "out"]


@case(says=("no column of text", "key, paragraphs"))
def the_only_strings_are_ids_in_parquet(box):
    lists = pa.array([["a b c"], ["d e f"]])
    pq.write_table(pa.table({"key": ["A-1", "a 1"], "paragraphs": lists}), box / "d.parquet")
    return ["sketch", "d.parquet", "--id-column", "key", "-o", "s.parquet"]


@case(says=("no column of text", "id, paragraphs"))
def a_column_called_id_is_no_text_though_nobody_said_so(box):
    box.lines("d.jsonl", {"id": "NEWS-2024-01", "paragraphs": ["a"]}, {"id": "news 2024 01", "paragraphs": ["b"]})
    return ["dedup", "d.jsonl", "-o", "out"]


@case(says=("no column of text", "'date'", "date, n"))
def the_only_strings_decide_who_is_kept(box):
    box.lines("d.jsonl", *({"date": f"2024-01-0{i}", "n": i} for i in range(1, 6)))
    return ["dedup", "d.jsonl", "--keep", "date:desc", "-o", "out"]


@case(status=0, writes="out", then=counted(6), says="'body'")
def the_text_is_what_neither_names_nor_decides(box):
    box.lines("d.jsonl", *({"id": row["id"], "date": f"d{row['id']}", "body": row["text"]} for row in box.rows()))
    return ["dedup", "d.jsonl", "--id-column", "id", "--keep", "date", "-o", "out"]


@case(says=("a.jsonl", "'text'", "id, body"))
def the_second_file_alone_has_a_column_of_text(box):
    box.lines("in/a.jsonl", *({"id": row["id"], "body": row["text"]} for row in box.rows()))
    box.lines("in/b.jsonl", {"id": "b", "text": "one two three"})
    return ["dedup", "in", "--id-column", "id", "-o", "out"]


@case(says=("r.jsonl", "no column of text", "id, paragraphs"))
def the_only_strings_of_the_reference_are_ids(box):
    box.documents("d.jsonl")
    box.lines("r.jsonl", {"id": "NEWS-2024-01", "paragraphs": ["a"]})
    return ["dedup", "d.jsonl", "--id-column", "id", "--against", "r.jsonl", "-o", "out"]


@case(says=("s.parquet", "sketches", "verified"))
def sketches_as_a_reference(box):
    box.documents("d.jsonl")
    box.sketches("s.parquet")
    return ["dedup", "d.jsonl", "--id-column", "id", "--against", "s.parquet", "-o", "out"]


@case(says=("s.parquet", "sketches", "neardup pairs"))
def sketches_as_documents(box):
    box.sketches("s.parquet")
    return ["dedup", "s.parquet", "-o", "out"]


@case(says=("h.parquet", "sketches", "neardup pairs"))
def simhashes_as_a_reference(box):
    box.documents("d.jsonl")
    box.simhashes("h.parquet")
    return "nd.dedup('d.jsonl', id_column='id', against='h.parquet', output='out')"


@case(says=("f.parquet", "frequencies"))
def frequencies_as_documents(box):
    box.simhashes("h.parquet")
    box.documents("d.jsonl")
    box.run(
        "sketch", "d.jsonl", "--method", "simhash", "--id-column", "id", "--weighting", "tfidf", "-o", "w.parquet", "-q"
    )
    (box / "w.frequencies.parquet").rename(box / "f.parquet")
    return ["sketch", "f.parquet", "--method", "simhash", "-o", "again.parquet"]


@case(says=("out/pairs.parquet", "pairs"))
def pairs_as_documents(box):
    box.result()
    return ["dedup", "out/pairs.parquet", "-o", "again"]


@case(says=("out/documents.parquet", "what dedup decided", "kept"))
def decisions_as_documents(box):
    box.result()
    return ["dedup", "out/documents.parquet", "--id-column", "id", "-o", "again"]


@case(says=("input", "what dedup decided"))
def decisions_in_memory_as_documents(box):
    box.documents("d.jsonl")
    return "nd.dedup(nd.dedup('d.jsonl', id_column='id').documents, id_column='id')"


@case(status=0, writes="out", then=counted(6, 1), says=("files that neardup made", "in/s.parquet"))
def sketches_beside_documents(box):
    box.sketches("s.parquet")
    box.documents("in/d.parquet")
    (box / "s.parquet").rename(box / "in/s.parquet")
    return ["dedup", "in", "--id-column", "id", "-o", "out"]


@case(status=0, writes="again")
def decisions_joined_to_their_texts_are_documents(box):
    box.result()
    joined = pq.read_table(box / "out/documents.parquet")
    pq.write_table(joined.append_column("body", pa.array([r["text"] for r in box.rows()])), box / "joined.parquet")
    return ["dedup", "joined.parquet", "--id-column", "id", "--text-column", "body", "-o", "again"]


# ---------------------------------------------------------------------------------------- every file is read once


@case(status=0, writes="out", then=counted(6, 6))
def a_link_back_to_the_folder_that_holds_it(box):
    texts(box, "in/sub")
    os.symlink("..", box / "in/sub/again")
    os.symlink(".", box / "in/here")
    return ["dedup", "in", "-o", "out"]


@case(status=0, writes="out", then=counted(6, 6))
def folders_that_all_link_to_one_another(box):
    texts(box, "in/f0")
    for i in range(12):
        (box / f"in/f{i}").mkdir(exist_ok=True)
        for j in range(12):
            os.symlink(f"../f{j}", box / f"in/f{i}/to{j}")
    return ["dedup", "in", "-o", "out"]


@case(status=0, writes="out", then=counted(6, 6))
def folders_that_all_link_to_one_another_and_a_deep_pattern(box):
    texts(box, "in/f0")
    for i in range(8):
        (box / f"in/f{i}").mkdir(exist_ok=True)
        for j in range(8):
            os.symlink(f"../f{j}", box / f"in/f{i}/to{j}")
    return ["dedup", "in/**/to*/**/to*/*.txt", "-o", "out"]


@case(status=0, writes="out", then=counted(6, 6))
def a_link_above_the_input_does_not_bring_in_its_neighbours(box):
    texts(box, "in")
    box.write("neighbour.txt", "not asked for")
    os.symlink("..", box / "in/up")
    return ["dedup", "in", "-o", "out"]


@case(status=0, writes="out", then=counted(6, 2))
def folders_elsewhere_that_link_to_each_other(box):
    rows = box.rows()
    box.lines("disk1/a/x.jsonl", *rows[:3])
    box.lines("disk2/b/y.jsonl", *rows[3:])
    os.symlink("../../disk2/b", box / "disk1/a/b")
    os.symlink("../../disk1/a", box / "disk2/b/a")
    (box / "in").mkdir()
    os.symlink("../disk1/a", box / "in/year=2020")
    os.symlink("../disk2/b", box / "in/year=2021")
    return ["dedup", "in", "--id-column", "id", "-o", "out"]


@case(status=0, writes="out", then=counted(6, 1), says="other names of files that are read")
def a_link_beside_its_file(box):
    box.documents("in/d.jsonl")
    os.symlink("d.jsonl", box / "in/latest.jsonl")
    return ["dedup", "in", "--id-column", "id", "-o", "out"]


@case(status=0, writes="out", then=counted(6, 1))
def two_names_of_one_file(box):
    box.documents("in/d.jsonl")
    os.link(box / "in/d.jsonl", box / "in/e.jsonl")
    return ["dedup", "in", "--id-column", "id", "-o", "out"]


@case(status=0)
def links_in_any_order(box):
    texts(box, "in")
    os.symlink("in", box / "also")
    os.symlink("in/a0.txt", box / "first.txt")
    return (
        "import itertools\n"
        "sources = ['in', 'also', 'first.txt', 'in/a0.txt']\n"
        "opened = [nd.open_documents(list(p)) for p in itertools.permutations(sources)]\n"
        "found = {str([i for b in d.batches() for i in b.ids.to_pylist()]) for d in opened}\n"
        "assert found == {str([f'a{i}.txt' for i in range(6)])}, found"
    )


@case(status=0, writes="out", then=counted(6, 1))
def two_snapshots_of_one_blob(box):
    box.documents("hub/blobs/0f3a.jsonl").rename(box / "hub/blobs/0f3a")
    for snapshot in ("one", "two"):
        (box / f"hub/snapshots/{snapshot}").mkdir(parents=True)
        os.symlink("../../blobs/0f3a", box / f"hub/snapshots/{snapshot}/d.jsonl")
    return ["dedup", "hub/snapshots", "--id-column", "id", "-o", "out"]


@case(status=0, writes="out", then=counted(6, 1), says=("links to nothing", "in/gone.jsonl"))
def a_link_to_nothing_is_told(box):
    box.documents("in/d.jsonl")
    os.symlink("nowhere", box / "in/gone.jsonl")
    os.symlink("self.jsonl", box / "in/self.jsonl")
    return ["dedup", "in", "--id-column", "id", "-o", "out"]


@case(says=("self.jsonl", "no such file"))
def a_link_to_itself(box):
    os.symlink("self.jsonl", box / "self.jsonl")
    return ["dedup", "self.jsonl", "-o", "out"]


@case(status=0, writes="out", then=counted(6, 6))
def a_folder_and_a_file_uri_of_it(box):
    texts(box, "in")
    return ["dedup", "in", (box / "in").as_uri(), "-o", "out"]


# -------------------------------------------------------------------------------------- keys, patterns, odd files


def _store(keys, source="s3://bucket/in", more=""):
    """A run over text files in an object store of these keys."""
    objects = {key: f"some words of the text number {i}" for i, key in enumerate(keys)}
    return f"from faults.store import mount\nmount({objects!r})\nnd.dedup({source!r}, output='out'{more})"


@case(says=("s3://bucket/in/../../../evil.txt", "'..'"))
def a_key_that_climbs_out(box):
    return _store(["bucket/in/a.txt", "bucket/in/../../../evil.txt"])


@case(says=("s3://bucket/in//etc/evil.txt", "''"))
def a_key_that_is_absolute(box):
    return _store(["bucket/in/a.txt", "bucket/in//etc/evil.txt"])


@case(says="'..'")
def keys_named_one_by_one_that_climb_out(box):
    return _store(
        ["bucket/in/x/a.txt", "bucket/in/x/../../b.txt"], ["s3://bucket/in/x", "s3://bucket/in/x/../../b.txt"]
    )


@case(says="'.'")
def a_key_that_another_would_overwrite(box):
    return _store(["bucket/in/a.txt", "bucket/in/./a.txt"])


@case(says=("'a.txt'", "folder"))
def a_key_that_is_a_file_and_a_folder(box):
    return _store(["bucket/in/a.txt", "bucket/in/a.txt/b.txt"])


@case(says="'..'")
def a_partition_that_climbs_out(box):
    rows = "".join(json.dumps(row) + "\n" for row in box.rows())
    objects = {"bucket/in/year=1/../../x=1/a.jsonl": rows}
    return f"from faults.store import mount\nmount({objects!r})\nnd.dedup('s3://bucket/in', output='out')"


@case(status=0, writes="out", then=counted(2, 2))
def keys_with_backslashes_are_names_here(box):
    return _store(["bucket/in/x\\..\\..\\evil.txt", "bucket/in/a.txt"])


@case(status=0, writes="out", then=counted(2), hides=("TopSecret", "AKIAKEY"))
def credentials_are_not_in_the_report(box):
    return _store(["bucket/in/a.txt", "bucket/in/b.txt"], "s3://AKIAKEY:TopSecret@bucket/in?session_token=TopSecret")


@case(says=("s3://***@bucket/in", "environment"), hides=("TopSecret",), writes="out")
def a_result_of_credentials_cannot_be_explained(box):
    return _store(["bucket/in/a.txt", "bucket/in/b.txt"], "s3://AKIAKEY:TopSecret@bucket/in") + (
        "\nfrom neardup_gpu.documents import open_described\nimport json\n"
        "open_described(json.loads(Path('out/report.json').read_text())['input'])"
    )


@case(says="s3://***@bucket/x", hides=("TopSecret", "AKIAKEY"))
def credentials_of_a_bucket_that_is_not_there(box):
    return _store(["other/a.txt"], "s3://AKIAKEY:TopSecret@bucket/x")


@case(says="session_token=***", hides=("TopSecret", "AKIAKEY"))
def a_token_in_a_query(box):
    return ["dedup", "s3://AKIAKEY:TopSecret@bucket/x.parquet?session_token=TopSecret&region=x", "-o", "out"]


@case(says="s3://***@bucket", hides=("Top/Secret", "Top", "AKIAKEY"))
def a_password_with_a_slash(box):
    return ["dedup", "s3://AKIAKEY:Top/Secret@bucket/x.parquet", "-o", "out"]


@case(hides=("TopSecret", "AKIAKEY"))
def credentials_of_a_reference(box):
    box.documents("d.jsonl")
    return ["dedup", "d.jsonl", "--against", "s3://AKIAKEY:Top%53ecret@/x?foo=TopSecret", "-o", "out"]


@case(hides=("TopSecret",))
def credentials_of_an_unknown_store(box):
    return ["dedup", "nowhere://user:TopSecret@host/x.parquet?sig=TopSecret", "-o", "out"]


@case(says="no file matches")
def a_glob_that_could_go_back_for_ever(box):
    box.write(f"in/{'a' * 200}.txt", "words")
    return ["dedup", "in", "--glob", f"{'*a' * 40}b", "-o", "out"]


@case(says="no file matches")
def a_pattern_of_any_number_of_any_folders(box):
    box.write(f"{'a/' * 60}a.txt", "words")
    return ["dedup", f"{'**/' * 40}*a*a*b", "-o", "out"]


@case(says="no file matches")
def a_pattern_of_folders_that_repeat(box):
    box.write(f"in/{'a/' * 60}a.txt", "words")
    return ["dedup", "in", "--glob", f"{'**/a/' * 25}b", "-o", "out"]


@case(status=0, writes="out", then=counted(5, 5))
def a_pattern_with_a_bracket_that_is_never_closed(box):
    texts(box, "in[x", 5)
    return ["dedup", "in[[]x/*", "-o", "out"]


@case(says=("p.jsonl", "pipe"))
def a_pipe(box):
    os.mkfifo(box / "p.jsonl")
    return ["dedup", "p.jsonl", "-o", "out"]


@case(says=("l.jsonl", "pipe"))
def a_link_to_a_pipe_as_a_reference(box):
    box.documents("d.jsonl")
    os.mkfifo(box / "p")
    os.symlink("p", box / "l.jsonl")
    return ["dedup", "d.jsonl", "--against", "l.jsonl", "-o", "out"]


@case(says=("s.jsonl", "socket"))
def a_socket(box):
    before = os.getcwd()
    os.chdir(box.path)
    try:
        socket.socket(socket.AF_UNIX).bind("s.jsonl")
    finally:
        os.chdir(before)
    return ["dedup", "s.jsonl", "-o", "out"]


@case(says=("/dev/zero", "device"))
def a_device(box):
    return ["dedup", "/dev/zero", "-o", "out"]


@case(status=0, writes="out", then=counted(6, 1), says=("pipes, sockets and devices: 1", "in/p.jsonl"))
def a_pipe_in_a_folder(box):
    box.documents("in/d.jsonl")
    os.mkfifo(box / "in/p.jsonl")
    return ["dedup", "in", "--id-column", "id", "-o", "out"]


@case(says=("no file matches",))
def a_pipe_that_a_pattern_names(box):
    os.mkfifo(box / "p.jsonl")
    return ["dedup", "*.jsonl", "-o", "out"]


# ------------------------------------------------------------------------------------------------ what else is there


def _told(box, ended):
    left_out = report_of(box)["input"]["left_out"]
    assert left_out["other_kinds"]["files"] == 5, left_out
    assert left_out["other_kinds"]["first"][0] == "in/0.xml", left_out


@case(status=0, writes="out", then=_told, says=("files of other kinds: 5", "in/0.xml", "and 2 more"))
def files_of_other_kinds(box):
    texts(box, "in")
    for i in range(5):
        box.write(f"in/{i}.xml", "a,b")
    return ["dedup", "in", "-o", "out"]


@case(status=0, writes="out", then=counted(6, 1), says=("files about the data: 2", "in/README.md"))
def a_readme_beside_data(box):
    box.documents("in/data/d.parquet")
    box.write("in/README.md", "# What this is")
    box.write("in/LICENSE.txt", "Do what you like.")
    return ["dedup", "in", "--id-column", "id", "-o", "out"]


@case(status=0, writes="out", then=counted(7, 7))
def a_readme_among_texts_is_a_text(box):
    texts(box, "in")
    box.write("in/README.md", "# What this is")
    return ["dedup", "in", "-o", "out"]


@case(says=("in/metadata.jsonl", "in/a0.txt", "--glob"))
def many_texts_beside_one_file_of_data(box):
    texts(box, "in")
    box.lines("in/metadata.jsonl", {"title": "a"})
    return ["dedup", "in", "-o", "out"]


@case(says=("in/d.parquet", "in/e.txt", "such as with --glob '*.parquet'"))
def a_table_and_a_text(box):
    box.documents("in/d.parquet")
    box.write("in/e.txt", "words")
    box.run("dedup", "in", "--id-column", "id", "--dry-run", "-q", "--glob", "*.parquet")
    return ["dedup", "in", "--id-column", "id", "-o", "out"]


@case(says=("d.parquet", "e.txt", "name files of one kind"))
def a_table_and_a_text_by_a_pattern(box):
    box.documents("in/d.parquet")
    box.write("in/e.txt", "words")
    return ["dedup", "in/*", "--id-column", "id", "-o", "out"]


@case(status=0, writes="out", says=("names that begin with an underscore: 2", "in/_index.md", "in/_temporary/"))
def an_underscore_hides_files_and_folders_but_not_silently(box):
    texts(box, "in")
    box.write("in/_index.md", "words")
    box.write("in/_temporary/0.txt", "words")
    return ["dedup", "in", "-o", "out"]


@case(status=0, writes="out", then=counted(2, 2), says=("names that begin with a dot: 1 (in/.git/)",))
def a_pattern_reads_what_begins_with_an_underscore(box):
    for name in ("__init__.py", "_internal/a.py", ".git/a.py"):
        box.write(f"in/{name}", f"the words of {name}")
    return ["dedup", "in", "--glob", "*.py", "-o", "out"]


@case(status=0, writes="out", then=counted(1, 1), says=("most files, 9 of 10", "--glob '*.py'"))
def most_files_are_of_a_kind_that_is_not_read(box):
    box.write("in/a.txt", "some words")
    for i in range(9):
        box.write(f"in/{i}.py", f"print({i})")
    return ["dedup", "in", "-o", "out"]


@case(status=0, writes="out", then=counted(1, 1), says=("__init__.py", "no known kind of file"))
def a_named_file_of_no_known_kind_is_a_text(box):
    box.write("__init__.py", "print()")
    return ["dedup", "__init__.py", "-o", "out"]


@case(status=0, writes="again", then=lambda box, ended: _again(box, 5))
def a_result_is_the_rows_it_kept(box):
    box.result()
    return ["dedup", "out", "--id-column", "id", "-o", "again"]


def _again(box, documents):
    report = json.loads((box / "again/report.json").read_text())
    assert report["counts"]["documents"] == documents, report["counts"]


@case(status=0)
def a_result_of_texts_keeps_their_ids(box):
    texts(box, "in")
    box.run("dedup", "in", "-o", "out", "-q")
    return (
        "def ids_of(s, g):\n    found = nd.open_documents(s, reading=nd.Reading(glob=g))\n"
        "    return [i for b in found.batches() for i in b.ids.to_pylist()]\n"
        "ids = [ids_of(s, g) for s, g in "
        "(('out', None), ('out/kept', None), ('out', '*.txt'), ('out', 'kept/*.txt'), ('out/kept/*', None))]\n"
        "assert ids == [[f'a{i}.txt' for i in range(5)]] * 5, ids"
    )


@case(status=0, writes="again", then=lambda box, ended: _again(box, 6), says=("results of neardup: 1", "in/out"))
def a_result_inside_the_input(box):
    box.result("in/out")
    (box / "d.jsonl").rename(box / "in/d.jsonl")
    return ["dedup", "in", "--id-column", "id", "-o", "again"]


@case(says=("results of neardup", "runs/one"))
def nothing_but_results(box):
    box.result("runs/one")
    return ["dedup", "runs", "-o", "again"]


@case(status=0, writes="again", then=lambda box, ended: _again(box, 5))
def the_kept_rows_of_all_results(box):
    box.result("runs/one")
    return ["dedup", "runs/*/kept/*.jsonl", "--id-column", "id", "-o", "again"]


@case(says=("out/report.json", "name its folder"))
def the_report_of_a_result(box):
    box.result()
    return ["dedup", "out/report.json", "-o", "again"]


@case(says=("out", "kept"))
def a_result_without_its_rows(box):
    box.result()
    for path in (box / "out/kept").iterdir():
        path.unlink()
    (box / "out/kept").rmdir()
    return ["dedup", "out", "-o", "again"]


@case(status=0, writes="out", then=counted(6, 1))
def documents_of_our_names_that_are_not_ours(box):
    box.documents("in/mine/documents.parquet")
    box.write("in/mine/report.txt", "what I found").rename(box / "in/mine/report.json")
    return ["dedup", "in", "--id-column", "id", "--glob", "*.parquet", "-o", "out"]


def _dead_run(box):
    box.result()
    (box / ".out.partial/new").mkdir(parents=True)
    box.write(".out.partial/lock", "")
    (box / "out").rename(box / ".out.partial/new/out")
    (box / ".out.partial/new/out/report.json").unlink()


@case(says=("not finished", ".out.partial"))
def what_a_dead_run_left_behind(box):
    _dead_run(box)
    return ["dedup", ".out.partial/new/out/kept", "--id-column", "id", "-o", "again"]


@case(status=0, writes="again", then=lambda box, ended: _again(box, 6))
def what_a_dead_run_left_behind_beside_documents(box):
    _dead_run(box)
    return ["dedup", ".", "--glob", "*.jsonl", "--id-column", "id", "-o", "again"]


@case(status=0, writes="again", then=lambda box, ended: _again(box, 5))
def a_result_of_pq_files(box):
    box.documents("d.parquet").rename(box / "d.pq")
    box.run("dedup", "d.pq", "--id-column", "id", "-o", "out", "-q")
    return ["dedup", "out", "--id-column", "id", "-o", "again"]


# --------------------------------------------------------------------------------------------------- texts and tables


@case(says=("no such file", "'text': texts"))
def a_list_of_texts(box):
    return f"nd.dedup({TEXTS})"


@case(says="'text': texts")
def a_list_of_texts_that_look_like_patterns(box):
    for i in range(50):
        box.write(f"f{i}.txt", "words")
    return "nd.dedup(['Is this a text? Yes', 'Or *this*?', '[1] and so on'])"


@case(says="'text': texts")
def a_list_of_texts_about_addresses(box):
    return "nd.dedup(['see https://example.org/ for more', 'or s3://bucket for less'])"


@case(says=("other text", "'text': texts"))
def a_list_of_texts_of_which_one_is_a_file(box):
    box.documents("d.jsonl")
    return "nd.dedup(['d.jsonl', 'other text'], id_column='id')"


@case(says="'text': texts")
def one_text(box):
    return "nd.sketches.sketch('the quick brown\\nfox ' * 1000, 's.parquet')"


@case(says="'text': texts")
def a_list_of_empty_texts(box):
    return "nd.dedup(['', ''])"


@case(status=0)
def texts_are_documents(box):
    return (
        f"texts = {TEXTS}\ntexts += [texts[0]]\nimport pandas, polars, shutil\n"
        "columns = [texts, tuple(texts), iter(texts), [t.encode() for t in texts]]\n"
        "for each in (*({'text': column} for column in columns), np.array(texts), np.array(texts, object),"
        " pa.array(texts), pa.chunked_array([texts[:2], texts[2:]]), pandas.Series(texts), polars.Series(texts),"
        " pa.array(texts, pa.string_view())):\n"
        "    found = nd.open_documents(each).texts(range(6))\n"
        "    assert list(found.values()) == texts, (type(each), found)\n"
        "assert nd.dedup(np.array(texts), output='o').documents['kept'].to_pylist() == [True] * 5 + [False]\n"
        "shutil.rmtree('o')\n"
        "assert nd.sketches.sketch({'text': texts}, 's.parquet')['documents'] == 6\nPath('s.parquet').unlink()"
    )


@case(status=0)
def texts_that_are_missing_or_no_unicode(box):
    return (
        "texts = ['one', None, float('nan'), 'a \\ud800 b', '']\n"
        "for each in ({'text': texts}, np.array(texts, object)):\n"
        "    (batch,) = nd.open_documents(each).batches()\n"
        "    assert batch.num_null == 2 and batch.num_rows == 5\n"
        "    assert batch.text[3].tobytes().decode() == 'a \\ufffd b'"
    )


@case(says=("'text'", "one value"))
def texts_that_are_one_text(box):
    return "nd.dedup({'text': 'one text'})"


@case(says=("entry 1", "int"))
def texts_that_are_numbers(box):
    return "nd.dedup(np.array(['a', 1], object))"


@case(says="int64")
def texts_in_an_array_of_numbers(box):
    return "nd.dedup(pa.array([1, 2]))"


@case(says="no column 'id'")
def texts_with_an_id_column(box):
    return "nd.dedup(pa.array(['a']), id_column='id')"


@case(status=0)
def tables_of_every_kind(box):
    rows = box.rows()
    return (
        f"rows = {rows!r}\nimport pandas, polars\n"
        "columns = {name: [row[name] for row in rows] for name in rows[0]}\n"
        "struct = pa.array(rows)\n"
        "for each in (columns, {'id': np.array(columns['id']), 'text': polars.Series(columns['text'])}, rows,"
        " tuple(rows), struct, pa.chunked_array([struct]), pandas.DataFrame(rows), polars.DataFrame(rows)):\n"
        "    (batch,) = nd.open_documents(each, id_column='id').batches()\n"
        "    assert batch.ids.to_pylist() == columns['id'], type(each)\n"
        "    assert [batch.text[i].tobytes().decode() for i in range(6)] == columns['text'], type(each)\n"
        "(more,) = nd.open_documents([{'id': 1}, {'id': 2, 'text': 'later'}], id_column='id').batches()\n"
        "assert more.num_null == 1 and more.ids.to_pylist() == [1, 2]"
    )


@case(says=("LazyFrame", ".collect()"))
def a_lazy_frame(box):
    return "import polars\nnd.dedup(polars.LazyFrame({'text': ['a']}))"


@case(says=("one value", "'id'"))
def a_dict_of_one_row(box):
    return "nd.dedup({'id': 1, 'text': 'one two'}, id_column='id')"


@case(says="table")
def a_dict_of_columns_of_different_length(box):
    return "nd.dedup({'id': [1, 2], 'text': ['a']}, id_column='id')"


@case(says="'text'")
def a_dict_of_mixed_values(box):
    return "nd.dedup({'text': ['a', 1, {}]})"


@case(says="list")
def a_generator_of_paths(box):
    box.documents("d.jsonl")
    return "nd.dedup(Path('.').glob('*.jsonl'))"


@case(says=("bytes", "'text': texts"))
def a_list_of_bytes(box):
    return "nd.dedup([b'the quick', b'brown fox'])"


WITHOUT_FSSPEC = (
    "import sys\nclass Without:\n    def find_spec(self, name, *_):\n"
    "        if name == 'fsspec': raise ImportError(name)\nsys.meta_path.insert(0, Without())\n"
)


@case(says=("hf://datasets/x/y", "pip install 'neardup-gpu[hf]'"))
def a_dataset_hub_without_its_package(box):
    return WITHOUT_FSSPEC + "nd.dedup('hf://datasets/x/y/d.parquet')"


@case(says=("github://", "pip install fsspec"))
def a_store_that_fsspec_would_know(box):
    return WITHOUT_FSSPEC + "nd.dedup('github://owner:repository@main/d.parquet')"
