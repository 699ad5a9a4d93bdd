"""Errors, warnings and notes: templates with fields, rendered in Python's words or in those of the command line.

Python's are ``missing='drop'`` and "sample x" (:class:`PythonWords`), the command line's are its flags and files. An error says
what is wrong, what was found and what to do, and carries the parameter, sample, row, column or file that it is about.
"""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import wraps
from typing import Any, Protocol, TypeVar

LONGEST_TYPED = 64  # characters of a name that are compared
CALLED = {  # parameters by their names in other packages and on the command line
    **dict.fromkeys(("seed", "random_state", "random_seed", "generator"), "rng"),
    **dict.fromkeys(("n_resamples", "permutations", "num_permutations", "n_perm"), "n_permutations"),
    **dict.fromkeys(("level", "significance_level"), "alpha"),
    **dict.fromkeys(("n_threads", "num_threads", "jobs", "workers"), "n_jobs"),
    **dict.fromkeys(("kernel", "test"), "method"),
    **dict.fromkeys(("clusters", "cluster", "group_by"), "groups"),
    **dict.fromkeys(("stratify", "stratum", "stratify_by"), "strata"),
    **dict.fromkeys(("paired", "pair", "pair_by"), "pairs"),
    "nan_policy": "missing",
}


@dataclass(frozen=True)
class ParameterReference:
    """A parameter that a sentence speaks of, with a value to give it where it names one."""

    name: str  #: the parameter
    value: object = None  #: what to set it to


@dataclass(frozen=True)
class Parameter:
    """The parameter that a sentence begins with."""

    name: str


@dataclass(frozen=True)
class SampleName:
    """A sample that a sentence speaks of, or begins with."""

    name: str
    begins: bool = False


class DeferredText:
    """A part of a sentence that depends on the words: ``text(words, *about)``.

    ``text`` is a function at module level, so that an error can travel between processes.
    """

    def __init__(self, text: Callable[..., str], *about: object) -> None:
        self._text, self._about = text, about

    def __call__(self, words: Words) -> str:
        """Return the text in someone's words."""
        return self._text(words, *self._about)


class Words(Protocol):
    """What Python or the command line calls things."""

    def setting(self, setting: ParameterReference) -> str:
        """Name a parameter, or how to set it."""

    def parameter(self, name: str) -> str:
        """Begin a sentence about a parameter."""

    def sample(self, name: str, *, begins: bool = False) -> str:
        """Name a sample, perhaps at the beginning of a sentence."""


class PythonWords:
    """Parameters are keyword arguments, samples are x and y."""

    def setting(self, setting: ParameterReference) -> str:
        """``missing='drop'``, or ``missing=...``."""
        return f"{setting.name}=..." if setting.value is None else f"{setting.name}={setting.value!r}"

    def parameter(self, name: str) -> str:
        """``The 'alpha' parameter``."""
        return f"The '{name}' parameter"

    def sample(self, name: str, *, begins: bool = False) -> str:
        """``sample x``, ``the batch``."""
        return f"{'Sample' if begins else 'sample'} {name}" if len(name) == 1 else f"{'The' if begins else 'the'} {name}"


Field = Any  # fills a template: a plain value, a ParameterReference, Parameter or SampleName, or a DeferredText


class Sentence:
    """A template and the fields that fill it."""

    template: str
    fields: Mapping[str, object]

    def render(self, words: Words) -> str:
        """Return the sentence in someone's words."""
        return _fill(self.template, self.fields, words)

    def __str__(self) -> str:
        return self.render(PythonWords())


def _fill(template: str, fields: Mapping[str, object], words: Words) -> str:
    """Fill a template; without fields it is plain text, and braces in it stay."""
    return template.format(**{name: _in_words(value, words) for name, value in fields.items()}) if fields else template


def _in_words(value: object, words: Words) -> object:
    if isinstance(value, ParameterReference):
        return words.setting(value)
    if isinstance(value, Parameter):
        return words.parameter(value.name)
    if isinstance(value, SampleName):
        return words.sample(value.name, begins=value.begins)
    return value(words) if isinstance(value, DeferredText) else value


class Note(Sentence, str):
    """A remark beside an answer: text in Python's words that can be rendered in others."""

    def __new__(cls, template: str, /, **fields: object) -> Note:
        """Fill the template."""
        note = super().__new__(cls, _fill(template, fields, PythonWords()))
        note.template, note.fields = template, fields
        return note


class CpmmdError(Sentence, Exception):
    """Base of every error this package raises on purpose."""

    def __init__(
        self,
        template: str = "",
        /,
        *,
        parameter: str | None = None,
        sample: str | None = None,
        row: int | None = None,
        column: str | None = None,
        file: str | None = None,
        **fields: object,
    ) -> None:
        super().__init__(template)
        self.template = template
        self.parameter, self.sample, self.row, self.column, self.file = parameter, sample, row, column, file
        if parameter is not None:
            fields["parameter"] = Parameter(parameter)
        if sample is not None:
            fields |= {"sample": SampleName(sample), "Sample": SampleName(sample, begins=True)}
        place = {name: value for name, value in (("row", row), ("column", column), ("file", file)) if value is not None}
        self.fields = {**place, **fields} if fields else {}  # a place alone does not make a sentence a template
        self.labels: dict[str, str] = {}  # the names of samples on the command line: their files

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self)!r})"


