"""One pass over the rows: no digit of an answer depends on how rows are cut, in which order they come, or who adds them."""

from functools import partial

import numpy as np
import polars as pl
import pytest
from scipy import stats

from cpmmd import Bandwidth, FullSampleTest, KernelClass, LaplacianL1, Polynomial, Radius, two_sample_test
from cpmmd.data.pool import Pool, read_pool, rows_alone
from cpmmd.data.preparation import Preparation
from cpmmd.draws.layout import Layout
from cpmmd.engines import one_pass
from cpmmd.engines.cells import Cells, cells_of
from cpmmd.engines.members import View
from cpmmd.engines.one_pass import GRID, TILE_ROWS, KernelGroup, OnePass, summarise
from cpmmd.engines.tiles import Scratch
from cpmmd.statistics.columns import columns_of

SMALL = FullSampleTest(pair_rows=0, landmarks=30)
FAMILIES = [Bandwidth(), Bandwidth("laplacian"), LaplacianL1(), Polynomial(degree=2), Radius()]


def frame(rows: int, seed: int, shift: float = 0.0) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    return pl.DataFrame(
        {
            "a": rng.normal(shift, 1, rows),
            "count": rng.integers(0, 5, rows),
            "of": rng.choice(["u", "v", "w"], rows),
            "yes": rng.random(rows) < 0.3,
            "gap": [None if rng.random() < 0.1 else float(v) for v in rng.exponential(1, rows)],
        }
    )


def same(a, b):
    assert (a.pvalue, a.statistic) == (b.pvalue, b.statistic)
    np.testing.assert_array_equal(a.null_distribution, b.null_distribution)
    for one, other in zip(a.classes, b.classes, strict=True):
        np.testing.assert_array_equal(one.mmd2, other.mmd2)


@pytest.mark.parametrize("step", [5, 37, 700])
def test_answers_do_not_depend_on_cuts_order_or_threads(monkeypatch, step):
    x, y = frame(400, 0), frame(500, 1, 0.2)
    ask = partial(two_sample_test, x, y, method=SMALL, missing="impute", n_permutations=49, rng=3)
    answer = ask(n_jobs=1)

    def shuffled(pool):
        total, rng = sum(pool.sizes), np.random.default_rng(step)
        parts = [np.arange(start, min(start + step, total)) for start in range(0, total, step)]
        for k in rng.permutation(len(parts)):
            rows = rng.permutation(parts[k])
            yield pool, rows, rows

    monkeypatch.setattr(Pool, "blocks", shuffled)
    monkeypatch.setattr(one_pass, "PART_ROWS", 512)
    same(answer, ask(n_jobs=2))


def plan_of(pool: Pool, families=FAMILIES, landmarks=40):
    layout, bins = Layout.by_position(pool.m, pool.n, np.random.default_rng(0), target=20)
    preparations = {None: Preparation.fit(pool)}
    order = np.random.default_rng(1).permutation(pool.m + pool.n)
    view = View(partial(preparations[None].transform, pool), layout, order, 2**30, landmarks, pair_rows=0)
    grids = [KernelClass(family, narrowest=0.5, widest=1, ratio=2).grid for family in families]
    groups = [KernelGroup.of(None, view, [grid]) for grid in grids]
    cells = cells_of(columns_of(pool, preparations[None]), pool, layout.count)
    return OnePass(bins, preparations, groups, cells), view


def test_sums_are_those_of_every_row_by_itself():
    pool = read_pool(np.random.default_rng(0).normal(size=(130, 3)), np.random.default_rng(1).normal(size=(170, 3)))
    plan, view = plan_of(pool)
    summary = summarise(plan, pool.blocks(), 300, 2**30)
    place = plan.bins.of(np.arange(300))
    matrix = plan.preparations[None].transform(pool)
    for group, sums in zip(plan.groups, summary.sums, strict=True):
        for (family, bandwidth), found in zip(group.wanted, sums, strict=True):
            K = family.gram(bandwidth, matrix, view.landmarks)
            expected = np.array([K[place == b].sum(axis=0) for b in range(len(found))])
            np.testing.assert_allclose(found, expected, atol=2e-7 * view.layout.size)
        assert np.array_equal(sums * float(GRID), np.rint(sums * float(GRID)))


