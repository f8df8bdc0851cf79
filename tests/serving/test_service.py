"""The service over HTTP: what each request answers, what is refused, and what outlives the process."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

pytest.importorskip("fastapi")
pytest.importorskip("prometheus_client")
pytest.importorskip("uvicorn")

from serving_process import Service, serving

import neardup_gpu as nd
from neardup_gpu.serving.app import service
from neardup_gpu.serving.settings import Serving

SOLILOQUY = "to be or not to be that is the question whether it is nobler in the mind to suffer the slings and arrows"
NEAR = f"{SOLILOQUY} of outrageous fortune"
OTHER = "all else is silence for ever and ever my old friend of the days that are gone"


def made(folder: Path, **how: object) -> Path:
    """An empty index."""
    nd.Index.create(folder, **({"threshold": 0.5} | how)).close()
    return folder


@pytest.fixture(scope="module")
def running(tmp_path_factory) -> Iterator[Service]:
    """A service whose tests use ids of their own."""
    folder = made(
        tmp_path_factory.mktemp("service") / "index", containment=2, columns=["day", "source"], keep_tokens=True
    )
    with serving(folder, "--max-documents", "5", "--max-body", "20000") as service:
        yield service


def test_documents_are_decided_queried_explained_and_removed(running: Service) -> None:
    client = running.client
    rows = [
        {"id": "a", "text": SOLILOQUY, "day": "2026-01-31"},
        {"id": "b/1?", "text": NEAR, "source": "x"},
        {"id": "c", "text": OTHER},
    ]
    added = client.post("/documents", json={"documents": rows})
    assert added.status_code == 200
    decided = {each.pop("id"): each for each in added.json()["decisions"]}
    assert decided["a"] == {"kept": True, "duplicate_of": None, "resemblance": None, "group": "a"}
    assert (decided["b/1?"]["kept"], decided["b/1?"]["duplicate_of"]) == (False, "a")
    assert 0.5 <= decided["b/1?"]["resemblance"] < 1 and decided["c"]["kept"]

    [answer] = client.post("/query", json={"text": NEAR, "columns": ["day"]}).json()["answers"]
    assert [(each["id"], each["kept"], each["day"]) for each in answer["matches"]] == [
        ("b/1?", False, None),
        ("a", True, "2026-01-31"),
    ]
    asked = {"documents": [{"text": SOLILOQUY}, {"text": "x"}], "containment": 0.9}
    answers = client.post("/query", json=asked).json()["answers"]
    assert {each["id"] for each in answers[0]["matches"]} == {"a", "b/1?"}
    assert answers[1]["matches"] == [] and isinstance(answers[1]["notes"], list)

    asked = {"documents": [{"text": f"He asks: {SOLILOQUY}"}, {"text": "x"}], "length": 8}
    first, other = client.post("/passages", json=asked).json()["answers"]
    assert [(each["source_id"], each["begin"], each["tokens_equal"]) for each in first["passages"]] == [
        (id, 9, len(SOLILOQUY.split())) for id in ("a", "b/1?")
    ]
    assert 0.9 < first["share"] < 1 and (other["passages"], other["tokens"]) == ([], 1)
    assert client.post("/passages", json={"text": OTHER, "length": 8}).json()["answers"][0]["share"] == 1

    explained = client.get("/documents/b%2F1%3F/explanation").json()
    assert (explained["duplicate_of"], explained["awaits"], explained["source"]) == ("a", False, "x")
    assert client.delete("/documents/a").json() == {"removed": 1, "unknown": []}
    assert client.delete("/documents/a").json() == {"removed": 0, "unknown": ["a"]}
    explained = client.get("/documents/b%2F1%3F/explanation").json()
    assert (explained["duplicate_of"], explained["awaits"]) == (None, True)
    found = client.post("/query", json={"text": NEAR}).json()
    assert found["notes"][0]["ids"] == ["b/1?"]
    assert client.get("/documents/a/explanation").status_code == 404
    assert client.delete("/documents", params={"id": ["b/1?", "c", "zz"]}).json() == {"removed": 2, "unknown": ["zz"]}


def test_what_is_refused(running: Service) -> None:
    client = running.client
    assert running.add({"k": SOLILOQUY}).status_code == 200
    again = running.add({"k": OTHER, "k2": OTHER})
    assert again.status_code == 409 and again.json()["ids"] == ["k"]
    assert running.add({"k": SOLILOQUY}, replace=True).status_code == 200
    twice = {"documents": [{"id": "t", "text": "x"}, {"id": "t", "text": "y"}]}
    for body, status, words in (
        (twice, 422, "id 't' stands for several documents"),
        ({"documents": [{"id": f"m{i}", "text": "x"} for i in range(6)]}, 422, "at most 5"),
        ({"documents": []}, 422, "at least 1"),
        ({"documents": [{"id": "x" * 2000, "text": "x"}]}, 422, "at most 1024 characters"),
        ({"documents": [{"id": "", "text": "x"}]}, 422, "at least 1 character"),
        ({"documents": [{"id": "v"}]}, 422, "body.documents.0.text: Field required"),
        ({"documents": [{"id": "v", "text": "x", "colour": 1}]}, 422, "Extra inputs are not permitted"),
        ({"documents": [{"id": "v", "text": "x", "day": 5}]}, 400, "convert it"),
        ({"documents": [{"id": 7, "text": "x"}]}, 400, "ids of type string, these are of type integer"),
        ({"documents": [{"id": "v", "text": "x" * 30_000}]}, 413, "larger than 20,000 bytes"),
    ):
        refused = client.post("/documents", json=body)
        assert refused.status_code == status and words in refused.json()["error"], (refused.text, words)
    parts = (b"x" * 1000 for _ in range(100))  # without a length
    refused = client.post("/documents", content=parts, headers={"Content-Type": "application/json"})
    assert refused.status_code == 413
    for query, status, words in (
        ({}, 422, "text and documents: give one of them"),
        ({"text": "x", "threshold": 2}, 400, "threshold must be"),
        ({"text": "x", "columns": ["colour"]}, 400, "keeps no column 'colour'"),
        ({"text": "x", "nearest": 0}, 422, "nearest"),
    ):
        refused = client.post("/query", json=query)
        assert refused.status_code == status and words in refused.json()["error"], refused.text
    assert [each["id"] for each in client.post("/query", json={"text": SOLILOQUY}).json()["answers"][0]["matches"]] == [
        "k"
    ]
    client.delete("/documents/k")


def test_a_refused_request_takes_no_other_with_it(running: Service) -> None:
    """Of requests that wait together, those without a mistake are committed."""

    def send(number: int) -> None:
        id = "same" if number % 4 == 0 else f"n{number}"
        answers[number] = running.add({id: f"text number {number}"}).status_code

    answers: dict[int, int] = {}
    threads = [threading.Thread(target=send, args=(number,)) for number in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(answers[number] for number in range(0, 16, 4)) == [200, 409, 409, 409]
    assert {answers[number] for number in range(16) if number % 4} == {200}


def test_health_metrics_and_the_description(running: Service) -> None:
    client = running.client
    assert client.get("/health").json() == {"status": "ready", "writes": True}
    schema = client.get("/openapi.json").json()
    assert {*schema["paths"]} == {
        *("/documents", "/documents/{id}", "/documents/{id}/explanation", "/query", "/passages"),
        *("/health", "/metrics"),
    }
    assert {"id", "text", "day", "source"} == {*schema["components"]["schemas"]["Document"]["properties"]}
    page = client.get("/docs").text
    assert "POST /documents" in page and "//" not in page.replace("<!doctype", "")
    running.add({"metric": OTHER})
    client.post("/query", json={"text": OTHER})
    lines = dict(line.rsplit(" ", 1) for line in client.get("/metrics").text.splitlines() if not line.startswith("#"))
    assert float(lines['neardup_requests_total{method="POST",path="/documents",status="200"}']) >= 1
    assert float(lines['neardup_request_seconds_count{method="POST",path="/query"}']) >= 1
    assert float(lines["neardup_documents"]) >= 1 and float(lines["neardup_segments"]) >= 1
    assert float(lines["neardup_queue_documents"]) == 0 and float(lines["neardup_queue_limit_documents"]) == 10_000
    assert 0 <= float(lines["neardup_last_commit_age_seconds"]) < 120


def test_a_token_is_asked_for(tmp_path: Path) -> None:
    with serving(made(tmp_path / "x"), token="secret") as service:
        assert service.add({"a": SOLILOQUY}).status_code == 200
        for headers in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": "secret"}):
            with httpx.Client(base_url=service.client.base_url, headers=headers) as other:
                for path in ("/metrics", "/documents/a/explanation", "/nowhere"):
                    refused = other.get(path)
                    assert refused.status_code == 401 and refused.headers["WWW-Authenticate"] == "Bearer"
                assert other.delete("/documents/a").status_code == 401
                assert other.get("/health").status_code == 200
        assert service.client.get("/documents/a/explanation").status_code == 200


def test_it_listens_here_alone_unless_told_otherwise() -> None:
    assert Serving().host == "127.0.0.1"


# ------------------------------------------------------------------------------------------------ mishaps of a process


def many(service: Service, number: int) -> tuple[list[threading.Thread], dict[str, httpx.Response | None]]:
    """Begin to add documents, one a request, from eight threads; returns the threads, and what was answered."""
    answers: dict[str, httpx.Response | None] = {}

    def send(first: int) -> None:
        for at in range(first, number, 8):
            try:
                answers[f"d{at}"] = service.add({f"d{at}": f"the text of document {at} and {at * 7} more"})
            except httpx.TransportError:
                answers[f"d{at}"] = None

    threads = [threading.Thread(target=send, args=(first,)) for first in range(8)]
    for thread in threads:
        thread.start()
    return threads, answers


def test_kill_9_loses_nothing_that_was_acknowledged(tmp_path: Path) -> None:
    folder = made(tmp_path / "x")
    with serving(folder) as service:
        threads, answers = many(service, 2000)
        service.waited(lambda: len(answers) > 100)
        service.process.send_signal(signal.SIGKILL)
        for thread in threads:
            thread.join()
    acknowledged = [id for id, answer in answers.items() if answer is not None and answer.status_code == 200]
    assert 100 <= len(acknowledged) < 2000
    with nd.Index.open(folder) as index:
        index.check(all=True)
        assert set(index.explain(acknowledged)["id"].to_pylist()) == set(acknowledged)
    with serving(folder) as service:  # which goes on
        assert service.add({"after": SOLILOQUY}).json()["decisions"][0]["kept"]


def test_sigterm_drains(tmp_path: Path) -> None:
    """What was begun is answered, what comes later is not accepted, and the process ends with status 0."""
    folder = made(tmp_path / "x")
    with serving(folder) as service:
        threads, answers = many(service, 4000)
        service.waited(lambda: len(answers) > 50)
        service.process.send_signal(signal.SIGTERM)
        for thread in threads:
            thread.join()
        assert service.process.wait(60) == 0
    statuses = {answer.status_code for answer in answers.values() if answer is not None}
    acknowledged = [id for id, answer in answers.items() if answer is not None]
    assert statuses == {200} and 50 < len(acknowledged) < 4000
    with nd.Index.open(folder) as index:
        assert set(index.explain(acknowledged)["id"].to_pylist()) == set(acknowledged)
        index.add({"id": ["next"], "text": [OTHER]}, id_column="id")  # the right to write was given back


WRITER = """
import sys, neardup_gpu as nd
with nd.Index.open(sys.argv[1]) as index:
    index.add({"id": ["mine"], "text": [sys.argv[2]]}, id_column="id")
    print("ready", flush=True)
    sys.stdin.readline()
