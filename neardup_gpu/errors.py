"""What can go wrong, as one tree.

NeardupError
├── InputError                a document source cannot be used: a file, a column, a line, an id
├── OutputError               the result cannot be written where it was asked for
├── ParameterError            a setting is impossible: a threshold of 1.5
├── RecipeMismatchError       artefacts made by different recipes were brought together
└── BackendUnavailableError   the backend that was asked for by name does not run here

Every message is one line: it names the file, column or value and says what to do next. The command line prints it and
exits with status 2.
"""


class NeardupError(Exception):
    """Root of every error that this package raises on purpose."""


class InputError(NeardupError, ValueError):
    """A document source cannot be used as asked."""


class OutputError(NeardupError, OSError):
    """A result cannot be written where it was asked for."""


class ParameterError(NeardupError, ValueError):
    """A setting is outside its range or contradicts another."""


class RecipeMismatchError(NeardupError, ValueError):
    """Artefacts of different recipes cannot be combined."""


class BackendUnavailableError(NeardupError, RuntimeError):
    """A backend that was asked for by name cannot run on this machine."""
