"""The page in a real browser: Chromium or Chrome without a window, opened from disk.

Needs playwright and a browser of the system, such as Debian's package `chromium`: the one that the variable
CHROME names, else one of CHROMES. tests/reporting/test_page_in_firefox.py has the
keyboard, the sorting of scores and what screen readers are told.
"""

import itertools
import re
from pathlib import Path

import browsers
import pytest
from example_pages import FIGURES, METHODS, TABLE, score, write_pages
from files import made_once
from models import table_of

from reporting.drawing import method_styles

pytestmark = [pytest.mark.thorough, browsers.needs_chromium]


@pytest.fixture(scope="module")
def browser():
    with browsers.chromium() as chromium:
        yield chromium


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Pages by name, on disk."""
    return made_once(tmp_path_factory, "a results folder", write_pages)


@pytest.fixture(scope="module")
def page(browser):
    return browsers.Page(browser)


@pytest.fixture
def opened(page, files):
    """Opens a page; at the end, nothing may have been said on the console or asked of anything else."""
    page.begin()
    yield lambda name="one", **options: page.open((files / f"{name}.html").as_uri(), **options)
    assert page.said == []
    assert {url for url in page.asked if not url.startswith("data:")} <= {
        path.as_uri() for path in files.iterdir()
    }


def rows(shown):
    """Methods of the first table of scores, as they stand."""
    visible = "rows => rows.filter(row => row.offsetParent).map(row => row.dataset.method)"
    return shown.eval_on_selector_all("table.scores tr[data-method]", visible)


@pytest.mark.parametrize("name", ["one", "several", "holes", "bare"])
def test_a_page_opens_from_disk_without_a_word_and_without_horizontal_scroll(opened, name):
    shown = opened(name, width=768, height=780)
    figures = shown.locator("figure").count()
    assert figures == {"one": len(FIGURES), "several": len(FIGURES) + 1, "holes": 1, "bare": 0}[name]
    click = "names => document.querySelectorAll(names).forEach(one => one.click())"
    shown.evaluate(click, ".tool[aria-controls], .claim summary")
    for width in (768, 360):
        shown.set_viewport_size({"width": width, "height": 780})
        assert shown.evaluate("document.documentElement.scrollWidth") <= width
        edges = "all => all.map(one => one.getBoundingClientRect().right)"
        assert all(edge <= width for edge in shown.eval_on_selector_all("figure .scroll", edges))
    shown.set_viewport_size({"width": 1280, "height": 900})
    shown.evaluate(click, "button:not([data-file]), summary")  # everything that answers a click
    shown.locator("#filter summary").click()
    shown.get_by_label("All methods").click()


def figure(shown, kind):
    return shown.locator(f"figure:has(#figure-quick-{kind})")


def table_of_figure(shown, kind):
    """Heads and rows of a figure's values."""
    place = figure(shown, kind)
    place.locator("[data-shows=table]").click()
    cells = "rows => rows.map(row => [...row.cells].map(cell => cell.textContent))"
    found = place.locator(".as-table tr").evaluate_all(cells)
    return found[0], found[1:]


def mean(method, bits):
    return (score(method, bits, 0) + score(method, bits, 1)) / 2


