"""Settings of Sphinx for the documentation site."""

from tiebench import __version__

project = "TieBench"
author = "The TieBench authors"
copyright = "the TieBench authors, MIT licence"
version = release = __version__

extensions = [
    "myst_parser",
    "sphinx_copybutton",
    "workflow.documentation.formulas",
    "workflow.documentation.source_links",
]
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 4
nitpicky = True
# Annotations name types of other libraries, and aliases that have no page.
nitpick_ignore_regex = [("py:class", ".*")]
smartquotes = False  # quotation marks of code are kept
highlight_language = "shell"  # of blocks that name none: commands
copybutton_exclude = ".linenos, .gp, .go"
toc_object_entries = False
python_maximum_signature_line_length = 88
add_module_names = False

html_theme = "pydata_sphinx_theme"
html_title = "TieBench"
html_context = {"default_mode": "auto"}
html_static_path = [
    "static",
    *(f"../../reporting/assets/{name}" for name in ("sorting.js", "figures.js", "figures.css", "tables.css")),
]
html_css_files = ["site.css"]
html_favicon = "static/favicon.svg"
html_copy_source = False
html_show_sourcelink = False
html_last_updated_fmt = None
html_sidebars: dict[str, list[str]] = {"index": [], "quick-start": [], "faq": [], "leaderboards/*": []}
html_theme_options = {
    "logo": {"text": f"TieBench {version}"},
    "header_links_before_dropdown": 8,  # About and Development under "More"
    "navbar_align": "left",
    "navbar_end": ["theme-switcher"],
    "navigation_with_keys": False,
    "show_nav_level": 1,
    "show_toc_level": 2,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "back_to_top_button": False,
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}


def setup(app):
    """Called by Sphinx."""
    app.connect("html-page-context", _add_leaderboard_files)


def _add_leaderboard_files(app, page, template, context, tree):
    """Style and scripts of the pages of leaderboards, which no other page loads."""
    if page.startswith("leaderboards/"):
        for name in ("tables.css", "figures.css", "leaderboards.css"):
            app.add_css_file(name)
        for name in ("sorting.js", "figures.js", *["comparison.js"] * page.endswith("-compare")):
            app.add_js_file(name, loading_method="defer")
