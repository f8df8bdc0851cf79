"""Outputs: whatever is there or comes meanwhile, whatever is read, wherever a run is killed, whatever the disk says."""

import ctypes
import os
import signal
import sys

import pytest

from . import judge
from .judge import case

DEDUP = ["dedup", "d.jsonl", "--id-column", "id", "-q", "-o"]
TFIDF = ["sketch", "d.jsonl", "--method", "simhash", "--id-column", "id", "--weighting", "tfidf", "-q", "-o"]

LATE = """
def late(act):
    done = []
    def progress(stage, *_):
        if stage == 'write' and not done:
            done.append(act())
    return progress
"""
"""Python statements of a progress callback that acts once, when everything is decided and nothing written."""

DISKS = """
import ctypes, os, resource
libc = ctypes.CDLL(None, use_errno=True)
def own_mounts():
    assert libc.unshare(0x20000) == 0 and libc.mount(b'none', b'/', None, 0x44000, None) == 0
def mount(folder, size, flags=0):
    os.mkdir(folder)
    assert libc.mount(b'tmpfs', folder.encode(), b'tmpfs', flags, f'size={size}'.encode()) == 0
"""
"""Python statements that mount small disks, which only this process sees."""


def needs_mounts():
    if sys.platform != "linux" or os.geteuid() != 0:
        pytest.skip("only root of Linux mounts disks")
    pid = os.fork()
    if pid == 0:
        os._exit(0 if ctypes.CDLL(None).unshare(0x20000) == 0 else 1)
    if os.waitpid(pid, 0)[1]:
        pytest.skip("mounts are not allowed here")


def killed(box, statements):
    """Run Python statements in which the process kills itself."""
    ended = judge._fork_server().run(box.path, statements, {})
    assert ended.status == -signal.SIGKILL, ended.errors


KILL = "import os, signal\nkill = lambda *_: os.kill(os.getpid(), signal.SIGKILL)\n"


def holds(name, text):
    def check(box, ended):
        assert (box / name).read_text() == text

    return check


# ------------------------------------------------------------------------------------------ what appears during a run


@case(says=("appeared", "out-1"), writes=("out", "out-1"), then=holds("out/thesis.txt", "mine"))
def a_folder_that_appears_during_the_run(box):
    box.documents("d.jsonl")
    act = "late(lambda: (Path('out').mkdir(), Path('out/thesis.txt').write_text('mine')))"
    return f"{LATE}nd.dedup('d.jsonl', id_column='id', output='out', progress={act})"


@case(says=("appeared", "out-1"), writes=("out", "out-1"), then=holds("out", "mine"))
def a_file_that_appears_where_a_folder_goes(box):
    box.documents("d.jsonl")
    act = "late(lambda: Path('out').write_text('mine'))"
    return f"{LATE}nd.dedup('d.jsonl', id_column='id', output='out', progress={act})"


@case(says=("s.parquet", "s-1.parquet"), writes=("s.parquet", "s-1.parquet"), then=holds("s.parquet", "mine"))
def a_file_that_appears_during_a_sketch(box):
    box.documents("d.jsonl")
    act = "late(lambda: Path('s.parquet').write_text('mine'))"
    return f"{LATE}nd.sketches.sketch('d.jsonl', 's.parquet', id_column='id', progress={act})"


@case(says=("s.parquet", "s-1.parquet"), writes=("s.parquet", "s-1.parquet"), then=holds("s.parquet", "mine"))
def a_file_that_appears_during_an_overwriting_sketch(box):
    box.documents("d.jsonl")
    act = "late(lambda: Path('s.parquet').write_text('mine'))"
    return f"{LATE}nd.sketches.sketch('d.jsonl', 's.parquet', id_column='id', overwrite=True, progress={act})"


@case(says=("thesis.txt", "out-1"), writes=("out", "out-1"), then=holds("out/kept/thesis.txt", "mine"))
def a_file_that_is_put_into_the_earlier_result_during_the_run(box):
    box.result("out")
    act = "late(lambda: Path('out/kept/thesis.txt').write_text('mine'))"
    return (
        f"{LATE}nd.dedup('d.jsonl', id_column='id', output='out', writing=nd.Writing(overwrite=True), progress={act})"
    )


