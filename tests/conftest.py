"""What several test files need."""

import logging
import os
import sys
from functools import cache
from pathlib import Path

import pytest

pytest.register_assert_rewrite("agreement")

SIMULATED = os.environ.get("NUMBA_ENABLE_CUDASIM", "0") not in ("", "0")


def pytest_configure(config):
    config.addinivalue_line("markers", "launches: launches kernels, on an NVIDIA GPU or in Numba's simulator")
    named = config.args_source is pytest.Config.ArgsSource.ARGS or config.option.keyword
    if named and not any(word.startswith("-m") for word in config.invocation_params.args):
        config.option.markexpr = ""  # `-m quick` of pyproject.toml is for `pytest` alone
    if SIMULATED:  # on a device integers wrap, which NumPy's scalars do with a warning
        config.addinivalue_line("filterwarnings", "ignore:overflow encountered:RuntimeWarning")


def pytest_ignore_collect(collection_path, config):
    """Skip files without quick tests when only quick tests run: importing all files takes longer than those tests."""
    if config.option.markexpr == "quick" and collection_path.suffix == ".py":
        return "mark.quick" not in collection_path.read_text() or None
    return None


@cache
def why_no_device():
    """Why no GPU can be used here; None if one can."""
    try:
        import cupy
        import numba_cuda  # noqa: F401
    except ModuleNotFoundError as missing:
        return f"{missing.name} is not installed"
    try:
        return None if cupy.cuda.runtime.getDeviceCount() else "no GPU"
    except cupy.cuda.runtime.CUDARuntimeError as error:
        return str(error)


def pytest_collection_modifyitems(items):
    for item in items:
        if item.get_closest_marker("gpu") and (SIMULATED or why_no_device()):
            reason = "the simulator is on" if SIMULATED else why_no_device()
            item.add_marker(pytest.mark.skip(reason=f"needs an NVIDIA GPU: {reason}"))
        if item.get_closest_marker("launches") and not SIMULATED and why_no_device():
            reason = f"no GPU ({why_no_device()}); to run it in Numba's simulator set NUMBA_ENABLE_CUDASIM=1"
            item.add_marker(pytest.mark.skip(reason=reason))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    """Fail a `quick` test that lacks a package, so that README's test command never skips silently."""
    report = yield
    if report.skipped and "could not import" in str(call.excinfo.value) and item.get_closest_marker("quick"):
        report.outcome, report.longrepr = "failed", f"{call.excinfo.value}; README's command does not install it"
    return report


@pytest.fixture(scope="session")
def corpora() -> Path:
    """The folder of real corpora; tests that need it skip where NEARDUP_CORPORA does not name one."""
    folder = os.environ.get("NEARDUP_CORPORA")
    if not folder:
        pytest.skip("NEARDUP_CORPORA does not name the folder of the corpora")
    return Path(folder)


@pytest.fixture
def ray_here(monkeypatch):
    """Ray on this machine, with two processors."""
    ray = pytest.importorskip("ray")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))  # of Ray's processes
    ray.init("local", num_cpus=2, include_dashboard=False, logging_level=logging.ERROR, log_to_driver=False)
    yield
    ray.shutdown()
