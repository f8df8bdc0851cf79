"""The recall that is reported is that of the run, whatever limits left out."""

import json

from .judge import case

TEMPLATE = [f"t{i}" for i in range(354)]


def pages(num_pairs):
    """Pairs of pages of one template: two of a pair resemble each other by exactly 0.8, all others by 0.76."""
    for pair in range(num_pairs):
        both = [*TEMPLATE, *(f"p{pair}w{i}" for i in range(10))]
        for side in "ab":
            yield {"id": f"{pair}{side}", "text": " ".join([*both, *(f"{side}{pair}w{i}" for i in range(45))])}


def reported(out):
    return json.loads((out / "report.json").read_text())


def loses_what_the_limit_left_out(box, ended):
    report = reported(box / "out")
    sampled = report["recall"]["sampled"]
    lost = 1 - report["counts"]["removed"] / 300
    assert lost > 0.05
    assert sampled["low"] <= 1 - lost <= sampled["high"]
    assert sampled["recall"] < 1
    assert sampled["filter"]["recall"] > 0.9
    assert "recall     100.0%" not in ended.output


@case(
    status=0,
    writes="out",
    says=("bucket limit left out", "of near-duplicates found"),
    then=loses_what_the_limit_left_out,
)
def a_template_that_fills_a_bucket(box):
    box.lines("d.jsonl", *pages(300))
    return ["dedup", "d.jsonl", "--id-column", "id", "-o", "out", "--check", "600", "--bucket-probe", "1"]


@case(status=0, writes="out", says="100.0% of near-duplicates found")
def a_template_without_a_limit(box):
    box.lines("d.jsonl", *pages(100))
    return [
        *[
            "dedup",
            "d.jsonl",
            "--id-column",
            "id",
            "-o",
            "out",
            "--check",
            "200",
            "--filter",
            "64,1,1",
            "--bucket-limit",
            "1000",
        ]
    ]


@case(status=0, writes="out", says="100.0% of near-duplicates found")
def pages_of_which_one_stays(box):
    """Few of the pairs are listed, but of no pair both pages are kept."""
    box.lines("d.jsonl", *({"id": str(i), "text": " ".join([*TEMPLATE, f"page{i}"])} for i in range(300)))
    return ["dedup", "d.jsonl", "--id-column", "id", "-o", "out"]


@case(status=0, writes="out", says="not estimated")
def nothing_to_estimate_from(box):
    box.lines("d.jsonl", *box.rows(4)[:3])
    return ["dedup", "d.jsonl", "--id-column", "id", "-o", "out"]


@case(status=0, writes="out", hides="near-duplicates found")
def no_check(box):
    box.documents("d.jsonl")
    return ["dedup", "d.jsonl", "--id-column", "id", "-o", "out", "--check", "0"]


@case(says="check")
def a_negative_check(box):
    box.documents("d.jsonl")
    return ["dedup", "d.jsonl", "--id-column", "id", "-o", "out", "--check", "-1"]


@case(status=0, writes="out", says="of near-duplicates found")
def simhashes_that_miss_pairs(box):
    box.lines("d.jsonl", *pages(100))
    options = ["--method", "simhash", "--radius", "0", "--verify", "--check", "200"]
    return ["dedup", "d.jsonl", "--id-column", "id", "-o", "out", *options]