def test_figures_say_the_numbers_of_the_records(opened):
    shown = opened()
    titles = dict(zip(METHODS, ["LSH", "ITQ", "MIHash", "TALR-AP"]))
    heads, found = table_of_figure(shown, "metric-by-bits")
    assert heads == ["Line", "bits", "AP_T / NDCG_T", "lowest seed", "highest seed"]
    expected = [
        (f"{titles[method]}, {title}", [bits, mean(method, bits), *(score(method, bits, s) for s in (0, 1))])
        for title, lengths in (("Digits", (8, 16, 24)), ("Digits (levels)", (8, 16)))
        for method in METHODS
        for bits in lengths
    ]
    assert [row[0] for row in found] == [row[0] for row in expected]
    for row, (_, wanted) in zip(found, expected):
        assert [float(value) for value in row[1:]] == pytest.approx(wanted, abs=5e-4)
    _, found = table_of_figure(shown, "precision-recall")
    line = [row[1:] for row in found if row[0] == "MIHash, Digits, 16 bits"]
    assert [[float(value) for value in row] for row in line] == [
        pytest.approx([radius / 16, mean("mihash", 16) - 0.2 * radius / 16], abs=6e-4) for radius in range(17)
    ]
    _, found = table_of_figure(shown, "distances")
    assert [float(row[2]) for row in found[:17]] == pytest.approx(
        [2 * (16 - distance) / 16 / 17 for distance in range(17)], abs=5e-4
    )
    _, found = table_of_figure(shown, "training")
    assert found[0] == ["ITQ, Digits, 8 bits, seed 0", "1", "3"]
    for kind in ("cost", "precision-at", "tie-ranges"):
        heads, found = table_of_figure(shown, kind)
        assert len(found) > 10 and {len(row) for row in found} == {len(heads)}
        assert not [value for row in found for value in row[1:] if value in ("", "NaN")]


def test_runs_are_sorted_and_lead_to_their_files(opened):
    shown = opened()
    shown.locator("table.runs thead button", has_text="Training").click()
    numbers = "rows => rows.map(row => Number(row.cells[5].textContent))"
    seconds = shown.eval_on_selector_all("table.runs tbody tr", numbers)
    files = shown.locator("table.runs tbody tr").first.locator("td:last-child a")
    assert files.all_text_contents() == ["run", "training", "scores"]
    assert files.nth(1).get_attribute("href").startswith("runs/digits")
    assert files.nth(1).get_attribute("href").endswith("/training.jsonl")
    assert seconds == sorted(seconds, reverse=True) and seconds[0] > seconds[-1]


def methods_of(shown, kind):
    """Those that a figure shows."""
    visible = "all => all.filter(one => one.getBoundingClientRect().height).map(one => one.dataset.method)"
    return set(figure(shown, kind).locator("svg[id] [data-method]").evaluate_all(visible))


def test_the_filter_is_for_tables_figures_and_runs(opened):
    shown = opened()
    box = shown.locator("#filter")
    box.locator("[value=lsh]").uncheck()
    box.locator("[value=itq]").uncheck()
    box.locator("[name=bits][value='8']").uncheck()
    assert rows(shown) == ["mihash", "talr_ap"]
    assert shown.locator("tr.family:visible").all_text_contents() == ["Lists"]
    columns = shown.locator("table.scores thead tr:nth-child(2) th:visible").all_text_contents()
    assert columns == ["16 bits", "24 bits", "16 bits"]
    assert shown.locator("table.scores th.group").nth(1).get_attribute("colspan") == "1"
    assert shown.locator("tr[data-method=mihash] td:visible").first.inner_text().startswith("0.638 ± 0.003 ?")
    for kind in ("metric-by-bits", "precision-recall", "precision-at", "cost", "tie-ranges", "distances"):
        assert methods_of(shown, kind) == {"mihash", "talr_ap"}
        _, found = table_of_figure(shown, kind)
        assert {row[0].split(",")[0] for row in found} == {"MIHash", "TALR-AP"}
    _, found = table_of_figure(shown, "training")
    cells = ("Digits, 16", "Digits, 24", "Digits (levels), 16")
    lines = itertools.product(("MIHash", "TALR-AP"), cells, (0, 1))
    assert {row[0] for row in found} == {f"{name}, {cell} bits, seed {seed}" for name, cell, seed in lines}
    lengths = figure(shown, "metric-by-bits").locator(".as-table td:first-of-type").all_inner_texts()
    assert lengths == ["16", "24", "16", "24", "16", "16"]
    assert "2 of 4 methods, 2 of 3 code lengths" in shown.locator("#filtered").inner_text()
    # MIHash and TALR-AP, two seeds, at 16 and 24 bits and at 16 bits
    assert shown.locator("table.runs tbody tr:visible").count() == 2 * 2 * 3
    assert "12 of 40 runs" in shown.locator(".above [role=status]").inner_text()

    search = shown.get_by_label("Runs with")
    search.fill("TALR levels")
    assert shown.locator("table.runs tbody tr:visible").count() == 2
    search.fill("no such run")
    assert shown.locator("table.runs tbody tr:visible").count() == 0
    search.fill("")
    box.get_by_label("No method").click()
    assert rows(shown) == [] and methods_of(shown, "cost") == set()
    box.get_by_label("All methods").click()
    assert rows(shown) == METHODS and shown.locator("#filtered").inner_text() != "all"
    box.locator("[name=bits][value='8']").check()
    assert shown.locator("#filtered").inner_text() == "all"
    assert shown.locator("table.runs tbody tr:visible").count() == 40
    value = shown.locator("table.scores small")
    assert value.all_inner_texts() == ["pub. 0.7654"] and value.is_visible()
    shown.get_by_label("published").uncheck()
    assert not value.is_visible()


