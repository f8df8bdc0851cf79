"""Small indexes that earlier versions made open, or are refused by the name of their version."""

import datetime as dt
import json
import tarfile
from dataclasses import asdict
from pathlib import Path

import pyarrow as pa
import pytest

import neardup_gpu as nd
from neardup_gpu import definitions
from neardup_gpu.index import manifest as manifests
from neardup_gpu.store.checksums import checksum

HERE = Path(__file__).parent


def unpacked(format: int, folder: Path) -> Path:
    """An index of five documents in two segments, one of them removed; in format 3, a folder of one by each method.

    They were made under definitions 3 and 4. The texts have the same tokens under those of today, which each index is
    given.
    """
    with tarfile.open(HERE / f"format_{format}.tar.xz") as archive:
        archive.extractall(folder, filter="data")
    for path in folder.rglob("manifest.*"):
        manifest = json.loads(path.read_bytes())["manifest"]
        recipe = json.loads(manifest["recipe"]) | definitions.versions()
        _write_manifest(path, json.dumps({**manifest, "recipe": json.dumps(recipe)}).encode())
    return folder / "plays"


def _write_manifest(path: Path, text: bytes) -> None:
    path.write_bytes(f'{{"checksum": "{checksum(text):016x}", "manifest": '.encode() + text + b"}\n")


@pytest.fixture
def plays(tmp_path) -> Path:
    """The index of format 1, which keeps no columns."""
    return unpacked(1, tmp_path)


def test_format_1_opens(plays: Path) -> None:
    with nd.Index.open(plays, engine="cpu") as index:
        assert index.check()["documents"] == 4
        kept = index.decide().documents.select(["id", "kept"]).to_pylist()
        assert kept == [
            {"id": "a", "kept": True},
            {"id": "b", "kept": False},
            {"id": "c", "kept": True},
            {"id": "e", "kept": True},
        ]
        assert index.query("to be or not to be")["id"].to_pylist() == ["a", "b"]
        assert index.info()["columns"] == {}
        index.add({"id": ["f"], "text": ["that is the question"]}, id_column="id")
        assert index.compact() > 0
        assert index.query("that is the question")["id"].to_pylist() == ["c", "f"]


def test_format_2_opens(tmp_path: Path) -> None:
    with nd.Index.open(unpacked(2, tmp_path), engine="cpu") as index:
        assert index.check()["documents"] == 4
        assert index.info()["columns"] == {"date": "date32[day]", "pages": "int64"}
        kept = index.decide(keep="date").documents
        assert kept.filter(kept["kept"])["id"].to_pylist() == ["b", "c", "e"]
        assert index.query("to be or not to be", columns=["pages"])["pages"].to_pylist() == [1, None]
        new = {"id": ["f"], "text": ["that is the question"], "date": pa.array([dt.date(1602, 1, 1)]), "pages": [2]}
        index.add(new, id_column="id")
        assert index.compact() > 0
        assert index.remove(before="1603-01-01", column="date").documents == 1


@pytest.mark.parametrize("method", ["exact", "minhash", "simhash"])
def test_format_3_opens(tmp_path: Path, method: str) -> None:
    with nd.Index.open(unpacked(3, tmp_path) / method, engine="cpu") as index:
        assert index.recipe.method.name == method
        assert index.check(all=True)["documents"] == 4
        kept = index.decide(keep="date").documents
        assert kept.filter(kept["kept"])["id"].to_pylist() == ["b", "c", "e"]
        assert index.query("to be or not to be", columns=["pages"])["pages"].to_pylist() == [1, None]
        new = {"id": ["f"], "text": ["that is the question"], "date": pa.array([dt.date(1602, 1, 1)]), "pages": [2]}
        added = index.add(new, id_column="id", text_columns="text")
        assert added.decisions.read_all()["duplicate_of"].to_pylist() == ["c"]
        if method == "minhash":
            assert index.query("to be or", containment=0.9)["id"].to_pylist() == ["a", "b"]
        assert index.compact() > 0
        assert index.remove(before="1603-01-01", column="date").documents == 3
        assert json.loads(next(index.folder.glob("manifest.*")).read_bytes())["manifest"]["format"] == 4


def test_a_later_format_is_refused_by_its_number(plays: Path) -> None:
    (path,) = plays.glob("manifest.*")
    newer = path.read_bytes().replace(b'"format": 1', b'"format": 5')
    text = newer.partition(b'"manifest": ')[2].removesuffix(b"}\n")
    _write_manifest(path, text)
    with pytest.raises(
        nd.errors.InputError, match="written by a later version, in format 5; this version reads format 4"
    ):
        nd.Index.open(plays)


def test_other_definitions_are_refused(plays: Path) -> None:
    with nd.Index.open(plays) as index:
        values = asdict(index._opened.manifest)
    recipe = values["recipe"].replace('"definitions": ', '"definitions": 9')
    values |= {"recipe": recipe, "segments": [], "inputs": [], "number": values["number"] + 1}
    changed = manifests.Manifest(**values)
    manifests.commit(plays, changed)
    with pytest.raises(nd.errors.RecipeMismatchError, match="definitions"):
        nd.Index.open(plays)
