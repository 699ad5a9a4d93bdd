"""How the package was installed, so that a hint to install an extra can be typed as it stands."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Iterable
from functools import cache
from importlib.metadata import PackageNotFoundError, distribution
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import unquote, urlparse

from cpmmd.errors import MissingExtraError

CONSTRAINTS = "constraints.txt"


@cache
def _origin() -> tuple[Path | None, bool]:
    """Return the folder or wheel that the package was installed from (None where it came from an index), and whether editable."""
    try:
        described = json.loads(distribution("cpmmd").read_text("direct_url.json") or '{"url": ""}')
        url, editable = urlparse(described["url"]), bool(described.get("dir_info", {}).get("editable"))
    except (PackageNotFoundError, ValueError, KeyError):
        return None, False
    return (Path(unquote(url.path)), editable) if url.scheme == "file" else (None, False)


def install_command(extra: str) -> str:
    """Return the command that adds an extra to this installation, by the interpreter that runs it."""
    pip = f"{shlex.quote(sys.executable)} -m pip install" if sys.executable else "pip install"
    origin, editable = _origin()
    if origin is None or not origin.exists():
        return f"{pip} 'cpmmd[{extra}]'"
    constraints = origin / CONSTRAINTS
    pinned = f"-c {shlex.quote(str(constraints))} " if constraints.exists() else ""
    return f"{pip} {pinned}{'-e ' * editable}{shlex.quote(f'{origin}[{extra}]')}"


def missing_extra(feature: str, package: str, extra: str) -> MissingExtraError:
    """Return the error for an absent optional package, with the command that installs it."""
    return MissingExtraError(
        "{feature} needs the package '{package}', which is not installed. Install it with: {command}",
        feature=feature,
        package=package,
        command=install_command(extra),
    )


def require(feature: str, packages: Iterable[str], extra: str) -> None:
    """Refuse a feature before the work is done, where a package that it needs at the end is not installed."""
    for package in packages:
        if find_spec(package) is None:
            raise missing_extra(feature, package, extra)
