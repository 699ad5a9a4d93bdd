"""Answers to the same prompts: kernels and statistics against naive sums, exact p-values, inputs, explanations."""

import itertools
import json
from collections import Counter

import numpy as np
import pandas as pd
import polars as pl
import pytest

from cpmmd import CpmmdError, responses_test
from cpmmd.draws.labels import Relabelings
from cpmmd.evidence import tail_scores
from cpmmd.questions.responses import read_responses, words
from cpmmd.statistics.sequences import StratumSums, hamming, ngrams

LETTERS = list("abcde")


def answers(rng, count, p=None):
    return ["".join(rng.choice(LETTERS, rng.integers(0, 9), p=p)) for _ in range(count)]


def prompts(rng, count=4, each=6, changed=0, p=(0.9, 0.1, 0, 0, 0)):
    return {f"prompt {i}": answers(rng, each, p if i < changed else None) for i in range(count)}


def test_hamming_is_the_share_of_places_that_agree():
    texts = [*answers(np.random.default_rng(0), 12), "", "aaaa"]
    longest = max(map(len, texts))
    padded = [text.ljust(longest, "\0") for text in texts]
    naive = [[sum(a == b for a, b in zip(s, t, strict=True)) / longest for t in padded] for s in padded]
    np.testing.assert_allclose(hamming(texts), naive)
    np.testing.assert_allclose(hamming([tuple(map(ord, text)) for text in texts]), naive)


def grams(tokens):
    return Counter([*((a,) for a in tokens), *itertools.pairwise(tokens)] or [()])


def weighted(texts):
    """Return TF-IDF vectors of length 1 as dictionaries, by hand."""
    counts = [grams(text) for text in texts]
    idf = {g: np.log((1 + len(texts)) / (1 + sum(g in c for c in counts))) + 1 for c in counts for g in c}
    vectors = [{g: v * idf[g] for g, v in c.items()} for c in counts]
    return [{g: v / np.sqrt(sum(u * u for u in c.values())) for g, v in c.items()} for c in vectors]


def test_ngrams_is_the_cosine_of_weighted_counts():
    texts = answers(np.random.default_rng(1), 12)
    naive = [[sum(a[g] * b.get(g, 0) for g in a) for b in weighted(texts)] for a in weighted(texts)]
    np.testing.assert_allclose(ngrams(texts), naive, atol=1e-12)
    assert np.linalg.eigvalsh(ngrams(texts)).min() > -1e-9
    assert np.linalg.eigvalsh(hamming(texts)).min() > -1e-9


def squared_mmd(K, x, y):
    return K[np.ix_(x, x)].mean() + K[np.ix_(y, y)].mean() - 2 * K[np.ix_(x, y)].mean()


def by_hand(x, y):
    """All labelings within prompts: the statistics of kernels and prompts by double sums, and that of all prompts together."""
    pools = [x[asked] + y[asked] for asked in x]
    sizes = [len(x[asked]) for asked in x]
    kernels = [[hamming(pool) for pool in pools], [ngrams([words(text) for text in pool]) for pool in pools]]
    vectors = iter(weighted([words(text) for pool in pools for text in pool]))
    vectors = [[next(vectors) for _ in pool] for pool in pools]
    ways = [list(itertools.combinations(range(len(pool)), m)) for pool, m in zip(pools, sizes, strict=True)]
    values, together = [], []
    for chosen in itertools.product(*ways):
        found, difference = np.empty((2, len(pools))), Counter()
        for s, (some, pool) in enumerate(zip(chosen, pools, strict=True)):
            rest = [i for i in range(len(pool)) if i not in some]
            weight = len(some) * len(rest) / len(pool)
            for k in range(2):
                found[k, s] = weight * squared_mmd(kernels[k][s], list(some), rest)
            for rows, sign in ((some, 1), (rest, -1)):
                for i in rows:
                    for gram, v in vectors[s][i].items():
                        difference[gram] += sign * weight * v / len(rows)
        values.append(found)
        together.append(sum(v * v for v in difference.values()))
    return np.array(values).transpose(1, 2, 0), np.array(together)


def test_the_p_value_is_that_of_all_labelings_by_hand():
    rng = np.random.default_rng(2)
    x = {"a": answers(rng, 3), "b": answers(rng, 4)}
    y = {"a": answers(rng, 2), "b": answers(rng, 1, [0.9, 0.1, 0, 0, 0])}
    values, together = by_hand(x, y)
    assert values.shape[2] == 10 * 5
    scores = tail_scores(np.vstack([values.sum(axis=1), together])).max(axis=0)
    result = responses_test(x, y, alpha=0.1, rng=0)
    assert result.exhaustive
    assert result.n_permutations == 49
    assert result.pvalue == pytest.approx(np.mean(scores >= scores[0] - 1e-6))
    np.testing.assert_allclose(np.sort(result.null_distribution), np.sort(scores[1:]), atol=1e-6)
    each = np.stack([tail_scores(values[:, s]).max(axis=0) for s in range(2)])
    for found in result.prompts:
        own = each["ab".index(found.prompt), 0]
        assert found.pvalue == pytest.approx(np.mean(each.max(axis=0) >= own - 1e-6))


def test_sums_over_prompts_are_those_of_random_labelings():
    rng = np.random.default_rng(3)
    pools = [answers(rng, 7), answers(rng, 5)]
    strata = np.array([0] * 3 + [1] * 2 + [0] * 4 + [1] * 3)
    draws = Relabelings.draw(12, 5, 60, rng, strata=strata)
    found = StratumSums([[hamming(pool) for pool in pools]], strata).by_stratum(draws)
    for b, labels in enumerate(draws.array()):
        for s, pool in enumerate(pools):
            of_x = labels[strata == s] == 1
            x, y = np.flatnonzero(of_x), np.flatnonzero(~of_x)
            assert found[0, s, b] == pytest.approx(len(x) * len(y) / len(pool) * squared_mmd(hamming(pool), x, y), abs=1e-9)


