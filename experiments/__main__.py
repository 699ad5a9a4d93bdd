"""``python -m experiments list | run ID | all | compare [ID] | tally | verify [ID] | fetch NAME``."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections import Counter
from pathlib import Path

from cpmmd.errors import CpmmdError
from experiments import arithmetic
from experiments.base import RESULTS
from experiments.data import at_hand
from experiments.registry import MODULES, find

QUICK = RESULTS.with_name("results-quick")


def main(arguments: list[str] | None = None) -> int:
    """Run one command; give the exit code."""
    chosen = parser().parse_args(arguments)
    if chosen.command == "list":
        return list_all()
    if getattr(chosen, "data_dir", None) is not None:
        os.environ["CPMMD_DATA"] = str(chosen.data_dir)  # so that worker processes see it too
    if getattr(chosen, "quick", False):
        os.environ["CPMMD_OFFLINE"] = "1"
    try:
        if chosen.command == "compare":
            from experiments.page import compare

            return compare(chosen.id, results=chosen.results or RESULTS, write_docs=chosen.write_docs)
        if chosen.command == "tally":
            from experiments.page import tally

            return tally(chosen.results or RESULTS)
        if chosen.command == "verify":
            from experiments.verify import verify

            fresh = chosen.results or QUICK
            return verify(chosen.id, fresh=fresh, kept=RESULTS, other_processor=chosen.other_processor)
        if chosen.command == "fetch":
            print(fetch(chosen.name))
            return 0
        return run(chosen)
    except CpmmdError as error:
        print(f"experiments: {error}", file=sys.stderr)
        return 2


def parser() -> argparse.ArgumentParser:
    """Return the command line."""
    top = argparse.ArgumentParser(prog="python -m experiments", description=__doc__)
    commands = top.add_subparsers(dest="command", required=True)
    commands.add_parser("list", help="ids, the paper's artefacts, cells and repetitions")
    one = commands.add_parser("run", help="run one id, or go on where it stopped")
    one.add_argument("id")
    every = commands.add_parser("all", help="run every id, or go on")
    for command in (one, every):
        command.add_argument("--reps", type=int, help="repetitions (default: the paper's)")
        command.add_argument(
            "--resume", action=argparse.BooleanOptionalAction, default=True, help="go on where it stopped, or begin anew"
        )
        command.add_argument("--jobs", type=int, default=2, help="processes (default 2)")
        command.add_argument("--quick", action="store_true", help="one repetition of every cell, into results-quick")
        command.add_argument("--data-dir", type=Path, help="folder of the data sets (default: CPMMD_DATA, or ../shared/data)")
        command.add_argument("--results", type=Path, help="folder to write to")
    fetched = commands.add_parser("fetch", help="download one data set, checked, into the user's cache")
    fetched.add_argument("name", choices=("higgs", "cifar10", "tep", "cifar10.1-v4", "cifar10.1-v6"))
    compared = commands.add_parser("compare", help="ours beside the paper's, cell by cell")
    compared.add_argument("id", nargs="?")
    compared.add_argument("--results", type=Path)
    compared.add_argument("--write-docs", action="store_true", help="write summaries, figures and the pages made from them")
    counted = commands.add_parser("tally", help="how many printed numbers agree, as printed and at the best reading")
    counted.add_argument("--results", type=Path)
    verified = commands.add_parser("verify", help="whether repetitions run again are the committed ones")
    verified.add_argument("id", nargs="?")
    verified.add_argument("--results", type=Path, help="folder of the new run (default: that of --quick)")
    verified.add_argument(
        "--other-processor", action="store_true", help="trained networks may differ from the committed ones, but not to one side"
    )
    return top


def list_all() -> int:
    """Print every id."""
    for name in MODULES:
        one = find(name)
        print(f"{name:15} {one.artefact:29} {len(one.cells):3} cells x {one.repetitions:3}  {one.title}")
    return 0


def run(chosen: argparse.Namespace) -> int:
    """Run one id or all of them; a repetition that fails, for want of its data say, is told at the end of its id."""
    names = [chosen.id] if chosen.command == "run" else list(MODULES)
    results = chosen.results or (QUICK if chosen.quick else RESULTS)
    repetitions = chosen.reps if chosen.reps is not None else 1 if chosen.quick else None
    bad = 0
    for name in names:
        start = time.perf_counter()
        absent = [needed for needed in find(name).needs if chosen.quick and not at_hand(needed)]
        if absent:
            print(f"{name}: passed over, {absent[0]} is not at hand and a quick run downloads nothing", flush=True)
            continue
        if find(name).timed and arithmetic.fixed():
            bad += arithmetic.elsewhere_free(options_of(chosen, name))
            continue
        table = find(name).run(results, repetitions=repetitions, jobs=chosen.jobs, progress=show, resume=chosen.resume)
        bad += len(table.failures)
        print(f"{name}: {len(table.repetitions)} repetitions, {time.perf_counter() - start:.0f} s now, ", end="")
        print(f"{table.seconds:.0f} s of processor time in all, {len(table.failures)} failed; see {results / name}", flush=True)
        for error, count in Counter(one.error for one in table.failures).most_common(3):
            print(f"  {count} failed: {error}", file=sys.stderr)
    return 1 if bad else 0


def options_of(chosen: argparse.Namespace, name: str) -> list[str]:
    """Return the arguments that run one id as ``chosen`` does."""
    told = {"--reps": chosen.reps, "--data-dir": chosen.data_dir, "--results": chosen.results, "--jobs": chosen.jobs}
    given = [f"{option}={value}" for option, value in told.items() if value is not None]
    return ["run", name, "--resume" if chosen.resume else "--no-resume", *given, *(["--quick"] if chosen.quick else [])]


def fetch(name: str) -> Path:
    """Download one data set."""
    from experiments.data import sources

    return sources.fetch_cifar10_1(name[-2:]) if name.startswith("cifar10.1") else sources.fetch(name)


def show(name: str, done: int, total: int) -> None:
    """Print how far a study is."""
    if sys.stderr.isatty() or done % max(1, total // 20) == 0:
        print(f"\r{name}: {done} of {total}", end="" if sys.stderr.isatty() else "\n", file=sys.stderr, flush=True)


def begin() -> int:
    """Run the command line, what is not timed under the one arithmetic."""
    chosen = parser().parse_args()
    if chosen.command == "all" or (chosen.command == "run" and not is_timed(chosen.id)):
        arithmetic.start_again_fixed()
    return main()


def is_timed(name: str) -> bool:
    """Whether an id measures times."""
    return name in MODULES and find(name).timed


if __name__ == "__main__":
    sys.exit(begin())