def test_a_long_name_leaves_room_for_scores_on_a_telephone(opened):
    shown = opened(width=360, height=780)
    name = shown.locator("table.scores th[scope=row]").first
    name.evaluate("one => { one.textContent = 'a_name_of_a_method_' + 'x'.repeat(60); }")
    assert name.bounding_box()["width"] < 180


def test_the_pointer_over_a_figure_shows_its_numbers(opened):
    shown = opened()
    said = shown.locator("output.point")
    opacity = "all => all.map(one => Number(getComputedStyle(one).opacity))"
    for kind, start in (("metric-by-bits", "ITQ, Digits"), ("tie-ranges", "LSH, Digits, 8 bits")):
        place = figure(shown, kind).locator("svg[id]")
        place.scroll_into_view_if_needed()
        marker = place.locator("[data-values] use").nth(0 if kind == "tie-ranges" else 3)
        box = marker.bounding_box()
        shown.mouse.move(box["x"] + box["width"] / 2 + 2, box["y"] + box["height"] / 2 + 2)
        assert said.inner_text().split(":")[0] == start and said.is_visible()
        numbers = re.findall(r"(?<= )\.?\d[\d.]*", said.inner_text().split(": ")[1])
        values = [float(number) for number in numbers]
        method = start.split(",")[0].lower()
        first = [8, mean(method, 8)] if kind == "metric-by-bits" else [mean(method, 8)]
        assert values[: len(first)] == pytest.approx(first, abs=5e-4)
        # the method stands out here, in other figures and in the tables
        for other in ("cost", kind):
            others = figure(shown, other).locator(f"[data-values][data-method]:not([data-method={method}])")
            assert max(others.evaluate_all(opacity)) < 0.3
        assert shown.locator("table.scores tr.marked").get_attribute("data-method") == method
    shown.mouse.move(2, 2)
    assert said.inner_text() == "" and shown.locator(".marked").count() == 0
    # A click keeps it marked, until the next one.
    for marked in ({"itq"}, set()):
        shown.locator("table.scores tr[data-method=itq] th").click()
        shown.mouse.move(2, 2)
        found = shown.locator("tr.marked").evaluate_all("all => all.map(row => row.dataset.method)")
        assert set(found) == marked and shown.locator("html.marking").count() == len(marked)


def test_figures_are_printed_and_controls_are_not(opened):
    shown = opened()
    shown.emulate_media(media="print")
    assert shown.locator("figure svg[id]:visible").count() == len(FIGURES)
    assert not shown.locator("#filter").is_visible() and shown.locator(".tool:visible").count() == 0
    shown.emulate_media(media="screen")
    pdf = shown.pdf(format="A4")
    assert pdf.startswith(b"%PDF-") and len(pdf) > 20_000


def test_the_page_is_whole_without_its_script(browser, files):
    shown = browsers.Page(browser, java_script_enabled=False).open((files / "one.html").as_uri())
    assert shown.locator("figure svg[id]:visible").count() == len(FIGURES)
    assert not shown.locator("#filter").is_visible() and shown.locator(".tool:visible").count() == 0
    assert shown.locator("table.scores td").first.get_attribute("title").startswith("Mean 0.31")
    assert shown.locator("tr.family").count() == 2


