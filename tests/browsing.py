"""A real browser for the tests: pages that are opened, with all that they ask for and complain of. Skips where there is none."""

import shutil
from contextlib import contextmanager

import pytest

CHROMIUM = shutil.which("chromium")
if CHROMIUM is None:
    pytest.skip("no chromium on the PATH (on Debian: apt-get install chromium)", allow_module_level=True)
sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed (pip install playwright)")
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]
DESKTOP, PHONE = {"width": 1180, "height": 900}, {"width": 390, "height": 844}
VIEWS = {"light": ("light", DESKTOP), "dark": ("dark", DESKTOP), "phone": ("light", PHONE), "dark phone": ("dark", PHONE)}


@contextmanager
def started_browser():
    with sync_api.sync_playwright() as playwright:
        program = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield program
        program.close()


class Visit:
    """A page that was opened, with all that it asked for and complained of."""

    def __init__(self, browser, address, view="light"):
        scheme, size = VIEWS[view]
        self.context = browser.new_context(color_scheme=scheme, viewport=size)
        self.page, self.complaints, self.requests = self.context.new_page(), [], []
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("dialog", lambda dialog: (self.complaints.append("a dialog opened"), dialog.dismiss()))
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.goto(address)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.context.close()

    def column(self, table, position):
        return self.page.locator(f"#{table} tbody tr > :nth-child({position + 1})").all_inner_texts()

    def fits(self):
        """Whether nothing makes the page scroll to the side."""
        width, room = self.page.evaluate("[document.documentElement.scrollWidth, document.documentElement.clientWidth]")
        return width <= room
