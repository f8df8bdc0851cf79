"""The command `neardup plan`."""

from __future__ import annotations

import json
import re
from collections.abc import Callable

import pytest

from neardup_gpu import Recipe, cli
from neardup_gpu.planning.choices import COMPARED, plan
from neardup_gpu.planning.costs import load_rates, stage_names
from neardup_gpu.planning.settings import Machines, Workload
from neardup_gpu.stages import METHODS

Run = Callable[..., tuple[int, str, str]]

CRAWL = ("--documents", "1e10", "--text", "50TB", "--nodes", "100", "--cores", "32")


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    def call(*arguments: object) -> tuple[int, str, str]:
        status = cli.main([str(a) for a in arguments])
        return status, *capsys.readouterr()

    return call


@pytest.mark.parametrize("method", METHODS)
def test_a_plan_has_a_line_for_each_stage(run: Run, method: str) -> None:
    status, said, err = run("plan", *CRAWL, "--method", method)
    assert (status, err) == (0, "")
    made = plan(
        Workload(documents=1e10, text_bytes=50 * 10**12), Recipe(method=method), machines=Machines(nodes=100, cores=32)
    )
    lines = said.splitlines()
    first = next(number for number, line in enumerate(lines) if line.startswith("stage "))
    assert [line.split()[0] for line in lines[first + 1 : first + 2 + len(made.stages)]] == [
        *stage_names(made.shape),
        "all",
    ]
    assert "10,000,000,000 documents, 50.0 TB of text" in said
    for label in {"exact", "minhash", method}:
        assert re.search(rf"^{label} +\S+ core hours, \S+ .B exchanged, ", said, re.MULTILINE)
    assert f"times, from rates measured {load_rates()['date']} on " in said
    assert max(map(len, lines)) <= 80


def test_what_was_chosen_is_said(run: Run) -> None:
    said = " ".join(run("plan", *CRAWL, "--method", "minhash")[1].split())
    assert re.search(r" chosen slices of \S+ GB in place of 1.0 GB: [\d,]+ in place of 50,000, and ", said)
    said = run("plan", *CRAWL, "--method", "minhash", "--slice-bytes", "1GB", "--partitions", "50000")[1]
    said = " ".join(said.split())
    assert re.search(r"warning small blocks: \w+ writes [\d,]+ blocks of \d+ \S+, below 100.0 kB; give ", said)
    said = " ".join(run("plan", *CRAWL, "--method", "minhash", "--open-seconds", 0.1)[1].split())
    assert re.search(r"warning opening: files are opened [\d,]+ times, which takes .+ of .+; give larger slices", said)


def test_a_plan_as_json(run: Run) -> None:
    status, said, _ = run("plan", "--documents", 20000, "--text", "5MB", "--partitions", 3, "--copies", 0, "--json")
    found = json.loads(said)
    made = plan(
        Workload(documents=20000, text_bytes=5 * 10**6, copies=0), partitions=3, machines=Machines(nodes=1, cores=2)
    )
    assert status == 0
    assert found["totals"] == made.totals and found["partitions"] == 3
    assert [stage["name"] for stage in found["stages"]] == stage_names(made.shape)
    payloads = {f"{each['stage']} {each['what']}": each["payload"] for each in found["exchanged"]}
    assert payloads["sketch hashes"] == 24 * 20000 and payloads["copies slices"] == 0
    assert sum(payloads.values()) == sum(stage["exchanged"] for stage in found["stages"])
    assert set(found["methods"]) == set(COMPARED)
    assert found["methods"]["exact"]["exchanged"] == made.totals["exchanged"]
    assert set(found["rates"]) == {"machine", "date", "note"}
    assert found["machines"]["cores"] == 2


def test_a_plan_of_equal_parts(run: Run) -> None:
    status, said, err = run("plan", "--documents", 1e6, "--text", "1GB", "--unit", "line", "--units", 1e7)
    assert (status, err) == (0, "")
    assert "1,000,000 documents in 10,000,000 parts, 1.0 GB of text" in said
    stages = ["sketch", "copies", "verify", "decide", "name", "listed", "fates", "ids", "tables", "write"]
    assert re.findall(r"^(\w+) +[\d.e-]+ +[\d.]", said, re.MULTILINE) == [*stages, "all"]


