"""The commands of `neardup`. Each command is loaded when it is called."""

from __future__ import annotations

from cyclopts import App

from ..errors import NeardupError
from .console import say_json

app = App(
    name="neardup",
    help="Find near-duplicate documents: which are alike, how much, which one is kept, and why the others are removed.",
    help_format="plaintext",
    version_flags=(),
    suppress_keyboard_interrupt=False,
)
for name in (
    *(
        "dedup",
        "audit",
        "contaminated",
        "substrings",
        "passages",
        "sketch",
        "pairs",
        "clusters",
        "explain",
        "report",
        "compare",
        "curve",
        "plan",
        "info",
    ),
    *("demo", "doctor", "selftest"),
):
    app.command(f"{__package__}.{name}:{name}", name=name)
app.command(f"{__package__}.hamming:app", name="hamming")
app.command(f"{__package__}.index:app", name="index")
app.command(f"{__package__}.completion:install", name="--install-completion")


def run(words: list[str]) -> int:
    """Run the command that these words name.

    Parameters
    ----------
    words : list of str
        The arguments of the process, other than ``--version``.

    Returns
    -------
    int
        Exit status.

    Raises
    ------
    CycloptsError
        If they are not arguments of a command.
    NeardupError
        What the library raises; its message names flags instead of parameters.
    """
    from ..store.job_options import job_options
    from .config import described, parsed
    from .options import with_values

    words = with_values(words)
    command, bound = parsed(app, words)
    if getattr(command, "__func__", None) is App.help_print:
        from .help import say_help

        say_help(app, bound.arguments["tokens"])
        return 0
    from ..engine.processors import check_environment

    token = job_options.set(described(app, words, bound))
    try:
        check_environment()
        return command(*bound.args, **bound.kwargs) or 0
    except NeardupError as error:
        from .errors import in_flags, names_of

        message = in_flags(str(error), names_of(command))
        if any(getattr(flags, "json", False) for flags in bound.kwargs.values()):
            say_json({"status": "failed", "error": message})
        again = type(error)(message)
        again.parameter, again.path, again.row = error.parameter, error.path, error.row
        raise again from error
    finally:
        job_options.reset(token)
