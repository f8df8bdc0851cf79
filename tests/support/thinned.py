"""Parameters of which some are run by default and all by ``pytest -m ''``."""

import pytest


def thinned(values, *default):
    """The values, those that are not in `default` marked as thorough."""
    return [value if value in default else pytest.param(value, marks=pytest.mark.thorough) for value in values]
