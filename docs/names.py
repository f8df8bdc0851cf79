"""Names of the package in backquotes, such as `neardup_gpu.theory.inverse`, lead to their places in the reference."""

import re

from docutils import nodes
from sphinx.addnodes import pending_xref

NAME = re.compile(r"neardup_gpu(\.\w+)+")


def setup(app):
    app.connect("doctree-read", link)
    return {"parallel_read_safe": True}


def link(app, doctree):
    for literal in list(doctree.findall(nodes.literal)):
        name = literal.astext()
        if NAME.fullmatch(name) and not isinstance(literal.parent, nodes.reference | pending_xref | nodes.title):
            target = {"refdomain": "py", "reftype": "obj", "reftarget": name, "refexplicit": True}
            literal.replace_self(pending_xref("", literal.deepcopy(), **target))