def test_flags_change_the_plan(run: Run) -> None:
    def totals(*more: object) -> dict[str, float]:
        said = run("plan", "--documents", 1e6, "--text", "5GB", "--method", "minhash", "--json", *more)[1]
        return json.loads(said)["totals"]

    usual = totals()
    assert totals("--pairs", 1e7)["exchanged"] > usual["exchanged"]
    assert totals("--copies", 0.9)["exchanged"] < usual["exchanged"]
    assert totals("--threshold", 0.5)["exchanged"] > usual["exchanged"]
    assert totals("--spool")["exchanged"] > usual["exchanged"]
    assert totals("--nodes", 4)["seconds"] < usual["seconds"]
    assert totals("--disk", "1MB")["seconds"] > usual["seconds"]
    assert totals("--open-seconds", 1)["core_seconds"] > usual["core_seconds"]
    assert totals("--slice-bytes", "100MB")["files"] > usual["files"]
    assert totals("--check", 500)["exchanged"] > usual["exchanged"]
    assert totals("--against-documents", 1e6, "--against-text", "5GB")["exchanged"] > usual["exchanged"]
    assert totals("--method", "simhash", "--bits", 128)["exchanged"] < usual["exchanged"]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ("--text 1GB", "--documents must be given, for example --documents 1e10"),
        ("--documents 10", "--text must be given, for example --text 50TB"),
        ("--documents many --text 1GB", "--documents: 'many' is not a number. See neardup plan --help."),
        ("--documents 1e60 --text 1GB", "--documents must be between 1 and 2**48, got 1e+60"),
        ("--documents 10.5 --text 1GB", "--documents must be a whole number, got 10.5"),
        ("--documents 10 --text much", "--text 'much' is not a size; write 20GB, 20GiB or a number of bytes"),
        ("--documents 10 --text 1GB --copies 2", "--copies must be >= 0 and < 1, got 2.0; 0.2 is a fifth"),
        ("--documents 10 --text 1GB --nodes 0", "--nodes must be between 1 and 1000000, got 0"),
        (
            "--documents 10 --text 1GB --disk fast",
            "--disk 'fast' is not a size; write 20GB, 20GiB or a number of bytes",
        ),
        (
            "--documents 10 --text 1GB --method nearest",
            "--method 'nearest' is not one of exact, containment, identical, minhash, bottomk, modm, simhash",
        ),
        (
            "--documents 10 --text 1GB --method minhash --weighting tfidf",
            "--weighting 'tfidf': how document frequencies are counted is not planned; plan weighting 'tf', which "
            "exchanges about the same",
        ),
        (
            "--documents 10 --text 1GB --against-documents 10",
            "--against-text: is needed for a reference set, which has documents and text",
        ),
        (
            "--documents 10 --text 1GB --method simhash --check 5",
            "--check 5: by simhash nothing is verified without a threshold; give one, or leave check out",
        ),
        (
            "--documents 10 --text 1GB --containers 5",
            "--containers 5: only containment has any; plan that, or leave them out",
        ),
        (
            "--documents 10 --text 1GB --unit line",
            "--units must be given for unit 'line': the number of parts of all documents",
        ),
        (
            "--documents 10 --text 1GB --units 50",
            "--units 50: documents are not divided; give a unit such as line as well",
        ),
        ("--documents 10 --text 1GB --threshold 2", "--threshold must be > 0 and <= 1, got 2.0; 0.8 is usual"),
        ("--documents 10 --text 1GB --task-memory 1MB", "--task-memory must be >= 16777216, got 1000000"),
        (
            "--documents 10 --text 1GB --slice-bytes 1kB",
            "--slice-bytes 1000: a document has 100,000,000 bytes of text; give more",
        ),
    ],
)
def test_one_line_for_each_mistake(run: Run, arguments: str, says: str) -> None:
    assert run("plan", *arguments.split()) == (2, "", f"neardup: {says}\n")
