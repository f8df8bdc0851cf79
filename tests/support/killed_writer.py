"""A process that writes to copies of an index, and is killed, or refused, at a call of the system that changes a file.

    python killed_writer.py BASE [alone]

makes an index at BASE, and writes to it if it is alone. Else it does what each line of its input says, a JSON object,
in a copy and in a process that is forked for it; so a trial takes a fraction of a second. It answers with a line of
JSON:

    {"folder": where the copy is to be, "at": call or null, "how": "KILL", "ENOSPC", ...}
    {"status": how the process ended, "said": what it told, in order}

A call is [step, thread, what is called, of which file, how many like it were before]. Watched are all calls that make,
write, sync, link, rename or remove a file of the index, whichever thread makes them. `how` may also be "LIMIT n": no
file may have more than n bytes, for the system itself; or "READ": the folder cannot be written to, and is read.
"""

from __future__ import annotations

import builtins
import errno
import io
import json
import os
import re
import shutil
import signal
import sys
import threading
from collections import Counter
from pathlib import Path
from typing import Any

from growing import Texts, recipe_of, table

import neardup_gpu as nd

SEGMENTS, OF_A_SEGMENT, OF_A_COMMIT, COMMITS = 7, 3, 4, 6
UNIT = os.environ.get("NEARDUP_CRASHED_UNIT", "document")
"""What the index compares."""
TEXTS = ["\n".join(" ".join(text.split()[i : i + 5]) for i in range(0, 30, 5)) for text in Texts(21).some(80)]
"""In lines of five words."""
REMOVED = "d2-1"
"""Of the index at BASE, so that it has a list of what is dead."""
GONE = ["d1-0", "e0", "e9"]
REPLACED = ["d1-1", "d0-0", "d6-2", "d2-0", "d3-1", "d4-2"]
"""One by each commit of the step `add`; all but the first lie in segments that are being merged by then."""
LAST = {"e3": TEXTS[70], "f": TEXTS[71]}
"""What the step `replace` adds."""


def of_base() -> dict[str, str]:
    """The documents of the index at BASE."""
    ids = [f"d{number}-{i}" for number in range(SEGMENTS) for i in range(OF_A_SEGMENT)]
    return {id: text for id, text in zip(ids, TEXTS, strict=False) if id != REMOVED}


def of_commits() -> list[dict[str, str]]:
    """The documents of each commit of the step `add`."""
    found = []
    for number in range(COMMITS):
        ids = [*(f"e{3 * number + i}" for i in range(OF_A_COMMIT - 1)), REPLACED[number]]
        found.append(dict(zip(ids, TEXTS[30 + OF_A_COMMIT * number :], strict=False)))
    return found


def states() -> list[tuple[str, dict[str, str]]]:
    """(the step that is under way or was the last one, documents) after each commit that changes any."""
    live = of_base()
    found = [("open", live)]
    for new in of_commits():
        live = {id: text for id, text in live.items() if id not in new} | new
        found.append(("add", live))
    live = {id: text for id, text in live.items() if id not in GONE}
    found += [("remove", live), ("compact", live)]
    return [*found, ("replace", {id: text for id, text in live.items() if id != "e3"} | LAST)]


def make(folder: Path) -> None:
    """The index at BASE."""
    base = [f"d{number}-{i}" for number in range(SEGMENTS) for i in range(OF_A_SEGMENT)]
    with nd.Index.create(folder, recipe=recipe_of(max_partners=2).with_(unit=UNIT), engine="cpu") as index:
        index.add(table(base, TEXTS[: len(base)]), id_column="id", commit_every=OF_A_SEGMENT)
        index.remove([REMOVED])


def steps(index: nd.Index) -> dict[str, Any]:
    """What is done, one after another."""
    new = {id: text for each in of_commits() for id, text in each.items()}
    all_new = table(list(new), list(new.values()))
    return {
        "add": lambda: index.add(all_new, id_column="id", commit_every=OF_A_COMMIT, replace=True),
        "remove": lambda: index.remove(GONE),
        "compact": lambda: index.compact(),
        "replace": lambda: index.add(table(list(LAST), list(LAST.values())), id_column="id", replace=True),
    }


