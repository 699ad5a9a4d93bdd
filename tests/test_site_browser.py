"""The built site in a real browser: nothing is fetched from elsewhere, nothing fails, nothing overflows."""

import pytest

from browsing import Visit, started_browser
from docs.page_runs import ROOT

SITE = ROOT / "docs" / "_build" / "html"
if not (SITE / "index.html").exists():
    pytest.skip("the site is not built (make docs)", allow_module_level=True)
PAGES = ["index", "start", "questions", "command-line", "howto/monitoring", "howto/where", "gallery/index", "gallery/plot_feed"]


@pytest.fixture(scope="module")
def browser():
    with started_browser() as program:
        yield program


@pytest.mark.parametrize("view", ["light", "dark phone"])
@pytest.mark.parametrize("name", PAGES)
def test_a_page_of_the_site_opens_quietly_and_fits_the_screen(browser, name, view):
    with Visit(browser, (SITE / f"{name}.html").as_uri(), view) as visit:
        for frame in visit.page.locator("iframe").all():
            frame.scroll_into_view_if_needed()  # frames are loaded when they are seen
        visit.page.wait_for_load_state("networkidle")
        assert visit.complaints == []
        assert all(request.startswith((SITE.as_uri(), "data:")) for request in visit.requests)
        assert visit.fits()
        assert visit.page.locator("article h1").count() == 1
