"""What the library returns: an outcome that explains itself, writes its report and shows itself in a notebook."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from typing import Any

from cpmmd.errors import InputError
from cpmmd.explain.differences import SAMPLES
from cpmmd.explain.explanation import explain
from cpmmd.explain.values import Explanation
from cpmmd.procedures.outcome import TestOutcome
from cpmmd.report.notebook import notebook_html
from cpmmd.report.render import report


@dataclass(frozen=True, eq=False, repr=False)
class TestResult(TestOutcome):
    __doc__ = TestOutcome.__doc__

    _explanations: dict[tuple[Any, ...], Explanation] = field(default_factory=dict, init=False)

    @classmethod
    def of(cls, outcome: TestOutcome, **more: Any) -> TestResult:
        """Return an outcome as a result, some of its fields set.

        Parameters
        ----------
        outcome : TestOutcome
            What a procedure found.
        **more : object
            Fields to set, such as ``seed``.

        Returns
        -------
        TestResult
            With the fields of the outcome.
        """
        given = {one.name: getattr(outcome, one.name) for one in fields(TestOutcome)}
        return cls(**{**given, **more})

    def explain(self, *, max_rows: int = 2000, top: int = 5, rng: Any = 0, names: Sequence[str] = SAMPLES) -> Explanation:
        """Return where the samples differ: columns, pairs of columns, rows; asked again, the answer is the same object.

        Parameters
        ----------
        max_rows, top, rng, names
            As for :func:`cpmmd.explain.explain`.

        Returns
        -------
        Explanation
            With ``sentence``, ``columns``, ``pairs``, ``effect``, ...; print it for a summary.

        Examples
        --------
        >>> import numpy as np
        >>> from cpmmd import two_sample_test
        >>> data = np.random.default_rng(0)
        >>> result = two_sample_test(data.normal(size=(40, 2)), data.normal(size=(40, 2)) + [0, 2], rng=0)
        >>> result.explain(max_rows=60).columns[0].name
        '1'
        """
        options: dict[str, Any] = {"max_rows": max_rows, "top": top, "rng": rng, "names": names}
        key = (max_rows, top, rng, tuple(names))
        if not isinstance(rng, int):
            return explain(self, **options)
        if key not in self._explanations:
            self._explanations[key] = explain(self, **options)
        return self._explanations[key]

    def report(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        rows: bool = True,
        command: str | None = None,
        title: str | None = None,
        explanation: Explanation | None = None,
        explain: bool = True,
        names: Sequence[str] = SAMPLES,
    ) -> str:
        """Return a report for a colleague, and write it when a path is given.

        Parameters
        ----------
        path : str or Path, optional
            Ends in .html (one file that needs nothing else), .md or .json; without one the HTML text is only returned.
        rows : bool
            Whether the values of the rows that speak most for the difference may appear.
        command : str, optional
            The shell command that gave the result, for the reader who wants to repeat it.
        title : str, optional
            What was compared.
        explanation : Explanation, optional
            What :meth:`explain` returned; computed when None.
        explain : bool
            False leaves out where the samples differ.
        names : sequence of str
            What the two samples are called; an explanation has its own.

        Returns
        -------
        str
            The text of the report.

        Examples
        --------
        >>> import numpy as np
        >>> from cpmmd import two_sample_test
        >>> data = np.random.default_rng(0)
        >>> result = two_sample_test(data.normal(size=(30, 2)), data.normal(2, 1, size=(30, 2)), rng=0)
        >>> result.report(title="Before and after", explain=False).startswith("<!doctype html>")
        True
        """
        chosen = (explanation or self.try_explain(names)) if explain else None
        return report(self, path, rows=rows, command=command, title=title, explanation=chosen, names=names)

    def try_explain(self, names: Sequence[str] = SAMPLES) -> Explanation | None:
        """Return the explanation; None where the data are not at hand or cannot be explained.

        Parameters
        ----------
        names : sequence of str
            What the two samples are called in words.

        Returns
        -------
        Explanation or None
            As :meth:`explain` returns it.
        """
        if self.evidence is None:
            return None
        try:
            return self.explain(names=names)
        except InputError:  # a kernel or sample that cannot be explained: who asks does without
            return None

    def _repr_html_(self) -> str:
        """Verdict, where and a small picture, for a notebook; from the same content as the report."""
        return notebook_html(self, self.try_explain())
