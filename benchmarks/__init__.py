"""Speed as ratios measured side by side in one run, power as studies that go on after a kill; never part of the tests."""

from pathlib import Path

RESULTS = Path(__file__).parent / "results"