@case(says=("i.index", "appeared"), writes=("i.index", "i-1.index"), then=holds("i.index", "mine"))
def a_file_that_appears_while_an_index_is_built(box):
    box.simhashes("h.parquet")
    act = "late(lambda: Path('i.index').write_text('mine'))"
    return f"{LATE}from neardup_gpu.hamming.jobs import build\nbuild('h.parquet', 'i.index', progress={act})"


TWO = ("s.frequencies.parquet", "s-1.parquet", "s.frequencies-1.parquet")


@case(says=("s.frequencies.parquet: appeared", "s-1.parquet"), writes=TWO)
def one_of_two_files_that_appears_during_the_run(box):
    box.documents("d.jsonl")
    act = "late(lambda: Path('s.frequencies.parquet').write_text('mine'))"
    return (
        f"{LATE}weighed = nd.SimHash(weighting='tfidf')\n"
        f"nd.sketches.sketch('d.jsonl', 's.parquet', id_column='id', method=weighed, progress={act})"
    )


@case(says="is being written by process", writes=".out.partial")
def two_runs_to_one_name(box):
    box.documents("d.jsonl")
    first = "from neardup_gpu.store.outputs import new_folder\nfirst = new_folder('out')\nfirst.__enter__()\n"
    return f"{first}nd.dedup('d.jsonl', id_column='id', output='out')"


# --------------------------------------------------------------------------------------------- what may be overwritten


@case(status=0, writes="out")
def an_earlier_result_is_replaced(box):
    box.result("out")
    return [*DEDUP, "out", "--overwrite"]


@case(says="other files than a result")
def a_folder_with_a_report_of_somebody_else(box):
    box.documents("d.jsonl")
    box.write("out/report.json", '{"sales": 12}')
    box.write("out/plan.txt", "mine")
    return [*DEDUP, "out", "--overwrite"]


@case(says="also holds thesis.txt")
def a_file_beside_a_result(box):
    box.result("out")
    box.write("out/thesis.txt", "mine")
    return [*DEDUP, "out", "--overwrite"]


@case(says="also holds kept/notes/")
def an_empty_folder_inside_a_result(box):
    box.result("out")
    (box / "out/kept/notes").mkdir()
    return [*DEDUP, "out", "--overwrite"]


@case(says="also holds .git")
def a_repository_inside_a_result(box):
    box.result("out")
    box.write("out/.git/HEAD", "ref: refs/heads/main")
    return [*DEDUP, "out", "--overwrite"]


@case(says="also holds kept/")
def kept_rows_that_somebody_moved_away_and_linked(box):
    out = box.result("out")
    (out / "kept").rename(box / "elsewhere")
    (out / "kept").symlink_to("../elsewhere")
    return [*DEDUP, "out", "--overwrite"]


@case(says="also holds pairs.parquet")
def a_result_whose_file_was_edited_without_growing(box):
    out = box.result("out")
    data = bytearray((out / "pairs.parquet").read_bytes())
    data[100] ^= 1
    (out / "pairs.parquet").write_bytes(data)
    os.utime(out / "pairs.parquet", (4e9, 4e9))
    return [*DEDUP, "out", "--overwrite"]


@case(says="other files than a result")
def a_result_that_is_half_removed(box):
    out = box.result("out")
    (out / "documents.parquet").unlink()
    return [*DEDUP, "out", "--overwrite"]


@case(says="was not written by neardup")
def a_parquet_file_of_somebody_else(box):
    box.documents("d.jsonl")
    box.documents("mine.parquet")
    return ["sketch", "d.jsonl", "-o", "mine.parquet", "--overwrite"]


@case(says="was not written by neardup")
def sketches_that_somebody_labelled(box):
    import pyarrow.parquet as pq

    path = box.sketches("s.parquet")
    table = pq.read_table(path)
    pq.write_table(table.append_column("label", table["id"]), path)
    box.documents("d.jsonl")
    return ["sketch", "d.jsonl", "-o", "s.parquet", "--overwrite"]


@case(says="was not written by neardup")
def a_picture_of_somebody_else(box):
    box.write("x.png", b"\x89PNG\r\n\x1a\n holiday")
    return ["curve", "-o", "x.png", "--overwrite"]


