"""What pages say of results of every kind, without a browser."""

import builtins
import json
import re
import shutil

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from flat import flat
from page_of import page_of

import neardup_gpu as nd
from neardup_gpu import Recipe, SimHash, Writing, cli, dedup
from neardup_gpu.errors import InputError, OutputError, ParameterError
from neardup_gpu.report_page import of_folder
from neardup_gpu.report_page.groups import chosen, groups_of
from neardup_gpu.store.artefacts import read_report

WORDS = [f"word{number}" for number in range(60)]


def text(first, *others):
    return " ".join([*(f"{first}{number}" for number in range(40 - len(others))), *others])


ROWS = {
    "a": [("one", text("one")), ("two", text("two")), ("<b>three</b>", text("three", "<script>alert(1)</script>"))],
    "b": [("one-again", text("one", "amended")), ("one-copy", text("one")), ("two-again", text("two"))],
}


def data(page):
    """What the page's script reads."""
    (found,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', page.html, re.S)
    return json.loads(found)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("shards")
    (place / "in").mkdir()
    for name, rows in ROWS.items():
        ids, texts = zip(*rows, strict=True)
        table = pa.table({"id": ids, "text": texts, "site": ["x.org", "y.org", None]})
        pq.write_table(table, place / "in" / f"{name}.parquet")
    return place


@pytest.fixture(scope="module")
def out(folder):
    nd.dedup(folder / "in", id_column="id", output=folder / "out", writing=nd.Writing(check=0))
    return folder / "out"


def test_no_pair_of_equal_texts_is_to_be_checked_by_hand(out):
    """Of three removed documents, two equal those that are kept."""
    assert "Check by hand the 1 pair below, drawn from the 1 removed document that agrees least" in of_folder(out).html


@pytest.fixture
def moved(folder, out, tmp_path):
    """A copy of the input and of its result, to be spoilt."""
    shutil.copytree(folder / "in", tmp_path / "in")
    nd.dedup(tmp_path / "in", id_column="id", output=tmp_path / "out", writing=nd.Writing(check=0))
    return tmp_path


def told(page):
    """What is written on the page, in one line."""
    body = re.sub(r"<(script|style|svg).*?</\1>|<[^>]+>", " ", page.html, flags=re.S)
    return " ".join(body.split())


def test_of_a_folder_and_of_a_result(folder, out):
    page = of_folder(out)
    assert "Of 6 documents" in told(page) and "3 are removed (50.0%)" in told(page)
    assert "Of the removed ones 2 are identical to the kept document, 0 have the same words, and 1 is" in told(page)
    found = data(page)
    assert {group["id"]: group["size"] for group in found["groups"]} == {"one": 3, "two": 2}
    first = found["groups"][0]["members"][0]
    assert first["id"] == "one-again" and first["command"] == f"neardup explain {out} one-again"
    ops = [op for op, _ in found["texts"][first["text"]][0]]
    assert {0, 1, 2} <= set(ops)
    assert found["sources"] == ["b.parquet"]
    result = nd.dedup(folder / "in", id_column="id", writing=nd.Writing(check=0))
    again = data(page_of(result))
    assert again["groups"][0]["members"][0]["command"] == "result.explain('one-again')"
    assert (again["texts"], again["steps"]) == (found["texts"], found["steps"])


def test_written_with_the_result(folder, tmp_path):
    out = tmp_path / "out"
    options = {"id_column": "id", "check": 0, "report": True}
    result = flat(dedup, folder / "in", output=out, **options)
    names = set(read_report(out)["files"])
    assert "report.html" in names and (out / "report.html").stat().st_size == read_report(out)["files"]["report.html"]
    assert f"neardup explain {out} one-copy" in (out / "report.html").read_text()
    assert nd.report_page.page.is_page(out / "report.html")
    assert cli.main(["info", "--check", str(out)]) == 0
    flat(dedup, folder / "in", output=out, overwrite=True, **options)  # its own page is no file of somebody else
    assert result.report["counts"]["removed"] == 3
    with pytest.raises(ParameterError, match="report: is written into the output"):
        flat(dedup, folder, **options)


def test_written_by_tasks(folder, tmp_path):
    workers = nd.Workers(work_dir=str(tmp_path / "work"), number=1, partitions=2)
    nd.dedup(
        folder / "in",
        id_column="id",
        output=tmp_path / "out",
        workers=workers,
        engine="cpu",
        writing=nd.Writing(check=0, report=True),
    )
    names = set(read_report(tmp_path / "out")["files"])
    assert {"report.html", "documents/part-00000.parquet"} <= names
    page = (tmp_path / "out" / "report.html").read_text()
    assert data(of_folder(tmp_path / "out"))["texts"] and f"neardup explain {tmp_path}/out one-copy" in page


@pytest.mark.parametrize("in_tasks", [False, True])
def test_a_page_that_fails_costs_no_result(folder, tmp_path, monkeypatch, caplog, in_tasks):
    def fails(run):
        raise MemoryError("no room")

    monkeypatch.setattr("neardup_gpu.report_page.make", fails)
    options = {"id_column": "id", "output": tmp_path / "out", "report": True}
    if in_tasks:
        flat(nd.dedup, folder / "in", workers=nd.Workers(work_dir=str(tmp_path / "work"), number=1), **options)
    else:
        flat(dedup, folder / "in", **options)
    assert "report.html could not be made (MemoryError: no room); the result is complete without it" in caplog.text
    assert not (tmp_path / "out" / "report.html").exists()
    assert read_report(tmp_path / "out")["counts"]["documents"]


def test_the_command(folder, out, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert cli.main(["report", str(out)]) == 0
    assert re.search(r"written +report\.html: [\d.]+ kB; open it in a browser", capsys.readouterr().out)
    assert cli.main(["report", str(out)]) == 2
    assert "report.html: exists already; name another output or pass --overwrite" in capsys.readouterr().err
    assert cli.main(["report", str(out), "--overwrite", "--no-text", "--quiet"]) == 0
    page = (tmp_path / "report.html").read_text()
    assert "Texts were left out, as you chose." in page and "amended" not in page
    (tmp_path / "mine.html").write_text("my own")
    assert cli.main(["report", str(out), "-o", "mine.html", "--overwrite"]) == 2
    assert "was not written by neardup" in capsys.readouterr().err
    assert (tmp_path / "mine.html").read_text() == "my own"
    assert cli.main(["report", str(out), "-o", str(out / "page.html")]) == 2
    assert "lies in the result" in capsys.readouterr().err
    assert cli.main(["report", str(folder / "in"), "-o", "other.html"]) == 2
    assert "not a finished result, there is no readable report.json" in capsys.readouterr().err
    assert not (tmp_path / "other.html").exists()
    assert cli.main(["dedup", str(folder / "in"), "--id-column", "id", "-o", "o", "--report", "--check", "0"]) == 0
    assert "report.html, report.json" in capsys.readouterr().out
    assert cli.main(["dedup", str(folder / "in"), "--id-column", "id", "--dry-run", "--report"]) == 2
    assert "--report: is written into the output; name one with --output" in capsys.readouterr().err


def test_without_the_extra(folder, out, tmp_path, monkeypatch, capsys):
    real = builtins.__import__

    def missing(name, *rest):
        if name == "vl_convert":
            raise ImportError("none", name=name)
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", missing)
    assert cli.main(["report", str(out), "-o", str(tmp_path / "r.html")]) == 2
    said = capsys.readouterr().err.splitlines()
    assert said == ["neardup: report: needs vl_convert, which is not installed; pip install 'neardup-gpu[report]'"]
    with pytest.raises(ParameterError, match=r"neardup-gpu\[report\]"):
        dedup(folder / "in", id_column="id", output=tmp_path / "out", writing=Writing(report=True))
    assert not (tmp_path / "out").exists()
    assert (
        "Histogram" in dedup(folder / "in", id_column="id", writing=Writing(check=0))._repr_html_()
    )  # which needs none


def test_an_input_that_is_gone_or_has_changed(moved, caplog):
    table = pq.read_table(moved / "in" / "b.parquet")
    changed = [None if each is None else each.replace("amended", "altered") for each in table["text"].to_pylist()]
    spoilt = {
        "id": table.set_column(0, "id", pa.array(["one-again", "other", "two-again"])),
        "rows": table.slice(0, 1),
        "text": table.set_column(1, "text", pa.array([changed[0] + " and more", *changed[1:]])),
        "column": table.drop_columns(["text"]),
    }
    for name, other in spoilt.items():
        pq.write_table(other, moved / "in" / "b.parquet")
        page = of_folder(moved / "out")
        assert "Texts are not shown: " in told(page), name
        assert data(page)["texts"] == [] and len(data(page)["groups"]) == 2
    shutil.rmtree(moved / "in")
    page = of_folder(moved / "out", output=moved / "page.html")
    assert re.search(r"Texts are not shown: .*no such file or folder\.(?!\.)", told(page))
    assert "report: texts are not shown: " in caplog.text
    assert "3 are removed" in (moved / "page.html").read_text()


def test_equal_texts_without_words_do_not_look_as_if_the_input_had_changed(tmp_path):
    (tmp_path / "in.jsonl").write_text("".join(f'{{"text": "{text}"}}\n' for text in ("!!!", "a b", "!!!", "A b")))
    nd.dedup(tmp_path / "in.jsonl", output=tmp_path / "out")
    assert len(data(of_folder(tmp_path / "out"))["texts"]) == 2


def test_blank_texts_that_count_as_equal_do_not_look_as_if_the_input_had_changed():
    table = {"text": ["", "  ", "\n", None]}
    result = dedup(table, recipe=Recipe(empty="equal"), writing=Writing(check=0))
    assert result.explain(1).notes == ["the words are the same; only the white space between them differs"]
    assert len(data(page_of(result))["texts"]) == 3


def test_a_page_of_parts_says_what_share_of_the_words_is_cut(tmp_path):
    (tmp_path / "in.jsonl").write_text('{"text": "one two three\\nfour"}\n{"text": "one two three\\nfive"}\n')
    nd.dedup(tmp_path / "in.jsonl", recipe=Recipe(unit="line"), output=tmp_path / "out")
    html = of_folder(tmp_path / "out").html
    assert "37.5% of the words need not be stored" in html
    assert "Each part that is cut has the same words, in their order, as a kept part." in html


def test_documents_in_memory(tmp_path):
    table = pa.table({"id": ["one", "again"], "text": [text("one"), text("one", "amended")]})
    nd.dedup(table, id_column="id", output=tmp_path / "out", writing=nd.Writing(check=0))
    assert "Texts are not shown: the documents were given in memory" in told(of_folder(tmp_path / "out"))
    assert data(of_folder(tmp_path / "out", source=table))["texts"]
    stream = nd.dedup(table.to_reader(), id_column="id", writing=nd.Writing(check=0))
    assert "were a stream, which cannot be read again" in told(page_of(stream))


def test_a_file_that_is_no_table(moved):
    (moved / "out" / "documents.parquet").write_bytes(b"PAR1")
    assert cli.main(["report", str(moved / "out"), "-o", str(moved / "page.html")]) == 2
    assert not (moved / "page.html").exists()


@pytest.mark.parametrize("table", [True, False])
def test_against_a_reference_set(tmp_path, table):
    reference = pa.table({"id": ["one"], "text": [text("one")]})  # an id of the input, too
    mine = pa.table({"id": ["again", "one"], "text": [text("one", "amended"), text("other", *WORDS[40:60])]})
    if table:
        page = page_of(dedup(mine, against=reference, id_column="id", writing=Writing(check=0)))
    else:
        for name, each in (("mine", mine), ("reference", reference)):
            pq.write_table(each, tmp_path / f"{name}.parquet")
        paths = tmp_path / "mine.parquet", tmp_path / "reference.parquet"
        dedup(paths[0], against=paths[1], id_column="id", output=tmp_path / "out", writing=Writing(check=0))
        page = of_folder(tmp_path / "out")
    (group,) = data(page)["groups"]
    assert (group["id"], group["reference"], group["size"]) == ("one", True, 2)
    assert any("amended" in words for op, words in data(page)["texts"][0][0] if op == 2)
    assert "The 1 document of a reference set" in told(page)


def test_simhash_containment_and_weights():
    rows = [*ROWS["a"], *ROWS["b"]]
    table = pa.table({"id": [id for id, _ in rows], "text": [words for _, words in rows]})
    page = page_of(dedup(table, recipe=Recipe(method=SimHash(radius=20)), id_column="id"))
    assert "Nothing was verified: the distance of sketches alone decided" in told(page)
    members = [member for group in data(page)["groups"] for member in group["members"]]
    assert members and all("distance" in member for member in members) and data(page)["steps"] is None
    assert data(page)["texts"] and "<svg" in page.html
    page = page_of(dedup(table, method="containment", id_column="id"))
    assert "contains at least 0.9 of its shingles" in told(page) and "Containment of pairs" in told(page)
    weights = Recipe(method=nd.MinHash(weighting="tfidf"), threshold=0.5)
    assert data(page_of(dedup(table, id_column="id", recipe=weights, writing=Writing(check=0))))["texts"]


def test_nothing_to_tell(tmp_path):
    page = page_of(dedup({"text": ["one two three", "four five six"]}, writing=Writing(check=0)))
    assert "No document was removed." in told(page) and "There are no pairs." in told(page)
    page = page_of(dedup({"text": ["one two three"] * 2}, threshold=1.0, writing=Writing(check=0)))
    assert "All 1 listed pair have resemblance 1" in told(page)


def test_no_documents():
    assert "0 are kept and 0 are removed" in told(page_of(dedup({"text": []})))


def test_lists_that_were_cut():
    crowd = [" ".join([*WORDS[:30], f"end{number}"]) for number in range(12)]
    page = page_of(dedup({"text": crowd}, recipe=Recipe(threshold=0.5, max_partners=2), writing=Writing(check=0)))
    assert "did not list all pairs" in told(page) and "are exact" not in told(page)
    assert any(step[1] < step[2] for step in data(page)["steps"])


def test_sources(folder):
    result = dedup(folder / "in", id_column="id", writing=Writing(check=0))
    assert "b.parquet 3 3 100.0% a.parquet 3 0 0.0%" in told(page_of(result))
    page = page_of(result, by="site")
    assert "What each site lost" in told(page) and "(none) 2 1 50.0%" in told(page)
    with pytest.raises(InputError, match=r"no column 'place'.*Name one with by="):
        page_of(result, by="place")
    nested = dedup(pa.table({"text": ["one two three"], "from": [{"site": "a"}]}), writing=Writing(check=0))
    with pytest.raises(InputError, match=r"column 'from' holds struct<.*by needs strings"):
        page_of(nested, by="from")
    assert "What each from.site lost" in told(page_of(nested, by="from.site"))


def test_a_source_that_loses_most_is_a_warning(tmp_path):
    """Text files are told by their folders."""
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
        for number in range(21):
            words = " ".join([f"n{number}", *WORDS[number : number + 30]])
            (tmp_path / name / f"{number}.txt").write_text(words)
    page = page_of(dedup(tmp_path, threshold=0.95, writing=Writing(check=0)))
    assert "1 folder lost more than 50% of its documents second : 21 of 21 (100.0%)" in told(page)


def test_what_comes_from_documents_is_escaped(tmp_path):
    hostile = "</script><script>document.title='gone'</script><img src=x onerror=alert(1)>"
    table = pa.table(
        {"id": [hostile, f"{hostile} 2"], "text": [f"{hostile} {text('a')}", f"{hostile} {text('a', 'b')}"]}
    )
    (tmp_path / "in").mkdir()
    pq.write_table(table, tmp_path / "in" / "a&b<i>.parquet")
    result = dedup(tmp_path / "in", id_column="id", output=tmp_path / "<u>out", writing=Writing(check=0))
    for page in (page_of(result), of_folder(tmp_path / "<u>out")):
        assert page.html.count("<script") == 2 and "<img" not in page.html and "<i>." not in page.html
        assert "<u>" not in page.html
        assert data(page)["groups"][0]["id"].startswith(hostile)
    shown = result._repr_html_()
    assert "<script" not in shown and "<img" not in shown
    frame = page_of(result)._repr_html_()
    assert frame.count("<") == 2 and 'sandbox="allow-scripts"' in frame


def test_ids_of_any_kind():
    words = [text("one"), text("one", "x")]
    for ids in ([7, 2**62], [b"a\xff", b"b"], ["-dash", "tab\tand\nline \u202e"], ["", "é" * 1000]):
        page = page_of(dedup(pa.table({"id": ids, "text": words}), id_column="id", writing=Writing(check=0)))
        (group,) = data(page)["groups"]
        assert len(group["id"]) <= 310 and len(group["members"][0]["id"]) <= 310
        assert "\u202e" not in page.html and "\n" not in group["members"][0]["command"]


def test_long_texts(tmp_path):
    long = " ".join(f"w{number}" for number in range(60_000))  # too long to be compared
    wide = [f"v{number}" * 40 for number in range(900)]
    other = [f"x{word}" if number % 30 == 7 else word for number, word in enumerate(wide)]
    texts = [long, f"{long} more", " ".join(wide), " ".join(other)]
    page = page_of(
        dedup(pa.table({"id": list("abcd"), "text": texts}), threshold=0.5, id_column="id", writing=Writing(check=0))
    )
    members = {group["id"]: group["members"][0] for group in data(page)["groups"]}
    assert "text" not in members["a"] and "text" in members["c"]
    shown, notes = data(page)["texts"][0]
    assert sum(len(words) for _, words in shown) < 7000 and any("about the first 6,000" in note for note in notes)


def test_groups_are_chosen_at_every_end():
    words = [f"w{number} " * 12 for number in range(300)]
    texts = [each for number, each in enumerate(words) for _ in range(2 + number % 5)]
    groups = groups_of(dedup({"text": texts}, writing=Writing(check=0))._run())
    picked, how = chosen(groups, 100)
    assert len(set(picked.tolist())) == 100 and how is not None
    assert sorted(groups.sizes[picked])[-40:] == [6] * 40 and min(groups.sizes[picked]) < 6
    assert chosen(groups, 300)[1] is None


def test_a_result_shows_itself(folder):
    shown = dedup(folder / "in", id_column="id", writing=Writing(check=0))._repr_html_()
    assert "Histogram: resemblance of 3 listed pairs" in shown
    assert re.search(r"<ins[^>]*>amended", shown) and "one stands for 2 documents" in shown
    report = dedup({"text": ["to be or not to be"] * 2}).report
    assert json.loads(json.dumps(report)) == report and report["counts"]["removed"] == 1


def test_a_page_is_written_by_hand(tmp_path):
    page = dedup({"text": ["to be or not to be"] * 2}).write_report(tmp_path / "page.html")
    assert (tmp_path / "page.html").read_text() == page.html and repr(page).endswith("of HTML)")
    with pytest.raises(OutputError, match="exists already"):
        page.write(tmp_path / "page.html")
    page.write(tmp_path / "page.html", overwrite=True)
