"""Pictures: true to their numbers, readable without colour and on any background, harmless whatever the names."""

import subprocess
import sys
from dataclasses import dataclass, replace
from functools import cache
from io import BytesIO

import matplotlib as mpl
import numpy as np
import polars as pl
import pytest
from matplotlib import pyplot
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.text import Text

from cpmmd import Bandwidth, DriftDetector, Polynomial, Ratio, SplitTest, plotting, report, two_sample_test
from cpmmd.errors import InputError, MissingExtraError
from cpmmd.plotting import style
from helpers import light

mpl.use("Agg")
RNG = np.random.default_rng(3)
X, Y = RNG.normal(size=(60, 4)), RNG.normal(0.6, 1.2, size=(70, 4))
HOSTILE = "$x_1$ \\frac{ <script>\n" + "long " * 50


def answer(x, y, method="cp-full", **options):
    result = two_sample_test(x, y, method=method, rng=0, n_permutations=99, **options)
    return result, result.explain()


def frame(rows, moved):
    return pl.DataFrame(
        {
            HOSTILE: RNG.normal(moved, 1, rows),
            "colour": RNG.choice(["red", "$blue$"], rows, p=[0.3 + 0.4 * moved, 0.7 - 0.4 * moved]),
            "on": RNG.random(rows) < 0.5,
            "when": np.datetime64("2024-01-01") + RNG.integers(0, 90, rows).astype("timedelta64[D]"),
            "gone": [None] * rows,
            "income": [None if RNG.random() < 0.3 else 1.0 for _ in range(rows)],
        },
        schema_overrides={"gone": pl.Float64},
    )


@cache
def full():
    return answer(X, Y)


@cache
def split():
    return answer(X, Y, SplitTest(Polynomial(degree=2)))


@cache
def mixed():
    return answer(frame(60, 0), frame(50, 1), missing="impute")


@cache
def deep():
    return answer(X, Y, light("cp-deep"))


POWER = [{"size": s, "power": p, "low": p - 0.1, "high": min(p + 0.1, 1)} for s, p in ((50, 0.3), (100, 0.6), (400, 0.95))]
BATCHES = [{"batch": f"day {i}", "pvalue": p, "adjusted": None, "reject": p < 0.05} for i, p in enumerate((0.4, 0.9, 0.001, 0.3))]
WATCHED = [
    {
        "batch": f"day {i}",
        "number": i + 1,
        "wealth": w,
        "alarm": w > 20,
        "since_number": 3,
        "episode": i // 4,
        "columns": ["u", "v"][: i % 3],
    }
    for i, w in enumerate((0.5, 0.7, 9.0, 400.0, 1.0, 90.0))
]

PICTURES = {
    "null": lambda ax: plotting.null_distribution(full()[0], ax=ax),
    "path of classes": lambda ax: plotting.criterion_path(full()[0], ax=ax),
    "path": lambda ax: plotting.criterion_path(split()[0], ax=ax),
    "history": lambda ax: plotting.training_history(deep()[0], ax=ax),
    "witness": lambda ax: plotting.witness_densities(full()[1], ax=ax),
    "differences": lambda ax: plotting.column_differences(mixed()[1], ax=ax),
    "distributions": lambda ax: plotting.column_distributions(mixed()[1], ax=ax),
    "map": lambda ax: plotting.pool_map(mixed()[1], ax=ax),
    "power": lambda ax: plotting.power_curves(POWER, ax=ax),
    "batches": lambda ax: plotting.batch_series(BATCHES, ax=ax),
    "effects": lambda ax: plotting.batch_effects([{**batch, "effect": 0.6} for batch in BATCHES], ax=ax),
    "wealth": lambda ax: plotting.batch_wealth(WATCHED, ax=ax),
    "moved": lambda ax: plotting.moved_columns(WATCHED, ax=ax),
}
every_picture = pytest.mark.parametrize("name", PICTURES)


@every_picture
def test_a_picture_draws_on_the_axes_given_and_opens_nothing(name):
    figure, opened = Figure(layout="constrained"), pyplot.get_fignums()  # a page that was run before may have left some
    ax = figure.subplots()
    assert PICTURES[name](ax) is ax
    figure.draw_without_rendering()
    assert pyplot.get_fignums() == opened
    assert ax.get_xlabel()


@every_picture
def test_new_axes_are_transparent(name):
    ax = PICTURES[name](None)
    assert ax.patch.get_alpha() == 0
    assert ax.figure.patch.get_alpha() == 0
    pyplot.close(ax.figure)


