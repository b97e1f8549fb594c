"""The pages of leaderboards in a real browser: in the theme of the site; comparing, narrow.

Needs the environment that `make docs` creates, playwright and a browser of the system.
tests/workflow/test_site_in_firefox.py has the keyboard, dark and print.
"""

import re

import browsers
import pytest
from leaderboard_site import PAGES, difference

from reporting.statistics.samples import against

pytestmark = [pytest.mark.thorough, browsers.needs_chromium]


@pytest.fixture(scope="module")
def browser():
    with browsers.chromium() as chromium:
        yield chromium


@pytest.fixture(scope="module")
def page(browser):
    return browsers.Page(browser)


@pytest.fixture
def opened(page, folder):
    """Opens a page from disk; at the end no error may have been said, and nothing asked of the network."""
    page.begin()
    yield lambda name, query="", **options: page.open((folder / name).as_uri() + query, **options)
    assert [text for kind, text in page.said if kind == "error"] == []
    assert [url for url in page.asked if not url.startswith(("data:", "file:"))] == []


def test_a_permalink_leads_to_the_row_and_the_contents_to_the_sections(opened):
    shown = opened("digits.html", "#talr_ap")
    assert shown.locator("tr:target").get_attribute("data-method") == "talr_ap"
    assert shown.locator("tr:target").is_visible()
    contents = shown.locator(".bd-toc-nav a, #pst-page-toc-nav a").evaluate_all("all => all.map(a => a.hash)")
    assert {"#results", "#figures", "#compare-two-methods", "#data"} <= set(contents)
    for anchor in set(contents) - {""}:
        assert shown.locator(anchor).count() == 1


def test_the_script_of_the_page_of_results_works_in_the_theme(opened, protocols):
    """What tests/reporting/test_page_in_browser.py asks of it is asked there."""
    shown = opened("digits.html")
    scores = shown.locator("table.scores").first
    scores.locator("thead th:has(button)").nth(2).get_by_role("button").click()
    first = scores.locator("tbody tr[data-method]").first.get_attribute("data-method")
    assert first == protocols["digits"].methods()[0]
    shown.locator("#filter summary").click()
    opacity = "all => all.map(one => Number(getComputedStyle(one).opacity))"
    shown.locator("#filter label[data-method=itq]").hover()
    others = "figure g[data-method]:not([data-method=itq])"
    assert max(shown.locator(others).evaluate_all(opacity)) < 0.3
    shown.locator("#filter [name=method][value=itq]").uncheck()
    shown.locator("#filter [name=bits][value='12']").uncheck()
    assert not shown.locator("table [data-method=itq]:visible, figure [data-method=itq]:visible").count()
    assert shown.locator("#filtered").inner_text().startswith("38 of 39 methods, 1 of 2 code lengths")
    scores.locator("#mihash .value:visible").first.hover()
    cell = protocols["digits"].cell("mihash", 48)
    said = shown.locator("#details").inner_text()
    assert f"Mean {cell.mean:.5f} over 5 seeds" in said and "from the best" in said


def choose(shown, **choices):
    for name, value in choices.items():
        shown.locator(f"select[name={name}]").select_option(value)


def test_two_methods_are_compared_with_the_numbers_of_the_statistics(opened, protocols):
    protocol = protocols["digits"]
    every = protocol.pairs[12]
    shown = opened("digits.html")
    for one, other in (("talr_ap", "mihash"), ("mihash", "talr_ap"), ("itq", "onehot"), ("lsh", "sign")):
        choose(shown, one=one, other=other, bits="12")
        pair = against(every, other, [one])[one]
        text = shown.locator("#comparison").inner_text()
        assert difference(pair.found) in text
        p = f"p = {pair.found.p:.3f}" if pair.found.p >= 0.001 else "p < 0.001"
        assert f"{p} over {pair.over}" in text
        shown_means = shown.locator(".pair tbody tr:first-child td").all_inner_texts()
        assert [mean.split()[0] for mean in shown_means] == [
            f"{protocol.cell(m, 12).mean:.3f}" for m in (one, other)
        ]
        ranks = shown.locator(".pair tbody tr:nth-child(2) td").all_inner_texts()
        assert ranks == [protocol.rank(method, 12) for method in (one, other)]
        assert ("has no rank" in text) == (other == "onehot")


