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