@every_picture
def test_text_takes_the_colours_of_the_style(name):
    with pyplot.style.context("dark_background"):
        figure = Figure()
        PICTURES[name](figure.subplots())
        figure.draw_without_rendering()
        assert {to_rgb(t.get_color()) for t in figure.findobj(Text) if t.get_text()} == {(1, 1, 1)}


@every_picture
def test_curves_differ_without_colour(name):
    ax = PICTURES[name](Figure().subplots())
    handles, labels = ax.get_legend_handles_labels()
    assert len(set(labels)) == len(labels)
    curves = [h for h in handles if hasattr(h, "get_linestyle") and hasattr(h, "get_marker")]
    looks = {(str(c.get_linestyle()), c.get_marker(), c.get_markersize(), c.get_linewidth()) for c in curves}
    assert len(looks) == len(curves)


def test_colours_stand_on_white_and_on_black():
    def luminance(colour):
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in to_rgb(colour)]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    for colour in (style.BLUE, style.ORANGE, style.GREY, style.PURPLE, style.GREEN):
        for ground in ("#ffffff", "#121212"):
            light_one, dark_one = sorted([luminance(colour), luminance(ground)], reverse=True)
            assert (light_one + 0.05) / (dark_one + 0.05) >= 3


@pytest.mark.parametrize("name", ["differences", "distributions", "map"])
def test_names_are_shown_as_they_are_and_short(name):
    figure, file = Figure(figsize=(9, 5)), BytesIO()
    ax = PICTURES[name](figure.subplots())
    with mpl.rc_context({"svg.fonttype": "none"}):
        figure.savefig(file, format="svg")
    svg = file.getvalue().decode()
    assert "$x_1$" in svg  # no formula
    assert "<script>" not in svg
    for text in (*ax.get_yticklabels(), ax.xaxis.label, ax.yaxis.label):
        assert max(len(line) for line in text.get_text().split("\n")) < 70
        assert HOSTILE not in text.get_text()


def test_importing_the_pictures_does_not_import_matplotlib():
    code = "import sys, cpmmd; cpmmd.plotting.pool_map; sys.exit('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_without_matplotlib_it_says_what_to_install(monkeypatch):
    for module in [m for m in sys.modules if m.split(".")[0] == "matplotlib"]:
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingExtraError, match=r"pip install .*\[plot\]"):
        plotting.null_distribution(full()[0])


@pytest.mark.parametrize("seed", range(20))
def test_the_statistic_is_past_the_limit_exactly_when_the_test_rejects(seed):
    rng = np.random.default_rng(seed)
    alpha = [0.05, 0.29, 0.1, 0.5][seed % 4]
    result = two_sample_test(rng.normal(size=(15, 1)), rng.normal(0.4, 1, size=(15, 1)), method="median", rng=seed, alpha=alpha)
    lines = {line.get_label(): line.get_xdata()[0] for line in plotting.null_distribution(result, ax=Figure().subplots()).lines}
    limit = lines[f"limit at significance level {alpha:g}"]
    assert (lines[f"observed, p = {result.pvalue:.3g}"] > limit) == result.reject


def test_the_penalty_is_the_calibrated_complexity():
    ax = plotting.criterion_path(split()[0], ax=Figure().subplots())
    lines = {line.get_label(): line for line in ax.lines}
    order = np.argsort(split()[0].selection.path.bandwidths)
    expected = split()[0].calibration.c1 * split()[0].selection.path.complexity[order]
    np.testing.assert_allclose(lines["complexity penalty"].get_ydata(), expected, rtol=1e-6)
    assert lines["chosen"].get_xdata()[0] == pytest.approx(split()[0].kernel.bandwidth)
    ratio = plotting.criterion_path(answer(X, Y, SplitTest(Bandwidth(), Ratio()))[0], ax=Figure().subplots())
    assert "complexity penalty" not in {line.get_label() for line in ratio.lines}


def test_the_kernel_and_the_member_of_the_statistic_are_marked():
    result = full()[0]
    ax = plotting.criterion_path(result, ax=Figure().subplots())
    marked = {line.get_label(): line.get_ydata()[0] for line in ax.lines if len(line.get_ydata())}
    chosen, best = result.selected_class, result.statistic_class
    assert marked["kernel"] == chosen.scores[chosen.selected]
    assert ("statistic" in marked) == bool(result.kernel_note)
    assert marked.get("statistic", best.evidence) == best.evidence


