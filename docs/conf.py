"""Sphinx configuration: `make docs` builds with warnings as errors."""

import os
import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1])]
os.environ.setdefault("OMP_NUM_THREADS", "1")

import generated_tables  # noqa: E402

project = "cpmmd"
author = "The cpmmd developers"
project_copyright = "The cpmmd developers"
extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "sphinx_gallery.gen_gallery",
    "sphinxcontrib.bibtex",
    "page_outputs",
]
exclude_patterns = ["_build", "examples/README.rst", "examples/*.py", "generated/*.md"]
html_theme = "furo"
html_title = "cpmmd"
html_static_path = ["_static"]
html_css_files = ["figures.css"]
html_extra_path: list[str] = []
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3
suppress_warnings = ["config.cache"]
bibtex_bibfiles = ["../src/cpmmd/citations.bib"]
bibtex_default_style = "plain"
autosummary_generate = True
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 88
numpydoc_class_members_toctree = False
numpydoc_show_class_members = False
nitpicky = False
sphinx_gallery_conf = {
    "examples_dirs": "examples",
    "gallery_dirs": "gallery",
    "filename_pattern": r"/plot_",
    "download_all_examples": False,
    "remove_config_comments": True,
    "abort_on_example_error": True,
    "min_reported_time": 1e9,
    "write_computation_times": False,  # its page would load scripts from elsewhere
    "capture_repr": (),
    "show_memory": False,
    "show_signature": False,
    "image_scrapers": ("matplotlib",),
    "plot_gallery": True,
}

generated_tables.write(Path(__file__).parent)
