"""Formulas as MathML, by docutils: browsers draw it themselves, so that a page needs neither a script nor a network."""

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml


def setup(app):
    app.add_html_math_renderer("mathml", (_inline, None), (_block, None))


def _inline(self, node):
    self.body.append(tex2mathml(node.astext(), as_block=False))
    raise nodes.SkipNode


def _block(self, node):
    self.body.append(f'<div class="formula">{tex2mathml(node.astext(), as_block=True)}</div>')
    raise nodes.SkipNode
