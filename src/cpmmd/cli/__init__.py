"""The command line: ``cpmmd``, also ``python -m cpmmd``. Needs the extra ``cli``."""

from __future__ import annotations

import gc
import sys

ERROR, INTERRUPTED = 2, 130  # 0 and 1 are answers


def main() -> None:
    """Run the command of this process's arguments and exit with its code."""
    gc.disable()
    try:
        try:
            from cpmmd.cli.app import app
        except ModuleNotFoundError as error:
            if error.name is None or error.name.split(".")[0] not in ("typer", "click", "rich"):
                raise
            print(
                f"cpmmd: the command line needs the package '{error.name}'. Install it with: pip install 'cpmmd[cli]'",
                file=sys.stderr,
            )
            sys.exit(ERROR)
        app(prog_name="cpmmd")
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    finally:
        gc.freeze()


def loaded() -> None:
    """Look for garbage from now on, but not among what imports have made: all of it stays.

    Searching that while importing, and once more at the end, took a fifth of a short command's time.
    """
    gc.freeze()
    gc.enable()
