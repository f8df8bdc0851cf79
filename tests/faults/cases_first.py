"""The commonest mistakes."""

from .judge import case


@case(says="no column 'body'")
def a_text_column_that_is_not_there(box):
    box.documents("d.jsonl")
    return ["dedup", "d.jsonl", "--text-column", "body", "-o", "out"]


@case(says="no such file")
def an_input_that_is_not_there(box):
    return ["dedup", "missing.parquet", "-o", "out"]


@case(says="threshold")
def a_threshold_above_one(box):
    box.documents("d.jsonl")
    return "nd.dedup('d.jsonl', id_column='id', threshold=1.5)"


@case(status=0, writes="out")
def an_ordinary_job(box):
    box.documents("d.parquet")
    return ["dedup", "d.parquet", "--id-column", "id", "-o", "out"]