@case(says="was not written by neardup")
def an_index_over_sketches(box):
    box.simhashes("h.parquet")
    box.sketches("s.parquet")
    return ["hamming", "build", "h.parquet", "-o", "s.parquet", "--overwrite"]


@case(says="was not written by neardup")
def a_fifo_as_output(box):
    box.documents("d.jsonl")
    os.mkfifo(box / "s.parquet")
    return ["sketch", "d.jsonl", "-o", "s.parquet", "--overwrite"]


@case(says="was not written by neardup")
def a_device_as_output(box):
    box.simhashes("h.parquet")
    return ["hamming", "pairs", "h.parquet", "-o", "/dev/null", "--overwrite"]


# --------------------------------------------------------------------------------------------------- what is also read


@case(says="is read as input")
def pairs_over_their_sketches(box):
    box.sketches("s.parquet")
    return ["pairs", "s.parquet", "-o", "s.parquet", "--overwrite"]


@case(says="is read as input")
def simhashes_over_their_frequencies(box):
    box.documents("d.jsonl")
    box.run(*TFIDF, "s.parquet")
    return [*TFIDF, "s.frequencies.parquet", "--frequencies", "s.frequencies.parquet", "--overwrite"]


@case(says="is read as input")
def matches_over_their_index(box):
    box.index("i.index")
    box.simhashes("h.parquet")
    return ["hamming", "query", "i.index", "h.parquet", "-o", "i.index", "--overwrite"]


@case(says="is read as input")
def a_join_over_its_queries(box):
    box.simhashes("h.parquet")
    box.simhashes("q.parquet")
    return ["hamming", "join", "h.parquet", "q.parquet", "-o", "q.parquet", "--overwrite"]


@case(says="is read as input")
def pairs_over_one_file_of_a_folder(box):
    (box / "set").mkdir()
    box.simhashes("set/h.parquet")
    return ["hamming", "pairs", "set", "-o", "set/h.parquet", "--overwrite"]


@case(says="is read as input")
def pairs_over_a_hard_link_to_their_sketches(box):
    os.link(box.sketches("s.parquet"), box / "p.parquet")
    return ["pairs", "s.parquet", "-o", "p.parquet", "--overwrite"]


@case(says="is read as input")
def pairs_through_a_link_over_their_sketches(box):
    box.sketches("s.parquet")
    (box / "p.parquet").symlink_to("s.parquet")
    return ["pairs", "s.parquet", "-o", "p.parquet", "--overwrite"]


@case(says="is read as input")
def an_index_over_its_fingerprints(box):
    box.simhashes("h.parquet")
    return ["hamming", "build", "h.parquet", "-o", "./x/../h.parquet", "--overwrite"]


@case(says="would be lost")
def a_result_over_its_reference_set(box):
    box.result("out")
    return [*DEDUP, "out", "--against", "out/kept", "--overwrite"]


@case(says="would be lost")
def a_result_over_what_a_link_leads_to(box):
    box.result("out")
    (box / "data").symlink_to("out/kept")
    return ["dedup", "data", "--id-column", "id", "-o", "out", "--overwrite"]


@case(says="would be lost")
def a_result_over_an_input_given_as_a_uri(box):
    kept = next(path for path in (box.result("out") / "kept").rglob("*") if path.is_file())
    return ["dedup", kept.as_uri(), "--id-column", "id", "-o", "out", "--overwrite"]


@case(says="also holds link.jsonl")
def an_input_reached_through_a_link_inside_the_output(box):
    box.result("out")
    (box / "out/link.jsonl").symlink_to("../d.jsonl")
    return ["dedup", "out/link.jsonl", "--id-column", "id", "-o", "out", "--overwrite"]


@case(says="would be lost")
def an_output_that_is_a_folder_of_the_input(box):
    box.documents("data/more/d.jsonl")
    return ["dedup", "data", "--id-column", "id", "-o", "data/more"]


@case(status=0, writes="data/out", then=lambda box, ended: box.run("dedup", "data", "-o", "data/again", "-q"))
def an_output_inside_the_input_is_not_read_the_next_time(box):
    box.documents("data/d.jsonl")
    return ["dedup", "data", "--id-column", "id", "-o", "data/out"]