def test_downloads_have_the_right_bytes(opened, files):
    shown = opened()
    expected = sorted((files / "files").iterdir())
    assert len(expected) == 2
    for file in expected:
        with shown.expect_download() as waiting:
            shown.locator(f'a[download="{file.name}"]').click()
        assert waiting.value.suggested_filename == file.name
        assert Path(waiting.value.path()).read_bytes() == file.read_bytes()


def test_a_figure_is_downloaded_as_it_is_on_paper(browser, opened, files, tmp_path):
    """In a browser, the file looks like what matplotlib has drawn; a filtered method is not in it."""
    image, chops = browsers.package("PIL.Image"), browsers.package("PIL.ImageChops")
    shown = opened()

    def downloaded(kind):
        with shown.expect_download() as waiting:
            shown.locator(f'[data-file="{kind}_quick.svg"]').click()
        assert waiting.value.suggested_filename == f"{kind}_quick.svg"
        return Path(waiting.value.path()).read_text()

    kinds = ("tie_ranges", "metric_by_bits")
    light = {kind: downloaded(kind) for kind in kinds}
    for kind, text in light.items():
        assert "var(" not in text
        pictures = []
        for name, svg in (("page", text), ("drawn", (files / "figures" / f"{kind}.svg").read_text())):
            (tmp_path / f"{name}.svg").write_text(svg)
            page = browser.new_page(viewport={"width": 900, "height": 800})
            page.goto((tmp_path / f"{name}.svg").as_uri())
            page.screenshot(path=tmp_path / f"{name}.png")
            page.close()
            pictures.append(image.open(tmp_path / f"{name}.png").convert("L"))
        levels = chops.difference(*pictures).histogram()
        assert sum(levels[128:]) < 0.001 * sum(levels)
    shown.emulate_media(color_scheme="dark")
    assert {kind: downloaded(kind) for kind in kinds} == light
    shown.locator("#filter [value=lsh]").uncheck()
    text = downloaded("tie_ranges")
    assert 'data-method="itq"' in text and 'data-method="lsh"' not in text


def test_the_colours_follow_the_scheme(opened):
    shown = opened(scheme="dark")
    surface = "getComputedStyle(document.body).backgroundColor"
    line = "one => getComputedStyle(one).stroke"
    lines = figure(shown, "metric-by-bits").locator("[data-values] > path")
    axis = figure(shown, "metric-by-bits").locator("text").first
    colours = {method: method_styles.colour(table_of(TABLE), method) for method in METHODS}
    wanted = [f"rgb{tuple(bytes.fromhex(rgb[1:]))}" for rgb in colours.values()]
    schemes = {"dark": ["rgb(21, 24, 27)", "rgb(231, 234, 237)"]}
    schemes["light"] = ["rgb(255, 255, 255)", "rgb(28, 32, 36)"]
    for scheme, expected in schemes.items():
        shown.emulate_media(color_scheme=scheme)
        shown.wait_for_timeout(100)
        assert [shown.evaluate(surface), axis.evaluate("one => getComputedStyle(one).fill")] == expected
        # These colours can be seen on both pages; tests/reporting/test_page_swatches.py has others.
        assert [one.evaluate(line) for one in lines.all()[:4]] == wanted


def test_axe_finds_nothing(opened):
    """On a page of two tables, the second of which has holes."""
    shown = opened("several")
    # Of figures and their tables one is enough: they look alike, and axe takes its time for every part.
    shown.locator("[data-shows=table]:visible").first.click()
    for button in shown.locator(".claim summary:visible").all():
        button.click()
    alike = "figure:not(:first-of-type) svg *"
    shown.eval_on_selector_all(alike, "all => all.forEach(one => one.remove())")
    for scheme in ("light", "dark"):
        shown.emulate_media(color_scheme=scheme)
        shown.wait_for_timeout(100)
        shown.locator("table.scores .value").first.focus()
        assert browsers.violations(shown, scheme) == []
