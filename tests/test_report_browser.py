"""Reports in a real browser: nothing fails, nothing is fetched, nothing foreign runs, tables sort, nothing overflows."""

import numpy as np
import pandas as pd
import pytest

from browsing import PHONE, VIEWS, Visit, started_browser
from cpmmd import two_sample_test
from cpmmd.report.series import write_series
from helpers import HOSTILE_NAMES, sample_named


def sample(seed, rows, shift, names=("amount", "colour", "age")):
    data = np.random.default_rng(seed)
    columns = [data.normal(shift, 1, rows), data.choice(["red", "green"], rows), data.normal(40, 10, rows)]
    return pd.DataFrame(dict(zip(names, columns, strict=True)))


def hostile_report(names):
    x, y = (pd.DataFrame(sample_named(names, seed, shift)) for seed, shift in ((0, 3), (1, 0)))
    return two_sample_test(x, y, n_permutations=99, rng=0).report(title="".join(names), command="".join(names))


def wide_report():
    data = np.random.default_rng(5)
    x, y = (pd.DataFrame(data.normal(size=(90, 40)), columns=[f"sensor {i}" for i in range(40)]) for _ in range(2))
    y["sensor 3"] += 2
    return two_sample_test(x, y, n_permutations=199, rng=0).report(names=("line 1", "line 2"))


def pairs_report():
    """A report with pairs of columns that have long names, as those of ``cpmmd demo``."""
    data = np.random.default_rng(7)
    names = ["mean perimeter", "perimeter error", "worst concave points", "fractal dimension error"]
    x, y = data.normal(size=(120, 4)), data.normal(size=(120, 4))
    y[:, 1:] = 0.3 * y[:, 1:] + y[:, :1]
    frames = (pd.DataFrame(values, columns=names) for values in (x, y))
    return two_sample_test(*frames, n_permutations=199, rng=0).report(names=("benign.csv", "malignant.csv"))


def batches(count):
    names = list(HOSTILE_NAMES.values())
    return [
        {
            "batch": names[i % len(names)],
            "time": f"2024-06-{i + 1:02d}T00:00:00",
            "rows": 100,
            "pvalue": (i + 1) / (count + 1),
            "adjusted": None,
            "statistic": float(i),
            "effect": 0.5,
            "reject": i == 0,
            "method": "cp-full",
            "seed": 1,
        }
        for i in range(count)
    ]


def watched(count):
    names = list(HOSTILE_NAMES.values())
    return [
        {
            **batch,
            "number": i + 1,
            "episode": 0,
            "evalue": 2.0,
            "wealth": 2.0**i,
            "alarm": i > 8,
            "since": names[5],
            "since_number": 6,
            "alpha": 0.05,
            "columns": names[i % 4 : i % 4 + 2],
        }
        for i, batch in enumerate(batches(count))
    ]


@pytest.fixture(scope="module")
def reports(tmp_path_factory):
    """The pages of this module, each in a file."""
    folder = tmp_path_factory.mktemp("reports")
    pages = {
        "differs": two_sample_test(sample(0, 80, 1), sample(1, 70, 0), rng=0).report(command="cpmmd test a.csv b.csv"),
        "alike": two_sample_test(sample(2, 60, 0), sample(3, 60, 0), method="cp-linear", rng=0).report(),
        "series": write_series(batches(28), alpha=0.05),
        "wide": wide_report(),
        "pairs": pairs_report(),
        "watched": write_series(watched(28)),
        "hostile": hostile_report(list(HOSTILE_NAMES.values())),
    }
    for name, text in pages.items():
        (folder / f"{name}.html").write_text(text, encoding="utf-8")
    return {name: (folder / f"{name}.html").as_uri() for name in pages}


@pytest.fixture(scope="module")
def browser():
    with started_browser() as program:
        yield program


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("name", ["differs", "alike", "series", "watched", "hostile", "wide"])
def test_a_report_opens_quietly_and_fits_the_screen(browser, reports, name, view):
    with Visit(browser, reports[name], view) as visit:
        assert visit.complaints == []
        assert visit.requests == [reports[name]]
        assert visit.fits()
        assert visit.page.locator("svg:not(.mini)").count() == visit.page.locator("figure").count() > 0


@pytest.mark.parametrize("width", [1280, 500, 390])
def test_no_column_of_the_pairs_is_cut_off(browser, reports, width):
    with Visit(browser, reports["pairs"]) as visit:
        visit.page.set_viewport_size({"width": width, "height": 900})
        assert visit.page.locator("#pairs tbody tr").count() >= 3
        cells = visit.page.locator("#pairs tbody tr >> nth=0 >> css=th, td").all()
        assert len(cells) == 5
        edge = visit.page.eval_on_selector("#pairs", "table => table.parentElement.getBoundingClientRect().right")
        assert max(box["x"] + box["width"] for cell in cells if (box := cell.bounding_box())) <= edge + 0.5
        if width == 1280:
            hidden = "[...document.querySelectorAll('.scroll')].map(e => e.scrollWidth - e.clientWidth)"
            assert max(visit.page.evaluate(hidden)) <= 0


