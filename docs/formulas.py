"""Formulas as MathML, by docutils: browsers draw it themselves, so that a page needs neither a script nor a network."""

import re

from docutils import nodes
from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.util import logging


def setup(app):
    app.add_html_math_renderer("mathml", (_inline, None), (_block, None))


def _inline(self, node):
    self.body.append(_mathml(node, as_block=False))
    raise nodes.SkipNode


def _block(self, node):
    self.body.append(f'<div class="formula">{_mathml(node, as_block=True)}</div>')
    raise nodes.SkipNode


def _mathml(node, as_block):
    tex = re.sub(r"\\dots(?![a-z])", r"\\ldots", node.astext())
    try:
        # As operators, bars would stand apart from what they enclose.
        return tex2mathml(tex, as_block=as_block).replace('<mo stretchy="false">|</mo>', "<mi>|</mi>")
    except MathError as error:
        logging.getLogger(__name__).warning("formula %s: %s", tex, error, location=node)
        return ""
