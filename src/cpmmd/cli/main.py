"""Where a command begins and ends: exit codes, missing packages, garbage."""

from __future__ import annotations

import gc
import sys

ERROR, INTERRUPTED = 2, 130  # 0 and 1 are answers


def main() -> None:
    """Run the command of this process's arguments and exit with its code."""
    gc.disable()
    from cpmmd.cli.failures import open_streams

    open_streams()
    try:
        try:
            from cpmmd.cli.app import app
        except ModuleNotFoundError as error:
            if error.name is None or error.name.split(".")[0] not in ("typer", "click", "rich"):
                raise
            from cpmmd.core.installation import missing_extra

            print(f"cpmmd: {missing_extra('The command line', error.name, 'cli')}", file=sys.stderr)
            sys.exit(ERROR)
        app(prog_name="cpmmd")
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    finally:
        gc.freeze()


def collect_garbage_from_now_on() -> None:
    """Look for garbage from now on, but not among what imports have made: all of it stays.

    Searching that while importing, and once more at the end, took a fifth of a short command's time.
    """
    gc.freeze()
    gc.enable()
