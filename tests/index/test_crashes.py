"""A writer that is killed or refused at any call of the system: what was acknowledged is there, and nothing half.

`support/killed_writer.py` does the writing. Of the calls that are alike the last one of a step is tried here; with
NEARDUP_EVERY_CALL set, each of them is, which takes minutes.
"""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import killed_writer
import pytest
from grids import some
from growing import same_as_dedup, table

import neardup_gpu as nd
from neardup_gpu.store.folder import Folder

pytestmark = pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="looks at open files as Linux shows them")

EVERY = bool(os.environ.get("NEARDUP_EVERY_CALL"))
COMMAND = [sys.executable, killed_writer.__file__]
ENVIRONMENT = {
    **os.environ,
    "PYTHONPATH": os.pathsep.join([str(Path(nd.__file__).parent.parent), str(Path(killed_writer.__file__).parent)]),
}
FAILURES = {
    "open": "ENOSPC",
    "write": "ENOSPC",
    "pwrite": "ENOSPC",
    "ftruncate": "EDQUOT",
    "posix_fallocate": "EDQUOT",
    "fsync": "EIO",
    "mkdir": "EROFS",
    "link": "EDQUOT",
    "unlink": "EIO",
}

Try = Callable[..., dict[str, Any]]


@pytest.fixture(scope="module", params=some(["document", "line"], ["line"]))
def unit(request: pytest.FixtureRequest) -> str:
    """What the index compares. An index of documents makes the same calls."""
    return request.param


@pytest.fixture(scope="module")
def room() -> Iterator[Path]:
    """A folder; in memory where that can be, as a disk takes a second for the syncs of a trial."""
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if os.access(memory, os.W_OK) else None) as folder:
        Path(folder).chmod(0o755)  # others may read
        yield Path(folder)


@pytest.fixture(scope="module")
def place(unit: str, room: Path) -> Path:
    """The folder of the indexes that compare a unit."""
    (room / unit).mkdir()
    return room / unit


@pytest.fixture(scope="module")
def attempt(place: Path, unit: str) -> Iterator[Try]:
    """Does one trial in a copy of an index, at a path."""
    environment = {**ENVIRONMENT, "NEARDUP_CRASHED_UNIT": unit}
    with subprocess.Popen([*COMMAND, place / "base"], stdin=-1, stdout=-1, text=True, env=environment) as server:
        assert server.stdin is not None and server.stdout is not None
        assert server.stdout.readline() == "ready\n"

        def asked(folder: Path, at: list | None, how: str) -> dict[str, Any]:
            print(json.dumps({"folder": str(folder), "at": at, "how": how}), file=server.stdin, flush=True)
            return json.loads(server.stdout.readline())

        yield asked
        server.stdin.close()


@pytest.fixture(scope="module")
def calls(attempt: Try, place: Path) -> list[list[Any]]:
    """All calls that change files, in the order in which they were made."""
    found = attempt(place / "calls", None, "")
    assert found["status"] == 0 and not any("refused" in line or "error" in line for line in found["said"]), found
    return found["said"][-1]["calls"]


def chosen(calls: list[list[Any]], alike: Callable[[list[Any]], Any]) -> list[list[Any]]:
    """The calls that are tried: the last one of those that are alike."""
    return calls if EVERY else list({alike(call): call for call in calls}.values())


def survives(folder: Path, said: list[dict[str, Any]]) -> None:
    """What was acknowledged is there, and nothing half; the index can be gone on with, and left-overs go."""
    order = ["open", "add", "remove", "compact", "replace"]
    done = max([0, *(order.index(line["done"]) for line in said if "done" in line)])
    states = killed_writer.states()
    since = max(number for number, (step, _) in enumerate(states) if step == order[done])
    under_way = order[min(done + 1, 4)]
    possible = [texts for step, texts in states[since:] if step in (order[done], under_way)]
    opened = files_opened(folder)
    with nd.Index.open(folder, engine="cpu") as index:
        assert opened == named(index)  # nothing more is done after a crash, so it takes no longer
        index.check()
        live = set(index.decide().documents["id"].to_pylist())
        found = [texts for texts in possible if set(texts) == live]
        assert found, (order[done], sorted(live))
        same_as_dedup(index, found[0])
        index.add(table(["more"], ["one more after the crash"]), id_column="id")
        there = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
        assert there == {*named(index), "writer.lock"}


def named(index: nd.Index) -> set[str]:
    """The files of an index."""
    manifest = index._opened.manifest
    return {*manifest.files(), f"manifest.{manifest.number:08}"}


def files_opened(folder: Path) -> set[str]:
    """Files of an index that are read when it is opened."""
    found, opened = set(), Folder.open

    def noting(place: Folder, name: str) -> Any:
        found.add(place.path_of(name).relative_to(folder).as_posix())
        return opened(place, name)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Folder, "open", noting)
        nd.Index.open(folder, engine="cpu").close()
    return found


def test_a_writer_is_killed_at_each_call(attempt: Try, calls: list[list[Any]], place: Path) -> None:
    killed, tried = 0, chosen(calls, lambda call: tuple(call[:4]))
    for call in tried:
        done = attempt(place / "x", call, "KILL")
        assert done["status"] in (0, -signal.SIGKILL), (call, done)
        killed += done["status"] != 0  # some calls are made only if threads meet as they did before
        survives(place / "x", done["said"])
        shutil.rmtree(place / "x")
    assert killed > 0.9 * len(tried)


