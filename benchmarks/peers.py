"""Run the peers on a text column of a Parquet file, in this machine and this hour.

    python -m benchmarks.peers --corpus corpora/bills_116_small.parquet --peers rensa,datasketch,text-dedup

Every peer gets a virtual environment of its own (pinned in requirements.txt beside this file, kept under --cache) and
one process, and answers with one line of JSON:

    peer, version      as installed
    task               "signatures": text in memory -> 128 samples; "dedup": Parquet file -> kept rows on disk
    documents, bytes   of text, UTF-8
    seconds            of the task alone for signatures (reading left out), of the whole command for dedup
    mb_per_second      bytes / seconds / 1e6
    peak_rss_mb        of the largest process
    threads            that the peer may use

and with how well it did: `error`, the mean absolute error of the estimated resemblance over gold pairs, for signatures;
for dedup `kept`, `recall` (share of gold pairs at or above the threshold of which not both documents were kept) and
`unfounded` (removed documents that have no gold pair at or above the threshold at all). They are null without a file
CORPUS.gold.parquet (id_a, id_b, jaccard) beside the corpus; `error` looks at some 2,000 gold pairs.

Definitions, so that nobody is slowed down unfairly: words are `\\w+` of the lower-cased text, a shingle is five words
joined by a space, made in Python since neither rensa nor datasketch takes text; rensa gets lists (faster than the sets
would be), datasketch sets, both 128 samples. text-dedup is its own command with the wanted threshold, every core and
otherwise its defaults: 5-grams, 250 permutations, no verification. datatrove is its four steps of min-hash, one after
another, a task of each for every core (or bucket), and otherwise its defaults, too: 5-grams, 14 buckets of 8 hashes,
which fit a threshold near 0.72 whatever is wanted, no verification. rensa-lsh, datasketch-lsh and gaoya are their
indexes in memory, asked about each text in turn and given those that are new, on one core, with 128 samples. daft is
the job of its tutorial on every core: normalized text, 5-grams, 117 samples in 9 bands of 13, connected components, no
verification. semhash is missing, as it embeds texts by a model that it downloads.
"""

import argparse
import importlib.metadata
import json
import os
import re
import resource
import signal
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

SAMPLES = 128
WIDTH = 5
BATCH = 256  # documents whose shingles are held at a time
ERROR_PAIRS = 2000  # gold pairs on which estimates are checked
WORDS = re.compile(r"\w+")


# Outside: environments and processes


def requirement(package: str) -> str:
    """The pinned line of a package in requirements.txt."""
    for line in Path(__file__).with_name("requirements.txt").read_text().splitlines():
        if line.startswith(f"{package}=="):
            return line
    raise SystemExit(f"requirements.txt does not pin {package}; peers: {', '.join(PEERS)}.")


