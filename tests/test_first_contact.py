"""First contact with a GPU: what a step's process does, the rest is found out, and every line is kept."""

import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parent.parent))

from benchmarks import expectations, first_contact, first_steps
from benchmarks.first_contact import BUDGET, PROFILES, STEPS, Journal, NoDevice, Step, conduct, run

ROOT = Path(__file__).parent.parent
SIMULATED = os.environ.get("NUMBA_ENABLE_CUDASIM", "0") not in ("", "0")

PREAMBLE = """
import json, os, signal, subprocess, sys, time
done = json.loads(sys.argv[sys.argv.index("--done") + 1])
def tell(**record):
    print(json.dumps(record), flush=True)
def each(*names, **acts):
    tell(items=list(names))
    for name in names:
        if name not in done:
            tell(begin=name)
            if name in acts:
                acts[name]()
            tell(item=name, verdict="ok")
"""


CRASH = "lambda: os.kill(os.getpid(), signal.SIGSEGV)"
"""What a process does that reads where it must not."""


@pytest.fixture
def step(tmp_path):
    """Conduct a step whose process is a script; what is found of each item."""

    def conducted(script, most=30.0, silent=20.0, budget=60.0):
        journal = Journal(tmp_path / "found.jsonl")
        command = [sys.executable, "-c", PREAMBLE + script]
        deadline = time.monotonic() + budget
        conduct("kernels", Step(most, silent, 0), command, journal, tmp_path / "kernels.log", deadline)
        written = [json.loads(line) for line in (tmp_path / "found.jsonl").read_text().splitlines()]
        assert written == journal.records
        return {record["item"]: (record["verdict"], record.get("reason")) for record in written}

    return conducted


def test_all_is_well(step):
    assert step("each('a', 'b')") == {"a": ("ok", None), "b": ("ok", None)}


@pytest.mark.skipif(sys.platform == "win32", reason="there are no such signals")
def test_a_crash_ends_one_item_only(step):
    found = step(f"print('about to', file=sys.stderr)\neach('a', 'b', 'c', 'd', b={CRASH}, d={CRASH})")
    assert [verdict for verdict, _ in found.values()] == ["ok", "crashed", "ok", "crashed"]
    assert found["b"][1] == "killed by signal 11: SIGSEGV: about to"


def test_a_process_that_leaves_ends_one_item_only(step):
    found = step("each('a', 'b', 'c', b=lambda: sys.exit('no more memory'))")
    assert found == {"a": ("ok", None), "b": ("crashed", "exit status 1: no more memory"), "c": ("ok", None)}


def test_a_hang_ends_one_item_only(step):
    found = step("each('a', 'b', 'c', b=lambda: time.sleep(100))", silent=3.0)
    assert found["b"] == ("timed out", "no sign of life for 3 s")
    assert (found["a"][0], found["c"][0]) == ("ok", "ok")


def test_a_lost_device_is_left_to_another_process(step):
    """Its kernel failed; those after it are run all the same, in another process."""
    found = step(f"""
tell(items=["a", "b", "c"])
for name in ["a", "b", "c"]:
    if name not in done:
        tell(begin=name)
        failed = name == "b"
        tell(item=name, verdict="failed" if failed else "ok", process=os.getpid())
        if failed:
            sys.exit({first_contact.LOST})
""")
    assert [verdict for verdict, _ in found.values()] == ["ok", "failed", "ok"]


def test_a_process_that_never_gets_to_work(step):
    assert step("raise ValueError('no such chip')") == {None: ("failed", "exit status 1: ValueError: no such chip")}


@pytest.mark.parametrize("status", [0, 3, first_contact.LOST])
def test_a_process_that_ends_before_it_begins(step, status):
    found = step(f"tell(items=['a', 'b'])\nsys.exit({status})")
    assert found[None] == ("failed", f"exit status {status}")
    assert found["a"] == found["b"] == ("not run", "the step's process did not come so far")


def test_a_step_takes_its_share_only(step):
    start = time.monotonic()
    found = step("each('a', 'b', 'c', b=lambda: time.sleep(100))", most=3.0)
    assert time.monotonic() - start < 20
    assert found["b"] == ("not run", "the step's 3 s were over, and it had begun")
    assert found["c"] == ("not run", "the step's 3 s were over")


