"""``cpmmd methods`` and ``cpmmd schema``: what there is to choose from, and what comes out."""

from __future__ import annotations

from importlib.resources import files

import typer

from cpmmd.cli.output import say_json


def list_methods(*, as_json: bool) -> None:
    """Print every method with its line."""
    from cpmmd.api.two_sample import methods
    from cpmmd.registry import DEFAULT_METHOD

    known = methods()
    if as_json:
        say_json({"command": "methods", "default": DEFAULT_METHOD, "methods": known})
        return
    width = max(map(len, known))
    for name, summary in known.items():
        typer.echo(f"{name:<{width}}  {summary}")


def schema_text() -> str:
    """Return the published JSON schema."""
    return files("cpmmd").joinpath("schemas", "result.schema.json").read_text(encoding="utf-8")


def print_schema() -> None:
    """Print the published JSON schema."""
    typer.echo(schema_text().rstrip())
