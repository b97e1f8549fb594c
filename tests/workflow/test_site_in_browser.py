"""The pages of leaderboards in a real browser: sorting, marking, comparing; keyboard, print, dark, narrow.

Needs the environment that `make docs` creates, playwright and a browser of the system.
tests/workflow/test_site_in_firefox.py asks the same of Firefox.
"""

import re

import browsers
import pytest
from leaderboard_site import PAGES, difference, read, write_site

from reporting.leaderboard import pairs
from reporting.leaderboard.per_query import with_scores

pytestmark = [pytest.mark.thorough, browsers.needs_chromium]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_site(tmp_path_factory)


@pytest.fixture(scope="module")
def protocols(tmp_path_factory):
    return read(tmp_path_factory)


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


def column(shown, table, place):
    return shown.eval_on_selector_all(
        f"#{table} tbody tr", f"rows => rows.map(row => row.cells[{place}].dataset.value ?? '')"
    )


def methods(shown, table):
    return shown.eval_on_selector_all(f"#{table} tbody tr", "rows => rows.map(row => row.id)")


def test_headings_sort_with_mouse_and_keyboard(opened):
    shown = opened("digits.html")
    before = methods(shown, "scores-table")
    heading = shown.locator("#scores-table th:has(button)")
    # The AP of 12 bits: the largest first, then the smallest; what has no value stays last.
    heading.nth(1).get_by_role("button").click()
    values = [float(value) for value in column(shown, "scores-table", 1)]
    assert (
        values == sorted(values, reverse=True) and heading.nth(1).get_attribute("aria-sort") == "descending"
    )
    heading.nth(1).get_by_role("button").press("Enter")
    values = [float(value) for value in column(shown, "scores-table", 1)]
    assert values == sorted(values) and heading.nth(1).get_attribute("aria-sort") == "ascending"
    assert shown.locator("#scores-table th:not([aria-sort=none])[aria-sort]").count() == 1
    # Ranks and seconds: the smallest first.
    heading.nth(4).get_by_role("button").press("Space")
    ranks = column(shown, "scores-table", 4)
    known = [int(rank) for rank in ranks if rank]
    assert known == sorted(known) and ranks[: len(known)] == [str(rank) for rank in known]
    heading.nth(0).get_by_role("button").click()
    titles = shown.eval_on_selector_all("#scores-table tbody th", "all => all.map(one => one.dataset.value)")
    assert titles == sorted(titles, key=str.casefold)
    assert sorted(methods(shown, "scores-table")) == sorted(before)


def test_a_permalink_leads_to_the_row_and_the_figure(opened):
    shown = opened("digits.html", "#talr_ap")
    assert shown.locator("tr:target").get_attribute("data-method") == "talr_ap"
    assert shown.locator("tr:target").is_visible()
    assert shown.locator("tr#talr_ap .headerlink").get_attribute("href") == "#talr_ap"
    contents = shown.locator(".bd-toc-nav a, #pst-page-toc-nav a").evaluate_all("all => all.map(a => a.hash)")
    assert {"#scores", "#charts", "#score-against-bits", "#other-metrics", "#data"} <= set(contents)
    for anchor in set(contents) - {""}:
        assert shown.locator(anchor).count() == 1


def test_a_method_is_marked_in_all_charts_with_mouse_and_keyboard(opened):
    shown = opened("digits.html")
    shown.locator("#filter summary").click()
    entry = shown.locator("#filter [data-method=itq]")
    opacity = "all => all.map(one => Number(getComputedStyle(one).opacity))"
    itq, others = ".chart g[data-method=itq]", ".chart g[data-method]:not([data-method=itq])"
    assert set(shown.locator(others).evaluate_all(opacity)) == {1}
    entry.hover()
    assert set(shown.locator(itq).evaluate_all(opacity)) == {1}
    assert max(shown.locator(others).evaluate_all(opacity)) < 0.3
    shown.mouse.move(0, 0)
    assert set(shown.locator(others).evaluate_all(opacity)) == {1}
    shown.locator("#itq th").click()
    shown.mouse.move(0, 0)
    assert shown.locator("#scores-table tr.marked").get_attribute("id") == "itq"
    assert max(shown.locator(others).evaluate_all(opacity)) < 0.3
    shown.locator("#itq th").click()
    shown.mouse.move(0, 0)
    assert set(shown.locator(others).evaluate_all(opacity)) == {1}
    shown.locator("#filter summary").focus()
    while not entry.evaluate("one => one.contains(document.activeElement)"):
        shown.keyboard.press("Tab")
    assert max(shown.locator(others).evaluate_all(opacity)) < 0.3
    shown.keyboard.press("Space")
    assert not shown.locator(f"#itq:visible, #metrics-table [data-method=itq]:visible, {itq}:visible").count()
    assert "38 of 39 methods" in shown.locator("#filtered").inner_text()


