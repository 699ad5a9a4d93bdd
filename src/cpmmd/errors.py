"""Errors and warnings. Each message says the rule, then what came, then what to do."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class CpmmdError(Exception):
    """Base of every error this package raises on purpose."""


class InputError(CpmmdError, ValueError):
    """Data or a parameter breaks a rule."""


class UnknownNameError(CpmmdError, ValueError):
    """A method, kernel family or option name is not known."""


class MissingExtraError(CpmmdError, ImportError):
    """An optional dependency is needed and not installed."""


class CpmmdWarning(UserWarning):
    """Base of every warning this package issues."""


class DegenerateKernelWarning(CpmmdWarning):
    """A selected kernel sees all rows as equal, or each as unlike any other."""


def unknown_name(what: str, got: object, known: Iterable[str]) -> UnknownNameError:
    """Error for a misspelt name, with its nearest match."""
    names = sorted(known)
    near = difflib.get_close_matches(str(got), names, n=1)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    return UnknownNameError(f"Unknown {what} {got!r}.{hint} Known: {', '.join(names)}.")


def listed(names: Iterable[str], most: int = 8) -> str:
    """Name a few things in a message: quoted, long ones cut, and how many more there are."""
    every = list(names)
    shown = ", ".join(repr(name if len(name) <= 40 else name[:37] + "...") for name in every[:most])
    return shown + (f" and {len(every) - most} more" if len(every) > most else "")


def missing_extra(feature: str, package: str, extra: str) -> MissingExtraError:
    """Error for an absent optional package, with the command that installs it."""
    return MissingExtraError(
        f"{feature} needs the package '{package}', which is not installed. Install it with: pip install 'cpmmd[{extra}]'"
    )
