"""Pages of leaderboards in Firefox: the keyboard alone, what screen readers are told, narrow, dark, printed.

Needs the environment that `make docs` creates, marionette_driver and a Firefox of the system.
"""

import re
import unicodedata

import browsers
import pytest
from firefox import firefox
from leaderboard_site import PAGES, difference, read, write_site

from reporting.leaderboard import pairs
from reporting.leaderboard.per_query import with_scores

pytestmark = [pytest.mark.thorough, browsers.needs_firefox]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_site(tmp_path_factory)


@pytest.fixture(scope="module")
def protocols(tmp_path_factory):
    return read(tmp_path_factory)


@pytest.fixture(scope="module")
def browser(tmp_path_factory, folder):
    with firefox(tmp_path_factory.mktemp("firefox")) as started:
        yield started


@pytest.fixture
def opened(browser, folder):
    """Opens a page from disk; at the end no error may have been said, and nothing asked of the network."""
    said, asked = [], []

    def look():
        # The theme logs its colour mode.
        said.extend(words for level, words in browser.messages() if level != "log")
        asked.extend(browser.asked())

    def open_page(name, query="", **options):
        look()
        browser.open((folder / name).as_uri() + query, **options)
        return browser

    browser.open("about:blank")
    yield open_page
    look()
    assert said == [] and asked == []


def column(shown, place):
    return shown.script(
        "return all('#scores-table tbody tr').map(row => row.cells[arguments[0]].dataset.value ?? '')", place
    )


def sorting(shown):
    return shown.script(
        """return all("#scores-table th:has(button)").map(one => one.getAttribute("aria-sort"))"""
    )


def test_tab_reaches_the_headings_and_keys_sort(opened):
    shown = opened("digits.html")
    shown.tab_to("#scores-table thead button")
    assert shown.focused()[:2] == ("button", "Method")
    shown.press("Tab", "Enter")
    values = [float(value) for value in column(shown, 1)]
    assert values == sorted(values, reverse=True)
    assert [place for place, order in enumerate(sorting(shown)) if order != "none"] == [1]
    assert sorting(shown)[1] == "descending"
    shown.press("Space")
    values = [float(value) for value in column(shown, 1)]
    assert values == sorted(values) and sorting(shown)[1] == "ascending"
    # Ranks: the smallest first, and those without one at the end.
    shown.press("Tab", "Enter")
    known = [int(rank) for rank in column(shown, 2) if rank]
    assert known == sorted(known) and column(shown, 2)[: len(known)] == list(map(str, known))
    shown.press("Shift+Tab", "Shift+Tab", "Enter")
    titles = shown.script("return all('#scores-table tbody th').map(one => one.dataset.value)")
    assert titles == sorted(titles, key=str.casefold) and sorting(shown)[0] == "ascending"


def test_a_permalink_leads_to_its_row(opened):
    shown = opened("digits.html", "#talr_ap")
    target = """const row = document.querySelector("tr:target"), {top, bottom} = row.getBoundingClientRect();
      return [row.dataset.method, top >= 0 && bottom <= innerHeight, location.hash]"""
    assert shown.script(target) == ["talr_ap", True, "#talr_ap"]
    shown.tab_to("#mihash .headerlink")
    assert shown.focused()[:2] == ("link", "Link to the row of MIHash")
    shown.press("Enter")
    assert shown.script(target) == ["mihash", True, "#mihash"]


def test_a_method_is_marked_and_filtered_with_the_keyboard(opened):
    shown = opened("digits.html")
    opacity = """return [...new Set(all(".chart g[data-method]")
      .filter(one => (one.dataset.method === "itq") === arguments[0])
      .map(one => Number(getComputedStyle(one).opacity)))]"""
    assert shown.script(opacity, True) == shown.script(opacity, False) == [1]
    shown.tab_to("#filter summary")
    shown.press("Enter")
    shown.tab_to("#filter [value=itq]")
    assert shown.focused()[:2] == ("checkbox", "ITQ")
    assert shown.script(opacity, True) == [1] and max(shown.script(opacity, False)) < 0.3
    shown.press("Space")
    shown.announced("38 of 39 methods, 2 of 2 code lengths; bold and underlined refer to all")
    hidden = (
        "return all('[data-method=itq]').filter(one => one.closest('figure, table') && one.checkVisibility())"
    )
    assert shown.script(hidden) == []