def test_the_filter_hides_code_lengths_and_a_score_tells_its_seeds(opened, protocols):
    shown = opened("digits.html")
    shown.locator("#filter summary").click()
    shown.locator("#filter [name=bits][value='12']").uncheck()
    heads = shown.locator("#scores-table thead th:visible").all_inner_texts()
    assert heads == [
        *("Method", "48 bits", "Seconds, 48 bits", "APT", "rank", "training", "encoding", "Loss")
    ]  # fmt: skip
    shown.locator("#mihash .value:visible").hover()
    cell = protocols["digits"].cell("mihash", 48)
    said = shown.locator("#details").inner_text()
    assert f"Mean {cell.mean:.5f} over 5 seeds" in said and f"{cell.ci_low:.4f} to {cell.ci_high:.4f}" in said


def choose(shown, **choices):
    for name, value in choices.items():
        shown.locator(f"select[name={name}]").select_option(value)


def test_two_methods_are_compared_with_the_numbers_of_the_statistics(opened, protocols):
    protocol = protocols["digits"]
    every = pairs.pairs(
        protocol.board, protocol.table, "ap", 12, with_scores(protocol.board, protocol.folder)
    )
    shown = opened("digits-compare.html")
    for one, other in (("talr_ap", "mihash"), ("mihash", "talr_ap"), ("itq", "onehot"), ("lsh", "sign")):
        choose(shown, one=one, other=other, bits="12")
        pair = pairs.against(every, other, [one])[one]
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
    shown = opened("digits-compare.html")
    choose(shown, one="dpsh", other="csq", bits="12")
    assert shown.url.endswith("digits-compare.html?one=dpsh&other=csq&bits=12")
    link = shown.get_by_role("link", name="Link to this comparison")
    assert link.evaluate("a => a.href") == shown.url
    said = shown.locator("#comparison").inner_text()
    shown.reload()
    assert shown.locator("#comparison").inner_text() == said
    shown.get_by_role("button", name="Swap").press("Enter")
    assert shown.url.endswith("?one=csq&other=dpsh&bits=12")
    assert shown.locator(".pair thead th").all_inner_texts() == ["CSQ", "DPSH"]
    choose(shown, other="csq")
    assert "Choose two different methods." in shown.locator("#comparison").inner_text()
    unknown = opened("digits-compare.html", "?one=nobody&bits=13&other=csq")
    assert unknown.locator("select[name=other]").input_value() == "csq"
    assert unknown.locator("select[name=bits]").input_value() == "48"


def test_a_pair_without_tests_says_so(opened, folder):
    text = (folder / "digits-compare.html").read_text(encoding="utf-8")
    number = r"-?[\d.e-]+"
    untested = rf"\[({number}),{number},{number},{number},(?:{number}|null),\"[a-z ]+\"\]"
    text, changed = re.subn(untested, r'[\1,null,null,null,null,""]', text)
    assert changed > 1000
    shown = opened("digits-compare.html", "?one=mihash&other=itq&bits=48", instead=text)
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


def test_without_a_script_everything_is_there_to_read(browser, folder, protocols):
    page = browsers.Page(browser, java_script_enabled=False)
    for name in PAGES:
        shown = page.open((folder / name).as_uri())
        for table in shown.locator("table.scores").all():
            assert table.is_visible() and table.locator("tbody tr:visible").count() > 5
        assert shown.locator("#filter:visible, .value").count() == 0
        if name == "digits.html":
            assert shown.locator("figure.chart svg:visible").count() == 4
        if "compare" in name:
            assert not shown.locator("form.compare").is_visible()
            assert "needs JavaScript" in shown.locator("article noscript").inner_text()
            assert shown.locator("table:visible").count() == len(protocols["digits"].board.bits)


@pytest.mark.parametrize("name", PAGES)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_on_these_pages(opened, name, scheme):
    # What the theme makes around the article is its own; style sheets cannot be fetched from disk.
    assert browsers.violations(opened(name, scheme=scheme), scheme, context="article", preload=False) == []


def test_dark_pages_have_lighter_methods_and_print_has_not(opened):
    shown = opened("digits.html", scheme="dark")
    colour = "one => getComputedStyle(one).color"
    swatch = shown.locator("#structhash .swatch")  # a colour too dark for the dark page
    dark = swatch.evaluate(colour)
    shown.emulate_media(media="print", color_scheme="light")
    assert swatch.evaluate(colour) != dark
    board = shown.locator(".scroll:has(table)").first
    assert board.evaluate("one => getComputedStyle(one).overflowX") == "visible"
    assert shown.locator(".scores th button").first.evaluate(
        "one => getComputedStyle(one, '::after').content"
    ) in ("none", "normal")