class Watch:
    """Counts the calls that change files of a folder, and lets one of them fail, or kill the process before it."""

    def __init__(self, folder: Path, at: list[Any] | None, how: str) -> None:
        self._folder, self._at, self._how = str(folder), at, how
        self._lock, self._before = threading.Lock(), Counter[tuple[str, ...]]()
        self.step, self.calls = "open", list[list[Any]]()

    def __call__(self, name: str, path: str) -> None:
        if not path.startswith(self._folder):
            return
        what = re.sub(r"\d{8}", "N", re.sub(r"\.\w+\.new", ".new", os.path.relpath(path, self._folder)))
        thread = "merging" if threading.current_thread().name.startswith("neardup-merge") else "writing"
        key = self.step, thread, name, what
        with self._lock:
            call = [*key, self._before[key]]
            self._before[key] += 1
            self.calls.append(call)
        if call == self._at:
            if self._how == "KILL":
                os.kill(os.getpid(), signal.SIGKILL)
            number = getattr(errno, self._how)
            raise OSError(number, os.strerror(number), path)

    def install(self) -> None:
        """Watch this process from now on."""
        watch, opened = self, io.open

        class Raw(io.FileIO):
            def write(self, data: Any) -> int:
                watch("write", path_of(self.fileno()))
                return super().write(data)

        def path_of(file: Any, folder: int | None = None) -> str:
            if isinstance(file, int):
                return os.readlink(f"/proc/self/fd/{file}")
            return os.fspath(file) if folder is None else os.path.join(path_of(folder), os.fspath(file))

        def open_file(file: Any, mode: str = "r", *arguments: Any, **options: Any) -> Any:
            if not set(mode) & set("wx") or not path_of(file).startswith(watch._folder):
                return opened(file, mode, *arguments, **options)
            assert isinstance(file, int) and mode == "wb", "files of an index are opened by `store/folder.py`"
            return io.BufferedWriter(Raw(file, "w"))

        builtins.open = io.open = open_file  # type: ignore[assignment]

        def watched(name: str) -> None:
            call = getattr(os, name)

            def instead(*arguments: Any, **options: Any) -> Any:
                if name != "open" or arguments[1] & os.O_CREAT:
                    of_two = name in ("link", "rename", "replace")
                    folder = options.get("dst_dir_fd" if of_two else "dir_fd")
                    watch(name, path_of(arguments[1 if of_two else 0], folder))
                return call(*arguments, **options)

            setattr(os, name, instead)

        for name in CALLS:
            watched(name)


CALLS = (
    "open",
    "write",
    "pwrite",
    "ftruncate",
    "posix_fallocate",
    "fsync",
    "fdatasync",
    "mkdir",
    "link",
    "rename",
    "replace",
    "unlink",
    "rmdir",
)


def limit_files(most: int | None) -> None:
    """Let no file of this process have more bytes than that."""
    import resource  # of POSIX

    resource.setrlimit(
        resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY if most is None else most, resource.RLIM_INFINITY)
    )


def write(folder: Path, at: list[Any] | None, how: str, say: Any) -> None:
    """Do all steps in the index; one that was refused is done once more."""
    if how.startswith("LIMIT"):
        limit_files(int(how.split()[1]))
    watch = Watch(folder, at, how)
    watch.install()
    with nd.Index.open(folder, engine="cpu") as index:
        for name, step in steps(index).items():
            watch.step = name
            try:
                step()
            except nd.errors.OutputError as error:
                say({"refused": name, "message": str(error)})
                if how.startswith("LIMIT"):
                    limit_files(None)
                try:
                    step()
                except nd.errors.InputError as error:
                    say({"not again": str(error)})
            say({"done": name})
    say({"calls": watch.calls})


def read(folder: Path, say: Any) -> None:
    """Read the index, and try to write to it, as somebody who may not.

    It is read once before: who may not write might not be let into the folder of this Python either, and then nothing
    could be imported any more.
    """

    def answers() -> dict[str, Any]:
        index.check()
        found = index.query(max(of_base().values(), key=len))["id"].to_pylist()
        return {"documents": len(index), "decided": len(index.decide().documents), "found": found}

    for path in (folder, *folder.rglob("*")):
        path.chmod(0o555 if path.is_dir() else 0o444)
    with nd.Index.open(folder, engine="cpu") as index:
        answers()
    if os.geteuid() == 0:
        os.setegid(65534)
        os.seteuid(65534)
    try:
        with nd.Index.open(folder, engine="cpu") as index:
            say(answers())
            for name, step in steps(index).items():
                try:
                    step()
                except nd.errors.OutputError as error:
                    say({"refused": name, "message": str(error)})
    finally:
        os.seteuid(os.getuid())
        os.chmod(folder, 0o755)


def trial(base: Path, folder: Path, at: list[Any] | None, how: str) -> dict[str, Any]:
    """What a forked process does in a copy of the index."""
    shutil.copytree(base, folder)
    ours, theirs = os.pipe()
    child = os.fork()
    if child == 0:
        tell = os.write

        def say(line: dict[str, Any]) -> None:
            tell(theirs, json.dumps(line).encode() + b"\n")

        try:
            if how == "READ":
                read(folder, say)
            else:
                write(folder, at, how, say)
        except BaseException as error:
            say({"error": f"{type(error).__name__}: {error}"})
        os._exit(0)
    os.close(theirs)
    with open(ours, "rb") as answers:
        said = [json.loads(line) for line in answers.read().splitlines()]
    return {"status": os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), "said": said}


def main() -> None:
    base = Path(sys.argv[1])
    make(base)
    if sys.argv[2:] == ["alone"]:  # for one who looks at its calls from outside
        print("begins", flush=True)
        write(base, None, "", lambda line: print(json.dumps(line), flush=True))
        return
    warm = base.with_name("warm")
    shutil.copytree(base, warm)
    with nd.Index.open(warm, engine="cpu") as index:
        for step in steps(index).values():
            step()
        index.query("to be")
        index.decide()
    print("ready", flush=True)
    for line in sys.stdin:
        asked = json.loads(line)
        print(json.dumps(trial(base, Path(asked["folder"]), asked["at"], asked["how"])), flush=True)


if __name__ == "__main__":
    main()