def test_the_choice_is_in_the_address_and_comes_back(opened, folder):
    shown = opened("digits.html")
    choose(shown, one="dpsh", other="csq", bits="12")
    assert shown.url.endswith("digits.html?one=dpsh&other=csq&bits=12#compare-two-methods")
    link = shown.get_by_role("link", name="Link to this comparison")
    assert link.evaluate("a => a.href") == shown.url
    said = shown.locator("#comparison").inner_text()
    shown.reload()
    assert shown.locator("#comparison").inner_text() == said
    shown.get_by_role("button", name="Swap").press("Enter")
    assert shown.url.endswith("?one=csq&other=dpsh&bits=12#compare-two-methods")
    assert shown.locator(".pair thead th").all_inner_texts() == ["CSQ", "DPSH"]
    choose(shown, other="csq")
    assert "Choose two different methods." in shown.locator("#comparison").inner_text()
    unknown = opened("digits.html", "?one=nobody&bits=13&other=csq")
    assert unknown.locator("select[name=other]").input_value() == "csq"
    assert unknown.locator("select[name=bits]").input_value() == "48"


def test_a_pair_without_tests_says_so(opened, folder):
    text = (folder / "digits.html").read_text(encoding="utf-8")
    number = r"-?[\d.e-]+"
    untested = rf"\[({number}),{number},{number},{number},(?:{number}|null),\d+\]"
    text, changed = re.subn(untested, r"[\1,null,null,null,null,0]", text)
    assert changed > 1000
    shown = opened("digits.html", "?one=mihash&other=itq&bits=48", instead=text)
    assert "There is no interval" in shown.locator("#comparison").inner_text()
    assert "p " not in shown.locator("#comparison .difference").inner_text()


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_as_wide_as_its_window(opened, name):
    shown = opened(name)
    for width in (390, 1280):
        shown.set_viewport_size({"width": width, "height": 900})
        assert shown.evaluate("document.documentElement.scrollWidth") <= width
        for board in shown.locator(".scroll:has(table)").all():
            assert board.bounding_box()["width"] <= width
            assert board.get_attribute("tabindex") == "0"  # wide tables scroll with the keyboard, too


def test_nothing_hides_behind_the_bar_at_the_top(opened):
    shown = opened("digits.html")
    for width in (1100, 1400, 980):  # two rows, one, three
        shown.set_viewport_size({"width": width, "height": 700})
        shown.locator("#compare").evaluate("one => one.scrollIntoView()")
        bar = "document.querySelector('.bd-header').getBoundingClientRect().bottom"
        top = "document.querySelector('#filter').getBoundingClientRect().top"
        shown.wait_for_function(f"Math.abs({bar} - {top}) < 1")


def test_without_a_script_all_scores_are_there_to_read(browser, folder):
    shown = browsers.Page(browser, java_script_enabled=False).open((folder / "digits.html").as_uri())
    for table in shown.locator("table.scores").all():
        assert table.is_visible() and table.locator("tbody tr:visible").count() > 5
    assert shown.locator("#filter:visible, .value, form.compare:visible").count() == 0
    assert shown.locator("figure svg:visible").count() == 4
    assert "needs JavaScript" in shown.locator("article noscript").inner_text()


@pytest.mark.parametrize("name", PAGES)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_on_these_pages(opened, name, scheme):
    # What the theme makes around the article is its own; style sheets cannot be fetched from disk.
    assert browsers.violations(opened(name, scheme=scheme), scheme, context="article", preload=False) == []
