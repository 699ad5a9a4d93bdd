"""``python -m cpmmd``: the command line."""

from cpmmd.cli import main

if __name__ == "__main__":
    main()