"""


def test_a_second_writer(tmp_path: Path) -> None:
    """Reads work, writes are refused by the name of the other process, and go on after it has ended."""
    folder = made(tmp_path / "x")
    command = [sys.executable, "-c", WRITER, str(folder), OTHER]
    with subprocess.Popen(command, stdin=-1, stdout=-1, text=True) as other:
        assert other.stdin is not None and other.stdout is not None and other.stdout.readline() == "ready\n"
        with serving(folder) as service:
            assert service.client.get("/health").json() == {"status": "ready", "writes": False}
            refused = service.add({"a": SOLILOQUY})
            assert refused.status_code == 409 and refused.json()["process"] == other.pid
            assert refused.json()["host"] and "is being written by process" in refused.json()["error"]
            assert service.client.delete("/documents/mine").status_code == 409
            [answer] = service.client.post("/query", json={"text": OTHER}).json()["answers"]
            assert [each["id"] for each in answer["matches"]] == ["mine"]
            other.stdin.close()
            other.wait()
            assert service.add({"a": SOLILOQUY}).status_code == 200
            with nd.Index.open(folder) as third, pytest.raises(nd.errors.OutputError, match="is being written by"):
                third.remove(["a"])


def test_a_full_queue(tmp_path: Path) -> None:
    with serving(made(tmp_path / "x"), "--queue", "3") as service:
        threads, answers = many(service, 160)
        for thread in threads:
            thread.join()
        refused = [answer for answer in answers.values() if answer is not None and answer.status_code == 503]
        done = [answer for answer in answers.values() if answer is not None and answer.status_code == 200]
        assert refused and len(refused) + len(done) == 160
        assert all(each.headers["Retry-After"] == "1" and "wait for the writer" in each.text for each in refused)
        again = [id for id, answer in answers.items() if answer is not None and answer.status_code == 503]
        for id in again:
            assert service.add({id: "the same once more"}).status_code == 200
        with nd.Index.open(tmp_path / "x") as index:
            assert len(index) == 160


def test_a_full_disk(tmp_path: Path) -> None:
    """Status 507; what was acknowledged is there and can be queried."""
    if shutil.which("unshare") is None:
        pytest.skip("needs unshare")
    (tmp_path / "disk").mkdir()
    make = "import sys, neardup_gpu as nd; nd.Index.create(sys.argv[1] + '/x', threshold=0.5).close()"
    script = f'mount -t tmpfs -o size=3m none "$1" && "$2" -c "{make}" "$1" && shift 2 && exec "$@"'
    prefix = ("unshare", "-rm", "sh", "-c", script, "sh", str(tmp_path / "disk"), sys.executable)
    if subprocess.run([*prefix, "true"], capture_output=True).returncode != 0:
        pytest.skip("cannot mount")
    log_beside = tmp_path / "disk" / "x"
    with serving(log_beside, prefix=prefix) as service:
        done: list[str] = []
        status, number = 200, 0
        while status == 200:
            id = f"d{number}"
            answer = service.add({id: " ".join(f"{id}w{word}" for word in range(4000))})
            status, number = answer.status_code, number + 1
            done += [id] if status == 200 else []
        assert status == 507 and "No space left on device" in answer.json()["error"], answer.text
        assert len(done) > 5
        for id in (done[0], done[-1]):
            assert service.client.get(f"/documents/{id}/explanation").status_code == 200
        [found] = service.client.post("/query", json={"text": " ".join(f"d0w{word}" for word in range(4000))}).json()[
            "answers"
        ]
        assert [each["id"] for each in found["matches"]] == ["d0"]
        assert service.client.get("/health").status_code == 200
        assert f"neardup_documents {len(done)}.0" in service.client.get("/metrics").text


def test_ids_that_are_integers(tmp_path: Path) -> None:
    with serving(made(tmp_path / "x")) as service:
        assert [each["id"] for each in service.add({7: SOLILOQUY, 2**60 + 1: NEAR}).json()["decisions"]] == [
            7,
            2**60 + 1,
        ]
        explained = service.client.get(f"/documents/{2**60 + 1}/explanation").json()
        assert json.dumps(explained["id"]) == str(2**60 + 1) and explained["duplicate_of"] == 7
        assert service.client.delete("/documents/seven").status_code == 422
        assert service.client.delete("/documents/7").json() == {"removed": 1, "unknown": []}


def test_an_index_of_parts_is_refused_with_the_reason(tmp_path: Path) -> None:
    recipe = nd.Recipe(shingles=nd.Shingles(2), threshold=0.5, unit=nd.Unit("line"))
    with nd.Index.create(tmp_path / "x", recipe=recipe) as index:
        index.add({"text": ["to be\nor not to be"]})
        with pytest.raises(
            nd.errors.ParameterError, match="so that a document has no decision to explain; call decide"
        ):
            index.explain([0])
        with pytest.raises(nd.errors.ParameterError, match="holds parts of them; query for the parts and remove by id"):
            index.take_down({"text": ["to be"]}, statement=tmp_path / "s.json")
    with pytest.raises(nd.errors.InputError, match="a service answers with one decision per document"):
        service(tmp_path / "x", Serving(), nd.Engine(), None)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["nowhere"], "there is no index"),
        (["x", "--port", "99999"], "port"),
        (["x", "--host", "203.0.113.1"], "choose another host or port"),
        (["x", "--queue", "0"], "queue"),
    ],
)
def test_what_the_command_refuses(words: list[str], says: str, tmp_path: Path) -> None:
    made(tmp_path / "x")
    command = [sys.executable, "-m", "neardup_gpu", "index", "serve", *words]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=100)
    assert done.returncode == 2 and says in done.stderr.splitlines()[-1], done
