"""A dataset of Ray Data as input: the same as the table of its rows, whoever holds its blocks, and one line if not."""

import logging
import os
import subprocess
import sys
import time
from functools import partial

import pyarrow as pa
import pytest
import troubled
from flat import flat
from grids import some
from in_parts import both, compare, in_tasks
from test_inputs import REFERENCE, TABLE

from neardup_gpu import Recipe, Workers, dedup
from neardup_gpu.documents.ray_data import RayDataset
from neardup_gpu.engine.tasks import TaskFailedError
from neardup_gpu.errors import InputError, OutputError, ResourceError

ray = pytest.importorskip("ray")
pytest.importorskip("ray.data")

OPTIONS = {"id_column": "id", "text_columns": "text", "recipe": Recipe(keep="date")}


@pytest.fixture(scope="module", autouse=True)
def two_processors():
    """A Ray instance of this process."""
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("PYTHONPATH", os.pathsep.join(sys.path))  # of Ray's processes
        ray.init("local", num_cpus=2, include_dashboard=False, logging_level=logging.ERROR, log_to_driver=False)
        ray.data.DataContext.get_current().enable_progress_bars = False
        try:
            yield
        finally:
            ray.shutdown()


def dataset(table=TABLE, number=7):
    """A table in blocks."""
    bounds = [len(table) * place // number for place in range(number + 1)]
    return ray.data.from_arrow([table[start:stop] for start, stop in zip(bounds, bounds[1:], strict=False)])


class Late:
    """A function of batches: the first one is done after others, however often it is computed."""

    def __call__(self, batch):
        if batch["id"][0].as_py() == "d0":
            time.sleep(0.5)
        return batch


def out_of_order():
    """A dataset whose first block is ready after others; two actors compute its blocks, and others write them."""
    return dataset().map_batches(Late, batch_format="pyarrow", batch_size=None, concurrency=2, num_cpus=0.5)


@pytest.mark.parametrize("kind", some(["blocks", "computed", "pandas"], ["blocks", "pandas"]))
def test_the_same_as_a_table(kind, tmp_path):
    table = TABLE
    match kind:
        case "blocks":
            source = dataset()
        case "computed":
            source = out_of_order()
        case "pandas":
            source = ray.data.from_pandas([TABLE[:40].to_pandas(), TABLE[40:].to_pandas()])
            table = pa.concat_tables(ray.get(source.to_arrow_refs()))  # whose strings are large
    flat(dedup, table, output=tmp_path / "table", engine="cpu", check=0, **OPTIONS)
    both(tmp_path, source, **OPTIONS)
    compare(tmp_path / "table", tmp_path / "tasks")
    assert not source.context.execution_options.preserve_order


def test_in_order_where_it_is_computed_while_it_is_written(tmp_path):
    flat(dedup, TABLE, output=tmp_path / "table", engine="cpu", check=0, **OPTIONS)
    in_tasks(tmp_path / "tasks", out_of_order(), **OPTIONS)
    compare(tmp_path / "table", tmp_path / "tasks")


def test_a_reference_set(tmp_path):
    result = both(tmp_path, dataset(), against=dataset(REFERENCE, 3), **OPTIONS)
    assert result.documents["in_reference"].to_pylist().count(True) > 3


def test_no_block_comes_here(tmp_path, monkeypatch):
    of_batches = pa.RecordBatchReader.from_batches
    monkeypatch.setattr(RayDataset, "to_reader", lambda self: of_batches(self.schema, _refused()))
    report = in_tasks(tmp_path / "out", dataset(), slice_bytes=800, **OPTIONS)
    assert report["tasks"]["slices"] > 7 and report["counts"]["documents"] == len(TABLE)


def _refused():
    raise AssertionError("rows are read in this process")
    yield


def test_small_blocks_are_a_slice_together(tmp_path):
    report = in_tasks(tmp_path / "out", dataset(number=35), slice_bytes=10_000, **OPTIONS)
    assert 1 < report["tasks"]["slices"] < 12
    assert len(list((tmp_path / "out" / "kept").iterdir())) == 35


class TestResumed:
    @pytest.fixture
    def begun(self, tmp_path, monkeypatch):
        """A folder in which a job failed in the middle."""
        with monkeypatch.context() as patch:
            troubled.trouble(patch.setattr, troubled.failing, tmp_path / "marks")
            (tmp_path / "marks" / "verify-1").touch()
            with pytest.raises(TaskFailedError):
                self.run(tmp_path, dataset())
        return tmp_path

    def run(self, folder, source):
        return troubled.run(folder, source=source, recipe=Recipe(keep="date"))

    def test_with_the_same_rows_in_the_same_blocks(self, begun):
        report = self.run(begun, dataset())
        assert report["tasks"]["resumed"] > 10
        flat(dedup, TABLE, output=begun / "table", engine="cpu", check=0, **OPTIONS)
        compare(begun / "table", begun / "out")
        assert not (begun / "work").exists()

    @pytest.mark.parametrize("what", ["rows", "blocks"])
    def test_with_others(self, begun, what):
        other = dataset(TABLE.slice(1)) if what == "rows" else dataset(number=3)
        with pytest.raises(OutputError, match="work of a job with another input; give what was given") as caught:
            self.run(begun, other)
        assert "\n" not in str(caught.value)
        assert self.run(begun, dataset())["tasks"]["resumed"] > 10


def broken(batch):
    raise ValueError("all\nthe time")


class TestErrors:
    def refused(self, kind, says, folder, source):
        """See that both jobs refuse a source in one line, and leave nothing."""
        for job in (dedup, partial(dedup, workers=Workers(work_dir=str(folder / "work"), number=1))):
            with pytest.raises(kind, match=says) as caught:
                flat(job, source, output=folder / "out", **OPTIONS)
            assert "\n" not in str(caught.value)
            assert not (folder / "out").exists()

    def test_of_its_functions(self, tmp_path):
        says = r"^input: the Ray dataset cannot be computed \(ValueError: all\); see that Dataset\.materialize\(\)"
        self.refused(InputError, says, tmp_path, dataset().map_batches(broken))
        some = dataset().map_batches(broken_later, batch_format="pyarrow", batch_size=None)
        assert some.schema() is not None
        self.refused(InputError, says, tmp_path, some)

    @pytest.mark.parametrize("other", [TABLE.drop_columns("date"), TABLE.rename_columns(["id", "text", "day"])])
    def test_of_columns(self, other, tmp_path):
        self.refused(
            InputError,
            r"^input: a block of the Ray dataset has columns \(id: string, text: .*\) unlike the first ones \(id: .*",
            tmp_path,
            ray.data.from_arrow([TABLE, other]),
        )

    def test_no_rows(self, tmp_path):
        report = in_tasks(tmp_path / "empty", dataset(TABLE[:0], 2), **OPTIONS)
        assert report["counts"]["documents"] == 0 and "the input holds no documents" in report["warnings"][0]
        self.refused(InputError, "no column 'text'; it has no columns", tmp_path, ray.data.from_items([]))

    def test_a_folder_that_nodes_of_ray_do_not_share(self, tmp_path, monkeypatch):
        stay = ray.data.Dataset.write_datasink
        monkeypatch.setattr(
            ray.data.Dataset, "write_datasink", lambda *given: [stay(*given), *map(os.unlink, _written(tmp_path))][0]
        )
        with pytest.raises(ResourceError, match=r"work/input: part-0.*arrows, which a node of Ray wrote, is not seen"):
            in_tasks(tmp_path / "out", dataset(), **OPTIONS)


def broken_later(batch):
    if batch["id"][0].as_py() != "d0":
        broken(batch)
    return batch


def _written(folder):
    return sorted(folder.glob("out.work/input/*.arrows"))[1:]


def test_ray_is_not_imported_for_other_inputs(tmp_path):
    code = (
        "import sys; sys.modules['ray'] = None; from neardup_gpu import Workers, dedup\n"
        "dedup({'text': ['to be', 'or not']}, output='memory')\n"
        "dedup({'text': ['to be', 'or not']}, output='out', workers=Workers(work_dir='work', number=1))\n"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=environment, check=True)
