"""Size: tiles and bins against the definition, memory-mapped and Arrow inputs, budgets, progress, many tests at once."""

from functools import partial
from threading import Event, Thread

import numpy as np
import pytest
from threadpoolctl import ThreadpoolController

from cpmmd import Bandwidth, CpmmdError, LaplacianL1, MedianTest, Polynomial, Radius, SplitTest, two_sample_test
from cpmmd.core.parallel import threads
from cpmmd.draws.layout import Layout
from cpmmd.engines import fixed_kernel as engine
from cpmmd.engines.memory import TilePlan, plan_tiles
from cpmmd.engines.tiles import cut_pieces, tile_statistics, tile_sums
from cpmmd.kernels.scaled import ScaledKernel
from cpmmd.kernels.tilers import GramTiler, tiler_for
from cpmmd.statistics import mmd
from helpers import assert_level, null_pvalues


class Scaled:
    """Two and a half times an L1 Laplacian: its diagonal is not 1."""

    def gram(self, rows, others):
        return 2.5 * np.exp(-np.abs(rows[:, None] - others[None]).sum(axis=2))


@pytest.mark.parametrize("plan", [TilePlan(37, 10_000), TilePlan(37, 80), TilePlan(3, 7), TilePlan(4096, 10**6)], ids=str)
@pytest.mark.parametrize(("m", "n", "target"), [(40, 40, 1000), (90, 120, 60), (200, 333, 80), (41, 600, 100)])
def test_binned_statistics_equal_the_definition(m, n, target, plan):
    rng = np.random.default_rng(m)
    z = rng.normal(size=(m + n, 2))
    layout = Layout.cut(m, n, None, rng, target=target).draw(4, np.random.default_rng(1))
    rows = z[layout.rows]
    sums = tile_sums(rows.__getitem__, GramTiler(Scaled()), layout, plan)
    K = Scaled().gram(rows, rows)
    values, _ = tile_statistics(sums[0], layout)
    for w, value in zip(np.repeat(layout.labels.array(), layout.size, axis=1) > 0, values, strict=True):
        blocks = K[np.ix_(w, w)], K[np.ix_(~w, ~w)], K[np.ix_(w, ~w)]
        assert value == pytest.approx(mmd.unbiased_mmd2(*blocks), abs=1e-6)


@pytest.mark.parametrize("tile_rows", [5, 16, 100, 1000])
def test_pieces_cover_the_rows_and_never_part_of_two_bins(tile_rows):
    layout = Layout.cut(300, 500, None, np.random.default_rng(0), target=40)
    pieces = cut_pieces(layout, tile_rows)
    assert [p.rows.start for p in pieces[1:]] == [p.rows.stop for p in pieces[:-1]]
    assert (pieces[0].rows.start, pieces[-1].rows.stop) == (0, layout.count * layout.size)
    for piece in pieces:
        first, last = piece.rows.start // layout.size, -(-piece.rows.stop // layout.size)
        assert (piece.units.start, piece.units.stop) == (first, last)
        rows = piece.rows.stop - piece.rows.start
        assert rows <= max(tile_rows, layout.size)
        assert last - first == 1 or rows == (last - first) * layout.size


def small_network(rows):
    from cpmmd import Ascent, Deep, Plain

    test = SplitTest(Deep(width=8, out=3), Plain(), ascent=Ascent(steps=30, learning_rate=0.05))
    return two_sample_test(rows[:60], rows[-60:], method=test, rng=0, n_permutations=19).kernel


KERNELS = {
    "gaussian": lambda _: ScaledKernel(Bandwidth(), 2.0),
    "laplacian": lambda _: ScaledKernel(Bandwidth("laplacian"), 2.0),
    "laplacian_l1": lambda _: ScaledKernel(LaplacianL1(), 4.0),
    "radius": lambda _: ScaledKernel(Radius(), 1.0),
    "polynomial": lambda _: ScaledKernel(Polynomial(degree=3), 20.0),
    "deep": small_network,
}


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("sizes", [(2500, 2500), (2000, 2500)], ids=str)
def test_the_binned_statistic_is_the_dense_one(name, sizes):
    rng = np.random.default_rng(5)
    m, n = sizes
    rows = np.vstack([rng.normal(size=(m, 5)), rng.normal(0.15, 1.1, size=(n, 5))])
    kernel = KERNELS[name](rows)
    test = engine.kernel_test(kernel, rows.__getitem__, np.arange(m + n), m, n_permutations=99, rng=np.random.default_rng(0))
    assert test.engine.name == "binned"
    layout = Layout.cut(m, n, None, np.random.default_rng(0).spawn(3)[0])
    x, y = (rows[layout.rows[layout.rows < m]], rows[layout.rows[layout.rows >= m]])
    exact = mmd.unbiased_mmd2(kernel.gram(x), kernel.gram(y), kernel.gram(x, y))
    assert test.ranking.statistic == pytest.approx(exact, rel=1e-5)


