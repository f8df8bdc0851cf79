"""Which of these tests can run here: the simulator has no device code."""

from pathlib import Path

import numba
import pytest

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items):
    for item in items:
        if item.path.parent == HERE and item.path.stem != "test_simulated" and numba.config.ENABLE_CUDASIM:
            item.add_marker(pytest.mark.skip(reason="checks device code, which the simulator has none of"))