def test_two_methods_are_chosen_with_the_keyboard(opened, protocols):
    """The region tells screen readers the numbers of the statistics; the address keeps the choice."""
    protocol = protocols["digits"]
    every = pairs.pairs(
        protocol.board, protocol.table, "ap", 12, with_scores(protocol.board, protocol.folder)
    )
    pair = pairs.against(every, "csq", ["dpsh"])["dpsh"]
    shown = opened("digits-compare.html")
    shown.tab_to("select[name=one]")
    assert shown.focused()[:2] == ("combobox", "First method")
    places = shown.script("return [...document.querySelector('select').options].map(one => one.value)")
    to = {method: ["Home"] + ["Down"] * places.index(method) for method in ("dpsh", "csq")}
    shown.press(*to["dpsh"], "Tab", *to["csq"], "Tab", "Home")
    chosen = "return [...document.getElementById('compare').elements].map(one => one.value).slice(0, 3)"
    assert shown.script(chosen) == ["dpsh", "csq", "12"]
    assert shown.script("return location.search") == "?one=dpsh&other=csq&bits=12"
    shown.announced("DPSH and CSQ at 12 bits")
    text = shown.script("return document.getElementById('comparison').innerText")
    assert difference(pair.found) in text
    shown.press("Tab")
    assert shown.focused()[:2] == ("button", "Swap")
    shown.press("Enter")
    assert shown.script("return location.search") == "?one=csq&other=dpsh&bits=12"
    shown.announced("CSQ and DPSH at 12 bits")
    assert shown.told("#comparison") == ("region", "Comparison")
    assert shown.told("#comparison table") == ("table", "CSQ and DPSH at 12 bits")
    # The link leads to the same comparison.
    said = shown.script("return document.getElementById('comparison').innerText")
    shown.tab_to("#comparison a")
    shown.script("document.body.dataset.old = 'yes'")
    shown.press("Enter")
    shown.wait("return document.readyState === 'complete' && !document.body.dataset.old")
    assert shown.script("return document.getElementById('comparison').innerText") == said


def test_what_screen_readers_are_told(opened):
    shown = opened("digits.html")
    for selector, role, name in (
        (".scroll:has(#scores-table)", "region", "Every method of Digits, the best at 48 bits first"),
        ("#scores-table", "table", "Every method of Digits, the best at 48 bits first"),
        ("#scores-table thead tr:last-child th:last-child", "columnheader", "Loss"),
        ("#filter", "form", "Filter of all tables and figures"),
    ):
        assert (selector, *shown.told(selector)) == (selector, role, name)
    assert shown.told("#mihash th")[0] == "rowheader"
    charts = shown.script("return all('figure.chart').map(figure => figure.id)")
    assert len(charts) == 4
    names = {shown.told(f"#{chart} svg")[1] for chart in charts}
    assert len(names) == 4 and all(len(name) > 30 for name in names)
    for chart in charts:
        role, caption = shown.told(f"#{chart}")
        assert role == "figure" and caption


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_as_wide_as_its_window(opened, name):
    shown = opened(name, width=390)
    for width in (390, 1280):
        shown.set_width(width)
        assert shown.script("return document.documentElement.scrollWidth") <= width
        boards = shown.script("return all('.scroll:has(table)').map(one => [one.offsetWidth, one.tabIndex])")
        # Wide tables scroll with the keyboard, too.
        assert all(board <= width and stop == 0 for board, stop in boards)


def test_a_wide_table_scrolls_with_the_keyboard(opened):
    shown = opened("digits.html", width=390)
    shown.tab_to(".scroll:has(#scores-table)")
    assert shown.script("return document.activeElement.scrollLeft") == 0
    shown.press("Right", "Right")
    shown.wait("return document.activeElement.scrollLeft > 0")


def test_dark_pages_print_light_and_without_controls(opened):
    shown = opened("digits.html", scheme="dark")
    swatch = "return getComputedStyle(document.querySelector('#structhash .swatch')).color"
    surface = "return getComputedStyle(document.body).backgroundColor"
    dark = shown.script(swatch), shown.script(surface)
    shown.set_scheme("light")
    shown.wait("return document.documentElement.dataset.theme === 'light'")
    assert shown.script(swatch) != dark[0] and shown.script(surface) == "rgb(255, 255, 255)" != dark[1]
    shown.set_medium("print")
    arrows = "return all('.scores th button').map(one => getComputedStyle(one, '::after').content)"
    assert set(shown.script(arrows)) <= {"none", "normal"}
    assert shown.script("return all('.headerlink').every(one => !one.checkVisibility())")


def compact(text):
    """Without spaces, and without the ligatures of a PDF."""
    return re.sub(r"\s+", "", unicodedata.normalize("NFKC", text))


def test_every_number_of_a_wide_table_is_printed(opened, protocols, tmp_path):
    shown = opened("scifact.html")
    rows = shown.script(
        """for (const note of all("td sup")) note.remove();
        return all("table.scores tbody tr").map(row => [...row.cells].map(one => one.innerText))"""
    )
    assert len(rows) >= len(protocols["scifact"].methods())
    drawn = set(shown.script("return all('figure.chart svg text').map(one => one.textContent)"))
    assert len(drawn) > 20
    printed = compact(" ".join(shown.printed(tmp_path / "page.pdf")))
    for row in rows:
        assert [words for words in row[1:] if compact(words) not in printed] == [], row[0]
    assert [words for words in drawn if compact(words) not in printed] == []
    assert not set("↕↑↓#") & set(printed)


def test_a_comparison_is_printed_without_its_form(opened, tmp_path):
    shown = opened("digits-compare.html", "?one=mihash&other=itq&bits=48")
    found = shown.script("return document.querySelector('#comparison .difference').innerText")
    text = " ".join(shown.printed(tmp_path / "page.pdf"))
    assert re.sub(r"\s+", "", found) in re.sub(r"\s+", "", text)
    assert "First method" not in text and "Swap" not in text
