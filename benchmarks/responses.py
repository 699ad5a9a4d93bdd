"""How often ``responses_test`` finds a changed language model, beside a classifier and the median MMD on the same answers.

    python -m benchmarks.responses --repetitions 100
    python -m benchmarks.responses --nulls --repetitions 1000

Twenty prompts, 2, 5 or 10 answers to each on both sides. Answers are words of a Markov chain whose tables are drawn at random, a
new model for each repetition. Changes: a lower temperature, logits rounded to multiples of 2.5 (quantised), and logits raised by
1.5 for half of the words that may follow each word (watermarked), all found among models other than those measured here.

The classifier is a logistic regression on TF-IDF of words and pairs of words, fitted on half of the answers to each prompt; the
difference of its mean scores on the other half is ranked among permutations within prompts. The median MMD is ``two_sample_test``
on the same TF-IDF vectors with ``method="median"`` and prompts as strata. So all tests are exact.
"""

from __future__ import annotations

import argparse
import warnings
from dataclasses import dataclass

import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression

from benchmarks import RESULTS
from cpmmd import Study, responses_test, two_sample_test
from cpmmd.draws.labels import Relabelings
from cpmmd.evidence import Ranking

PROMPTS, WORDS, LONGEST = 20, 60, 25
PERMUTATIONS = 199
CHANGES = {"temperature": 0.75, "quantised": 2.5, "watermarked": 1.5}
Answers = dict[str, list[str]]


@dataclass(frozen=True, eq=False)
class Model:
    """A Markov chain of words, which begins and drifts as the prompt has it."""

    words: list[str]
    first: np.ndarray  # logits of the first word by prompt
    following: np.ndarray  # by the word before
    topic: np.ndarray  # added for each prompt
    green: np.ndarray  # which words a watermark prefers, by the word before

    @classmethod
    def draw(cls, rng: np.random.Generator) -> Model:
        """Return a model whose tables are drawn; the last word is the end of an answer."""
        syllables = [c + v for c in "bcdfghklmnprstvz" for v in "aeiou"]
        words = ["".join(rng.choice(syllables, rng.integers(1, 4))) for _ in range(WORDS)]
        first, topic = 2.5 * rng.normal(size=(PROMPTS, WORDS + 1)), 1.5 * rng.normal(size=(PROMPTS, WORDS + 1))
        following = 2.0 * rng.normal(size=(WORDS + 1, WORDS + 1))
        first[:, -1], following[:, -1], topic[:, -1] = -50, 0, 1.5
        return cls([*words, ""], first, following, topic, rng.random((WORDS + 1, WORDS + 1)) < 0.5)

    def answers(self, each: int, rng: np.random.Generator, change: str = "none") -> Answers:
        """Return some answers to every prompt, written word by word at once."""
        prompt = np.repeat(np.arange(PROMPTS), each)
        said = np.full((len(prompt), LONGEST), WORDS)
        going = np.ones(len(prompt), bool)
        for place in range(LONGEST):
            before = said[:, place - 1]
            logits = self.following[before] + self.topic[prompt] if place else self.first[prompt]
            if change == "temperature":
                logits = logits / CHANGES[change]
            elif change == "quantised":
                logits = CHANGES[change] * np.round(logits / CHANGES[change])
            elif change == "watermarked" and place:
                logits = logits + CHANGES[change] * self.green[before]
            word = np.argmax(logits + rng.gumbel(size=logits.shape), axis=1)
            going &= word != WORDS
            said[going, place] = word[going]
        texts = [" ".join(self.words[word] for word in row if word != WORDS) for row in said]
        return {f"prompt {p}": texts[p * each : (p + 1) * each] for p in range(PROMPTS)}


def task(cell: dict, data_rng: np.random.Generator, test_rng: np.random.Generator) -> dict[str, float]:
    """Return which tests reject."""
    warnings.simplefilter("ignore")
    model = Model.draw(data_rng)
    x, y = model.answers(cell["answers"], data_rng), model.answers(cell["answers"], data_rng, cell["change"])
    found = {
        name: responses_test(x, y, kernel=kernel, n_permutations=PERMUTATIONS, rng=test_rng).pvalue
        for name, kernel in (("responses_test", None), ("hamming alone", "hamming"))
    }
    if cell["change"] != "none":
        found |= {"classifier": classifier(x, y, test_rng), "median MMD": median(x, y, test_rng)}
    return {name: int(pvalue <= 0.05) for name, pvalue in found.items()}


def flat(x: Answers, y: Answers) -> tuple[list[str], np.ndarray, np.ndarray]:
    """Return all answers, which are of x, and the number of their prompt."""
    texts = [text for side in (x, y) for answers in side.values() for text in answers]
    of_x = np.arange(len(texts)) < sum(map(len, x.values()))
    return texts, of_x, np.array([p for side in (x, y) for p, answers in enumerate(side.values()) for _ in answers])


def vectors(texts: list[str]) -> TfidfVectorizer:
    return TfidfVectorizer(ngram_range=(1, 2), token_pattern=r"\S+").fit(texts)


def classifier(x: Answers, y: Answers, rng: np.random.Generator) -> float:
    """Return the p-value of a classifier that is fitted on half of the answers to each prompt."""
    texts, of_x, prompt = flat(x, y)
    trained = np.zeros(len(texts), bool)
    for side in (of_x, ~of_x):
        for p in range(PROMPTS):
            rows = rng.permutation(np.flatnonzero(side & (prompt == p)))
            trained[rows[: len(rows) // 2]] = True
    tfidf = vectors([text for text, use in zip(texts, trained, strict=True) if use])
    features = tfidf.transform(texts)
    scores = LogisticRegression(C=10).fit(features[trained], of_x[trained]).decision_function(features[~trained])
    labels = Relabelings.draw(
        len(scores), int(of_x[~trained].sum()), PERMUTATIONS, rng, strata=np.unique(prompt[~trained], return_inverse=True)[1]
    )
    return Ranking.of(labels.array() @ scores, tolerance=1e-9, exhaustive=labels.exhaustive).pvalue


def median(x: Answers, y: Answers, rng: np.random.Generator) -> float:
    """Return the p-value of the Gaussian kernel at the median distance between TF-IDF vectors."""
    texts, of_x, prompt = flat(x, y)
    features = vectors(texts).transform(texts).toarray()
    return two_sample_test(
        features[of_x],
        features[~of_x],
        method="median",
        strata=(prompt[of_x], prompt[~of_x]),
        n_permutations=PERMUTATIONS,
        rng=rng,
    ).pvalue


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--repetitions", type=int, default=100)
    arguments.add_argument("--nulls", action="store_true", help="level of responses_test alone")
    options = arguments.parse_args()
    name, cells = "responses_power", [{"change": c, "answers": n} for c in CHANGES for n in (2, 5, 10)]
    if options.nulls:
        name, cells = "responses_level", [{"change": "none", "answers": 5}]
    table = Study(name, task, cells, options.repetitions).run(RESULTS / f"{name}.jsonl")
    (RESULTS / f"{name}.csv").write_text(table.to_csv())
    print(table.to_markdown())


if __name__ == "__main__":
    main()
