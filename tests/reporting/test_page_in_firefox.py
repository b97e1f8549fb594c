"""The page of results in Firefox: the keyboard alone, what screen readers are told, narrow, dark, printed.

Needs marionette_driver and a Firefox of the system, such as Debian's package `firefox-esr`: the one that the
variable FIREFOX names, else one of FIREFOXES.
"""

import re

import browsers
import pytest
from example_pages import FIGURES, METHODS, score, write_pages
from files import made_once
from firefox import firefox, opening

pytestmark = [pytest.mark.thorough, browsers.needs_firefox]


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    with firefox(tmp_path_factory.mktemp("firefox")) as started:
        yield started


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Pages by name, on disk."""
    return made_once(tmp_path_factory, "a results folder", write_pages)


@pytest.fixture
def opened(browser, files):
    yield from opening(browser, lambda name="one": (files / f"{name}.html").as_uri())


def rows(shown):
    """Methods of the first table of scores, as they stand."""
    visible = "return all('table.scores tr[data-method]').filter(row => row.offsetParent)"
    return shown.script(f"{visible}.map(row => row.dataset.method)")


def sorting(shown):
    return shown.script(
        "return all('table.scores th[aria-sort]').map(heading => heading.getAttribute('aria-sort'))"
    )


def cell(shown):
    """(method, column) of the score in focus, and whether its details are shown."""
    return shown.script(
        """const {activeElement} = document;
        const shown = document.getElementById("details").matches(":popover-open");
        return [activeElement.closest("tr")?.dataset.method, activeElement.closest("td")?.cellIndex, shown]"""
    )


def test_errors_words_and_requests_are_noticed(browser, tmp_path):
    """What the other tests see nothing of, on a page that has it."""
    (tmp_path / "bad.html").write_text(
        "<!DOCTYPE html><script>console.log('a word'); console.error('a complaint')</script>"
        "<img src='http://127.0.0.1:61234/image.png'><script>nowhere()</script>"
        "<script>Promise.reject(new Error('refused'))</script>"
    )
    browser.open((tmp_path / "bad.html").as_uri())
    said = browser.messages()
    for level, words in (
        ("log", "a word"),
        ("error", "a complaint"),
        ("error", "ReferenceError: nowhere is not defined"),
        ("error", "Error: refused"),
    ):
        assert [level, words] in said
    assert browser.asked() == ["http://127.0.0.1:61234/image.png"]
    assert browser.messages() == []


@pytest.mark.parametrize("name", ["one", "several", "holes", "bare"])
def test_a_page_opens_from_disk_without_a_word_and_without_horizontal_scroll(opened, name):
    shown = opened(name, width=390)
    count = {"one": len(FIGURES), "several": len(FIGURES) + 1, "holes": 1, "bare": 0}[name]
    assert shown.script("return all('figure').length") == count
    click = "for (const one of all(arguments[0])) one.click()"
    shown.script(click, ".tool[aria-controls], .claim summary")
    assert shown.script("return document.documentElement.scrollWidth") <= 390
    edges = "return all('figure .scroll').map(one => one.getBoundingClientRect().right)"
    assert all(edge <= 390 for edge in shown.script(edges))
    shown.script(click, "button:not([data-file]), summary")


def test_a_figure_says_its_numbers_to_keys_and_as_a_table(opened):
    shown = opened()
    point = "return document.querySelector('output.point').textContent"

    def said(words):
        shown.wait(f"{point}.startsWith(arguments[0])", words)

    shown.tab_to("#filter [value=lsh]")
    shown.press("Space")
    shown.tab_to("#figure-quick-metric-by-bits")
    said("ITQ, Digits: bits 8, AP_T 0.46")  # LSH is filtered out
    shown.press("Right", "Down")
    said("MIHash, Digits: bits 16, AP_T 0.638")
    shown.announced("MIHash, Digits: bits 16, AP_T 0.638")
    marked = "return all('tr.marked').map(row => row.dataset.method)"
    assert set(shown.script(marked)) == {"mihash"}
    shown.press("End")
    said("TALR-AP, Digits (levels): bits 16, NDCG_T")
    shown.press("Escape")
    assert shown.script(point) == "" and shown.script(marked) == []
    shown.press("End", "Enter", "Escape")  # Enter keeps it marked
    assert shown.script(point) == "" and set(shown.script(marked)) == {"talr_ap"}
    shown.tab_to("figure:has(#figure-quick-metric-by-bits) [data-shows=table]")
    shown.press("Enter")
    assert shown.script("return all('.as-table:not([hidden]) tbody tr').length") == 15


def test_tab_reaches_the_headings_and_enter_sorts(opened):
    shown = opened()
    assert rows(shown) == METHODS and sorting(shown) == ["other"] + ["none"] * 5
    shown.tab_to("table.scores thead tr:nth-child(2) button")
    shown.press("Enter")
    assert rows(shown) == ["talr_ap", "mihash", "itq", "lsh"]
    assert sorting(shown) == ["none", "descending"] + ["none"] * 4
    shown.press("Space")
    assert rows(shown) == METHODS and sorting(shown)[1] == "ascending"
    assert shown.script("return all('tr.family').filter(row => !row.hidden).length") == 0
    shown.press("Shift+Tab", "Enter")
    assert rows(shown) == METHODS and sorting(shown)[:2] == ["other", "none"]
    titles = "return all('tr.family').filter(row => !row.hidden).map(row => row.textContent)"
    assert shown.script(titles) == ["Unsupervised", "Lists"]


def test_arrows_go_through_the_scores(opened):
    shown = opened()
    shown.tab_to("table.scores thead tr:last-child th:last-child button")
    shown.press("Enter", "Tab")
    assert sorting(shown)[-1] == "descending" and cell(shown) == ["talr_ap", 1, True]
    shown.press("Right", "Down")
    assert cell(shown) == ["mihash", 2, True]
    role, name, description = shown.focused()
    assert (role, name.split()[0]) == ("button", "0.638")
    assert description.startswith("Mean 0.638") and "−0.1000 from the best" in description
    shown.press("Escape")
    assert cell(shown) == ["mihash", 2, False]
    shown.press("End")
    assert cell(shown) == ["mihash", 5, True]
    shown.press("Home", "Up", "Left")
    assert cell(shown) == ["talr_ap", 1, True]
    # one stop in a table: the next is outside of it, and the way back leads to the same score
    shown.press("Down", "Tab")
    assert cell(shown) == [None, None, False]
    shown.press("Shift+Tab")
    assert cell(shown) == ["mihash", 1, True]


def test_the_filter_with_the_keyboard(opened):
    shown = opened()
    shown.tab_to("#filter [value=lsh]")
    shown.press("Space", "Tab", "Space")
    assert rows(shown) == ["mihash", "talr_ap"]
    lines = """return all("#figure-quick-metric-by-bits [data-values]")
        .filter(one => one.getBoundingClientRect().height).map(one => one.dataset.method)"""
    assert set(shown.script(lines)) == {"mihash", "talr_ap"}
    shown.announced("2 of 4 methods, 3 of 3 code lengths")
    shown.announced("20 of 40 runs")
    assert shown.told("#filter summary")[1].startswith("Methods and code lengths: 2 of 4 methods")
    shown.tab_to("[data-of=method][data-check='1']")
    shown.press("Enter")
    assert rows(shown) == METHODS
    shown.tab_to("[type=search]")
    shown.press(*"talr levels")
    shown.announced("4 of 40 runs")
    count = "return all('table.runs tbody tr').filter(row => row.offsetParent).length"
    assert shown.script(count) == 4


def test_what_screen_readers_are_told(opened):
    shown = opened()
    for selector, role, name in (
        ("#filter", "form", "Filter of all tables and figures"),
        ("#filter summary", "", "Methods and code lengths: all"),
        ("#filter [value=talr_ap]", "checkbox", "TALR-AP"),
        ("[data-of=method][data-check='']", "button", "No method"),
        ("table.scores", "table", "APT on Digits; NDCGT on Digits (levels)"),
        ("table.scores thead button", "button", "Method"),
        ("table.scores thead tr:last-child th", "columnheader", "8 bits"),
        ("table.scores tr[data-method] th", "rowheader", "LSH"),
        ("[type=search]", "searchbox", "Runs with"),
        ("[data-file^=tie]", "button", "Download What ties can do to a score as SVG"),
        (".scroll:has(table.runs)", "region", "Runs of A quick table"),
    ):
        assert (selector, *shown.told(selector)) == (selector, role, name)
    assert shown.told("#figure-quick-tie-ranges")[1] == "What ties can do to a score"
    shown.tab_to("table.scores thead tr:nth-child(2) button")
    shown.press("Enter")
    # aria-sort says it; the name stays
    assert shown.focused()[:2] == ("button", "8 bits")


def test_the_colours_follow_the_scheme_and_paper_has_the_results_and_no_controls(opened, tmp_path):
    shown = opened(scheme="dark")
    surface = "return getComputedStyle(document.body).backgroundColor"
    text = "return getComputedStyle(document.querySelector('figure svg[id] text')).fill"
    assert (shown.script(surface), shown.script(text)) == ("rgb(21, 24, 27)", "rgb(231, 234, 237)")
    shown.set_medium("print")
    hidden = "return all(arguments[0]).every(one => !one.checkVisibility())"
    for selector in ("#filter", "[type=search]", ".tool", ".point", "#details"):
        assert shown.script(hidden, selector), selector
    assert shown.script("return all('figure svg[id]').every(one => one.getBoundingClientRect().height > 50)")
    assert shown.script(surface) == "rgb(255, 255, 255)"
    shown.set_medium("")
    shown.set_scheme("light")
    shown.wait(f"{surface} === 'rgb(255, 255, 255)'")
    assert shown.script(text) == "rgb(28, 32, 36)"
    shown.set_scheme("dark")
    text = re.sub(r"\s+", " ", " ".join(shown.printed(tmp_path / "page.pdf")))
    mean = (score("talr_ap", 24, 0) + score("talr_ap", 24, 1)) / 2
    # a score, and a figure with its axis
    for words in ("A quick table", f"{mean:.3f} ± 0.003", "scores over all orders of tied", "Seeds: 0, 1."):
        assert words in text, words
    assert text.count("TALR-AP 8 bits") == 0 and text.count("16 bits") >= 3
    for words in ("Methods and code lengths", "as a table", "Runs with", "Download", "Column headings sort"):
        assert words not in text, words


def test_downloads_have_the_right_bytes(opened, files):
    shown = opened()
    expected = sorted((files / "files").iterdir())
    assert len(expected) == 2
    for file in expected:
        shown.find(f'a[download="{file.name}"]').send_keys("\ue007")
        assert shown.downloaded(file.name) == file.read_bytes()
    shown.find("[data-file='tie_ranges_quick.svg']").send_keys("\ue007")
    assert shown.downloaded("tie_ranges_quick.svg").startswith(b"<svg xmlns=")
