"""The browsers of the system that tests open pages in, and what is skipped without them.

Chromium or Chrome is driven by playwright, Firefox by Mozilla's marionette_driver (tests/firefox.py), because
playwright drives a Firefox of its own only. All packages are in the dependency group "browser".
"""

import contextlib
import os
import shutil

import pytest

# Names on the PATH, and places that are not on it.
CHROMES = (
    *("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome", "microsoft-edge"),
    "/snap/bin/chromium",
    "/opt/google/chrome/chrome",
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
)
FIREFOXES = (
    *("firefox-esr", "firefox"),
    "/opt/firefox/firefox",
    "/Applications/Firefox.app/Contents/MacOS/firefox",
)


# Of a page's two schemes, the second can break contrast alone.
AXE_OPTIONS = {"light": {}, "dark": {"runOnly": ["color-contrast"]}}


def _first(variable, names, environment):
    named = environment.get(variable)
    return next(filter(None, map(shutil.which, [named] if named else names)), None)


def find_browser(environment=os.environ):
    """Path of the browser that CHROME names, else of the first of CHROMES; None without one."""
    return _first("CHROME", CHROMES, environment)


def find_firefox(environment=os.environ):
    """Path of the browser that FIREFOX names, else of the first of FIREFOXES; None without one.

    Ubuntu's, a snap, does not do: it sees no temporary files.
    """
    return _first("FIREFOX", FIREFOXES, environment)


needs_chromium = pytest.mark.skipif(
    find_browser() is None,
    reason="the browser tests need chromium or google-chrome: install one, or set CHROME to its path",
)
needs_firefox = pytest.mark.skipif(
    find_firefox() is None,
    reason="the tests in Firefox need firefox-esr or firefox: install one, or set FIREFOX to its path",
)


def package(name):
    """A module of the dependency group "browser"; without it, the test is skipped."""
    return pytest.importorskip(name, reason=f"the browser tests need {name}: pip install --group browser")


@contextlib.contextmanager
def chromium():
    """The system's Chromium without a window, as playwright's browser."""
    with package("playwright.sync_api").sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=find_browser(), args=["--no-sandbox"])
        yield browser
        browser.close()


class Page:
    """A page of Chromium that opens one address after the other: a new one takes longer than what it opens.

    options: of its context; said: (kind, text) of the console and of errors; asked: addresses; both since
    `begin`.
    """

    def __init__(self, browser, **options):
        self.shown = browser.new_context(**options).new_page()
        self.said, self.asked = [], []
        self.shown.on("console", lambda message: self.said.append((message.type, message.text)))
        self.shown.on("pageerror", lambda error: self.said.append(("error", str(error))))
        self.shown.on("request", lambda request: self.asked.append(request.url))

    def begin(self):
        """Forget what was opened before."""
        if self.shown.url.startswith("file:"):
            self.shown.evaluate("localStorage.clear()")
        self.shown.goto("about:blank")
        self.shown.mouse.move(0, 0)
        self.said.clear()
        self.asked.clear()

    def open(self, address, width=1280, height=900, scheme="light", instead=None):
        """Open a page at a size and in a colour scheme; instead: the text to show at the address."""
        self.shown.goto("about:blank")
        self.shown.set_viewport_size({"width": width, "height": height})
        self.shown.emulate_media(media="null", color_scheme=scheme)
        if instead is not None:
            body = {"body": instead, "content_type": "text/html"}
            self.shown.route(address, lambda route: route.fulfill(**body), times=1)
        self.shown.goto(address)
        return self.shown


def violations(shown, scheme, context=None, **options):
    """What axe finds on a page that is open in a colour scheme: (rule, impact, elements).

    Of each table it sees the first rows: they look alike, and axe takes its time for
    every cell.
    """
    more = "tbody tr:nth-child(n+9)"
    axe = package("axe_playwright_python.sync_playwright").Axe()
    shown.evaluate("more => document.querySelectorAll(more).forEach(row => row.remove())", more)
    found = axe.run(shown, context=context, options=options | AXE_OPTIONS[scheme]).response["violations"]
    return [(rule["id"], rule["impact"], [node["html"][:200] for node in rule["nodes"]]) for rule in found]
