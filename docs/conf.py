"""Configuration of the documentation site, which `make docs` builds: Sphinx, numpydoc and MyST.

The pages are the Markdown files of this folder. What is made of the package itself is written to `_generated` before they are read:
the reference of every public name (`reference.py`), the gallery of the examples (`gallery.py`), and a list of the decisions.
"""

from __future__ import annotations

import os
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parent
sys.path.insert(0, str(DOCS))

project = "tapegrad"
author = copyright = "The tapegrad developers"
extensions = ["myst_parser", "sphinx.ext.autodoc", "numpydoc"]
exclude_patterns = ["_build", "_static", "Thumbs.db"]
html_theme = "alabaster"
html_theme_options = {"description": "Exact derivatives for NumPy and Numba", "page_width": "1040px", "sidebar_width": "240px"}
html_sidebars = {"**": ["about.html", "searchfield.html", "navigation.html"]}
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sphinx = False
html_show_search_summary = False  # pages that are opened as files may not read each other
myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 4
suppress_warnings = ["myst.header"]  # pages may begin a level lower, as what they are included in asks for
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False
autodoc_default_options = {"members": False}
autodoc_typehints = "none"
default_role = "code"


def _generate(app: Any) -> None:
    gallery, reference = import_module("gallery"), import_module("reference")
    made = DOCS / "_generated"
    reference.write(made / "reference")
    gallery.write(made / "gallery", run=os.environ.get("TAPEGRAD_GALLERY", "1") != "0")
    decisions = sorted(path.name for path in (DOCS / "decisions").glob("0*.md"))
    listed = "\n".join(f"../decisions/{name.removesuffix('.md')}" for name in decisions)
    text = f"# Decisions\n\nWhat would be dear to change, with reasons.\n\n```{{toctree}}\n:maxdepth: 1\n\n{listed}\n```\n"
    index = made / "decisions.md"
    if not index.exists() or index.read_text(encoding="utf-8") != text:
        index.write_text(text, encoding="utf-8")


def setup(app: Any) -> None:
    """Let Sphinx make the pages that are made of the package before it reads any."""
    app.connect("builder-inited", _generate)
