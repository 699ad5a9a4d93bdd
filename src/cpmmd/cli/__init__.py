"""The command line: ``cpmmd``, also ``python -m cpmmd``. Needs the extra ``cli``."""

from cpmmd.cli.main import main

__all__ = ["main"]
