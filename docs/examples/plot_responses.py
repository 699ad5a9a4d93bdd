"""
Has the model behind an endpoint changed?
=========================================

Twelve questions, asked fifteen times on two days. A small random language model stands for the endpoint; on the second day two
of the questions are refused now and then. Which ones?
"""

import matplotlib.pyplot as plt
import numpy as np

from cpmmd import responses_test

rng = np.random.default_rng(3)
words = ["".join(pair) for pair in rng.choice([c + v for c in "bdfgklmnprst" for v in "aeiou"], (40, 2))]
first, following = 2 * rng.normal(size=(12, 40)), 2 * rng.normal(size=(40, 40))


def answer(prompt):
    said = [int(np.argmax(first[prompt] + rng.gumbel(size=40)))]
    for _ in range(9):
        said.append(int(np.argmax(following[said[-1]] + rng.gumbel(size=40))))
    return " ".join(words[word] for word in said)


def ask(refused=()):
    refusal = "I cannot help with that."
    return {
        f"question {p + 1}": [refusal if p in refused and rng.random() < 0.6 else answer(p) for _ in range(15)] for p in range(12)
    }


result = responses_test(ask(), ask(refused=(4, 9)), rng=0)
print(result)

# %%
# Agreement of two answers within the new ones and across days, for each question.
prompts = sorted(result.prompts, key=lambda found: int(found.prompt.split()[1]))
figure, ax = plt.subplots(figsize=(8, 3.6), layout="constrained")
places = np.arange(len(prompts))
ax.bar(places - 0.2, [found.agreement_y for found in prompts], 0.4, label="two new answers")
ax.bar(places + 0.2, [found.agreement_across for found in prompts], 0.4, label="one of each day")
for place, found in zip(places, prompts, strict=True):
    if found.pvalue <= result.alpha:
        ax.annotate(f"p = {found.pvalue:.3g}", (place, max(found.agreement_y, found.agreement_across)), ha="center", va="bottom")
ax.set_xticks(places, [found.prompt.split()[1] for found in prompts])
ax.set_xlabel("question")
ax.set_ylabel("agreement")
ax.margins(y=0.15)
ax.legend(frameon=False)

# %%
# What to see: the p-values of the two refused questions, adjusted for all twelve. Their new answers agree with each
# other, because a refusal is always the same sentence, and hardly with those of the day before. Elsewhere both bars
# are alike.