class InputError(CpmmdError, ValueError):
    """Data or a parameter breaks a rule."""


class TooFewUnitsError(InputError):
    """The groups, pairs or blocks of a design are too few for the test ever to reject."""


class UnknownNameError(CpmmdError, ValueError):
    """A method, kernel family or option name is not known."""


class MissingExtraError(CpmmdError, ImportError):
    """An optional dependency is needed and not installed."""


class UnknownKeywordError(CpmmdError, TypeError):
    """A call has a keyword argument that it does not take."""


class CpmmdWarning(Sentence, UserWarning):
    """Base of every warning this package issues."""

    def __init__(self, template: str = "", /, **fields: object) -> None:
        super().__init__(template)
        self.template, self.fields = template, fields


class DegenerateKernelWarning(CpmmdWarning):
    """The kernel matrix of a selected kernel is numerically constant or the identity."""


def unknown_name(what: str, got: object, known: Iterable[str], *, parameter: str | None = None) -> UnknownNameError:
    """Return the error for a misspelt name, with its nearest match."""
    names = sorted(known)
    near = nearest(str(got), names)
    hint = "" if near is None else f" Did you mean {near!r}?"
    return UnknownNameError(
        "Unknown {what}{got!r}.{hint} Known: {known}.",
        parameter=parameter,
        what=f"{what} " if parameter is None else DeferredText(_what_of, what, parameter),
        got=got,
        hint=hint,
        known=", ".join(names),
    )


C = TypeVar("C", bound=Callable[..., Any])


def refuse_keywords(names: Iterable[str], rule: str) -> Callable[[C], C]:
    """Return a decorator as :func:`name_keywords`, which also says why a function has no parameter of some names."""
    refused = dict.fromkeys(names, rule)
    return lambda call: name_keywords(call, refused)


def name_keywords(call: C, refused: Mapping[str, str] | None = None) -> C:
    """Return a function, or a class, whose call with an unknown keyword ends in a sentence that names the nearest one."""
    if isinstance(call, type):
        call.__init__ = name_keywords(call.__init__)  # type: ignore[misc]
        return call
    known = [name for name in inspect.signature(call).parameters if name != "self"]
    called = call.__qualname__.removesuffix(".__init__")

    @wraps(call)
    def checked(*positional: Any, **keywords: Any) -> Any:
        for name in keywords:
            if refused and name in refused:
                raise UnknownKeywordError(refused[name], called=called, name=name)
            if name not in known:
                near = CALLED[name] if CALLED.get(name) in known else nearest(name, known)
                raise UnknownKeywordError(
                    "{called} has no parameter {name!r}.{hint} Known: {known}.",
                    called=called,
                    name=name,
                    hint="" if near is None else f" Did you mean {near!r}?",
                    known=", ".join(known),
                )
        return call(*positional, **keywords)

    return checked  # type: ignore[return-value]


def nearest(got: str, known: Iterable[str]) -> str | None:
    """Return the name that was probably meant; None if no name is near.

    Near is a difference of case, or of one letter in three at most, as long as the digits are the same: nobody types ``day1``
    for ``day2``, and whoever asks for ``b.csv`` does not mean ``a.csv``.
    """
    wanted = got.lower()[:LONGEST_TYPED]
    few, letters = len(wanted) // 3, Counter(wanted)
    found = []
    for name in known:
        other = name.lower()[:LONGEST_TYPED]
        far = max(len(wanted), len(other)) - (letters & Counter(other)).total()  # at least so many edits
        if far <= few and _digits(other) == _digits(wanted) and (edits := _edits(wanted, other)) <= few:
            found.append((edits, name))
    return min(found)[1] if found else None


def _digits(name: str) -> str:
    return "".join(filter(str.isdigit, name))


def _edits(a: str, b: str) -> int:
    """Return how many letters to change, insert, remove or swap with their neighbour turn one text into the other."""
    rows = [list(range(len(b) + 1))]
    for i, letter in enumerate(a, start=1):
        row = [i]
        for j, other in enumerate(b, start=1):
            best = min(rows[-1][j] + 1, row[-1] + 1, rows[-1][j - 1] + (letter != other))
            if i > 1 and j > 1 and letter == b[j - 2] and a[i - 2] == other:
                best = min(best, rows[-2][j - 2] + 1)
            row.append(best)
        rows.append(row)
    return rows[-1][-1]


def _what_of(words: Words, what: str, parameter: str) -> str:
    return f"{what} {'of' if what == 'value' else 'in'} {words.setting(ParameterReference(parameter)).removesuffix('=...')}: "


def name_some(names: Iterable[str], most: int = 8) -> str:
    """Name a few things in a message: quoted, long ones cut, and how many more there are."""
    listed = list(names)
    shown = ", ".join(repr(name if len(name) <= 40 else name[:37] + "...") for name in listed[:most])
    return shown + (f" and {len(listed) - most} more" if len(listed) > most else "")