@pytest.mark.parametrize("name", ["hostile", "series"])
def test_hostile_names_do_not_run(browser, reports, name):
    with Visit(browser, reports[name]) as visit:
        opened = [details.evaluate("e => { e.open = true }") for details in visit.page.locator("details").all()]
        assert (len(opened) > 0) == (name == "hostile")
        visit.page.locator("thead button").first.click()  # sorting moves the names about
        assert visit.complaints == []
        assert not visit.page.evaluate("document.title === 'owned' || window.owned === true")
        assert visit.page.locator("script").count() == 1
        assert visit.page.locator("img, iframe, [onerror], [onclick]").count() == 0


def as_numbers(texts):
    return [float(text.replace("\u2212", "-").rstrip("%")) for text in texts]


def test_tables_sort_on_click(browser, reports):
    with Visit(browser, reports["differs"]) as visit:
        button = visit.page.locator("#classes thead th:nth-child(6) button")
        header = visit.page.locator("#classes thead th:nth-child(6)")
        scores = as_numbers(visit.column("classes", 5))
        for order, expected in (("descending", sorted(scores, reverse=True)), ("ascending", sorted(scores))):
            button.click()
            assert header.get_attribute("aria-sort") == order
            assert as_numbers(visit.column("classes", 5)) == expected
        visit.page.locator("#classes thead th:first-child button").click()
        assert visit.column("classes", 0) == sorted(visit.column("classes", 0))
        assert header.get_attribute("aria-sort") is None
        assert "ascending" in visit.page.locator("#sort-status").inner_text()


@pytest.mark.parametrize("key", ["Enter", "Space"])
def test_tables_sort_by_keyboard_alone(browser, reports, key):
    with Visit(browser, reports["differs"]) as visit:
        for _ in range(100):
            visit.page.keyboard.press("Tab")
            if visit.page.evaluate("document.activeElement.closest('#classes thead th:nth-child(6)') !== null"):
                break
        else:
            pytest.fail("the header's button cannot be reached with Tab")
        outline = visit.page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
        assert outline != "none"  # the focus can be seen
        visit.page.keyboard.press(key)
        visit.page.keyboard.press(key)
        scores = as_numbers(visit.column("classes", 5))
        assert scores == sorted(scores)


def test_every_column_can_be_searched_for(browser, reports):
    with Visit(browser, reports["wide"]) as visit:
        assert visit.page.locator(".column:visible").count() == 12
        visit.page.locator("input[type=search]").fill("sensor 39")
        assert visit.page.locator(".column:visible .name").all_inner_texts() == ["sensor 39"]
        visit.page.locator("input[type=search]").fill("higher")
        assert visit.page.locator(".column:visible .name").all_inner_texts() == ["sensor 3"]
        visit.page.locator("input[type=search]").fill("")
        assert visit.page.locator(".column:visible").count() == 40
        assert visit.complaints == []


@pytest.mark.parametrize("name", ["differs", "wide"])
def test_the_first_screen_of_a_phone_has_the_verdict_and_the_leading_column(browser, reports, name):
    with Visit(browser, reports[name], "phone") as visit:
        for place in ("h1", ".lead", ".column >> nth=0"):
            box = visit.page.locator(place).bounding_box()
            assert box["y"] + box["height"] <= PHONE["height"], place


def test_a_phone_shows_the_latest_batches_of_a_series(browser, reports):
    with Visit(browser, reports["watched"], "phone") as visit:
        rest, hidden = visit.page.eval_on_selector(
            ".wide .canvas", "c => [c.scrollWidth - c.clientWidth - c.scrollLeft, c.scrollWidth - c.clientWidth]"
        )
        assert hidden > 0
        assert abs(rest) <= 1


def test_the_first_tab_offers_to_skip_to_the_report(browser, reports):
    with Visit(browser, reports["differs"]) as visit:
        visit.page.keyboard.press("Tab")
        assert visit.page.evaluate("document.activeElement.className") == "skip"
        visit.page.keyboard.press("Enter")
        assert visit.page.evaluate("document.activeElement.id") == "report"


def luminance(colour):
    """Relative luminance of an rgb() colour, as WCAG 2 defines it."""
    channels = [int(part) / 255 for part in colour[colour.index("(") + 1 : colour.index(")")].split(",")[:3]]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("view", ["light", "dark"])
@pytest.mark.parametrize("name", ["differs", "series"])
def test_text_contrasts_with_the_page_in_light_and_dark(browser, reports, name, view):
    """At least 4.5 to 1, the ratio of WCAG 2 AA, for text of the page and of the figures."""
    colours = """[...document.querySelectorAll('h1, p, dt, dd, th, td, figcaption, a, text')].filter(e => !e.closest('.skip'))
        .map(e => getComputedStyle(e)[e.tagName === 'text' ? 'fill' : 'color'])"""
    with Visit(browser, reports[name], view) as visit:
        page = luminance(visit.page.evaluate("getComputedStyle(document.body).backgroundColor"))
        assert (page < 0.1) == (view == "dark")
        for colour in set(visit.page.evaluate(colours)):
            lighter, darker = sorted([luminance(colour), page], reverse=True)
            assert (lighter + 0.05) / (darker + 0.05) >= 4.5, colour


def test_the_report_prints(browser, reports):
    with Visit(browser, reports["differs"]) as visit:
        assert visit.page.pdf().startswith(b"%PDF")
        visit.page.emulate_media(media="print")
        assert not visit.page.locator("nav").is_visible()