def test_the_budget_is_kept(step):
    found = step("each('a', 'b', 'c', b=lambda: time.sleep(100))", budget=3.0)
    assert found["b"] == ("not run", "budget, and it had begun")
    assert found["c"] == ("not run", "budget")


@pytest.mark.skipif(not hasattr(os, "killpg"), reason="there are no process groups")
def test_nothing_goes_on_after_a_step(step, tmp_path):
    step(
        f"""
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(1000)"])
open({str(tmp_path / "child")!r}, "w").write(str(child.pid))
each("a", "b", b=lambda: time.sleep(100))
""",
        silent=3.0,
    )
    pid = int((tmp_path / "child").read_text())
    for _ in range(100):
        stat = Path(f"/proc/{pid}/stat")
        if not stat.exists() or stat.read_text().rpartition(")")[2].split()[0] == "Z":
            return
        time.sleep(0.1)
    pytest.fail("a process of the step is still there")


def test_what_is_no_record_is_passed_over(step):
    assert step("print('Loading ...')\nprint('[1]')\neach('a')") == {"a": ("ok", None)}


def test_no_device_is_said_once(step, tmp_path, monkeypatch):
    with pytest.raises(NoDevice, match="there is none"):
        step("tell(no_device='there is none')")
    begun = []

    def conducts(name, *rest):
        begun.append(name)
        if name != "environment":
            raise NoDevice("there is none")

    monkeypatch.setattr(first_contact, "conduct", conducts)
    journal = Journal(tmp_path / "all.jsonl")
    assert run(list(STEPS), 540.0, tmp_path, journal) == 2
    assert begun == ["environment", "launch"]
    said = {record["step"]: (record["verdict"], record.get("reason")) for record in journal.records}
    assert all(said[name] == ("not run", "there is none") for name in list(STEPS)[1:])


def test_steps_that_do_not_fit_are_not_begun(tmp_path, monkeypatch):
    begun = []
    monkeypatch.setattr(first_contact, "conduct", lambda name, *rest: begun.append(name) or time.sleep(0.3))
    journal = Journal(tmp_path / "all.jsonl")
    assert run(["launch", "kernels", "scale"], 5.0, tmp_path, journal) == 0
    assert begun == ["launch", "kernels", "scale"]
    journal = Journal(tmp_path / "all.jsonl")
    journal.start -= 4.9
    assert run(["launch", "kernels", "scale"], 5.0, tmp_path, journal) == 0
    assert [(r["step"], r["verdict"], r.get("reason")) for r in journal.records if r["step"] == "scale"] == [
        ("scale", "not run", "budget")
    ]
    assert begun == ["launch", "kernels", "scale", *(["launch"] if len(begun) > 3 else [])]


def test_lines_are_on_disk_when_the_next_begins(tmp_path, monkeypatch):
    synced = []
    monkeypatch.setattr(os, "fsync", lambda number: synced.append((tmp_path / "found.jsonl").read_text()))
    journal = Journal(tmp_path / "found.jsonl")
    for number in range(3):
        journal.write("kernels", str(number), "ok")
        assert len(synced) == number + 1 and synced[-1].count("\n") == number + 1


def test_a_second_run_adds_lines_also_after_one_that_was_cut_short(tmp_path):
    path = tmp_path / "found.jsonl"
    Journal(path).write("launch", "numba", "ok")
    with open(path, "a") as file:
        file.write('{"step": "launch", "item": "cu')
    Journal(path).write("launch", "cupy", "ok")
    first, cut, last = path.read_text().splitlines()
    assert (json.loads(first)["item"], json.loads(last)["item"]) == ("numba", "cupy")
    assert cut.endswith("cu")


