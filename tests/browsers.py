"""The browser of the system that tests open pages in."""

import os
import shutil

# Names on the PATH, and places that are not on it.
CHROMES = (
    *("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome", "microsoft-edge"),
    "/snap/bin/chromium",
    "/opt/google/chrome/chrome",
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
)


def find_browser(environment=os.environ):
    """Path of the browser that CHROME names, else of the first of CHROMES; None without one."""
    names = [environment["CHROME"]] if environment.get("CHROME") else CHROMES
    return next(filter(None, map(shutil.which, names)), None)
