"""The recall that is reported is what the method finds."""

import json

from .judge import case

TEMPLATE = [f"t{i}" for i in range(354)]
MINHASH = ["--method", "minhash"]


def pages(num_pairs):
    """Pairs of pages of one template: two of a pair resemble each other by exactly 0.8, all others by 0.76."""
    for pair in range(num_pairs):
        both = [*TEMPLATE, *(f"p{pair}w{i}" for i in range(10))]
        for side in "ab":
            yield {"id": f"{pair}{side}", "text": " ".join([*both, *(f"{side}{pair}w{i}" for i in range(45))])}


def reported(out):
    return json.loads((out / "report.json").read_text())


def misses_what_the_filter_misses(box, ended):
    sampled = reported(box / "out")["recall"]["sampled"]
    assert sampled["low"] <= 1 - 0.8**5 <= sampled["high"]
    assert 0 < sampled["recall"] < 1
    assert "recall     100.0%" not in ended.output


@case(
    status=0,
    writes="out",
    says="of near-duplicate pairs found",
    then=misses_what_the_filter_misses,
)
def a_filter_that_misses_pairs(box):
    box.lines("d.jsonl", *pages(300))
    return ["dedup", "d.jsonl", "--id-column", "id", "-o", "out", "--check", "600", *MINHASH, "--filter", "1,5,1"]


@case(status=0, writes="out", says="100.0% of near-duplicate pairs found")
def a_template_that_fills_a_bucket(box):
    box.lines("d.jsonl", *pages(100))
    return ["dedup", "d.jsonl", "--id-column", "id", "-o", "out", "--check", "200", *MINHASH, "--filter", "64,1,1"]


@case(status=0, writes="out", says=("100% (exact)", "100.0% of near-duplicate pairs found"))
def a_template_and_the_exact_method(box):
    box.lines("d.jsonl", *pages(100))
    return ["dedup", "d.jsonl", "--id-column", "id", "-o", "out", "--check", "200"]


@case(status=0, writes="out", says=("100% (exact)", "are listed, ", "--max-partners all"))
def pages_of_which_one_stays(box):
    """Not all of the pairs are listed, which is said."""
    box.lines("d.jsonl", *({"id": str(i), "text": " ".join([*TEMPLATE, f"page{i}"])} for i in range(300)))
    return ["dedup", "d.jsonl", "--id-column", "id", "-o", "out"]


@case(status=0, writes="out", says="not estimated")
def nothing_to_estimate_from(box):
    box.lines("d.jsonl", *box.rows(4)[:3])
    return ["dedup", "d.jsonl", "--id-column", "id", "-o", "out", *MINHASH]


@case(status=0, writes="out", hides="near-duplicate pairs found")
def no_check(box):
    box.documents("d.jsonl")
    return ["dedup", "d.jsonl", "--id-column", "id", "-o", "out", *MINHASH, "--check", "0"]


@case(says="check")
def a_negative_check(box):
    box.documents("d.jsonl")
    return ["dedup", "d.jsonl", "--id-column", "id", "-o", "out", "--check", "-1"]


@case(status=0, writes="out", says="of near-duplicate pairs found")
def simhashes_that_miss_pairs(box):
    box.lines("d.jsonl", *pages(100))
    options = ["--method", "simhash", "--radius", "0", "--verify", "--check", "200"]
    return ["dedup", "d.jsonl", "--id-column", "id", "-o", "out", *options]