@pytest.mark.parametrize("full", ["disk", "stdout"])
def test_what_cannot_be_written_stops_nothing(full, tmp_path, monkeypatch, capsys):
    def refuses(*arguments, **options):
        raise OSError(28, "No space left on device")

    journal = Journal(tmp_path / "found.jsonl")
    if full == "disk":
        monkeypatch.setattr(os, "fsync", refuses)
        journal.write("launch", "numba", "ok")
        assert "No space left" in capsys.readouterr().out
    else:
        monkeypatch.setattr("builtins.print", refuses)
        journal.write("launch", "numba", "ok")
    assert json.loads((tmp_path / "found.jsonl").read_text())["item"] == "numba"


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--only", "kernels,nothing"], "nothing is no step; there are environment, launch"),
        (["--only", ","], "no step"),
        (["--profile", "4"], "invalid choice: 4"),
        (["--scale", "0"], "'0' is not a number of seconds"),
        (["--budget", "-3"], "'-3' is not a number of seconds"),
        (["--budget", "nan"], "is not a number of seconds"),
        (["--budget", "soon"], "'soon' is not a number of seconds"),
    ],
)
def test_bad_options(words, says, tmp_path, capsys):
    with pytest.raises(SystemExit) as left:
        first_contact.main(["--out", str(tmp_path), *words])
    assert left.value.code == 2
    assert says in capsys.readouterr().err.splitlines()[-1]
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_none(tmp_path, capsys):
    (tmp_path / "file").write_text("mine")
    with pytest.raises(SystemExit) as left:
        first_contact.main(["--out", str(tmp_path / "file")])
    assert left.value.code == 2
    assert "--out" in capsys.readouterr().err.splitlines()[-1]
    assert (tmp_path / "file").read_text() == "mine"


def contact(folder, *words, **environment):
    """The command, as a process: (exit status, records, what it printed)."""
    unwanted = ("NUMBA_ENABLE_CUDASIM", "PYTHONSAFEPATH")
    clean = {name: value for name, value in os.environ.items() if name not in unwanted}
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.first_contact", "--out", str(folder), *words],
        cwd=ROOT,
        env={**clean, **environment},
        capture_output=True,
        text=True,
        timeout=200,
    )
    records = [json.loads(line) for line in (folder / "first_contact.jsonl").read_text().splitlines()]
    return done.returncode, records, done.stdout + done.stderr