def ensure_venv(name: str, requirements: list[str], cache: Path) -> Path:
    """Make a virtual environment with `requirements` under `cache`, unless it is there; return its interpreter."""
    folder = cache / name
    python = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    done = folder / "requirements.done"
    if not done.exists() or done.read_text().split("\n") != requirements:
        venv.create(folder, with_pip=True, clear=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", *requirements], check=True, stdout=sys.stderr)
        done.write_text("\n".join(requirements))
    return python


def run_peer(
    peer: str,
    corpus: Path,
    *,
    cache: Path,
    limit: int | None = None,
    threshold: float = 0.8,
    column: str = "text",
    most_seconds: float | None = None,
) -> dict:
    """Run one peer in its environment and return what it measured.

    Parameters
    ----------
    peer : str
        One of PEERS.
    corpus : Path
        Parquet file with `column` and, for the gold, `id`.
    cache : Path
        Folder for virtual environments, outside the project.
    limit : int, optional
        First so many documents only.
    threshold : float
        Resemblance from which dedup removes.
    column : str
        The text.
    most_seconds : float, optional
        After which it is stopped, and has failed.

    Returns
    -------
    dict
        As the module's docstring lists; {"peer", "failed"} with the last line of its complaint where it could not run.
    """
    try:
        more = [requirement(package) for package in NEEDS.get(peer, ())]
        package = PACKAGES.get(peer, peer)
        python = ensure_venv(package, [requirement(package), ARROW.get(peer, requirement("pyarrow")), *more], cache)
        with tempfile.TemporaryDirectory() as scratch:
            answer = run_within(
                most_seconds,
                [str(python), __file__, "--inside", peer, "--corpus", str(corpus), "--scratch", scratch]
                + ["--column", column, "--threshold", str(threshold)]
                + ([] if limit is None else ["--limit-docs", str(limit)]),
            )
    except subprocess.TimeoutExpired:
        return {"peer": peer, "failed": f"it took more than {most_seconds:g} s"}
    except subprocess.CalledProcessError as error:
        complaint = (error.stderr or str(error)).strip().splitlines()
        return {"peer": peer, "failed": complaint[-1]}
    return json.loads(answer.splitlines()[-1])


def run_within(most_seconds: float | None, command: list[str]) -> str:
    """Standard output of a command, which is stopped with all that it started if it takes longer."""
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        try:
            out, complaint = process.communicate(timeout=most_seconds)
        except BaseException:
            os.killpg(process.pid, signal.SIGKILL)
            raise
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command, out, complaint)
    return out


# Inside a peer's environment


def shingle_lists(texts: list[str]) -> Iterator[list[str]]:
    """Word 5-shingles of each text, with repeats; a shorter text is one shingle."""
    for text in texts:
        words = WORDS.findall(text.lower())
        yield [" ".join(words[i : i + WIDTH]) for i in range(max(1, len(words) - WIDTH + 1))]