def test_every_container_gives_the_same_answer(tmp_path):
    rng = np.random.default_rng(4)
    x, y = prompts(rng), prompts(rng, changed=4)
    expected = responses_test(x, y, rng=0)
    assert expected.reject

    def records(data):
        return [{"prompt": asked, "response": text, "day": 1} for asked, texts in data.items() for text in texts]

    for make in (records, lambda d: pd.DataFrame(records(d)), lambda d: pl.DataFrame(records(d))):
        assert responses_test(make(x), make(y), rng=0).pvalue == expected.pvalue
    for name, data in (("x", x), ("y", y)):
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in records(data)))
    assert responses_test(tmp_path / "x.jsonl", str(tmp_path / "y.jsonl"), rng=0).pvalue == expected.pvalue
    ids = [{asked: [[ord(c) for c in text] for text in texts] for asked, texts in data.items()} for data in (x, y)]
    assert responses_test(*ids, kernel="hamming", rng=0).pvalue == responses_test(x, y, kernel="hamming", rng=0).pvalue
    assert responses_test(x, y, kernel="ngrams", tokens=list, rng=0).pvalue == responses_test(*ids, kernel="ngrams", rng=0).pvalue


def test_numbers_in_files_stay_the_text_that_they_were(tmp_path):
    (tmp_path / "x.jsonl").write_text('{"prompt": "1", "response": "007"}\n{"prompt": "1", "response": "7"}\n')
    assert read_responses(tmp_path / "x.jsonl", "x") == {"1": ["007", "7"]}


def test_an_answer_explains_itself():
    rng = np.random.default_rng(5)
    x, y = prompts(rng, each=20), prompts(rng, each=20, changed=1)
    result = responses_test(x, {**y, "new": ["a"]}, rng=0)
    explanation = result.explain()
    assert [found.prompt for found in explanation.differing] == ["prompt 0"]
    assert explanation.sentence == "Answers to 1 of 4 prompts differ: 'prompt 0'."
    assert explanation.prompts[0].agreement_y > explanation.prompts[0].agreement_across
    assert set(explanation.prompts[0].example_y) <= {"a", "b"}
    assert result.notes == ("prompts with answers on one side only are left out: 'new'",)
    assert "80 v 80, 4 prompts" in str(result)
    assert "prompt 0" in str(explanation)
    for card in (result._repr_html_(), explanation._repr_html_()):
        assert "prompt 0" in card
    document = json.loads(json.dumps(result.to_dict(), allow_nan=False))
    assert document["prompts"][0]["prompt"] == "prompt 0"
    metrics = result.to_metrics()
    assert (metrics["cpmmd_n_prompts"], metrics["cpmmd_n_differing"]) == (4, 1)
    assert "prompt 0" in result.report()
    assert repr(eval(result.call, {"responses_test": responses_test, "reference": x, "new": y})) == repr(result)


def test_answers_that_never_vary_say_nothing():
    same = {"a": ["yes"] * 10, "b": ["no"] * 10}
    assert responses_test(same, same, rng=0).pvalue == 1
    changed = responses_test(same, {"a": ["yes"] * 10, "b": ["No."] * 10}, rng=0)
    assert changed.pvalue == 0.001
    assert [found.pvalue for found in changed.prompts] == [0.001, 1.0]


def test_which_side_is_called_reference_does_not_matter():
    rng = np.random.default_rng(6)
    x, y = {"a": answers(rng, 4)}, {"a": answers(rng, 3)}
    assert responses_test(x, y, alpha=0.1).pvalue == responses_test(y, x, alpha=0.1).pvalue


@pytest.mark.parametrize(
    ("reference", "new", "options", "message"),
    [
        ({"a": ["x"]}, {"b": ["x"]}, {}, "same prompts.*'a', 'b'"),
        ({"a": ["x", "y"]}, {"a": ["x", "y"]}, {}, "can never reject: 2 v 2 answers to 1 prompt have 6 permutations.*0.333"),
        ({"a": "x"}, {"a": ["x"]}, {}, "answers by prompt.*single answer"),
        ({"a": [None]}, {"a": ["x"]}, {}, "text or a sequence of tokens.*None.*''"),
        ({"a": [{}]}, {"a": ["x"]}, {}, "text or a sequence of tokens"),
        (7, {"a": ["x"]}, {}, "answers by prompt.*int"),
        ([], {"a": ["x"]}, {}, "answers by prompt.*nothing"),
        (pl.DataFrame({"prompts": ["a"], "response": ["b"]}), {"a": ["x"]}, {}, "Did you mean 'prompts'"),
        ({"a": ["x"]}, {"a": ["x"]}, {"kernel": "haming"}, "hamming"),
        ({"a": ["x"]}, {"a": ["x"]}, {"seed": 1}, "rng"),
    ],
)
def test_mistakes_get_a_sentence(reference, new, options, message):
    with pytest.raises(CpmmdError, match=message):
        responses_test(reference, new, **options)


def test_level_over_many_nulls():
    """300 nulls at level .1 with 20 discrete permutations' worth of ties: at most 30 + 3.1 sd = 46 rejections."""
    rng = np.random.default_rng(7)
    rejected = sum(
        responses_test(prompts(rng, 5, 4), prompts(rng, 5, 4), alpha=0.1, n_permutations=99, rng=rng).reject for _ in range(300)
    )
    assert 12 <= rejected <= 46
