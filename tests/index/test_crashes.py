"""A writer that is killed wherever it may be: what was acknowledged is there, at most the commit under way besides."""

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from growing import Texts, recipe_of, same_as_dedup, table

import neardup_gpu as nd

# Does what a script of steps says; at the n-th call of the system that changes something it kills itself, or fails.
WRITER = """
import errno, os, signal, sys
sys.path[:0] = {paths!r}
import neardup_gpu as nd
from growing import Texts, table
folder, where, how = sys.argv[1], int(sys.argv[2]), sys.argv[3]
texts = Texts(21).some(60)
index = nd.Index.open(folder, engine="cpu")
done = 0
def watched(name, module):
    call = getattr(module, name)
    def instead(*arguments, **options):
        global done
        ours = any(folder in str(a) for a in arguments) or isinstance(arguments[0], int)
        if name == "open" and not (len(arguments) > 1 and (arguments[1] & os.O_CREAT if isinstance(arguments[1], int)
                                                         else "w" in arguments[1])):
            ours = False
        if ours:
            done += 1
            if done == where:
                if how == "kill":
                    os.kill(os.getpid(), signal.SIGKILL)
                raise OSError(getattr(errno, how), os.strerror(getattr(errno, how)))
        return call(*arguments, **options)
    setattr(module, name, instead)
for name in ("open", "fsync", "link", "unlink", "posix_fallocate"):
    watched(name, os)
import builtins
watched("open", builtins)
def step(number, act):
    try:
        act()
    except nd.OutputError:
        print("refused", number, flush=True)
        raise SystemExit(3)
    print("done", number, flush=True)
for number in range(9):
    step(number, lambda: index.add(table([f"d{{number}}-{{i}}" for i in range(3)], texts[3*number:3*number+3]),
                                   id_column="id"))
step(9, lambda: index.remove(["d1-0", "d2-2", "d8-1"]))
step(10, lambda: index.compact())
step(11, lambda: index.add(table(["d3-1"], [texts[40]]), id_column="id", replace=True))
print("calls", done, flush=True)
index.close()
"""


def states() -> list[dict[str, str]]:
    """The documents after each number of steps."""
    texts = Texts(21).some(60)
    found: list[dict[str, str]] = [{}]
    for number in range(9):
        found.append(found[-1] | {f"d{number}-{i}": texts[3 * number + i] for i in range(3)})
    found.append({id: text for id, text in found[-1].items() if id not in ("d1-0", "d2-2", "d8-1")})
    found.append(found[-1])
    found.append({id: text for id, text in found[-1].items() if id != "d3-1"} | {"d3-1": texts[40]})
    return found


def attempt(folder: Path, where: int, how: str, before: Sequence[str] = ()) -> subprocess.CompletedProcess:
    """Run the writer in a new index."""
    nd.Index.create(folder, recipe=recipe_of(max_partners=2), engine="cpu").close()
    paths = [str(Path(nd.__file__).parent.parent), str(Path(__file__).parent.parent / "support")]
    command = [*before, sys.executable, "-c", WRITER.format(paths=paths), str(folder), str(where), how]
    return subprocess.run(command, capture_output=True, text=True, timeout=300)


@pytest.fixture(scope="module")
def calls(tmp_path_factory) -> int:
    """How many calls there are at which a writer can be killed."""
    done = attempt(tmp_path_factory.mktemp("calls") / "x", 0, "kill")
    assert done.returncode == 0, done.stderr
    return int(done.stdout.split()[-1])


def survives(folder: Path, done: subprocess.CompletedProcess) -> None:
    """What was acknowledged is there, and nothing half; the index can be gone on with, and left-overs go."""
    acknowledged = sum(line.startswith("done") for line in done.stdout.splitlines())
    with nd.Index.open(folder, engine="cpu") as index:
        index.check()
        live = set(index.decide().documents["id"].to_pylist())
        possible = [each for each in states()[acknowledged : acknowledged + 2] if set(each) == live]
        assert possible, (acknowledged, sorted(live))
        index.add(table(["more"], ["one more after the crash"]), id_column="id")
        live_texts = {**possible[-1], "more": "one more after the crash"}
        if acknowledged < 11:
            same_as_dedup(index, live_texts)
        named = {f"segments/{each.file:08}" for each in index._opened.manifest.segments}
        named |= {f"deleted/{each.deleted:08}" for each in index._opened.manifest.segments if each.deleted is not None}
        there = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}
        assert there == named | {f"manifest.{index._opened.manifest.number:08}", "writer.lock"}


