"""What `decide` writes can be read by all that reads results."""

import numpy as np
import pyarrow as pa
import pytest
from flat import flat

import neardup_gpu as nd
from neardup_gpu.cli import main


@pytest.mark.parametrize("documents", [0, 3])
def test_everything_that_reads_results(tmp_path, documents, capsys):
    text = "to be or not to be that is the question whether it is nobler in the mind to suffer"
    rows = [{"id": "a", "text": text}, {"id": "b", "text": f"{text} more"}, {"id": "c", "text": "another"}][:documents]
    with nd.Index.create(tmp_path / "index") as index:
        if rows:
            index.add(pa.Table.from_pylist(rows), id_column="id")
        result = index.decide()
        assert result._repr_html_() and len(result.documents) == documents
    assert main(["index", "decide", str(tmp_path / "index"), "-o", str(tmp_path / "out"), "-q"]) == 0
    capsys.readouterr()
    assert main(["info", str(tmp_path / "out")]) == 0 and main(["info", "--check", str(tmp_path / "out")]) == 0
    assert f"documents  {documents}, " in capsys.readouterr().out
    if documents:
        assert main(["explain", str(tmp_path / "out"), "b"]) == 2
        assert "were given in memory; pass them again" in capsys.readouterr().err
        with pytest.raises(nd.errors.ParameterError, match="did not list all pairs"):
            result.at(0.95)


def test_what_one_text_is_read_as(tmp_path):
    with nd.Index.create(tmp_path / "index") as index:
        index.add({"text": ["to be or not to be that is the question"]})
        page = "<p>to be or not to be <b>that</b> is the question"
        assert index.query(page, reading=nd.Reading(html=True))["resemblance"][0].as_py() == 1
        for name in ("text_columns", "id_column", "glob"):
            with pytest.raises(nd.errors.ParameterError, match=f"^{name}: one text is given"):
                flat(index.query, "to be", **{name: "x"})


def test_texts_that_are_asked_for(tmp_path):
    """An array of texts is as good as a table of them; a row without an answer is refused."""
    with nd.Index.create(tmp_path / "index", recipe=nd.Recipe(shingles=nd.Shingles(2), method="minhash")) as index:
        index.add({"text": ["to be or not to be that is the question", "whether it is nobler in the mind to suffer"]})
        texts = ["<b>whether</b> it is nobler in the mind to suffer", "to be or not to be that is the question"]
        found = index.query({"text": texts}, reading=nd.Reading(html=True))
        assert found.equals(index.query(pa.table({"text": texts}), reading=nd.Reading(html=True)))
        assert found["query_id"].to_pylist() == [0, 1] and found["id"].to_pylist() == [1, 0]
        assert found.equals(index.query(np.array(texts), reading=nd.Reading(html=True)))
        for call in (index.query, index.add):
            with pytest.raises(nd.errors.InputError, match="no column 'id'"):
                call(np.array(texts), id_column="id")
        with pytest.raises(nd.errors.InputError, match="'text' holds one value"):
            index.query({"text": "to be"})
        with pytest.raises(nd.errors.ParameterError, match=r"^on_error 'skip': a query without an answer"):
            index.query({"text": texts}, reading=nd.Reading(on_error="skip"))
        assert index.info()["documents"] == 2


def test_rows_that_are_skipped_are_counted(tmp_path, caplog):
    path = tmp_path / "d.jsonl"
    path.write_text('{"id": "a", "text": "to be or not to be"}\n{"id"\n')
    with nd.Index.create(tmp_path / "index") as index:
        assert index.add(path, id_column="id", reading=nd.Reading(on_error="skip")).skipped == 1
    assert "1 row left out, the first in" in caplog.text
