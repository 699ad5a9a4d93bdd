"""Reports: one page, rendered as one self-contained HTML file, as Markdown or as JSON."""

from cpmmd.report.content import content
from cpmmd.report.render import render, report
from cpmmd.report.series import series_content, write_series

__all__ = ["content", "render", "report", "series_content", "write_series"]