def test_each_call_fails(attempt: Try, calls: list[list[Any]], place: Path) -> None:
    refused, tried = 0, chosen(calls, lambda call: tuple(call[1:4]))
    for call in tried:
        done = attempt(place / "x", call, FAILURES[call[2]])
        assert done["status"] == 0 and not any("error" in line for line in done["said"]), (call, done)
        messages = [line["message"] for line in done["said"] if "refused" in line]
        refused += len(messages)
        assert all(message.startswith(str(place / "x")) and "\n" not in message for message in messages)
        assert done["said"][-2]["done"] == "replace"  # what was refused was done when it was asked for again
        survives(place / "x", done["said"])
        shutil.rmtree(place / "x")
    assert refused > 0.6 * len(tried)


@pytest.mark.parametrize("most", [0, 9000, 60_000])
def test_the_system_refuses_what_is_too_large(most: int, attempt: Try, place: Path) -> None:
    done = attempt(place / f"{most}", None, f"LIMIT {most}")
    assert done["status"] == 0 and not any("error" in line for line in done["said"]), done
    assert any("File too large" in line["message"] for line in done["said"] if "refused" in line)
    survives(place / f"{most}", done["said"])


def test_who_may_not_write_can_read(attempt: Try, place: Path) -> None:
    done = attempt(place / "read", None, "READ")
    assert done["status"] == 0 and not any("error" in line for line in done["said"]), done
    reading, *refused = done["said"]
    number = len(killed_writer.of_base())
    assert (reading["documents"], reading["decided"]) == (number, number) and reading["found"]
    assert [line["refused"] for line in refused] == ["add", "remove", "compact", "replace"]
    assert {line["message"] for line in refused} == {
        f"{place / 'read'}: Permission denied; an index is written by whoever may write its folder"
    }


CHANGING = (
    "trace=open,openat,creat,write,pwrite64,writev,pwritev,sendfile,copy_file_range,ftruncate,truncate,fallocate,"
    "fsync,fdatasync,msync,sync_file_range,mkdir,mkdirat,link,linkat,rename,renameat,renameat2,unlink,unlinkat,rmdir,"
    "symlink"
)
OURS = {
    "openat": "open",
    "pwrite64": "pwrite",
    "fallocate": "posix_fallocate",
    "linkat": "link",
    "unlinkat": "unlink",
    "mkdirat": "mkdir",
}


@pytest.fixture(scope="module")
def log(room: Path) -> tuple[list[tuple[str, str]], list[list[Any]]]:
    """The calls that the system saw of a writer, whole and in order of their ends; and those that are watched."""
    if shutil.which("strace") is None or subprocess.run(["strace", "-o", os.devnull, "true"], check=False).returncode:
        pytest.skip("needs strace, and leave to trace")
    file, base = room / "log", room / "traced"
    strace = ["strace", "-f", "-y", "-s", "100000", "-o", file, "-e", CHANGING]
    done = subprocess.run([*strace, *COMMAND, base, "alone"], capture_output=True, text=True, env=ENVIRONMENT)
    assert done.returncode == 0, done.stderr
    begun: dict[str, str] = {}
    seen = []
    for line in file.read_text().partition('"begins')[2].splitlines()[1:]:
        thread, _, text = line.partition(" ")
        text = text.lstrip()
        if text.endswith("<unfinished ...>"):
            begun[thread] = text.removesuffix("<unfinished ...>")
            continue
        if resumed := re.match(r"<\.\.\. \w+ resumed>", text):
            text = begun.pop(thread) + text[resumed.end() :]
        name, _, arguments = text.partition("(")
        if f"{base}" in arguments and not (name == "openat" and "O_CREAT" not in arguments):
            seen.append((OURS.get(name, name), arguments.replace(f"{base}/", "").replace(f"<{base}>", "<.>")))
    return seen, json.loads(done.stdout.splitlines()[-1])["calls"]


def test_no_call_that_changes_a_file_is_unwatched(log) -> None:
    seen, watched = log
    assert Counter(name for name, _ in seen) == Counter(call[2] for call in watched)


def test_all_is_synced_before_a_manifest_has_its_name(log) -> None:
    seen, _ = log
    made: set[str] = set()  # files of this writer
    safe: set[str] = set()  # those that are on disk, and those whose names are
    text, owed, commits = "", False, 0
    for name, arguments in seen:
        assert arguments.rpartition(" = ")[2][:1] != "-" or "EEXIST" in arguments, (name, arguments)
        path = (re.search(r"<([^>]*)>", arguments) or re.search(r'"([^"]*)"', arguments) or [""])[1]  # type: ignore[index]
        if name == "open":
            path = re.search(r'"([^"]*)"', arguments)[1]  # type: ignore[index]
            made.add(path)
            text = "" if path.endswith(".new") else text
        elif name in ("write", "ftruncate", "posix_fallocate"):
            safe -= {path, f"{path} is named"}
            text += arguments if path.endswith(".new") else ""
        elif name == "fsync":
            assert arguments.endswith(" = 0")
            safe |= {path} | {f"{each} is named" for each in made if str(Path(each).parent) == path}
            owed &= path != "."
        elif name == "link":
            assert not owed  # the folder was synced after the manifest before this one
            source, target = re.findall(r'"([^"]*)"', arguments)
            assert source in safe and target.startswith("manifest."), arguments
            segments = re.findall(r'\\"file\\": (\d+)', text)
            deleted = re.findall(r'\\"deleted\\": (\d+)', text)
            assert segments
            files = {f"segments/{int(each):08}" for each in segments} | {f"deleted/{int(each):08}" for each in deleted}
            assert {*(files & made), *(f"{each} is named" for each in files & made)} <= safe, target
            owed, commits = True, commits + 1
        elif name == "unlink" and re.fullmatch(r"(segments|deleted)/.*|manifest.\d+", path):
            assert not owed  # nothing goes before what takes its place is safe
    assert commits >= 10 and not owed