def test_pictures_of_what_did_not_happen_are_refused():
    with pytest.raises(InputError, match="searches bandwidths"):
        plotting.criterion_path(answer(X, Y, "median")[0])
    with pytest.raises(InputError, match="trained kernel"):
        plotting.training_history(split()[0])
    with pytest.raises(InputError, match="holds its data"):
        plotting.pool_map(replace(full()[0], evidence=None), ax=Figure().subplots())
    with pytest.raises(InputError, match="at least one"):
        plotting.power_curves([])
    with pytest.raises(InputError, match="'size' and 'power'"):
        plotting.power_curves([{"rows": 5}])
    with pytest.raises(InputError, match="at least one"):
        plotting.batch_series([])


def test_witness_densities_are_densities():
    ax = plotting.witness_densities(full()[1], ax=Figure().subplots())
    for line in ax.lines[:2]:
        places, heights = line.get_data()
        assert np.sum(heights) * (places[1] - places[0]) == pytest.approx(1, abs=0.03)


def test_differences_are_bars_of_the_distance_in_the_order_of_the_columns():
    ax = plotting.column_differences(full()[1], ax=Figure().subplots())
    assert [bar.get_width() for bar in ax.patches] == pytest.approx([100 * f.distance for f in full()[1].columns])
    assert [label.get_text() for label in ax.get_yticklabels()] == [f.label for f in full()[1].columns]


def test_two_columns_are_mapped_as_they_are_whatever_rows_were_dropped():
    x, y = X[:, :2].copy(), Y[:, :2].copy()
    x[[0, 7], 0] = y[3, 1] = np.nan
    result, explanation = answer(x, y, missing="drop")
    ax = plotting.pool_map(result, ax=Figure().subplots())
    of_x, of_y = ax.collections[0].get_offsets(), ax.collections[2].get_offsets()
    inner = np.abs(x[explanation.rows_x] - np.median(x[explanation.rows_x], axis=0)).max(axis=1) < 1.5  # none moved to the border
    np.testing.assert_allclose(of_x[inner], x[explanation.rows_x][inner])
    assert len(of_y) == 69
    assert not np.isnan(x[explanation.rows_x]).any()
    np.testing.assert_allclose(ax.collections[0].get_array(), explanation.witness_x)


def test_shifted_columns_make_the_map():
    x, y = RNG.normal(size=(150, 10)), RNG.normal(size=(150, 10))
    y[:, 4] += 2
    ax = plotting.pool_map(answer(x, y, "median")[0], ax=Figure().subplots())
    assert "mostly column 4" in ax.get_xlabel()
    of_x, of_y = ax.collections[0].get_offsets()[:, 0], ax.collections[2].get_offsets()[:, 0]
    assert of_x.mean() - of_y.mean() > of_x.std()  # like x to the right


@dataclass
class Row:
    size: int
    power: float
    low: float
    high: float
    observed: float | None
    extrapolated: bool


@dataclass
class Table:
    rows: tuple[Row, ...]
    target: float


def test_a_power_table_shows_its_target_its_draws_and_where_the_pilot_ends():
    table = Table((Row(50, 0.3, 0.2, 0.4, 0.31, False), Row(200, 0.9, 0.7, 1.0, None, True)), 0.8)
    labels = plotting.power_curves(table, ax=Figure().subplots()).get_legend_handles_labels()[1]
    assert "target 0.80" in labels
    assert any("simulated" in label for label in labels)
    assert any("pilot" in label for label in labels)
    several = [{"size": 50, "power": 0.5, "method": m} for m in ("cp-full", "mmdagg")]
    assert plotting.power_curves(several, ax=Figure().subplots()).get_legend_handles_labels()[1] == ["cp-full", "mmdagg"]


def test_a_series_marks_its_limit_and_its_alarms_on_top():
    ax = plotting.batch_series(BATCHES, alpha=0.01, ax=Figure().subplots())
    lines = {line.get_label(): line for line in ax.lines}
    assert lines["significance level 0.01"].get_ydata()[0] == 0.01
    assert list(lines["different"].get_xdata()) == [2]
    assert ax.get_ylim()[0] > ax.get_ylim()[1]
    many = [{"batch": HOSTILE, "pvalue": 0.5, "adjusted": 0.9, "reject": False} for _ in range(300)]
    ax = plotting.batch_series(many, ax=Figure().subplots())
    assert len(ax.get_xticks()) <= 12
    assert "adjusted" in ax.get_ylabel()


