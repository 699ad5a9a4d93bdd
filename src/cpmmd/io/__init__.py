"""Files to samples: tables of any common format, or a sentence that says what is wrong with the file."""

from cpmmd.io.files import FORMATS, ReadOptions, read_file, read_source
from cpmmd.io.samples import FileSample, Groups, by_groups, selected
from cpmmd.io.source import Source

__all__ = ["FORMATS", "FileSample", "Groups", "ReadOptions", "Source", "by_groups", "read_file", "read_source", "selected"]
