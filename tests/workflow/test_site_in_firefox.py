"""Pages of leaderboards in Firefox: the keyboard alone, what screen readers are told, narrow, dark, printed.

Needs the environment that `make docs` creates, marionette_driver and a Firefox of the system.
"""

import re
import unicodedata

import browsers
import pytest
from firefox import firefox, opening
from leaderboard_site import PAGES, difference

from reporting.statistics.samples import against

pytestmark = [pytest.mark.thorough, browsers.needs_firefox]


@pytest.fixture(scope="module")
def browser(tmp_path_factory, folder):
    with firefox(tmp_path_factory.mktemp("firefox")) as started:
        yield started


@pytest.fixture
def opened(browser, folder):
    """Opens a page from disk. The theme logs its colour mode."""
    yield from opening(browser, lambda name, query="": (folder / name).as_uri() + query, quiet=["log"])


def test_two_methods_are_chosen_with_the_keyboard(opened, protocols):
    """The region tells screen readers the numbers of the statistics; the address keeps the choice."""
    protocol = protocols["digits"]
    pair = against(protocol.pairs[12], "csq", ["dpsh"])["dpsh"]
    shown = opened("digits.html", "#compare-two-methods")  # Tab goes on from there
    shown.tab_to("select[name=one]")
    assert shown.focused()[:2] == ("combobox", "First method")
    places = shown.script(
        "return [...document.querySelector('#compare select').options].map(one => one.value)"
    )
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
    shown.tab_to("#comparison a")
    assert shown.script("return document.activeElement.href === location.href")


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_as_wide_as_its_window(opened, name):
    shown = opened(name, width=390)
    for width in (390, 1280):
        shown.set_width(width)
        assert shown.script("return document.documentElement.scrollWidth") <= width
        boards = shown.script("return all('.scroll:has(table)').map(one => [one.offsetWidth, one.tabIndex])")
        # Wide tables scroll with the keyboard, too.
        assert all(board <= width and stop == 0 for board, stop in boards)


def test_dark_pages_print_light_and_without_controls(opened):
    shown = opened("digits.html", scheme="dark")
    swatch = "return getComputedStyle(document.querySelector('[data-method=structhash] .swatch')).color"
    surface = "return getComputedStyle(document.body).backgroundColor"
    dark = shown.script(swatch), shown.script(surface)
    shown.set_scheme("light")
    shown.wait("return document.documentElement.dataset.theme === 'light'")
    assert shown.script(swatch) != dark[0] and shown.script(surface) == "rgb(255, 255, 255)" != dark[1]
    shown.set_medium("print")
    arrows = "return all('.scores th button').map(one => getComputedStyle(one, '::after').content)"
    assert set(shown.script(arrows)) <= {"none", "normal"}
    boards = "return all('.scroll:has(table)').map(one => getComputedStyle(one).overflowX)"
    assert set(shown.script(boards)) == {"visible"}
    assert shown.script("return all('#filter, #compare').every(one => !one.checkVisibility())")


def compact(text):
    """Without spaces, and without the ligatures of a PDF."""
    return re.sub(r"\s+", "", unicodedata.normalize("NFKC", text))


def test_every_number_of_a_wide_table_is_printed(opened, protocols, tmp_path):
    shown = opened("scifact.html")
    rows = shown.script(
        """for (const note of all("td sup, td .unseen")) note.remove();
        return all("table.scores tbody tr").map(row => [...row.cells].map(one => one.innerText))"""
    )
    assert len(rows) >= len(protocols["scifact"].methods())
    drawn = set(shown.script("return all('figure svg text').map(one => one.textContent)"))
    assert len(drawn) > 20
    printed = compact(" ".join(shown.printed(tmp_path / "page.pdf")))
    for row in rows:
        assert [words for words in row[1:] if compact(words) not in printed] == [], row[0]
    assert [words for words in drawn if compact(words) not in printed] == []
    assert not set("↕↑↓#") & set(printed)


def test_a_comparison_is_printed_without_its_form(opened, tmp_path):
    shown = opened("digits.html", "?one=mihash&other=itq&bits=48")
    found = shown.script("return document.querySelector('#comparison .difference').innerText")
    text = " ".join(shown.printed(tmp_path / "page.pdf"))
    assert re.sub(r"\s+", "", found) in re.sub(r"\s+", "", text)
    assert "First method" not in text and "Swap" not in text