def test_a_series_of_dated_batches_stands_at_its_dates():
    named = ["b-20240305.csv", "b-2024-03-01.csv", "b-2024-03-02T0630.csv"]
    dated = [{"batch": name, "pvalue": 0.5, "reject": False, "effect": 0.5 + i / 10} for i, name in enumerate(named)]
    failed = {"batch": "b-2024-03-09.csv", "error": "It lacks 'u'."}
    for draw in (plotting.batch_series, plotting.batch_effects):
        ax = draw([*dated, failed, {**failed, "batch": "gone.csv"}], ax=Figure().subplots())
        lines = {line.get_label(): np.asarray(line.get_xdata(), dtype=float) for line in ax.lines}
        day = lines["no difference found"][0]
        np.testing.assert_allclose(lines["no difference found"] - day, [0, 1 + 6.5 / 24, 4])
        np.testing.assert_allclose(lines["not tested"] - day, [8, 8])
        assert ax.get_xlabel() == "date in the batch's name"
    tested = [{**batch, "time": f"2024-06-0{i + 1}T00:00:00"} for i, batch in enumerate(BATCHES)]
    assert plotting.batch_series(tested, ax=Figure().subplots()).get_xlabel() == "day of the test"
    same_day = [{**batch, "time": "2024-06-01T00:00:00"} for batch in BATCHES]
    assert plotting.batch_series(same_day, ax=Figure().subplots()).get_xlabel() == "batch"


def test_what_a_detector_returns_can_be_drawn_and_reported():
    names = ["a", "b", "c", "d"]
    fitted = DriftDetector(rng=0, n_permutations=99).fit(pl.DataFrame(X, schema=names))
    shifted, twice = (pl.DataFrame(Y[:40] + shift, schema=names) for shift in ([0, 3, 0, 0], [3, 3, 0, 0]))
    batches = {"monday": shifted, "tuesday": pl.DataFrame({"other": [1.0]}), "wednesday": twice}
    checked = fitted.check(batches)
    for records in (checked, [batch.to_dict() for batch in checked]):
        ax = plotting.moved_columns(records, ax=Figure().subplots())
        assert {label.get_text() for label in ax.get_yticklabels()} == {name for batch in checked for name in batch.columns}
        assert sum(len(line.get_xdata()) for line in ax.lines) == sum(len(batch.columns) for batch in checked) > 1
        lines = {line.get_label(): line for line in plotting.batch_series(records, ax=Figure().subplots()).lines}
        assert [len(lines[name].get_xdata()) for name in ("different", "not tested")] == [2, 1]
    assert "Columns that changed" in report.write_series(checked, alpha=0.05)
    found = [fitted.test(shifted, name="thursday")]
    assert len(plotting.batch_series(found, ax=Figure().subplots()).lines) == 4


def test_columns_are_drawn_where_none_changed():
    ax = plotting.moved_columns([{"batch": "monday", "pvalue": 0.5, "reject": False}], ax=Figure().subplots())
    assert not ax.get_yticklabels()


AWKWARD = {
    "identical": (np.ones((5, 2)), np.ones((6, 2))),
    "one column": (X[:, 0], Y[:, 0]),
    "one constant column": (np.c_[X, np.ones(60)], np.c_[Y, np.ones(70)]),
    "smallest": (X[:4], Y[:4]),
    "discrete": (RNG.integers(0, 3, (20, 2)), RNG.integers(0, 3, (20, 2))),
    "heavy": (RNG.standard_cauchy((30, 3)) * 1e9, RNG.standard_cauchy((30, 3))),
    "images": (RNG.normal(size=(20, 6, 6)), RNG.normal(size=(20, 6, 6))),
}


@pytest.mark.parametrize("case", AWKWARD)
def test_awkward_data_can_be_drawn(case):
    result, explanation = answer(*AWKWARD[case])
    figure = Figure(figsize=(20, 4))
    axes = figure.subplots(1, 6)
    plotting.null_distribution(result, ax=axes[0])
    plotting.criterion_path(result, ax=axes[1])
    plotting.witness_densities(explanation, ax=axes[2])
    plotting.column_differences(explanation, ax=axes[3])
    plotting.column_distributions(explanation, ax=axes[4])
    plotting.pool_map(result, ax=axes[5])
    figure.draw_without_rendering()
