"""Do two sets of answers to the same prompts come from the same model? One call: ``responses_test``."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar

import numpy as np

from cpmmd.core import validation
from cpmmd.core.arrays import Array, Rows
from cpmmd.core.parallel import threads
from cpmmd.core.plain import NoTruthValue, PlainValue
from cpmmd.core.seeds import RNG, resolve_rng
from cpmmd.core.text import pluralize, sanitize
from cpmmd.data.numbers import category_text, is_missing
from cpmmd.data.sources import bring_here
from cpmmd.data.table import as_frame
from cpmmd.draws.labels import Relabelings, number_of_labels
from cpmmd.errors import InputError, name_keywords, name_some, unknown_name
from cpmmd.evidence import SCORE_TIE, Ranking, upper_ranks
from cpmmd.questions.answer import Answer
from cpmmd.report.page import Number, Table, count, number
from cpmmd.statistics.sequences import KERNELS, StratumSums, Tokens, agreement, ngram_weights

PERMUTATIONS = 999
PRINTED = 5  # prompts in the printed summary
MOST_TOKENS = 1000  # of an answer, as in Model Equality Testing
EXAMPLE = 60  # characters of an answer that is shown
WORDS = re.compile(r"\w+|[^\w\s]")
NAMES = ("the reference", "the new answers")

Given = Mapping[str, Sequence[Any]]  # answers by prompt

NO_ANSWERS = (
    "{Sample} must be answers by prompt ({{'prompt': ['answer', ...]}}), a table with columns {prompt!r} and {response!r}, or a "
    "list of answers to one prompt. Got {got}."
)
NOT_A_SEQUENCE = (
    "Each answer must be text or a sequence of tokens. {Sample} has {got} for prompt {prompt!r}. If no answer counts as one, "
    "write it as ''; otherwise leave it out."
)
FEW = (
    "The test can never reject: {answers} to {prompts} have {total} permutations within prompts, so that every p-value is at "
    "least {least:.3g}, above {alpha:g}. Collect more answers to each prompt, or ask more prompts."
)


def words(text: str) -> list[str]:
    """Return the words and marks of a text."""
    return WORDS.findall(text)


@dataclass(frozen=True, repr=False)
class PromptDifference(PlainValue):
    """How the answers to one prompt differ."""

    prompt: str  #: the prompt
    sizes: tuple[int, int]  #: answers in the reference, and new ones
    pvalue: float  #: adjusted for all prompts by the permutation distribution of the largest difference
    agreement_x: float | None  #: mean kernel value between two answers of the reference, 1 where all are the same; None if single
    agreement_y: float | None  #: the same between two new answers
    agreement_across: float  #: the same between an answer of the reference and a new one
    lengths: tuple[float, float]  #: mean number of characters, or tokens
    example_x: str  #: the answer most typical of the reference, as opposed to the new answers
    example_y: str  #: the new answer most typical of the new ones

    def __repr__(self) -> str:
        return f"<PromptDifference: {sanitize(self.prompt)!r}, p = {self.pvalue:.3g}>"


@dataclass(frozen=True, repr=False)
class ResponsesExplanation(NoTruthValue, PlainValue):
    """Which prompts have other answers."""

    truth_hint: ClassVar[str] = "`.differing`"

    sentence: str  #: the finding in plain words
    prompts: tuple[PromptDifference, ...]  #: every prompt, the smallest p-value first
    differing: tuple[PromptDifference, ...]  #: those whose adjusted p-value is at most alpha

    def __repr__(self) -> str:
        return f"<ResponsesExplanation: {self.sentence} {pluralize(len(self.prompts), 'prompt')}; print it for all>"

    def __str__(self) -> str:
        lines = [self.sentence]
        for found in self.prompts[:PRINTED]:
            lines.append(f"  {sanitize(found.prompt, EXAMPLE)}  (p = {found.pvalue:.3g})")
            lines += [f"    {name:<9} {text}" for name, text in (("reference", found.example_x), ("new", found.example_y))]
        left = len(self.prompts) - PRINTED
        return "\n".join([*lines, *([f"  and {pluralize(left, 'more prompt')}"] if left > 0 else [])])

    def _repr_html_(self) -> str:
        from cpmmd.report.notebook import table_card

        rows = [
            {"prompt": sanitize(p.prompt), "adjusted p": p.pvalue, "reference": p.example_x, "new": p.example_y}
            for p in self.prompts
        ]
        return table_card(self.sentence, ["p-values are adjusted for all prompts."], rows, found=bool(self.differing))


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class ResponsesResult(Answer):
    """Whether answers to the same prompts differ in distribution.

    Examples
    --------
    >>> from cpmmd import responses_test
    >>> result = responses_test({"2 + 2?": ["4"] * 9 + ["four"]}, {"2 + 2?": ["four"] * 9 + ["4"]}, rng=0)
    >>> result.explain().prompts[0].example_y
    'four'
    """

    title: ClassVar[str] = "Do the answers come from the same distribution?"
    found: ClassVar[str] = "The answers differ"
    not_found: ClassVar[str] = "No difference found"
    subject: ClassVar[str] = "answers"
    document: ClassVar[tuple[str, ...]] = (*Answer.document, "sizes", "kernels", "prompts")
    measured: ClassVar[tuple[str, ...]] = ("answers_x", "answers_y", "n_prompts", "n_differing")

    method: str = "responses"
    citations: tuple[str, ...] = ("gao2025model", "gretton2012kernel")  #: keys of what to cite
    prompts: tuple[PromptDifference, ...]  #: every prompt, the smallest p-value first
    sizes: tuple[int, int]  #: answers in the reference, and new ones
    kernels: tuple[str, ...]  #: the kernels, of which the one with the largest score counts
    null_distribution: Array = field(repr=False)  #: the statistic under every permutation within prompts but the observed one

    @property
    def shape(self) -> str:
        """The data in a few words."""
        return f"{self.sizes[0]} v {self.sizes[1]}, {pluralize(len(self.prompts), 'prompt')}"

    @property
    def answers_x(self) -> int:
        """Answers in the reference."""
        return self.sizes[0]

    @property
    def answers_y(self) -> int:
        """New answers."""
        return self.sizes[1]

    @property
    def n_prompts(self) -> int:
        """Prompts with answers in both."""
        return len(self.prompts)

    @property
    def n_differing(self) -> int:
        """Prompts whose adjusted p-value is at most alpha."""
        return len(self.explain().differing)

    def explain(self) -> ResponsesExplanation:
        """Return which prompts have other answers, with p-values adjusted for all prompts, and typical answers."""
        differing = tuple(found for found in self.prompts if self.reject and found.pvalue <= self.alpha)
        if differing:
            named = name_some((found.prompt for found in differing), 3)
            sentence = f"Answers to {len(differing)} of {pluralize(len(self.prompts), 'prompt')} differ: {named}."
        elif self.reject:
            sentence = "The answers differ over all prompts together; no single prompt stands out."
        else:
            sentence = "No prompt has answers that differ."
        return ResponsesExplanation(sentence, self.prompts, differing)

    def terms(self) -> Iterator[tuple[str, str]]:
        """Yield which prompts differ."""
        yield "where", self.explain().sentence

    def sentences(self) -> Iterator[str]:
        """Yield the finding."""
        yield self.explain().sentence

    def numbers(self) -> Iterator[Number]:
        """Yield how much was compared."""
        yield Number("Answers", f"{count(self.sizes[0])} v {count(self.sizes[1])}")
        yield Number("Prompts", count(len(self.prompts)), f"{self.n_differing} differ")

    def parts(self) -> Iterator[Table]:
        """Yield the table of prompts."""
        yield Table.of(
            "prompts",
            "Prompts, with p-values adjusted for all of them, and the answers that are most typical of one side",
            [
                ("Prompt", "text", [found.prompt for found in self.prompts]),
                ("p-value", "pvalue", [found.pvalue for found in self.prompts]),
                ("Agreement, reference", "number", [found.agreement_x for found in self.prompts]),
                ("new", "number", [found.agreement_y for found in self.prompts]),
                ("across", "number", [found.agreement_across for found in self.prompts]),
                ("Typical of the reference", "text", [found.example_x for found in self.prompts]),
                ("Typical of the new answers", "text", [found.example_y for found in self.prompts]),
            ],
            note="Agreement is the mean kernel value of two answers: 1 where all are the same.",
            flagged=[i for i, found in enumerate(self.prompts) if self.reject and found.pvalue <= self.alpha],
        )

    def assurance(self) -> Mapping[str, str | None]:
        """Return what is permuted, and the kernels."""
        return {
            "Permutations": f"{count(self.n_permutations)}, answers within each prompt",
            "Kernels": " and ".join(self.kernels),
            "Statistic": f"{number(self.statistic)}, the largest tail score over the kernels",
        }


@name_keywords
def responses_test(
    reference: Any,
    new: Any,
    *,
    prompt: str = "prompt",
    response: str = "response",
    kernel: str | None = None,
    tokens: Callable[[str], Sequence[Hashable]] | None = None,
    length: int = MOST_TOKENS,
    alpha: float = 0.05,
    n_permutations: int = PERMUTATIONS,
    rng: RNG = None,
) -> ResponsesResult:
    """Test whether answers to the same prompts come from the same model.

    For endpoints that change without notice: ask a fixed list of prompts, several times each, and compare with the answers of
    another day. The same for any sequences (logs, routes, genes): a prompt is a stratum, inside which sequences are compared.

    Parameters
    ----------
    reference, new : mapping, data frame, records, path or list
        Answers by prompt (``{"prompt": ["answer", ...]}``); a table with a row for each answer; the path of such a file; or a
        list of answers to one prompt. An answer is text, or a sequence of tokens such as token ids. Prompts with answers on one
        side only are left out, with a note.
    prompt, response : str
        Columns of a table.
    kernel : str, optional
        ``"hamming"``: the share of places at which two answers have the same character; ``"ngrams"``: the cosine of their single
        words and pairs of neighbours, rare ones weighted up, within each prompt and over all prompts together. None takes all of
        them, and the largest score counts, under every permutation alike.
    tokens : callable, optional
        Splits an answer for ``"ngrams"``; None splits text into words and marks. ``list`` takes characters, for languages without
        spaces.
    length : int
        How much of an answer is compared, in characters or tokens.
    alpha : float
        Significance level.
    n_permutations : int
        Number of permutations; all there are where they are fewer.
    rng : int, Generator, RandomState or None
        Seed or generator.

    Returns
    -------
    ResponsesResult
        With ``pvalue``, ``reject``, ``prompts``, ``explain()``, ...; print it for a summary.

    Notes
    -----
    Labels are permuted within prompts, so the level is exact for any prompts, models and numbers of answers, if answers to a
    prompt are exchangeable when nothing changed: sampled independently. Three statistics compete: for each kernel the sum over
    prompts of ``mn / (m + n)`` times the squared MMD, and the squared length of the sum of the same weights times the differences
    of mean n-grams, which sees a change of all prompts alike.

    Examples
    --------
    >>> from cpmmd import responses_test
    >>> monday = {"A colour?": ["red", "blue", "red", "green", "red"] * 8, "A city?": ["Rome", "Paris"] * 20}
    >>> tuesday = {"A colour?": ["teal", "blue", "teal", "green", "red"] * 8, "A city?": ["Rome", "Paris"] * 20}
    >>> result = responses_test(monday, tuesday, rng=0)
    >>> print(result.explain().sentence)
    Answers to 1 of 2 prompts differ: 'A colour?'.
    """
    alpha, permutations = validation.open_unit("alpha", alpha), validation.permutation_count(n_permutations, alpha)
    kernels = tuple(KERNELS)
    if kernel is not None:
        kernels = (validation.one_of("kernel", kernel, kernels),)
    length = validation.whole("length", length, at_least=1)
    seed, generator = resolve_rng(rng)
    x, y = (read_responses(data, name, prompt, response) for data, name in ((reference, "reference"), (new, "new")))
    both = [asked for asked in x if asked in y]
    if not both:
        raise InputError(f"Both sides must have answers to the same prompts. Only in one: {name_some([*x, *y], 4)}.")
    sizes = sum(len(x[asked]) for asked in both), sum(len(y[asked]) for asked in both)
    stratum = np.array([s for side in (x, y) for s, asked in enumerate(both) for _ in side[asked]])
    _require_permutations(sizes, stratum, alpha)
    split = {name: partial(_tokens, kernel=name, tokens=tokens, length=length) for name in KERNELS}
    matrices = [[KERNELS[name](split[name]([*x[asked], *y[asked]])) for asked in both] for name in kernels]
    pool = [answer for side in (x, y) for asked in both for answer in side[asked]]
    shared = ngram_weights(split["ngrams"](pool)) if "ngrams" in kernels else None
    with threads(None):
        draws = Relabelings.draw(len(stratum), sizes[0], permutations, generator, strata=stratum)
        sums = StratumSums(matrices, stratum, shared)
        by_prompt = sums.by_stratum(draws)
        largest = sums.largest(sums.statistics(by_prompt, draws))
    ranking = Ranking.of(largest, tolerance=SCORE_TIE, exhaustive=draws.exhaustive)
    adjusted = _adjusted(by_prompt)
    found = [
        _describe(asked, x[asked], y[asked], matrices[-1][s], float(pvalue))
        for s, (asked, pvalue) in enumerate(zip(both, adjusted, strict=True))
    ]
    alone = [asked for asked in (*x, *y) if asked not in both]
    options = {
        "prompt": (prompt, "prompt"),
        "response": (response, "response"),
        "kernel": (kernel, None),
        "length": (length, MOST_TOKENS),
        "n_permutations": (permutations, PERMUTATIONS),
    }
    given = "".join(f", {name}={value!r}" for name, (value, usual) in options.items() if value != usual)
    return ResponsesResult(
        statistic=ranking.statistic,
        pvalue=ranking.pvalue,
        alpha=alpha,
        null_distribution=ranking.null_distribution,
        exhaustive=ranking.exhaustive,
        prompts=tuple(sorted(found, key=lambda difference: difference.pvalue)),
        sizes=sizes,
        kernels=kernels,
        seed=seed,
        notes=(f"prompts with answers on one side only are left out: {name_some(alone)}",) if alone else (),
        call=f"responses_test(reference, new, alpha={alpha:g}{given}, rng={'rng' if seed is None else seed})",
    )


def read_responses(data: Any, name: str, prompt: str = "prompt", response: str = "response", *, empty: bool = False) -> Given:
    """Return answers by prompt, whatever they came in; ``name`` is what messages call them.

    With ``empty``, as for files, in which an empty text is a missing value, a missing answer is an empty one.
    """
    if isinstance(data, str | os.PathLike):
        empty = True
        from cpmmd.data.files.options import ReadOptions
        from cpmmd.data.files.reading import read_file

        data = read_file(os.fspath(data), ReadOptions(text=(prompt, response))).data
    data, _ = bring_here(data, name)
    frame = as_frame(data, name)
    if frame is not None:
        absent = [column for column in (prompt, response) if column not in frame.columns]
        if absent:
            raise unknown_name("column", absent[0], frame.columns)
        given = frame[response].to_list()
        if empty:
            given = ["" if answer is None else answer for answer in given]
        pairs = zip(frame[prompt].to_list(), given, strict=True)
    elif isinstance(data, Sequence) and not isinstance(data, str) and data and all(isinstance(row, Mapping) for row in data):
        pairs = ((row.get(prompt), row.get(response)) for row in data)  # type: ignore[assignment]
    elif isinstance(data, Mapping):
        if any(isinstance(answers, str) or not isinstance(answers, Iterable) for answers in data.values()):
            raise InputError(NO_ANSWERS, sample=name, prompt=prompt, response=response, got="a single answer to a prompt")
        pairs = ((asked, answer) for asked, answers in data.items() for answer in answers)  # type: ignore[assignment]
    elif isinstance(data, Iterable) and not isinstance(data, str | bytes):
        pairs = (("", answer) for answer in data)  # type: ignore[assignment]
    else:
        raise InputError(NO_ANSWERS, sample=name, prompt=prompt, response=response, got=type(data).__name__)
    found: dict[str, list[Any]] = {}
    for asked, answer in pairs:
        found.setdefault(category_text(asked) or "", []).append(_as_answer(answer, str(asked), name))
    if not found:
        raise InputError(NO_ANSWERS, sample=name, prompt=prompt, response=response, got="nothing")
    return found


def _as_answer(answer: Any, asked: str, name: str) -> str | tuple[Hashable, ...]:
    """Return an answer as text or as tokens."""
    if isinstance(answer, str):
        return answer
    if isinstance(answer, (int, float, np.integer, np.floating)) and not is_missing(answer):
        return str(category_text(answer))
    if isinstance(answer, Iterable) and not isinstance(answer, bytes | Mapping):
        listed = answer.tolist() if isinstance(answer, np.ndarray) else answer
        return tuple(listed)
    raise InputError(NOT_A_SEQUENCE, sample=name, prompt=asked, got=repr(answer)[:40])


def _tokens(
    answers: Sequence[Any], *, kernel: str, tokens: Callable[[str], Sequence[Hashable]] | None, length: int
) -> Sequence[Tokens]:
    """Return what a kernel compares of answers: characters of text for Hamming, words for n-grams; tokens as they came."""
    cut = [answer[:length] for answer in answers]
    if kernel == "hamming":
        return cut
    split = words if tokens is None else tokens
    return [split(answer) if isinstance(answer, str) else answer for answer in cut]


def _require_permutations(sizes: tuple[int, int], stratum: Rows, alpha: float) -> None:
    total = number_of_labels(sum(sizes), sizes[0], stratum)
    of_x, of_y = np.bincount(stratum[: sizes[0]]), np.bincount(stratum[sizes[0] :])
    least = (1 + int((of_x == of_y).all())) / min(total, 10**100)  # exchanging the sides gives the same statistic
    if least > alpha:
        answers, prompts = f"{sizes[0]} v {sizes[1]} answers", pluralize(len(of_x), "prompt")
        raise InputError(FEW, answers=answers, prompts=prompts, total=total, least=min(1.0, least), alpha=alpha)


def _adjusted(by_prompt: Array) -> Array:
    """Return the p-value of each prompt, adjusted for all: how often the largest score of any prompt is as large as its own."""
    scores = np.stack([StratumSums.largest(of_prompt) for of_prompt in by_prompt.transpose(1, 0, 2)])
    return np.asarray(upper_ranks(scores[:, 0], SCORE_TIE, among=scores.max(axis=0)) / by_prompt.shape[2])


def _describe(asked: str, x: Sequence[Any], y: Sequence[Any], matrix: Array, pvalue: float) -> PromptDifference:
    of_x = np.arange(len(matrix)) < len(x)
    within_x, within_y, across = agreement(matrix, of_x)
    witness = matrix[:, of_x].mean(axis=1) - matrix[:, ~of_x].mean(axis=1)
    return PromptDifference(
        prompt=asked,
        sizes=(len(x), len(y)),
        pvalue=pvalue,
        agreement_x=within_x,
        agreement_y=within_y,
        agreement_across=across,
        lengths=(float(np.mean([len(answer) for answer in x])), float(np.mean([len(answer) for answer in y]))),
        example_x=_shown(x[int(np.argmax(witness[of_x]))]),
        example_y=_shown(y[int(np.argmin(witness[~of_x]))]),
    )


def _shown(answer: Any) -> str:
    return sanitize(answer if isinstance(answer, str) else " ".join(map(str, answer)), EXAMPLE)