@pytest.mark.parametrize("columns", [1, 3, 10, 28])
@pytest.mark.parametrize("landmarks", [30, 200])
def test_a_row_has_the_same_digits_wherever_it_stands(columns, landmarks):
    rng = np.random.default_rng(columns)
    pool = read_pool(rng.normal(size=(600, columns)), rng.normal(size=(700, columns)))
    plan, _ = plan_of(pool, landmarks=landmarks)
    seen = []
    for rows in (np.arange(TILE_ROWS), rng.permutation(500)[:TILE_ROWS]):
        matrix = plan.preparations[None].transform(rows_alone(pool, rows))
        for group in plan.groups:
            tiles = group.tiler.tiles(
                group.tiler.operand(matrix), slice(0, TILE_ROWS), group.operand, slice(0, landmarks), Scratch()
            )
            seen.append((rows, [tile.copy() for tile in tiles]))
    half = len(seen) // 2
    for (rows, tiles), (others, moved) in zip(seen[:half], seen[half:], strict=True):
        both, here, there = np.intersect1d(rows, others, return_indices=True)
        assert len(both) > 80
        for tile, other in zip(tiles, moved, strict=True):
            assert np.array_equal(tile[here], other[there])


def test_summaries_of_parts_add_up_in_any_order():
    pool = read_pool(frame(300, 0), frame(280, 1), missing="impute")
    plan, _ = plan_of(pool)
    whole = summarise(plan, pool.blocks(), 580, 2**30)
    parts = []
    for rows in np.array_split(np.random.default_rng(2).permutation(580), 7):
        part = plan.empty()
        plan.add(part, pool, rows, rows, Scratch())
        parts.append(part)
    (a, b, c, *rest) = parts
    total = (a + (b + c)) + sum(rest[1:], rest[0])
    assert total.rows == whole.rows == 580
    for found, expected in zip((*total.kernels, *total.cells), (*whole.kernels, *whole.cells), strict=True):
        assert np.array_equal(found, expected)


def test_cells_count_ranks_of_all_rows():
    rng = np.random.default_rng(4)
    values = np.concatenate([rng.normal(size=5000), np.zeros(500)])
    pool = read_pool(values[::2, None], values[1::2, None])
    (column,) = columns_of(pool, Preparation.fit(pool))
    cells = Cells.of(column, pool, 1024)
    codes = cells.codes(pool)
    counts = np.bincount(codes, minlength=cells.count)
    ranks = ((np.cumsum(counts) - counts / 2) / counts.sum())[codes]
    exact = (stats.rankdata(np.concatenate([values[::2], values[1::2]])) - 0.5) / len(values)
    assert np.abs(ranks - exact).max() < 1 / 1024
    zero = np.concatenate([values[::2], values[1::2]]) == 0
    assert len(set(codes[zero])) == 1  # a value that occurs often has a cell of its own
    np.testing.assert_allclose(ranks[zero], exact[zero])
    tail = exact < 0.5 / 1024
    np.testing.assert_allclose(ranks[tail], exact[tail], rtol=0.2)


def test_forty_rows_are_permuted_like_an_explicit_kernel():
    """All 40 rows are landmarks, so the squared MMD of every labeling is that of the kernel, up to rounding and the ridge."""
    rng = np.random.default_rng(5)
    x, y = rng.normal(size=(20, 2)), rng.normal(0.5, 1, size=(20, 2))
    searched = KernelClass(Bandwidth(), narrowest=1, widest=1)
    seen = []

    class Kept(FullSampleTest):
        def kernel_members(self, classes, views):
            for found in super().kernel_members(classes, views):
                seen.append((found[1], views[None].layout))
                yield found

    result = two_sample_test(x, y, method=Kept(classes=(searched,), pair_rows=0, landmarks=40), n_permutations=99, rng=0)
    ((members, layout),) = seen
    K = Bandwidth().gram(float(members.bandwidths[0]), np.vstack([x, y]))
    np.fill_diagonal(K, 0)
    values = []
    for labels in layout.labels.array():
        of_x = np.zeros(40, dtype=bool)
        of_x[layout.rows] = labels > 0.5
        within = K[np.ix_(of_x, of_x)].sum() / 380 + K[np.ix_(~of_x, ~of_x)].sum() / 380
        values.append(within - 2 * K[np.ix_(of_x, ~of_x)].mean())
    np.testing.assert_allclose(members.mmd2[0], values, atol=1e-4 * np.ptp(values))
    assert result.rank == sum(value >= values[0] - 1e-9 for value in values)


def test_the_level_holds_on_few_rows():
    """300 nulls at .1: a binomial count is at most 46 with probability .999."""
    rejected = 0
    for seed in range(300):
        rng = np.random.default_rng(seed)
        x, y = rng.normal(size=(20, 2)), rng.normal(size=(20, 2))
        rejected += two_sample_test(x, y, method=SMALL, n_permutations=39, alpha=0.1, rng=seed).reject
    assert rejected <= 46