def test_where_there_is_no_gpu(tmp_path):
    status, records, printed = contact(tmp_path, CUDA_VISIBLE_DEVICES="")
    assert status == 2, printed
    first = PROFILES[1][1:]
    assert [record["step"] for record in records if record["step"] not in ("run", "environment", "summary")] == first
    assert all(record["verdict"] == "not run" for record in records if record["step"] in first)
    known = {record["item"]: record["verdict"] for record in records if record["step"] == "environment"}
    assert known["machine"] == known["packages"] == known["variables"] == "ok"
    assert known["usable"] == "not run"
    assert records[-1]["step"] == "summary" and records[-1]["status"] == 2
    assert printed.splitlines()[-1].startswith("Nothing was run on a GPU: backend 'gpu'")
    assert "Traceback" not in printed
    again, more, _ = contact(tmp_path, "--only", "launch", CUDA_VISIBLE_DEVICES="")
    assert again == 2 and more[: len(records)] == records
    assert [record["step"] for record in more[len(records) :]] == ["run", "launch", "summary"]


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGTERM")
def test_an_interrupted_run_says_so(tmp_path):
    words = [sys.executable, "-m", "benchmarks.first_contact", "--out", str(tmp_path), "--only", "environment"]
    found_here = {**os.environ, "PYTHONSAFEPATH": ""}
    process = subprocess.Popen(
        words, cwd=ROOT, env=found_here, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    assert process.stdout is not None
    process.stdout.readline()  # the first finding
    process.terminate()
    rest = process.stdout.read()
    assert process.wait(30) == 130 and "Traceback" not in rest
    records = [json.loads(line) for line in (tmp_path / "first_contact.jsonl").read_text().splitlines()]
    assert records[1]["item"] == "machine"
    assert (records[-1]["step"], records[-1]["verdict"], records[-1]["status"]) == ("summary", "not run", 130)


def test_where_not_even_numba_is(tmp_path):
    hides = tmp_path / "hides"
    hides.mkdir()
    (hides / "numba.py").write_text("raise ModuleNotFoundError(\"No module named 'numba'\")\n")
    status, records, printed = contact(tmp_path, "--only", "environment,kernels", PYTHONPATH=str(hides))
    assert status == 2 and "Traceback" not in printed
    by_item = {record["item"]: record for record in records if record["step"] == "environment"}
    assert by_item["machine"]["verdict"] == "ok" and by_item["usable"]["verdict"] == "not run"
    kernels = [record for record in records if record["step"] == "kernels"]
    assert [record["verdict"] for record in kernels] == ["not run"]
    assert "numba" in kernels[0]["reason"]


def test_every_step_is_in_a_profile_and_none_takes_longer_than_nine_minutes():
    assert {name for names in PROFILES.values() for name in names} == set(STEPS)
    assert BUDGET == 540 and all(step.most <= BUDGET and step.silent <= 240 for step in STEPS.values())
    assert set(expectations.BY_STEP) == set(STEPS)


@pytest.mark.skipif(SIMULATED, reason="needs no simulator")
def test_reading_and_jobs_without_a_device(tmp_path):
    """The lines that a device is to answer, on little text: each has its expectation, and none is judged."""
    words = ["--cpu", "--scale", "0.0002", "--only"]
    status, records, printed = contact(tmp_path, *words, "layouts,kernels")
    found = {record["item"]: record for record in records if record["step"] == "layouts"}
    assert status == 0, printed
    assert {record["verdict"] for record in found.values()} == {"ok"}
    assert {f"dedup of {each}" for each in ("one row group", "1,000 rows per group", "16 files")} <= set(found)
    assert "reading by 1 thread" in found and found["text in memory"]["cpu_ms"] > 0
    assert found["dedup of one row group"]["expected"] == "gpu_s 0.15 to 0.3 s (an H200 took 0.23)"
    assert not any("as_expected" in record for record in records)
    assert "kernels" not in {record["step"] for record in records}
    sizes = {record["text_bytes"] for record in found.values() if "text_bytes" in record}
    assert len(sizes) == 1


@pytest.mark.skipif(SIMULATED, reason="needs no simulator")
def test_jobs_of_several_files_without_a_device(tmp_path):
    from benchmarks import first_jobs

    settings = first_steps.Settings(tmp_path, cpu=True, scale=0.00004)
    items = first_jobs.jobs(settings)
    wanted = ["4 GB, exact", "4 GB, simhash, with output", "4 GB, sketch", "4 GB, exact, spilled to the host"]
    found = {name: first_steps.find_out(name, items[name]) for name in wanted}
    assert [found[name]["verdict"] for name in wanted] == ["ok", "ok", "ok", "not run"]
    assert found["4 GB, sketch"]["sketch_bytes"] > 0
    assert found["4 GB, exact"]["text_bytes"] == found["4 GB, simhash, with output"]["text_bytes"]
    assert [path.name for path in tmp_path.iterdir()] == ["4e-05 4 GB"]
    assert {"cold, 2 GB", "10 GB, minhash", "10 GB, exact, with output"} <= set(items)


def test_numbers_are_judged_by_what_was_known_beforehand(tmp_path, capsys):
    journal = Journal(tmp_path / "found.jsonl", judges=True)
    journal.write("scale", "tokens", "ok", median=3.5)
    journal.write("scale", "unique", "ok", median=9.6)
    journal.write("jobs", "4 GB, minhash", "ok", cpu_over_gpu=7.1)
    journal.write("jobs", "4 GB, exact", "ok", cpu_over_gpu=3.4)
    journal.write("jobs", "4 GB, exact, with output", "ok", cpu_over_gpu=1.0)
    journal.write("launch", "costs", "ok", costs={"kernel of the project": {"done_us": 7.9}})
    journal.write("layouts", "dedup of one row group", "not run", reason="budget")
    said = [(record["expected"], record.get("as_expected")) for record in journal.records]
    assert said[0] == ("median at most 3.6 ms (paper, PROFILE.md)", True)
    assert said[1] == ("median at most 9.5 ms (paper, PROFILE.md)", False)
    assert [met for _, met in said] == [True, False, True, False, None, True, None]
    assert "EXPECTED median at most 9.5 ms" in capsys.readouterr().out
    assert first_contact.conclude(["scale"], None, journal) == 0
    says = journal.records[-1]["says"]
    assert says == "Nothing is wrong. 1 were not run. 2 of 5 numbers are not as expected; the first: scale, unique."


def test_what_an_earlier_device_measured_is_expected_again():
    assert str(expectations.expected_of("scale", "greedy")) == "median at most 1.985 ms (as on 2026-11-23)"
    assert str(expectations.expected_of("ceilings", "pinned to the device")).startswith("gb_per_s at least 32.31 GB/s")
    assert expectations.described("environment", "machine") == "described"


# -------------------------------------------------------------------------------------------------- what tools print


def test_a_failing_item_is_one_line_and_a_lost_device_ends_the_process(monkeypatch):
    told = []
    monkeypatch.setattr(first_steps, "tell", told.append)

    def fails():
        raise RuntimeError("an illegal memory access was encountered\nand more")

    def cannot():
        raise first_steps.NotRun("simulator")

    items = {"a": lambda: {"says": "well"}, "b": cannot, "c": fails, "d": dict}
    monkeypatch.setattr(first_steps, "steps", lambda name, settings: items)
    settings = first_steps.Settings(Path("."))
    assert first_steps.perform("kernels", settings, []) == 0
    records = {record["item"]: record for record in told if "verdict" in record}
    assert [record["verdict"] for record in records.values()] == ["ok", "not run", "failed", "ok"]
    assert records["c"]["reason"] == "RuntimeError: an illegal memory access was encountered"
    monkeypatch.setattr(first_steps, "why_lost", lambda: "cudaErrorIllegalAddress")
    told.clear()
    assert first_steps.perform("kernels", settings, ["a"]) == first_steps.LOST
    assert [record["item"] for record in told if "verdict" in record] == ["b", "c"]


PYTEST = """
tests/gpu/test_on_a_device.py::test_agreement_at_scale PASSED                   [ 33%]
tests/gpu/test_on_a_device.py::test_options[{'keep': 'a b'}] FAILED             [ 66%]
tests/test_selftest.py::test_on_a_device SKIPPED (needs an NVIDIA GPU)          [100%]
=================================== FAILURES ===================================
FAILED tests/gpu/test_on_a_device.py::test_options[{'keep': 'a b'}] - Assertion
"""


def test_tests_are_told_one_by_one():
    found = [(record["item"], record["verdict"]) for record in first_steps.outcomes(PYTEST.splitlines(keepends=True))]
    assert found == [
        ("test_on_a_device.py::test_agreement_at_scale", "ok"),
        ("test_on_a_device.py::test_options[{'keep': 'a b'}]", "failed"),
        ("test_selftest.py::test_on_a_device", "not run"),
    ]


NCU = """==PROF== Connected to process 12
{"items": ["tokens"]}
"ID","Kernel Name","gpu__time_duration.sum","launch__registers_per_thread"
"","","nsecond","register/thread"
"0","_ZN11neardup_gpu7kernels17_token_beginnings14count_in_ascii","1,234","42"
"1","_ZN11neardup_gpu7kernels17_token_beginnings13count_decoded","99","40"
"""


def test_counters_of_ncu():
    assert first_steps.counters(NCU) == [
        {
            "kernel": "_ZN11neardup_gpu7kernels17_token_beginnings14count_in_ascii",
            "duration": "1,234 nsecond",
            "registers": "42 register/thread",
        },
        {
            "kernel": "_ZN11neardup_gpu7kernels17_token_beginnings13count_decoded",
            "duration": "99 nsecond",
            "registers": "40 register/thread",
        },
    ]
    assert first_steps.counters("==ERROR== no such option") == []


RACES = """
========= Warning: Race reported between Read access at cupy_nonzero_kernel_incomplete_scan+0x460
=========     and Write access at cupy_nonzero_kernel_incomplete_scan+0x630 [1024 hazards]
{ours}========= RACECHECK SUMMARY: {count} hazards displayed (0 errors, {count} warnings)
"""
OURS = "========= Error: Race reported between Write access at _ZN11neardup_gpu6_count+0x20\n"


def test_errors_of_a_sanitizer():
    assert first_steps.sanitizer_errors("========= ERROR SUMMARY: 3 errors\n") == (3, [])
    libraries = ["cupy_nonzero_kernel_incomplete_scan"]
    assert first_steps.sanitizer_errors(RACES.format(ours="", count=1)) == (0, libraries)
    assert first_steps.sanitizer_errors(RACES.format(ours=OURS, count=2)) == (1, libraries)
    assert first_steps.sanitizer_errors("killed\n") is None


def test_all_tests_of_a_gpu_are_found():
    found = set(first_steps.tests(first_steps.Settings(Path("."))))
    assert {"test_selftest.py", "gpu/test_on_a_device.py"} <= {name.replace(os.sep, "/") for name in found}


def test_secrets_of_the_environment_are_not_kept(monkeypatch):
    monkeypatch.setenv("NVIDIA_API_KEY", "sesame")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3")
    found = first_steps._variables()["variables"]
    assert found["CUDA_VISIBLE_DEVICES"] == "3" and "sesame" not in str(found)


# ------------------------------------------------------------------------------------------- what the larger steps use


@pytest.mark.skipif(SIMULATED, reason="needs no simulator")
def test_generated_text_is_like_bills():
    import numpy as np

    from benchmarks.first_device import DOCUMENT_TOKENS, TOKEN_BYTES, generated
    from benchmarks.gpu_inputs import Inputs

    text = generated(4_000_000)
    assert abs(int(text.offsets[-1]) - 4_000_000) < 400_000
    assert text.offsets[0] == 0 and (np.diff(text.offsets) > 0).all()
    inputs = Inputs(text, 1, 1, 2)
    values, _, invalid = inputs.tokens
    assert invalid == 0
    assert abs(len(text.values) / len(values) / TOKEN_BYTES - 1) < 0.1
    assert abs(len(values) / len(text) / DOCUMENT_TOKENS - 1) < 0.25
    assert len(text) // 20 < len(inputs.pairs[0]) < len(text) // 5
    repeated = generated(80_000_000)
    parts = np.array_split(repeated.values, round(len(repeated.values) / (16 << 20)))
    assert len(parts) == 5 and len({part[:100].tobytes() for part in parts}) == 5


@pytest.mark.skipif(SIMULATED, reason="needs no simulator")
def test_what_took_longest_is_named():
    from benchmarks.first_device import slowest

    rows = [{"name": name, "ms": ms} for name, ms in [("a", 1.0), ("b", 3.0), ("c", 2.0), ("d", 0.5)]]
    assert slowest(rows, 2) == "b 3.00, c 2.00"


@pytest.mark.skipif(SIMULATED, reason="needs no simulator")
def test_intervals():
    from benchmarks.tracing import length, merged, overlap

    assert merged([(3, 4), (0, 1), (1, 2), (3.5, 5)]) == [(0, 2), (3, 5)]
    assert length([(0, 2), (3, 5)]) == 4
    assert overlap([(0, 2), (3, 5)], [(1, 4)]) == 2
    assert overlap([(0, 1)], []) == 0


def test_readme_names_every_step():
    text = (ROOT / "benchmarks" / "README.md").read_text()
    assert all(re.search(rf"^\| {name}[ |]", text, re.MULTILINE) for name in STEPS)


@pytest.mark.skipif(SIMULATED, reason="needs no simulator")
def test_pages_without_a_device_or_without_nvcomp(tmp_path, monkeypatch):
    from benchmarks import first_pages

    settings = first_steps.Settings(tmp_path, cpu=True, scale=0.005)
    items = first_pages.pages(settings)
    assert {"zstd, 64 kB", "snappy, 12 MB"} <= set(items) and len(items) == 10
    found = first_steps.find_out("zstd, 64 kB", items["zstd, 64 kB"])
    assert found["verdict"] == "ok" and found["ratio"] > 1 and found["host_gb_per_s"] > 0
    assert "device_gb_per_s" not in found
    monkeypatch.setattr(first_pages, "find_spec", lambda name: None)
    with pytest.raises(first_steps.NotRun, match="pip install nvidia-libnvcomp-cu13"):
        first_pages.library()
    expected = expectations.described("pages", "zstd, 3 MB")
    assert expected == "device_gb_per_s at most 25 GB/s (else a device decompressor is worth building)"


def test_pages_are_the_text_with_lengths(tmp_path):
    """As in Parquet's PLAIN encoding; pages follow one another without gaps."""
    from benchmarks import first_pages

    settings = first_steps.Settings(tmp_path, cpu=True, scale=0.0001)
    pages = first_pages.pages_of(settings, 1000)
    whole = b"".join(pages)
    assert {len(page) for page in pages[:-1]} == {1000}
    text, at = first_pages.text_of(settings, min(first_pages.TOTAL, 32 << 20)), 0
    for row in range(len(text)):
        size = int.from_bytes(whole[at : at + 4], "little")
        assert whole[at + 4 : at + 4 + size] == text[row].tobytes()
        at += 4 + size
    places = first_pages._placed([1, 256, 257])
    assert places.tolist() == [0, 256, 512, 1024]
