"""Flags made from settings: one for each field of the library's dataclasses. Also flags that several commands share.

A command names in its signature the settings that it takes. It is called with those that were given:

    ReadingFlags: Any = flags(DOCUMENTS, Reading)

    def command(*inputs: Inputs, reading: ReadingFlags = None):
        documents = open_documents(inputs, **given(reading))
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Container, Iterable
from typing import Annotated, Any, ClassVar, Literal, get_args, get_origin, get_type_hints

from cyclopts import Group, Parameter, Token

from ..documents.reading_options import Reading
from ..engine.settings import Engine
from ..errors import ParameterError
from ..records import dataclass
from ..settings import setting

DOCUMENTS, FINGERPRINTS, MATCHING, DECIDING, TABLES, OUTPUT, RUNNING, TASKS = (
    Group(title, sort_key=place)
    for place, title in enumerate(
        (
            "Documents",
            "Fingerprints",
            "What counts as a near-duplicate",
            "Who is kept",
            "Tables",
            "Output",
            "Running",
            "Running as tasks over files",
        )
    )
)

# ----------------------------------------------------------------------------------------------------- from a dataclass


NEGATION = "--no-"
"""How a flag begins that sets its field to False."""


class Given:
    """Settings that were given by flags, in the fields of a class of `flags`; None for a flag that was not given."""

    FLAGS: ClassVar[dict[str, str]] = {}
    """The flag of each field, which is a parameter of the library."""

    METHODS: ClassVar[dict[str, tuple[type, ...]]] = {}
    """The dataclasses of settings by method, if the flags are those of several methods. The first is the default."""


class _Unchecked:
    """Marks flags that pydantic is not to check: cyclopts asks it wherever it is imported, and it refuses None."""

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:
        from pydantic_core import core_schema

        return core_schema.any_schema()


def flags(heading: Group, *settings: type, without: Container[str] = ()) -> Any:
    """Return a dataclass of flags for dataclasses of settings; it annotates a parameter of a command.

    It has the fields of all classes, all optional. If several classes have a field, the first one describes it.

    Parameters
    ----------
    heading : Group
        Under which the help lists the flags.
    *settings : type
        Dataclasses whose fields were made by `setting`. A field whose flag is "" has none.
    without : collection of str, default ()
        Fields that the command does not take.

    Returns
    -------
    type
        The dataclass, annotated so that cyclopts takes its fields as flags.
    """
    return _annotated(heading, settings, without, {})


def method_flags(heading: Group, settings: dict[str, tuple[type, ...]], without: Container[str] = ()) -> Any:
    """Return `flags` for the settings of several methods, by method. The help shows those of one method."""
    return _annotated(heading, [kind for kinds in settings.values() for kind in kinds], without, settings)


def _annotated(
    heading: Group, settings: Iterable[type], without: Container[str], methods: dict[str, tuple[type, ...]]
) -> Any:
    made: dict[str, Any] = {}
    names: dict[str, str] = {}
    for each in dict.fromkeys(settings):
        hints = get_type_hints(each)
        for field in dataclasses.fields(each):
            name = field.name
            if field.metadata["flag"] == "" or name in without or name in made:
                continue
            kind, converter = _kind(hints[name])
            words = words_of(field)
            names[name] = words[0]
            may_be_negated = hints[name] == bool | None and not words[0].startswith(NEGATION)
            parameter = Parameter(
                name=words,
                # No --no-html beside --html.
                negative=f"{NEGATION}{words[0].removeprefix('--')}" if may_be_negated else (),
                allow_leading_hyphen=True,  # of values, such as -1
                allow_repeating=True,  # the last one counts
                json_dict=False,
                json_list=False,
                help=field.metadata["help"],
                metavar=field.metadata.get("metavar"),
                show_default=default_of(field) or False,
                converter=converter,
                group=heading,
            )
            made[name] = Annotated[kind | None, _Unchecked(), parameter]
    namespace = {"__annotations__": made, "__module__": __name__, "FLAGS": names, "METHODS": methods}
    gathered: Any = type("Flags", (Given,), namespace | dict.fromkeys(made))
    made_class = dataclass(kw_only=True, repr=False, eq=False)(gathered)
    return Annotated[made_class, Parameter(name="*", group=heading), _Unchecked()]


def words_of(field: dataclasses.Field[Any]) -> list[str]:
    """Return the flags of a setting, the long one first."""
    return (field.metadata.get("flag") or f"--{field.name.replace('_', '-')}").split()


def default_of(field: dataclasses.Field[Any]) -> str:
    """Return the default of a setting as the help shows it; "" if the help shows none."""
    default = "" if field.default is None or isinstance(field.default, bool) else field.default
    return str(field.metadata.get("shown") or default)


def flags_of(command: Callable[..., Any]) -> list[type[Given]]:
    """Return the classes of flags that a command takes."""
    kinds = [(get_args(hint) or (hint,))[0] for hint in get_type_hints(command, include_extras=True).values()]
    return [kind for kind in kinds if isinstance(kind, type) and issubclass(kind, Given)]


def _kind(hint: Any) -> tuple[Any, Any]:
    """The type of a flag for a field of this type, and what converts its words."""
    kinds = (hint,) if get_origin(hint) is Literal else get_args(hint) or (hint,)
    # The setting refuses words that are not among its choices, in its own line.
    kinds = tuple(type(get_args(kind)[0]) if get_origin(kind) is Literal else kind for kind in kinds)
    if bool in kinds:
        return (bool, None) if {*kinds} <= {bool, type(None)} else (str, _true_or_word)
    if any(get_args(kind) for kind in kinds):  # a sequence
        return list[str], _texts
    if str in kinds or Any in kinds:
        return str, text
    return (float, _number) if float in kinds else (int, _whole)


def text(_: type, tokens: list[Token]) -> str:
    """A word as it is; cyclopts would read "none" as no word."""
    return _word(tokens[-1])


_HYPHEN = "\0-"
"""Stands for a word that is a hyphen alone, which cyclopts would take for a flag."""


def _word(token: Token) -> str:
    return "-" if token.value == _HYPHEN else token.value


_ALONE = "true"
"""The value of a flag that stands without the word that it may have."""

MAY_HAVE = {"--html": "tree", "--against-html": "tree"}
"""Flags that an optional word may follow, and that word."""


def with_values(words: list[str]) -> list[str]:
    """Return the words of a command as cyclopts takes them.

    Each flag of `MAY_HAVE` gets a value, so that no other word is taken for its value. A hyphen alone is not a flag.

    >>> with_values(["--html", "page.html", "--html", "tree"])
    ['--html=true', 'page.html', '--html=tree']
    """
    given, i = list(words), 0
    while i < len(given) and given[i] != "--":
        word = MAY_HAVE.get(given[i])
        if word is not None:
            follows = given[i + 1 : i + 2] == [word]
            given[i : i + 1 + follows] = [f"{given[i]}={word if follows else _ALONE}"]
        elif given[i] == "-":
            given[i] = _HYPHEN
        i += 1
    return given


def _true_or_word(_: type, tokens: list[Token]) -> bool | str:
    flag, word = tokens[-1].keyword or "", tokens[-1].value
    flag = f"--{flag[1:-1]}" if flag.startswith("[") else flag  # from a file of options
    if word not in (_ALONE, MAY_HAVE.get(flag)):
        raise ValueError(f"invalid value {word!r}; use {flag} or {flag} {MAY_HAVE.get(flag)}")
    return True if word == _ALONE else word


def _texts(_: type, tokens: list[Token]) -> list[str]:
    return [_word(token) for token in tokens]


def _whole(_: type, tokens: list[Token]) -> int:
    try:
        return int(tokens[-1].value)
    except ValueError:
        raise ValueError(f"{tokens[-1].value!r} is not a whole number") from None


def _number(_: type, tokens: list[Token]) -> float:
    try:
        return float(tokens[-1].value)
    except ValueError:
        raise ValueError(f"{tokens[-1].value!r} is not a number") from None


def given(*values: Given | None, of: type | None = None) -> dict[str, Any]:
    """Return the settings that were given by flags, by the names of their fields.

    A flag of `NEGATION` gives False, as `--no-header` does for `header`, but True for a field that is called so itself,
    as `no_text` is.

    Parameters
    ----------
    *values : Given or None
    of : type, default None
        A dataclass of settings. If given, only its fields are returned.
    """
    names = None if of is None else {each.name for each in dataclasses.fields(of)}
    fields: dict[str, Any] = {}
    for each in filter(None, values):
        for name, value in vars(each).items():
            if value is not None and (names is None or name in names):
                is_negated = each.FLAGS[name].startswith(NEGATION) and not name.startswith("no_")
                fields[name] = not value if is_negated else value
    return fields


def refuse_others(chosen: str, values: Given | None) -> None:
    """Refuse flags of methods that the chosen method does not have.

    Parameters
    ----------
    chosen : str
        A name in `METHODS` of the values.
    values : Given or None
        The settings that were given, by flags of `method_flags`.
    """
    for name in given(values):
        assert values is not None
        having = {
            method
            for method, kinds in values.METHODS.items()
            for kind in kinds
            if any(field.name == name and field.metadata.get("flag") != "" for field in dataclasses.fields(kind))
        }
        if chosen not in having:
            others = [method for method in values.METHODS if method in having]
            listed = " or ".join(filter(None, [", ".join(others[:-1]), others[-1]]))
            reasons = (getattr(kind, "refused", {}).get(name) for kind in values.METHODS[chosen])
            reason = next((f": {reason}" for reason in reasons if reason), "")
            raise ParameterError(f"{values.FLAGS[name]} is for --method {listed}; leave it out{reason}")


# ---------------------------------------------------------------------------------------------- what several have alike


def argument(name: str, help: str, *, required: bool = True) -> Parameter:
    """An argument without a flag: its name in the help, and one sentence."""
    return Parameter(name=name, help=help, required=required, converter=text, allow_leading_hyphen=False)


Inputs = Annotated[
    str,
    argument(
        "INPUT",
        "Parquet, JSON lines, CSV, TSV, text or HTML (also .gz, .zst, .bz2, .xz), Arrow IPC, WARC (.gz); or a folder, "
        "a glob or a URI of such files.",
    ),
]


@dataclass(frozen=True, kw_only=True)
class Json:
    """How a result is printed."""

    json: bool = setting(False, "Print one line of JSON, for machines.")


@dataclass(frozen=True, kw_only=True)
class Output:
    """The file to write, and the way to print it."""

    output: str | None = setting(None, "File to write.", metavar="FILE", flag="--output -o")
    overwrite: bool = setting(False, "Replace an existing output.")
    json: bool = setting(False, "Print one line of JSON, for machines.")
    quiet: bool = setting(False, "Print no progress and no summary.", flag="--quiet -q")
    log_json: bool = setting(False, "Print progress and messages on stderr as JSON, one object per line.")


@dataclass(frozen=True, kw_only=True)
class PairsFile(Output):
    """The file of pairs to write."""

    output: str = setting("pairs.parquet", "File to write the pairs to.", metavar="FILE", flag="--output -o")


@dataclass(frozen=True, kw_only=True)
class MatchesFile(Output):
    """The file of matches to write."""

    output: str | None = setting(
        None, "Parquet file to write the matches to.", metavar="FILE", flag="--output -o", shown="print them"
    )


@dataclass(frozen=True, kw_only=True)
class SearchBound:
    """A limit on the memory of a search."""

    memory: str | None = setting(
        None, "Memory of this process, such as 2GB. A search that needs more works on files.", metavar="SIZE"
    )


ReadingFlags: Any = flags(DOCUMENTS, Reading)
JsonFlags: Any = flags(OUTPUT, Json)
PairsFlags: Any = flags(OUTPUT, PairsFile)
EngineFlags: Any = flags(RUNNING, Engine, without=("temp_dir", "max_comparisons"))
SearchFlags: Any = flags(RUNNING, Engine, SearchBound, without=("max_comparisons",))