# ------------------------------------------------------------------------------------------------------------- killed


@case(status=0, says="removing what a killed run left in .out.partial", writes=("out", ".out.partial"))
def a_run_after_one_that_was_killed(box):
    box.documents("d.jsonl")
    killed(box, f"{KILL}{LATE}nd.dedup('d.jsonl', id_column='id', output='out', progress=late(kill))")
    assert not (box / "out").exists()
    return [word for word in [*DEDUP, "out"] if word != "-q"]


@case(status=0, says="removing what a killed run left", writes=("s.parquet", ".s.parquet.partial"))
def a_sketch_after_one_that_was_killed(box):
    box.documents("d.jsonl")
    killed(box, f"{KILL}{LATE}nd.sketches.sketch('d.jsonl', 's.parquet', id_column='id', progress=late(kill))")
    return ["sketch", "d.jsonl", "-o", "s.parquet"]


@case(says="exists already", writes=".out.partial", then=lambda box, ended: box.run("explain", "out", "a5"))
def a_run_that_was_killed_when_it_had_replaced_the_earlier_result(box):
    box.result("out")
    killed(
        box,
        f"{KILL}from neardup_gpu.store import outputs\noutputs._clear = kill\n"
        "nd.dedup('d.jsonl', id_column='id', output='out', writing=nd.Writing(overwrite=True))",
    )
    return [*DEDUP, "out"]


@case(says="exists already", writes=(".out.partial", "out"), then=lambda box, ended: box.run("explain", "out", "a5"))
def a_run_that_was_killed_where_names_cannot_be_exchanged(box):
    box.result("out")
    killed(
        box,
        f"{KILL}from neardup_gpu.store import disk\ndisk._SYSTEM_RENAME = None\ndisk.rename_new = kill\n"
        "nd.dedup('d.jsonl', id_column='id', output='out', writing=nd.Writing(overwrite=True))",
    )
    assert not (box / "out").exists()
    return [*DEDUP, "out"]


@case(status=0, says="killed run", writes=("s.parquet", "s.frequencies.parquet", ".s.parquet.partial"))
def a_run_that_was_killed_between_two_files(box):
    box.documents("d.jsonl")
    killed(
        box,
        f"{KILL}from neardup_gpu.store import outputs\nplace, outputs._place = outputs._place, "
        "lambda *a: (place(*a), kill())\nnd.sketches.sketch('d.jsonl', 's.parquet', id_column='id', "
        "recipe=nd.Recipe(method=nd.SimHash(weighting='tfidf')))",
    )
    assert (box / "s.frequencies.parquet").exists() and not (box / "s.parquet").exists()
    return [word for word in [*TFIDF, "s.parquet"] if word != "-q"]


@case(says=".out.partial is in the way", then=holds("precious/new/thesis.txt", "mine"))
def a_link_where_a_killed_run_would_have_left_something(box):
    box.documents("d.jsonl")
    box.write("precious/lock", "process 1 on here")
    box.write("precious/new/thesis.txt", "mine")
    (box / ".out.partial").symlink_to("precious")
    return [*DEDUP, "out"]


@case(says="stands for 2 documents")
def folders_that_were_made_for_nothing(box):
    box.lines("d.jsonl", {"id": "a", "text": "one two"}, {"id": "a", "text": "three four"})
    return [*DEDUP, "not/yet/there/out"]


# -------------------------------------------------------------------------------------------------------------- names


@case(says="is not UTF-8")
def an_output_name_that_is_not_utf8(box):
    box.documents("d.jsonl")
    return [*DEDUP, os.fsdecode(b"out-\xff")]


@case(says="is not UTF-8")
def a_working_folder_that_is_not_utf8(box):
    box.sketches("s.parquet")
    sketches = box / "s.parquet"
    os.mkdir(os.fsencode(box.path) + b"/in-\xff")
    return f"import os\nos.chdir(b'in-\\xff')\nnd.sketches.pairs({str(sketches)!r}, 'p.parquet')"


@case(says="File name too long")
def an_output_name_that_is_too_long(box):
    box.documents("d.jsonl")
    return [*DEDUP, "n" * 300]


