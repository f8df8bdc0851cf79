"""What several test files need."""

import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def corpora() -> Path:
    """The folder of real corpora; tests that need it skip where NEARDUP_CORPORA does not name one."""
    folder = os.environ.get("NEARDUP_CORPORA")
    if not folder:
        pytest.skip("NEARDUP_CORPORA does not name the folder of the corpora")
    return Path(folder)