@pytest.mark.thorough
@pytest.mark.skipif(os.name == "nt", reason="is of POSIX")
@pytest.mark.parametrize("part", range(6))
def test_a_writer_is_killed(part: int, calls: int, tmp_path) -> None:
    where = 1 + (calls - 1) * part // 5
    done = attempt(tmp_path / "x", where, "kill")
    assert done.returncode == -signal.SIGKILL, done.stderr
    survives(tmp_path / "x", done)


@pytest.mark.thorough
@pytest.mark.skipif(os.name == "nt", reason="is of POSIX")
@pytest.mark.parametrize(("where", "how"), [(3, "ENOSPC"), (9, "EIO"), (40, "EDQUOT")])
def test_a_call_fails(where: int, how: str, tmp_path) -> None:
    done = attempt(tmp_path / "x", where, how)
    assert done.returncode == 3 and "refused" in done.stdout, (done.stdout, done.stderr)
    survives(tmp_path / "x", done)


def straced(tmp_path: Path, *options: str) -> subprocess.CompletedProcess:
    """The writer under strace; skips where there is none, or it may not trace."""
    if shutil.which("strace") is None or subprocess.run(["strace", "-o", os.devnull, "true"], check=False).returncode:
        pytest.skip("needs strace, and leave to trace")
    return attempt(tmp_path / "x", 0, "kill", before=["strace", "-f", *options])


@pytest.mark.thorough
def test_all_is_synced_before_the_manifest_has_its_name(tmp_path) -> None:
    log = tmp_path / "log"
    done = straced(tmp_path, "-y", "-o", str(log), "-e", "trace=openat,write,fsync,link,linkat,unlink")
    assert done.returncode == 0, done.stderr
    synced: set[str] = set()
    written: set[str] = set()
    commits = 0
    for line in log.read_text().splitlines():
        if (found := re.search(r'openat\(.*"([^"]*/x/[^"]*)", O_\w+\|O_CREAT', line)) and "lock" not in found[1]:
            written.add(str(Path(found[1]).resolve()))
        elif found := re.search(r"fsync\(\d+<([^>]*)>\) += 0", line):
            synced.add(found[1])
            if found[1] == str((tmp_path / "x").resolve()):
                written.clear()
        elif found := re.search(r'link(?:at)?\(.*"([^"]*)", .*"([^"]*manifest[^"]*)".*\) += 0', line):
            commits += 1
            assert written <= synced, written - synced
            folders = {str(Path(name).parent) for name in written} - {str((tmp_path / "x").resolve())}
            assert folders <= synced
            synced.clear()
    assert commits >= 12 and not written  # the folder was synced after the last one
    survives(tmp_path / "x", done)


@pytest.mark.thorough
@pytest.mark.parametrize(
    "inject",
    [
        "fsync:signal=KILL:when=7",
        "link,linkat:signal=KILL:when=4",
        "unlink:signal=KILL:when=3",
        "fallocate:error=ENOSPC:when=1",
    ],
)
def test_a_writer_is_killed_at_a_call_of_the_system(inject: str, tmp_path) -> None:
    done = straced(tmp_path, "-o", os.devnull, "-e", f"inject={inject}")
    assert done.returncode != 0
    survives(tmp_path / "x", done)


def test_what_a_killed_create_left_is_no_hindrance(tmp_path) -> None:
    for name in ("segments", "deleted"):
        (tmp_path / "x" / name).mkdir(parents=True)
    (tmp_path / "x" / "manifest.00000001.new").write_text("half")
    with nd.Index.create(tmp_path / "x", engine="cpu") as index:
        index.add(texts=["to be"])
        assert not list((tmp_path / "x").glob("*.new"))
    (tmp_path / "y" / "segments").mkdir(parents=True)
    (tmp_path / "y" / "segments" / "mine").write_text("not an index's")
    with pytest.raises(nd.OutputError, match="is not empty"):
        nd.Index.create(tmp_path / "y")
