"""A page for each command of `neardup`, by cyclopts from the flags themselves."""

from pathlib import Path

from cyclopts.docs.markdown import generate_markdown_docs

from neardup_gpu.cli.app import app


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
    return generate_markdown_docs(app[name], command_chain=["neardup", name], generate_toc=False)