@case(status=0, writes="n" * 255)
def the_longest_output_name(box):
    box.documents("d.jsonl")
    return [*DEDUP, "n" * 255]


@case(says="the working folder has been deleted", writes="gone")
def a_deleted_working_folder(box):
    box.documents("d.jsonl")
    (box / "gone").mkdir()
    documents = str(box / "d.jsonl")
    return f"import os\nos.chdir('gone')\nos.rmdir('../gone')\nnd.dedup({documents!r}, id_column='id', output='o')"


@case(says="no such file or folder", writes="gone")
def a_deleted_working_folder_as_input(box):
    (box / "gone").mkdir()
    return f"import os\nos.chdir('gone')\nos.rmdir('../gone')\nnd.dedup('.', output={str(box / 'out')!r})"


@case(says="d.jsonl is a file, not a folder")
def an_output_inside_a_file(box):
    box.documents("d.jsonl")
    return [*DEDUP, "d.jsonl/more/out"]


@case(says="cannot name a file; it is empty")
def an_output_without_a_name(box):
    box.documents("d.jsonl")
    return [*DEDUP, ""]


@case(says="is where you are")
def the_working_folder_as_output(box):
    box.documents("d.jsonl")
    return [*DEDUP, ".", "--overwrite"]


@case(says="is where you are")
def the_root_as_output(box):
    box.documents("d.jsonl")
    return [*DEDUP, "/", "--overwrite"]


@case(says="ends as a folder's name does")
def a_file_named_like_a_folder(box):
    box.documents("d.jsonl")
    return ["sketch", "d.jsonl", "-o", "sketches/"]


@case(says="is a URI", hides="hunter2")
def an_output_in_the_cloud(box):
    box.documents("d.jsonl")
    return [*DEDUP, "s3://me:hunter2@bucket/out"]


@case(says="cannot name a file")
def an_output_name_with_a_null_byte(box):
    box.documents("d.jsonl")
    return "nd.dedup('d.jsonl', id_column='id', output='a\\0b')"


@case(says="leads back to itself")
def an_output_that_is_a_link_to_itself(box):
    box.documents("d.jsonl")
    (box / "out").symlink_to("out")
    return [*DEDUP, "out"]


@case(status=0, writes="target", then=lambda box, ended: box.run("explain", "target", "a5"))
def an_output_that_is_a_link_to_nothing(box):
    box.documents("d.jsonl")
    (box / "out").symlink_to("target")
    return [*DEDUP, "out"]


@case(status=0, writes="there", then=lambda box, ended: box.run("explain", "out", "a5"))
def an_output_that_is_a_link_to_an_earlier_result(box):
    box.result("there")
    (box / "out").symlink_to("there")
    return [*DEDUP, "out", "--overwrite"]


@case(status=0, writes=("s.pq", "s.frequencies.pq"))
def simhashes_of_two_names_share_no_frequencies(box):
    box.documents("d.jsonl")
    box.run(*TFIDF, "s.parquet")
    return [*TFIDF, "s.pq"]


@case(status=0, writes=("s.parquet", "s.skipped.parquet"))
def sketches_and_what_they_skipped_are_replaced(box):
    box.write("d.jsonl", '{"id": "a", "text": "one two"}\n{"id": "b", "text":\n{"id": "c", "text": "three"}\n')
    skipping = ["sketch", "d.jsonl", "--id-column", "id", "--on-error", "skip", "-q", "-o", "s.parquet"]
    box.run(*skipping)
    return [*skipping, "--overwrite"]


@case(status=0, writes=("s.pq", "s.skipped.pq"))
def sketches_of_two_names_share_no_list_of_what_they_skipped(box):
    box.write("d.jsonl", '{"id": "a", "text": "one two"}\n{"id": "b", "text":\n{"id": "c", "text": "three"}\n')
    skipping = ["sketch", "d.jsonl", "--id-column", "id", "--on-error", "skip", "-q", "-o"]
    box.run(*skipping, "s.parquet")
    return [*skipping, "s.pq"]


@case(says="s.frequencies.parquet: exists already")
def frequencies_whose_name_is_taken(box):
    box.documents("d.jsonl")
    box.write("s.frequencies.parquet", "mine")
    return [*TFIDF, "s.parquet"]


