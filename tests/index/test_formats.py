"""Small indexes that earlier versions made open, or are refused by the name of their version."""

import tarfile
from dataclasses import asdict
from pathlib import Path

import pytest

import neardup_gpu as nd
from neardup_gpu.index import manifest as manifests
from neardup_gpu.store.checksums import checksum

HERE = Path(__file__).parent


@pytest.fixture
def plays(tmp_path) -> Path:
    """The index of format 1: five documents in two segments, one of them removed."""
    with tarfile.open(HERE / "format_1.tar.xz") as archive:
        archive.extractall(tmp_path, filter="data")
    return tmp_path / "plays"


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
        index.add({"id": ["f"], "text": ["that is the question"]}, id_column="id")
        assert index.compact() > 0
        assert index.query("that is the question")["id"].to_pylist() == ["c", "f"]


def test_a_later_format_is_refused_by_its_number(plays: Path) -> None:
    (path,) = plays.glob("manifest.*")
    newer = path.read_bytes().replace(b'"format": 1', b'"format": 3')
    text = newer.partition(b'"manifest": ')[2].removesuffix(b"}\n")
    path.write_bytes(f'{{"checksum": "{checksum(text):016x}", "manifest": '.encode() + text + b"}\n")
    with pytest.raises(nd.InputError, match="written by a later version, in format 3; this version reads format 2"):
        nd.Index.open(plays)


def test_other_definitions_are_refused(plays: Path) -> None:
    with nd.Index.open(plays) as index:
        values = asdict(index._opened.manifest)
    recipe = values["recipe"].replace('"definitions": ', '"definitions": 9')
    values |= {"recipe": recipe, "segments": [], "inputs": [], "number": values["number"] + 1}
    changed = manifests.Manifest(**values)
    manifests.commit(plays, changed)
    with pytest.raises(nd.RecipeMismatchError, match="definitions"):
        nd.Index.open(plays)
