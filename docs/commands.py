"""A page for each command of `neardup`, by cyclopts from the flags themselves."""

from dataclasses import fields
from pathlib import Path

from cyclopts import App
from cyclopts.docs.markdown import generate_markdown_docs

from neardup_gpu.cli.app import app
from neardup_gpu.cli.options import default_of, flags_of, words_of


def setup(sphinx):
    sphinx.connect("builder-inited", write_pages)


def write_pages(sphinx) -> None:
    """Write the page of each command, and remove pages of commands that are no more."""
    folder = Path(sphinx.srcdir, "reference", "commands")
    folder.mkdir(parents=True, exist_ok=True)
    pages = {folder / f"{name}.md": _page(name) for name in app if not name.startswith("-")}
    for old in set(folder.glob("*.md")) - set(pages):
        old.unlink()
    for path, text in pages.items():
        if not path.exists() or path.read_text() != text:  # Sphinx reads again what is younger
            path.write_text(text)


def _page(name: str) -> str:
    command = app[name]
    pages = [generate_markdown_docs(command, command_chain=["neardup", name], generate_toc=False)]
    for each in command:
        if not each.startswith("-"):
            pages += _methods(f"neardup {name} {each}", command[each])
    return "\n\n".join([*pages, *_methods(f"neardup {name}", command)])


def _methods(title: str, command: App) -> list[str]:
    """Return a section for each method of a command, with the options that only some methods have."""
    kinds = flags_of(command.default_command) if command.default_command else []
    kind = next((each for each in kinds if each.METHODS), None)
    sections = []
    for method, settings in {} if kind is None else kind.METHODS.items():
        lines = [f"## {title} --method {method}", ""]
        for field in (field for each in settings for field in fields(each)):
            if field.name in kind.FLAGS and field.metadata["flag"] != "":
                default = f" *[default: {default_of(field)}]*" if default_of(field) else ""
                lines.append(f"* `{', '.join(words_of(field))}`: {field.metadata['help']}{default}")
        sections.append("\n".join([*lines, "" if lines[2:] else "This method has no options of its own."]))
    return sections
