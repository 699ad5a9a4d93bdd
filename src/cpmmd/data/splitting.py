"""Stratified, shuffled halves. A row that is in both samples is not trained on in one copy and tested in the other."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cpmmd.core.arrays import Rows
from cpmmd.core.text import pluralize
from cpmmd.data.design import Design
from cpmmd.data.pool import Pool
from cpmmd.errors import InputError, ParameterReference, TooFewUnitsError

UNSPLIT = ParameterReference("method", "median")  # a method that does not split
DISTINCT = 0.9  # share of different rows within each sample from which an equal row in the other is the same record, not chance
FEW_ROWS = (
    "A split test needs at least 2 training and 2 test rows of each sample. {Sample} has {rows} rows, which {fraction} splits "
    "into {train} and {test}. Pass more rows, change the split, or use a method that does not split, such as {other}."
)
FEW_BESIDE_RECORDS = (
    "A split test needs at least 2 training and 2 test rows of each sample. Rows that are in both samples stay in one half, and "
    "too few are left for the other. Use a method that does not split, such as {other}."
)
FEW_UNITS = (
    "A split test needs units of each sample in both halves. {design} are too few. Use a method that does not split, such as "
    "{other}."
)
FEW_ROWS_OF_UNITS = (
    "A split test needs at least 2 training rows of each sample. {design} leave {m} and {n}. Change the split, or use a method "
    "that does not split, such as {other}."
)


def shared_records(pool: Pool) -> Rows:
    """Return for each row of the pool the number of the record that it shares with the other sample, -1 where it shares none.

    Discrete data repeat by chance, within samples as much as between them, and are exchangeable as they are: no record is shared.
    Where rows are otherwise all different, a row of X that is in Y too is one record.
    """
    numbers = np.asarray(pool.numbers) + 0.0  # no negative zero
    categories = [np.unique([str(v) for v in values], return_inverse=True)[1] for values in pool.categories.values()]
    rows = np.ascontiguousarray(np.column_stack([numbers, *categories]))
    keys = rows.view(np.dtype((np.void, rows.dtype.itemsize * rows.shape[1]))).ravel()
    codes = np.asarray(np.unique(keys, return_inverse=True)[1]).ravel()  # the same for rows that are equal in every column
    of_x, of_y = np.unique(codes[: pool.m]), np.unique(codes[pool.m :])
    shared = np.intersect1d(of_x, of_y, assume_unique=True)
    if len(of_x) < DISTINCT * pool.m or len(of_y) < DISTINCT * pool.n or not len(shared):
        return np.full(len(codes), -1)
    return np.where(np.isin(codes, shared), codes, -1)


@dataclass(frozen=True, eq=False)
class Split:
    """Row numbers of the pool: training rows (X first) and test rows (X first)."""

    train: Rows
    m_train: int
    test: Rows
    m_test: int


def split_pool(pool: Pool, train_fraction: float, rng: np.random.Generator, *, at_most: int | None = None) -> tuple[Split, str]:
    """Return the halves of a pool, and a note on records that are in both samples; all copies of one are in one half.

    With a design, units are split in each stratum, and pairs stay whole.
    """
    if pool.design is not None:
        return _split_design(pool.design, train_fraction, rng, at_most=at_most), ""
    split, records = _split_samples((pool.m, pool.n), train_fraction, rng, at_most=at_most), shared_records(pool)
    count = len(np.unique(records[records >= 0]))
    if not count:
        return split, ""
    note = f"{pluralize(count, 'row is', 'rows are')} in both samples; each is kept in one half of the split"
    return _keep_records_whole(split, records, pool.m), note


def _keep_records_whole(split: Split, records: Rows, m: int) -> Split:
    """Move every copy of a shared record to the side that its first copy in X was drawn to."""
    training = np.zeros(len(records), dtype=bool)
    training[split.train] = True
    in_x = np.flatnonzero(records[:m] >= 0)
    side = dict(zip(records[in_x][::-1].tolist(), training[in_x][::-1].tolist(), strict=True))  # the first copy has the last word
    training = np.array([side.get(record, drawn) for record, drawn in zip(records.tolist(), training.tolist(), strict=True)])
    order = np.concatenate([split.train, split.test])
    x, y = order[order < m], order[order >= m]
    sizes = [int(np.count_nonzero(training[part])) for part in (x, y)]
    if min(*sizes, m - sizes[0], len(y) - sizes[1]) < 2:
        raise InputError(FEW_BESIDE_RECORDS, other=UNSPLIT)
    train, test = (np.concatenate([x[mask[x]], y[mask[y]]]) for mask in (training, ~training))
    return Split(train, sizes[0], test, m - sizes[0])


def _split_samples(rows: tuple[int, int], train_fraction: float, rng: np.random.Generator, *, at_most: int | None) -> Split:
    """Split each sample at random; both parts keep at least 2 rows of either sample.

    At most ``at_most`` rows are training rows, shared out as the fraction would have it.
    """
    (m, n), train = rows, [round(count * train_fraction) for count in rows]
    for sample, count, size in zip("xy", rows, train, strict=True):
        if size < 2 or count - size < 2:
            fraction, test = ParameterReference("train_fraction", train_fraction), count - size
            raise InputError(FEW_ROWS, sample=sample, rows=count, fraction=fraction, train=size, test=test, other=UNSPLIT)
    if at_most is not None and sum(train) > at_most:
        train = [max(2, int(size * (at_most / sum(train)))) for size in train]
    x, y = rng.permutation(m), m + rng.permutation(n)
    halves = [np.concatenate([x[: train[0]], y[: train[1]]]), np.concatenate([x[train[0] :], y[train[1] :]])]
    return Split(halves[0], train[0], halves[1], m - train[0])


def _split_design(design: Design, train_fraction: float, rng: np.random.Generator, *, at_most: int | None = None) -> Split:
    """Split the units of each stratum by the fraction; strata too small for that stay whole, in one half or the other."""
    share = train_fraction if at_most is None else min(train_fraction, at_most / len(design.unit))
    side = np.arange(design.size) >= design.first
    training, whole = np.zeros(design.size, dtype=bool), []
    for units in design.by_stratum():
        halves = units[~side[units]], units[side[units]]
        if min(map(len, halves)) < 2:
            whole.append(design.strata[units[0]])
            continue
        for half in halves:
            count = min(max(1, round(share * len(half))), len(half) - 1)
            training[rng.permutation(half)[:count]] = True
    chosen = rng.permutation(whole)[: round(share * len(whole))].astype(np.intp)
    training |= np.isin(design.strata, chosen)
    for of_training in (True, False):
        if {False, True} != set(side[training == of_training].tolist()):
            raise TooFewUnitsError(FEW_UNITS, design=str(design), other=UNSPLIT)
    rows = np.arange(len(design.unit))
    mask = training[design.unit]
    m_train = int(np.count_nonzero(mask[: design.rows[0]]))
    if min(m_train, n_train := int(np.count_nonzero(mask)) - m_train) < 2:
        raise TooFewUnitsError(FEW_ROWS_OF_UNITS, design=str(design), m=m_train, n=n_train, other=UNSPLIT)
    return Split(rows[mask], m_train, rows[~mask], design.rows[0] - m_train)


def hold_out(rows: int, fraction: float, rng: np.random.Generator, *, at_most: int) -> tuple[Rows, Rows]:
    """Split the row numbers of one sample at random: those held out, and the others, both shuffled."""
    size = min(round(rows * fraction), at_most)
    if size < 2 or rows - size < 2:
        raise InputError(
            f"The reference must have at least 2 rows to train on and 2 to test with. It has {rows} rows, which "
            f"train_fraction={fraction:g} splits into {size} and {rows - size}. Pass more rows, or change train_fraction."
        )
    order = rng.permutation(rows)
    return order[:size], order[size:]
