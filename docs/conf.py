"""How Sphinx makes the site: python -m sphinx -W --keep-going -b html docs build/docs

Pages are Markdown (MyST). Generated anew at each build, and ignored by git: reference/api (a page for each public name,
from its docstring) and reference/commands (a page for each command, from its flags). Nothing is fetched.
"""

import shutil
import sys
from pathlib import Path

DOCS = Path(__file__).parent
sys.path[:0] = [str(DOCS.parent), str(DOCS)]

import neardup_gpu  # noqa: E402

project = "neardup_gpu"
author = "the authors of neardup_gpu"
copyright = "the authors of neardup_gpu, Apache-2.0"
release = version = neardup_gpu.__version__

extensions = [
    "myst_parser",
    "sphinx_design",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
    "commands",  # these four lie beside this file
    "docstrings",
    "formulas",
    "names",
]
root_doc = "index"
exclude_patterns = ["_build"]
templates_path = ["_templates"]
default_role = "py:obj"  # what docstrings have in single backquotes

myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 4

autosummary_imported_members = True  # theory and hamming are each several files
autodoc_typehints = "none"  # docstrings say types in words, with shapes and units
autodoc_member_order = "bysource"
napoleon_numpy_docstring = True
napoleon_google_docstring = False
napoleon_use_rtype = False
add_module_names = False

html_theme = "pydata_sphinx_theme"
html_title = f"neardup_gpu {release}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_math_renderer = "mathml"
html_theme_options = {
    "navbar_align": "left",
    "show_toc_level": 2,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}


shutil.rmtree(DOCS / "reference" / "api", ignore_errors=True)  # also pages of names that are no more