def test_far_rows_do_not_spoil_single_precision():
    rng = np.random.default_rng(6)
    rows = rng.normal(size=(300, 3))
    rows[7], rows[8] = 1e9, -1e30
    layout = Layout.cut(150, 150, None, rng)
    kernel = ScaledKernel(Bandwidth(), 1.5)
    sums = tile_sums(rows[layout.rows].__getitem__, tiler_for(kernel, rows), layout, TilePlan(64, 1000))[0]
    exact = kernel.gram(rows[layout.rows])
    np.fill_diagonal(exact, 0.0)
    assert np.abs(sums - exact).max() < 1e-6


def test_rows_beyond_double_precision_are_refused():
    rows = np.random.default_rng(0).normal(size=(300, 3))
    rows[3, 1] = 1e200
    with pytest.raises(CpmmdError, match="overflow on values as large as 1e\\+200"):
        two_sample_test(rows[:150], rows[150:], rng=0)


def test_the_binned_engine_holds_its_level(monkeypatch):
    monkeypatch.setattr(engine, "DENSE_ROWS", 0)
    pvalues = null_pvalues(
        MedianTest(), lambda rng: (rng.exponential(size=(200, 2)), rng.exponential(size=(200, 2))), 1000, seed=61
    )
    assert_level(pvalues)
    # Bins of one row here; bins of several at unequal sizes below.
    monkeypatch.setattr(engine.Layout, "cut", partial(Layout.cut, target=50))
    pvalues = null_pvalues(
        MedianTest(), lambda rng: (rng.integers(0, 4, size=(150, 2)), rng.integers(0, 4, size=(250, 2))), 1000, seed=62
    )
    assert_level(pvalues)


@pytest.fixture(scope="module")
def large():
    rng = np.random.default_rng(8)
    return rng.normal(size=(3000, 4)).astype(np.float32), rng.normal(0.1, 1, size=(3400, 4)).astype(np.float32)


@pytest.mark.parametrize("method", ["median", "cp-full", "cp-linear"])
def test_threads_and_memory_do_not_change_the_answer(large, method):
    answers = [
        two_sample_test(*large, method=method, rng=3, n_permutations=199, n_jobs=jobs, memory_limit=limit)
        for jobs, limit in ((1, None), (2, "150MB" if method == "cp-linear" else "60MB"))  # its training half has 2048 rows
    ]
    assert_same_digits(*answers)
    assert answers[0].engine.name == "binned"


METHODS_HERE = ["cp-full", "cp-linear", "cp-polynomial", "energy", "liu-mixture", "median", "mmdagg", "mmdfuse"]


@pytest.mark.parametrize(("rows", "columns"), [(60, 400), (500, 3), (300, 120)])
@pytest.mark.parametrize("method", METHODS_HERE)
def test_threads_do_not_change_a_digit_of_small_tests(method, rows, columns):
    x, y = np.random.default_rng(8).normal(size=(2, rows, columns))
    assert_same_digits(*(two_sample_test(x, y, method=method, rng=1, n_permutations=19, n_jobs=jobs) for jobs in (1, 2, None)))


@pytest.mark.parametrize("method", ["cp-full", "median"])
def test_neither_do_more_threads_than_the_memory_holds_tiles_for(large, method):
    some = [part[:2200] for part in large] if method == "median" else [part[:400] for part in large]
    wanted = ((1, None), (1, "30MB"), (8, "30MB"), (200, None))
    assert_same_digits(
        *(two_sample_test(*some, method=method, rng=1, n_permutations=19, n_jobs=j, memory_limit=limit) for j, limit in wanted)
    )


def test_calls_that_overlap_have_one_blas_thread_and_put_back_what_was_there():
    (before,) = blas_threads()
    on_threads(lambda: ThreadpoolController().limit(limits=2, user_api="blas"))  # one that ends: nobody else's limit stands
    first_in, second_in, first_out, seen = Event(), Event(), Event(), []

    def first():
        with threads(None):
            first_in.set()
            second_in.wait(10)
        first_out.set()

    def second():
        first_in.wait(10)
        with threads(2):
            second_in.set()
            first_out.wait(10)
            seen.append(blas_threads())

    on_threads(first, second)
    after = blas_threads()
    on_threads(lambda: ThreadpoolController().limit(limits=before, user_api="blas"))
    assert (seen, after) == ([{1}], {2})


def on_threads(*works):
    started = [Thread(target=work) for work in works]
    for thread in started:
        thread.start()
    for thread in started:
        thread.join()


def blas_threads():
    return {one["num_threads"] for one in ThreadpoolController().info() if one["user_api"] == "blas"}


def assert_same_digits(first, *others):
    for other in others:
        assert (first.pvalue, first.statistic) == (other.pvalue, other.statistic)
        np.testing.assert_array_equal(first.null_distribution, other.null_distribution)


def test_threads_do_not_change_a_digit_of_an_explanation():
    x, y = np.random.default_rng(8).normal(size=(2, 300, 60))
    result = two_sample_test(x, y, rng=1, n_permutations=99)
    said = []
    for count in (1, 2):
        with ThreadpoolController().limit(limits=count):
            said.append(result.explain().to_dict())
    assert said[0] == said[1]


