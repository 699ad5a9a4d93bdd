"""How the package was installed, so that a hint to install an extra can be typed as it stands."""

from __future__ import annotations

import json
import shlex
from functools import cache
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from urllib.parse import unquote, urlparse

from cpmmd.errors import MissingExtraError

CONSTRAINTS = "constraints.txt"


@cache
def _origin() -> Path | None:
    """Return the folder or wheel that the package was installed from; None where it came from an index."""
    try:
        text = distribution("cpmmd").read_text("direct_url.json")
        url = urlparse(json.loads(text)["url"]) if text else None
    except (PackageNotFoundError, ValueError, KeyError):
        return None
    return Path(unquote(url.path)) if url is not None and url.scheme == "file" else None


def install_command(extra: str) -> str:
    """Return the command that adds an extra to this installation."""
    origin = _origin()
    if origin is None or not origin.exists():
        return f"pip install 'cpmmd[{extra}]'"
    constraints = origin / CONSTRAINTS
    pinned = f"-c {shlex.quote(str(constraints))} " if constraints.exists() else ""
    editable = "-e " if origin.is_dir() else ""
    return f"pip install {pinned}{editable}{shlex.quote(f'{origin}[{extra}]')}"


def missing_extra(feature: str, package: str, extra: str) -> MissingExtraError:
    """Return the error for an absent optional package, with the command that installs it."""
    return MissingExtraError(
        "{feature} needs the package '{package}', which is not installed. Install it with: {command}",
        feature=feature,
        package=package,
        command=install_command(extra),
    )
