"""The pytest fixture ``same_as_reference``: data compared with a file that an earlier run wrote.

Loaded by pytest where cpmmd is installed; imports nothing of cpmmd before a test asks for the fixture.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

FOLDER = "references"  # beside the test file


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option that writes references."""
    group = parser.getgroup("cpmmd")
    group.addoption("--update-references", action="store_true", help="write references instead of testing")


@pytest.fixture
def same_as_reference(request: pytest.FixtureRequest) -> Callable[..., None]:
    """Return a function of data that fails unless they have the distribution of the reference kept for this test.

    ``same_as_reference(data, name=None, **options)`` passes options to :func:`cpmmd.testing.assert_same_distribution`; ``name``
    distinguishes several references of one test. ``pytest --update-references`` writes them into ``references/`` beside the test.
    """

    def check(data: Any, name: str | None = None, **options: Any) -> None:
        __tracebackhide__ = True
        from cpmmd.testing import assert_same_distribution, read_reference, write_reference

        called = request.node.name if name is None else f"{request.node.name}-{name}"
        file = "".join(letter if letter.isalnum() or letter in "-_." else "_" for letter in called)
        path = Path(request.node.path).parent / FOLDER / file
        if request.config.getoption("--update-references"):
            write_reference(data, path)
            return
        reference = read_reference(path)
        if reference is None:
            pytest.fail(f"There is no reference for {called}. Write it with: pytest --update-references {request.node.nodeid}")
        assert_same_distribution(data, reference, **{"names": ("the reference", called), **options})

    return check
