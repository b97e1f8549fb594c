"""The page of a large table: its size, what that consists of, and how soon a browser paints it."""

import gzip
import json
import os
import re
import shutil
import statistics
import tempfile
from collections import Counter
from pathlib import Path

from benchmarks import commands
from benchmarks.report import duration, progress, rounded

BITS = (8, 16, 24, 32)
METHODS, SEEDS = 40, 10
# What the rows are variants of: with and without training curves, whatever trains in less than a second.
CLASSES = {"lsh": {}, "itq": {}, "talr_ap": {"epochs": 20}, "csq": {"epochs": 20}}
LOADS = 9
_BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")


def run(report, quick):
    """Print what a page consists of and when it is painted."""
    methods, seeds = (8, 2) if quick else (METHODS, SEEDS)
    with tempfile.TemporaryDirectory(prefix="tiebench-page-") as folder:
        progress(f"page: {methods} methods x {len(BITS)} lengths x {seeds} seeds on the digits")
        page = made(Path(folder), methods, seeds)
        found = first_paints(page, LOADS) if find_browser() else []
        text = page.read_text(encoding="utf-8")
    tables(report, text, found, f"{methods} methods, {len(BITS)} code lengths, {seeds} seeds")


def configuration(methods, seeds):
    """A table of the digits with so many variants as rows."""
    classes = list(CLASSES.items())
    variants = {}
    for number in range(methods):
        name, settings = classes[number % len(classes)]
        variants[f"row_{number}"] = {"class": name, "title": f"{name}, row {number}", "defaults": settings}
    table = {
        "title": "Large",
        "seeds": list(range(seeds)),
        "methods": list(variants),
        "blocks": [{"protocol": "digits", "metric": "ap", "bits": list(BITS)}],
    }
    return {
        "methods": variants,
        "protocols": {"digits": {"runs_per_job": {"seeds": seeds, "bits": list(BITS)}}},
        "tables": {"large": table},
    }


def made(folder, methods, seeds):
    """The page of such a table, made in a folder by the workflow."""
    file = folder / "large.json"  # which is YAML too
    file.write_text(json.dumps(configuration(methods, seeds)))
    options = ["--snakefile", commands.ROOT / "Snakefile", "--directory", folder, "--configfile", file]
    commands.timed(folder, "snakemake", "--cores", commands.CORES, *options, "--", "results/large.html")
    return folder / "results" / "large.html"


def find_browser():
    """Path of a Chromium or Chrome: the one that CHROME names, else of the PATH; None without one."""
    named = os.environ.get("CHROME")
    return next(filter(None, map(shutil.which, [named] if named else _BROWSERS)), None)


def first_paints(page, loads):
    """Milliseconds to the first contentful paint of a page, each in a browser that was just started."""
    from playwright.sync_api import sync_playwright

    found = []
    with sync_playwright() as driver:
        for _ in range(loads):
            browser = driver.chromium.launch(executable_path=find_browser(), args=["--no-sandbox"])
            view = browser.new_page(viewport={"width": 1280, "height": 800})
            view.goto(page.as_uri())
            paints = "performance.getEntriesByName('first-contentful-paint')"
            view.wait_for_function(f"{paints}.length > 0")
            found.append(view.evaluate(f"{paints}[0].startTime"))
            browser.close()
    return found


def parts(text):
    """What the bytes of a page are, by the elements that hold them."""
    found = Counter()

    def taken(kind):
        def count(match):
            found[kind] += len(match[0].encode())
            return ""

        return count

    # In this order: what is found first is not looked at again.
    for kind, pattern in (
        ("gallery", r"<svg\b(?:(?!</svg>).)*data:image/(?:(?!</svg>).)*</svg>"),
        ("files to download", r'(?<=")data:[^"]*'),
        ("figures", r"<svg\b.*?</svg>"),
        ("scripts and styles", r"<(script|style)\b.*?</\1>"),
        ("tables", r"<table\b.*?</table>"),
    ):
        text = re.sub(pattern, taken(kind), text, flags=re.DOTALL)
    return dict(found) | {"the rest": len(text.encode())}


def tables(report, text, paints, size):
    """Print the parts of a page's text and the milliseconds to its first paints."""
    whole = len(text.encode())
    report.write(
        f"## The page of a table: {size}",
        "A page of the digits, made by the workflow; the rows are variants of cheap methods. One file with "
        "all figures, files to download and settings of all runs.",
    )
    rows = [(kind, f"{size / 1e6:.2f}", f"{100 * size / whole:.0f} %") for kind, size in parts(text).items()]
    packed = len(gzip.compress(text.encode(), mtime=0))
    rows += [
        ("the page", f"{whole / 1e6:.2f}", "100 %"),
        ("the page, as gzip sends it", f"{packed / 1e6:.2f}", ""),
    ]
    report.rows(["part", "MB", "share"], rows)
    report.target(f"page of {size}", "at most 1.5 MB", f"{rounded(whole / 1e6)} MB")
    if paints:
        median = statistics.median(paints) / 1e3
        report.write(
            f"First contentful paint in Chromium, from disk, {len(paints)} fresh starts: median "
            f"{duration(median)} ({duration(min(paints) / 1e3)} to {duration(max(paints) / 1e3)})."
        )
        report.wait(f"first paint of a page of {size}", f"{duration(median)}, {rounded(whole / 1e6)} MB")
        report.target("its first paint in Chromium", "under 1 s", duration(median))
    else:
        report.write(
            "First paint: not measured, there is no Chromium; install one, or set CHROME to its path."
        )