def run_rensa(texts: list[str]) -> tuple[float, Callable[[int, int], float]]:
    """Seconds to all signatures, and the estimated resemblance of two rows."""
    from rensa import RMinHash

    start = time.perf_counter()
    matrices = [
        RMinHash.digest_matrix_from_token_sets(list(shingle_lists(texts[row : row + BATCH])), SAMPLES, 42)
        for row in range(0, len(texts), BATCH)
    ]
    seconds = time.perf_counter() - start
    rows = [matrix.to_rows() for matrix in matrices]

    def estimate(i: int, j: int) -> float:
        a, b = rows[i // BATCH][i % BATCH], rows[j // BATCH][j % BATCH]
        return sum(x == y for x, y in zip(a, b, strict=True)) / SAMPLES

    return seconds, estimate


def run_datasketch(texts: list[str]) -> tuple[float, Callable[[int, int], float]]:
    """Seconds to all signatures, and the estimated resemblance of two rows."""
    from datasketch import MinHash

    start = time.perf_counter()
    sets = ({shingle.encode() for shingle in shingles} for shingles in shingle_lists(texts))
    signatures = list(MinHash.generator(sets, num_perm=SAMPLES))
    seconds = time.perf_counter() - start
    return seconds, lambda i, j: signatures[i].jaccard(signatures[j])


def run_text_dedup(corpus: Path, scratch: Path, column: str, threshold: float) -> tuple[float, list]:
    """Seconds of the whole command, and the ids it kept."""
    from datasets import load_from_disk

    output = scratch / "output"
    command = [sys.executable, "-m", "text_dedup.minhash", "--path", "parquet", "--data_files", corpus]
    command += ["--split", "train", "--column", column, "--threshold", str(threshold), "--output", output]
    command += ["--cache_dir", scratch / "cache", "--num_proc", str(os.cpu_count() or 1)]
    offline = {"HF_HOME": str(scratch / "home"), "HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1"}
    start = time.perf_counter()
    subprocess.run(
        [str(part) for part in command], check=True, stdout=sys.stderr, env=os.environ | offline, cwd=scratch
    )
    seconds = time.perf_counter() - start
    return seconds, load_from_disk(str(output))["id"][:]


def run_datatrove(corpus: Path, scratch: Path, column: str, threshold: float) -> tuple[float, list]:
    """Seconds of all steps, and the ids it kept; each task reads a file of its own, written before."""
    import pyarrow.parquet
    from datatrove.executor import LocalPipelineExecutor
    from datatrove.pipeline.dedup import MinhashDedupBuckets, MinhashDedupCluster, MinhashDedupFilter
    from datatrove.pipeline.dedup.minhash import MinhashConfig, MinhashDedupSignature
    from datatrove.pipeline.readers import ParquetReader
    from datatrove.pipeline.writers import ParquetWriter

    tasks = os.cpu_count() or 1
    table = pyarrow.parquet.read_table(corpus, columns=["id", column])
    (scratch / "input").mkdir()
    for task in range(tasks):
        first, last = (len(table) * end // tasks for end in (task, task + 1))
        pyarrow.parquet.write_table(table.slice(first, last - first), scratch / "input" / f"{task}.parquet")
    reader = ParquetReader(str(scratch / "input"), text_key=column, id_key="id")
    signatures, buckets, removed, output = (str(scratch / name) for name in ("signatures", "buckets", "removed", "out"))
    steps: list[tuple[int, list]] = [
        (tasks, [reader, MinhashDedupSignature(signatures)]),
        (MinhashConfig().num_buckets, [MinhashDedupBuckets(signatures, buckets)]),
        (1, [MinhashDedupCluster(buckets, removed)]),
        (tasks, [reader, MinhashDedupFilter(removed), ParquetWriter(output)]),
    ]
    start = time.perf_counter()
    for number, (parts, step) in enumerate(steps):
        LocalPipelineExecutor(step, tasks=parts, workers=tasks, logging_dir=str(scratch / "logs" / str(number))).run()
    seconds = time.perf_counter() - start
    return seconds, pyarrow.parquet.read_table(output, columns=["id"])["id"].to_pylist()


def one_after_another(
    corpus: Path, scratch: Path, column: str, is_new: Callable[[int, str], bool]
) -> tuple[float, list]:
    """Seconds to read a file, to ask of each text in turn whether it is new, and to write the rows that are; ids."""
    import pyarrow.parquet

    start = time.perf_counter()
    table = pyarrow.parquet.read_table(corpus, columns=["id", column])
    texts = enumerate(table[column].to_pylist())
    kept = table.filter(pyarrow.array([is_new(row, text or "") for row, text in texts], pyarrow.bool_()))
    pyarrow.parquet.write_table(kept, scratch / "kept.parquet", compression="zstd")
    return time.perf_counter() - start, kept["id"].to_pylist()


def run_rensa_lsh(corpus: Path, scratch: Path, column: str, threshold: float) -> tuple[float, list]:
    """Seconds of the whole, and the ids it kept: its deduplicator, which compares the candidates' signatures."""
    from rensa import RMinHash, RMinHashDeduplicator

    known = RMinHashDeduplicator(threshold, SAMPLES, True)

    def is_new(row: int, text: str) -> bool:
        signature = RMinHash(SAMPLES, 42)
        signature.update(next(shingle_lists([text])))
        return known.add(str(row), signature)

    return one_after_another(corpus, scratch, column, is_new)


def run_datasketch_lsh(corpus: Path, scratch: Path, column: str, threshold: float) -> tuple[float, list]:
    """Seconds of the whole, and the ids it kept: a text is new where the index in memory knows no candidate."""
    from datasketch import MinHash, MinHashLSH

    known = MinHashLSH(threshold, SAMPLES)

    def is_new(row: int, text: str) -> bool:
        signature = MinHash(SAMPLES)
        signature.update_batch({shingle.encode() for shingle in next(shingle_lists([text]))})
        if known.query(signature):
            return False
        known.insert(row, signature)
        return True

    return one_after_another(corpus, scratch, column, is_new)


def run_gaoya(corpus: Path, scratch: Path, column: str, threshold: float) -> tuple[float, list]:
    """Seconds of the whole, and the ids it kept; its own word shingles, and candidates compared by their signatures."""
    from gaoya.minhash import MinHashStringIndex

    known = MinHashStringIndex(32, threshold, None, None, SAMPLES, "word", True, (WIDTH, WIDTH), "smallvec")

    def is_new(row: int, text: str) -> bool:
        if known.query(text):
            return False
        known.insert_document(row, text)
        return True

    return one_after_another(corpus, scratch, column, is_new)


def run_daft(corpus: Path, scratch: Path, column: str, threshold: float) -> tuple[float, list]:
    """Seconds of the whole, and the ids it kept: the first of each component of documents that share a band."""
    import daft
    import pyarrow.parquet

    bands, rows = 9, 13  # which fit a threshold of 0.8
    start = time.perf_counter()
    documents = daft.read_parquet(str(corpus)).select("id", column)
    text = daft.col(column).normalize(remove_punct=True, lowercase=True, nfd_unicode=True, white_space=True)
    keys = text.minhash(num_hashes=bands * rows, ngram_size=WIDTH).chunk(rows)
    keyed = documents.select("id", keys.alias("key")).with_column("band", daft.lit(list(range(bands))))
    buckets = keyed.explode("key", "band").groupby("band", "key")
    shared = buckets.agg(daft.col("id").min().alias("first"), daft.col("id").list_agg().alias("id")).explode("id")
    edges = shared.where(daft.col("id") != daft.col("first")).select("first", "id").distinct().to_pydict()
    first_of: dict = {}

    def first(row: Any) -> Any:
        while first_of.setdefault(row, row) != row:
            first_of[row] = row = first_of[first_of[row]]
        return row

    for a, b in zip(edges["first"], edges["id"], strict=True):
        a, b = first(a), first(b)
        first_of[max(a, b)] = min(a, b)
    removed = [row for row in first_of if first(row) != row]
    documents.join(daft.from_pydict({"id": removed}), on="id", how="anti").write_parquet(str(scratch / "kept"))
    seconds = time.perf_counter() - start
    return seconds, pyarrow.parquet.read_table(scratch / "kept", columns=["id"])["id"].to_pylist()


SIGNATURES = {"rensa": run_rensa, "datasketch": run_datasketch}
JOBS = {
    "text-dedup": run_text_dedup,
    "datatrove": run_datatrove,
    "rensa-lsh": run_rensa_lsh,
    "datasketch-lsh": run_datasketch_lsh,
    "gaoya": run_gaoya,
    "daft": run_daft,
}
IN_MEMORY = ("rensa-lsh", "datasketch-lsh", "gaoya", "daft")
"""Jobs that run in the process that measures them."""
PEERS = (*SIGNATURES, *JOBS)
PACKAGES = {"rensa-lsh": "rensa", "datasketch-lsh": "datasketch"}
"""The package of a peer that is not called as its package is."""
NEEDS = {"datatrove": ("spacy", "xxhash", "orjson", "regex", "tokenizers")}
"""What else a peer needs to be installed for what it is to do here."""
ARROW = {"daft": "pyarrow==25.0.1"}
"""The pyarrow of a peer that does not run with the pinned one."""


def measure(peer: str, corpus: Path, scratch: Path, column: str, threshold: float, limit: int | None) -> dict:
    """Run a peer in this process and describe the run."""
    import pyarrow.parquet

    gold = corpus.with_name(f"{corpus.stem}.gold.parquet")
    if limit is not None:
        head = pyarrow.parquet.read_table(corpus, columns=["id", column]).slice(0, limit)
        corpus = scratch / corpus.name
        pyarrow.parquet.write_table(head, corpus)
        del head
    result: dict = {"peer": peer, "version": importlib.metadata.version(PACKAGES.get(peer, peer))}
    if peer in JOBS:  # before the text is read: a child's peak counts that of the process it was forked from
        seconds, kept_ids = JOBS[peer](corpus, scratch, column, threshold)
        here = peer in IN_MEMORY
        peak = peak_mb(resource.RUSAGE_SELF if here else resource.RUSAGE_CHILDREN)
        threads = 1 if here and peer != "daft" else os.cpu_count()
        result |= {"task": "dedup", "peak_rss_mb": peak, "threads": threads}
        ids, _, size = read(corpus, column)
        quality = dedup_quality(kept_ids, ids, gold_pairs(gold, ids), threshold)
    else:
        ids, texts, size = read(corpus, column)
        seconds, estimate = SIGNATURES[peer](texts)
        result |= {"task": "signatures", "peak_rss_mb": peak_mb(resource.RUSAGE_SELF)}
        result["threads"] = os.cpu_count() if peer == "rensa" else 1
        pairs = gold_pairs(gold, ids)
        off = [abs(estimate(a, b) - jaccard) for a, b, jaccard in pairs[:: max(1, len(pairs) // ERROR_PAIRS)]]
        quality = {"error": round(sum(off) / len(off), 5) if off else None}
    result |= {"documents": len(ids), "bytes": size, "seconds": round(seconds, 3)}
    return result | {"mb_per_second": round(size / seconds / 1e6, 2)} | quality


def read(corpus: Path, column: str) -> tuple[list, list[str], int]:
    """Ids, texts (nulls are empty) and the bytes of text."""
    import pyarrow.parquet

    table = pyarrow.parquet.read_table(corpus, columns=["id", column])
    texts = [text or "" for text in table[column].to_pylist()]
    return table["id"].to_pylist(), texts, sum(len(text.encode()) for text in texts)


def gold_pairs(gold: Path, ids: list) -> list[tuple[int, int, float]]:
    """Rows and resemblance of the gold pairs between the given ids; empty without the file."""
    import pyarrow.parquet

    if not gold.exists():
        return []
    row = {name: i for i, name in enumerate(ids)}
    columns = pyarrow.parquet.read_table(gold, columns=["id_a", "id_b", "jaccard"]).to_pydict().values()
    return [(row[a], row[b], jaccard) for a, b, jaccard in zip(*columns, strict=True) if a in row and b in row]


def dedup_quality(kept_ids: list, ids: list, pairs: list[tuple[int, int, float]], threshold: float) -> dict:
    """Number kept; with gold pairs also the recall, and the removals that no gold pair explains."""
    wanted = [(ids[a], ids[b]) for a, b, jaccard in pairs if jaccard >= threshold]
    if not wanted:
        return {"kept": len(kept_ids), "recall": None, "unfounded": None}
    kept = set(kept_ids)
    founded = {end for pair in wanted for end in pair}
    resolved = sum(not (a in kept and b in kept) for a, b in wanted)
    return {
        "kept": len(kept_ids),
        "recall": round(resolved / len(wanted), 5),
        "unfounded": len(set(ids) - kept - founded),
    }


def peak_mb(who: int) -> float:
    """Peak resident memory of this process or of the largest it has waited for."""
    return round(resource.getrusage(who).ru_maxrss / (1e6 if sys.platform == "darwin" else 1e3 / 1.024), 1)


def main() -> None:
    """Read the command line; print a line of JSON for each peer."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpus", type=Path, required=True, help="Parquet file with the columns id and text")
    parser.add_argument("--column", default="text", help="the text column")
    parser.add_argument("--peers", default=",".join(PEERS), help="names divided by commas")
    parser.add_argument("--limit-docs", type=int, help="only the first so many documents")
    parser.add_argument("--threshold", type=float, default=0.8, help="resemblance from which dedup removes")
    parser.add_argument(
        "--cache", type=Path, default=Path(tempfile.gettempdir()) / "neardup-peers", help="folder for environments"
    )
    parser.add_argument("--inside", choices=PEERS, help=argparse.SUPPRESS)
    parser.add_argument("--scratch", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    corpus = args.corpus.resolve()
    if args.inside:
        result = measure(args.inside, corpus, args.scratch, args.column, args.threshold, args.limit_docs)
        print(json.dumps(result))
        return
    for peer in args.peers.split(","):
        options = {"limit": args.limit_docs, "threshold": args.threshold, "column": args.column}
        print(json.dumps(run_peer(peer, corpus, cache=args.cache, **options)), flush=True)


if __name__ == "__main__":
    main()
