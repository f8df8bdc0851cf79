"""Words for people: the command line."""

from .process import main as main, run as run