# -------------------------------------------------------------------------------------------------------------- disks

EMPTY = "\nfinally:\n    assert os.listdir('small') == {}, os.listdir('small')"


@case(says="(No space left on device)", writes="small")
def a_full_disk_under_a_result(box):
    needs_mounts()
    rows = [{"id": i, "text": os.urandom(3000).hex()} for i in range(100)]
    box.lines("d.jsonl", *rows)
    return (
        f"{DISKS}own_mounts()\nmount('small', '100k')\ntry:\n    nd.dedup('d.jsonl', id_column='id', "
        f"output='small/out', engine=nd.Engine(temp_dir='.')){EMPTY.format([])}"
    )


@case(says="No space left on device", writes="small")
def a_full_disk_under_a_result_that_replaces_another(box):
    needs_mounts()
    box.lines("d.jsonl", *[{"id": i, "text": os.urandom(3000).hex()} for i in range(100)])
    return (
        f"{DISKS}own_mounts()\nmount('small', '300k')\nnd.dedup(pa.table({{'text': ['a b', 'c d']}}), "
        "output='small/out')\ntry:\n    nd.dedup('d.jsonl', id_column='id', output='small/out', "
        f"engine=nd.Engine(temp_dir='.'), writing=nd.Writing(overwrite=True)){EMPTY.format(['out'])}\n"
        "    assert len(pq.read_table('small/out/documents.parquet')) == 2"
    )


@case(says=("the disk is too small", "are missing", "temp_dir=..."), writes="small")
def a_temporary_disk_that_is_too_small(box):
    needs_mounts()
    box.lines("d.jsonl", *[{"id": i, "text": os.urandom(3000).hex(" ")} for i in range(100)])
    return (
        f"{DISKS}own_mounts()\nmount('small', '300k')\ntry:\n    nd.dedup('d.jsonl', id_column='id', output='out', "
        f"engine=nd.Engine(temp_dir='small')){EMPTY.format([])}"
    )


@case(says="No space left on device", writes="small")
def a_full_disk_under_an_index(box):
    needs_mounts()
    return (
        f"{DISKS}own_mounts()\nmount('small', '100k')\n"
        "index = nd.hamming.HammingIndex(np.arange(30_000, dtype=np.uint64), radius=3)\n"
        f"try:\n    index.save('small/i.index'){EMPTY.format([])}"
    )


@case(says="No space left on device", writes="small")
def a_full_disk_under_sketches(box):
    needs_mounts()
    box.documents("d.jsonl", 300)
    return (
        f"{DISKS}own_mounts()\nmount('small', '40k')\ntry:\n    nd.sketches.sketch('d.jsonl', 'small/s.parquet', "
        f"id_column='id'){EMPTY.format([])}"
    )


@case(says="Read-only file system", writes="small")
def a_disk_that_is_read_only(box):
    needs_mounts()
    box.documents("d.jsonl")
    return f"{DISKS}own_mounts()\nmount('small', '1m', 1)\nnd.dedup('d.jsonl', id_column='id', output='small/out')"


@case(says="is a mount point", writes="small")
def a_mounted_disk_as_output(box):
    needs_mounts()
    box.documents("d.jsonl")
    return f"{DISKS}own_mounts()\nmount('small', '1m')\nnd.dedup('d.jsonl', id_column='id', output='small')"


@case(says="File too large")
def a_limit_on_the_size_of_files_under_a_result(box):
    box.lines("d.jsonl", *[{"id": i, "text": os.urandom(3000).hex()} for i in range(100)])
    limit = "import resource\nresource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))\n"
    return f"{limit}nd.dedup('d.jsonl', id_column='id', output='out')"


@case(says="File too large")
def a_limit_on_the_size_of_files_under_an_index(box):
    limit = "import resource\nresource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))\n"
    return f"{limit}nd.hamming.HammingIndex(np.arange(30_000, dtype=np.uint64), radius=3).save('i.index')"


@case(says="output: 5 is not a path")
def a_number_as_output(box):
    box.documents("d.jsonl")
    return "nd.dedup('d.jsonl', id_column='id', output=5)"
