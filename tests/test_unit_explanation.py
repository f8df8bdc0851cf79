"""An explanation of a document with units: the text, what was cut, and the source of each part."""

import pyarrow.parquet as pq
import pytest

import neardup_gpu as nd
from neardup_gpu import Recipe, Unit, errors
from neardup_gpu.cli import main

TEXTS = {
    "id": ["a", "b", "c", "d"],
    "text": [
        "Menu | Home\n\nThe river rose.\n\nAll rights reserved",
        "MENU, home\n\nThe bridge holds.\nIt is new.\n\nAll rights reserved",
        "menu: home",
        "menu: home\n\nAll rights reserved\n\ntwo words",
    ],
}


def test_the_command_shows_the_document_and_the_sources(tmp_path, capsys):
    import pyarrow as pa

    pq.write_table(pa.table(TEXTS), tmp_path / "a.parquet")
    out = str(tmp_path / "out")
    flags = ["--id-column", "id", "--unit", "paragraph", "--drop-below", "3", "-q", "-o", out]
    assert main(["dedup", str(tmp_path / "a.parquet"), *flags]) == 0
    assert main(["explain", out, "b"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "b was kept; 2 of 3 parts (paragraph) are cut",
        "",
        "[-MENU, home-] [same as part 0 of a]",
        "",
        "The bridge holds.",
        "It is new.",
        "",
        "[-All rights reserved-] [same as part 2 of a]",
    ]
    assert main(["explain", out, "d"]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("d was removed, for a; 2 of 3 parts (paragraph) are cut\n")
    assert "[-two words-] [dropped: too little of the document was left]" in shown
    assert main(["explain", out, "a"]) == 0
    assert capsys.readouterr().out == "a was kept; 0 of 3 parts (paragraph) are cut\n"
    assert main(["explain", out, "a", "--full"]) == 0
    assert "The river rose." in capsys.readouterr().out
    table = pq.read_table(tmp_path / "a.parquet")
    pq.write_table(table.set_column(1, "text", pa.array(["short"] * 4)), tmp_path / "a.parquet")
    assert main(["explain", out, "b"]) == 2
    assert "has changed since" in capsys.readouterr().err


def test_the_page_shows_what_was_cut(tmp_path):
    result = nd.dedup(TEXTS, id_column="id", recipe=Recipe(unit="paragraph"), output=tmp_path / "out")
    html = result.write_report(tmp_path / "page.html").html
    assert "Of 10 parts of documents (paragraph), 5 are cut as copies of kept parts." in html
    assert "<del>MENU, home</del> <small>[same as part 0 of a]</small>" in html
    assert "<bdi>c</bdi>: 1 of 1 parts, and the document was dropped" in html
    without = result.write_report(tmp_path / "plain.html", text=False).html
    assert "MENU, home" not in without and "2 of 3 parts" in without
    made = report_of_folder(tmp_path / "out")
    assert "Parts were cut from 3 documents" in made and "documents were given in memory" in made
    whole = nd.dedup(TEXTS, id_column="id").write_report(tmp_path / "whole.html").html
    assert "What was cut" not in whole


def report_of_folder(folder):
    assert main(["report", str(folder), "-o", str(folder.parent / "of_folder.html"), "-q"]) == 0
    return (folder.parent / "of_folder.html").read_text()


def test_a_result_in_memory_explains_parts_that_overlap():
    result = nd.dedup(TEXTS, id_column="id", recipe=Recipe(unit="window:3/1"))
    found = result.explain("d")
    assert (found.unit, found.num_cut, found.words) == ("window:3/1", 0, [])
    assert found.notes[0].startswith("bytes 12 to 31 were not cut: repeats part ")
    many = nd.dedup({"text": ["a b " * 40, "a b " * 40]}, recipe=Recipe(unit=Unit("window:2/1", inside=True))).explain(
        1
    )
    assert len(many.notes) == 21 and many.notes[-1] == "59 more copies were not cut; the table of units lists them"
    with pytest.raises(errors.InputError, match="no document 'z'"):
        result.explain("z")
    near = nd.dedup({"text": ["a b c d e", "a b c d"]}, recipe=Recipe(unit="line", threshold=0.4)).explain(1)
    assert ("cut", "[like part 0 of 0]") in near.words or near.kept