@pytest.mark.parametrize("rows", [100, 1500])
def test_memory_does_not_change_a_digit_of_a_search_over_pairs(rows):
    x, y = np.random.default_rng(8).normal(size=(2, rows, 5))
    whole, little = (two_sample_test(x, y, rng=1, n_permutations=99, memory_limit=limit) for limit in (None, "40MB"))
    assert whole.statistic == little.statistic
    np.testing.assert_array_equal(whole.null_distribution, little.null_distribution)


@pytest.mark.parametrize("kind", ["memmap", "arrow", "feather"])
def test_mapped_and_chunked_inputs_give_the_answer_of_arrays(large, kind, tmp_path):
    import pyarrow as pa

    def held(rows, name):
        if kind == "memmap":
            np.save(tmp_path / name, rows)
            return np.load(tmp_path / f"{name}.npy", mmap_mode="r")
        chunks = [pa.table({f"c{j}": part[:, j] for j in range(4)}) for part in np.array_split(rows, 3)]
        table = pa.concat_tables(chunks)
        if kind == "feather":
            with pa.OSFile(str(tmp_path / name), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
                writer.write_table(table)
            return pa.ipc.open_file(pa.memory_map(str(tmp_path / name))).read_all()
        return table

    mapped = [held(rows, name) for rows, name in zip(large, "xy", strict=True)]
    options = {"rng": 1, "n_permutations": 99}
    expected, got = two_sample_test(*large, **options), two_sample_test(*mapped, **options)
    assert (got.pvalue, got.statistic) == (expected.pvalue, expected.statistic)


def test_arrow_floats_are_not_copied():
    import pyarrow as pa

    from cpmmd.data.table import read_table

    values = np.arange(10.0)
    table = read_table(pa.table({"a": pa.array(values)}), "x")
    assert np.shares_memory(table.numbers.columns[0][0], values)


def test_missing_values_are_named_with_their_row(tmp_path):
    rows = np.random.default_rng(0).normal(size=(5000, 3))
    rows[-1, 2] = np.nan
    np.save(tmp_path / "x.npy", rows)
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    with pytest.raises(CpmmdError, match="1 in '2' of sample y, the first in row 4999 of sample y"):
        two_sample_test(rows[:-1], mapped)


def test_a_budget_too_small_for_tiles_is_refused(large):
    with pytest.raises(CpmmdError, match=r"at least .* Got 100 kB; raise it"):
        two_sample_test(*large, memory_limit="100kB")


@pytest.mark.parametrize("method", ["mmdagg", "mmdfuse"])
def test_methods_that_need_whole_matrices_say_so(large, method):
    with pytest.raises(CpmmdError, match="more than the 50 MB of memory_limit="):
        two_sample_test(*large, method=method, memory_limit="50MB")


@pytest.mark.parametrize("limit", ["lots", 0, -5, "2 furlongs", True, 1.5])
def test_a_memory_limit_must_be_bytes(limit):
    with pytest.raises(CpmmdError, match="number of bytes"):
        two_sample_test(np.zeros((5, 1)), np.ones((5, 1)), memory_limit=limit)


def test_plans_keep_to_their_budget():
    plan = plan_tiles(2**30, width=28, n_kernels=1, bins=200)
    assert plan.tile_rows == 512
    assert plan.panel_rows > 100_000
    assert plan_tiles(20_000_000, width=28, n_kernels=17, bins=200).tile_rows < 512


@pytest.mark.parametrize(("method", "stage"), [("median", "tiles"), ("cp-full", "rows")])
def test_progress_counts(large, method, stage):
    seen = []
    two_sample_test(*large, method=method, rng=0, progress=lambda *step: seen.append(step))
    tiles = [(done, total) for name, done, total in seen if name == stage]
    if stage == "rows":  # of the first geometry
        tiles = tiles[: [done == total for done, total in tiles].index(True) + 1]
    assert tiles[-1][0] == tiles[-1][1]
    assert [done for done, _ in tiles] == sorted(done for done, _ in tiles)


def test_a_large_training_half_is_cut_and_the_rest_is_tested(large):
    result = two_sample_test(*large, method=SplitTest(max_train_rows=400), rng=0, n_permutations=99)
    assert len(result.evidence.trained) <= 400
    assert sum(result.tested_sizes) > 5900


@pytest.mark.parametrize("panel_rows", [64, 200, 10_000])
def test_digits_do_not_depend_on_how_rows_are_cut_into_panels(panel_rows):
    # Two rows are so far out that the product needs double precision: all tiles have it then, not those of their panel alone.
    rows = np.random.default_rng(3).normal(size=(400, 3))
    rows[17], rows[230] = 4e3, 4e3 + 1e-3
    layout = Layout.of_rows(200, 200)
    kernel = ScaledKernel(Bandwidth(), 1.0)
    tiler = tiler_for(kernel, rows)
    cut, whole = (tile_sums(rows.__getitem__, tiler, layout, TilePlan(64, size))[0] for size in (panel_rows, 400))
    np.testing.assert_array_equal(cut, whole)
    exact = kernel.gram(rows)
    np.fill_diagonal(exact, 0.0)
    np.testing.assert_allclose(whole, exact, rtol=2e-6, atol=1e-9)
