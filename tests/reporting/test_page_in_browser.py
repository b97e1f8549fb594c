"""The page in a real browser: Chromium or Chrome without a window, opened from disk.

Needs playwright and a browser of the system, such as Debian's package `chromium`: the one that the variable
CHROME names, else one of CHROMES. tests/reporting/test_page_in_firefox.py asks the same of Firefox.
"""

import itertools
import json
from pathlib import Path

import browsers
import pytest
from example_pages import METHODS, TABLE, VIEW, score, write_pages
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
    folder = tmp_path_factory.mktemp("a results folder")
    write_pages(folder)
    return folder


@pytest.fixture
def opened(browser, files):
    """Opens a page; at the end, nothing may have been said on the console or asked of anything else."""
    contexts, said, asked = [], [], []

    def open_page(name="one", width=1280, height=900, **options):
        context = browser.new_context(viewport={"width": width, "height": height}, **options)
        contexts.append(context)
        shown = context.new_page()
        shown.on("console", lambda message: said.append(message.text))
        shown.on("pageerror", lambda error: said.append(str(error)))
        shown.on("request", lambda request: asked.append(request.url))
        shown.goto((files / f"{name}.html").as_uri())
        return shown

    yield open_page
    for context in contexts:
        context.close()
    assert said == []
    assert {url for url in asked if not url.startswith("data:")} <= {
        path.as_uri() for path in files.iterdir()
    }


def drawn_charts(shown):
    """Scrolls through the page, so that every chart is drawn; kind -> methods of its datasets."""
    for figure in shown.locator(".figure.charted").all():
        figure.scroll_into_view_if_needed()
        shown.wait_for_timeout(50)
    return shown.evaluate(
        """() => Object.fromEntries([...document.querySelectorAll(".chart")].map(place => {
          const chart = Chart.getChart(place.querySelector("canvas"));
          return [place.dataset.kind, chart && chart.data.datasets.map(set => set.method ?? set.label)];
        }))"""
    )


def rows(shown):
    """Methods of the first table of scores, as they stand."""
    return shown.eval_on_selector_all(
        "table.scores tr[data-method]", "rows => rows.filter(r => r.offsetParent).map(r => r.dataset.method)"
    )


def sorting(shown):
    return [
        heading.get_attribute("aria-sort") for heading in shown.locator("table.scores th[aria-sort]").all()
    ]


@pytest.mark.parametrize("name", ["one", "several", "holes", "bare"])
def test_a_page_opens_from_disk_without_a_word(opened, name):
    shown = opened(name)
    charts = drawn_charts(shown)
    assert all(charts.values())
    assert (
        set(charts)
        == {
            "one": {"ranges", "bits", "recall", "precision", "distances", "cost", "training"},
            "several": {"ranges", "bits", "recall", "precision", "distances", "cost", "training"},
            "holes": set(),
            "bare": {"ranges", "recall", "precision", "distances", "cost", "training"},
        }[name]
    )
    # a click on everything that answers one
    shown.evaluate("document.querySelectorAll('button, summary').forEach(one => one.click())")
    shown.locator("#filter summary").click()
    shown.get_by_label("All methods").click()
    assert all(drawn_charts(shown).values())


def test_charts_show_the_numbers_of_the_records(opened):
    shown = opened()
    drawn_charts(shown)

    def data(kind, member="data"):
        return shown.evaluate(
            f"""() => Chart.getChart(document.querySelector("[data-kind={kind}] canvas"))
              .data.datasets.map(set => [set.method ?? set.label, set.{member}])"""
        )

    def mean(method, bits):
        return (score(method, bits, 0) + score(method, bits, 1)) / 2

    for method, points in data("bits"):
        assert [point["x"] for point in points] == [8, 16, 24]
        assert [point["y"] for point in points] == pytest.approx(
            [mean(method, b) for b in (8, 16, 24)], abs=1e-5
        )
    exact, bars = (values for _, values in data("ranges"))
    assert exact == pytest.approx([mean(method, 16) for method in METHODS], abs=1e-5)
    for method, (low, high) in zip(METHODS, bars, strict=True):
        assert (low, high) == pytest.approx((mean(method, 16) - 0.05, mean(method, 16) + 0.03), abs=1e-5)
    for method, points in data("precision"):
        assert [(p["x"], round(p["y"], 4)) for p in points] == [
            (k, round(mean(method, 16) - drop, 4))
            for k, drop in ((1, 0), (10, 0.05), (100, 0.1), (1000, 0.2))
        ]
    for method, points in data("recall"):
        assert len(points) == 17 and points[8]["x"] == 0.5
        assert points[8]["y"] == pytest.approx(mean(method, 16) - 0.1, abs=1e-5)
    assert dict(data("distances"))["relevant"][0] == pytest.approx(2 / 17, abs=1e-5)
    for method, ((point,)) in data("cost"):
        assert (point["x"], point["y"]) == pytest.approx((10 * mean(method, 16), mean(method, 16)), abs=1e-4)
    assert [method for method, _ in data("training")] == ["itq", "mihash", "talr_ap"]

    shown.locator("[data-choice=block]").select_option("1")
    assert shown.locator("[data-choice=bits] option").all_text_contents() == ["8 bits", "16 bits"]
    shown.locator("[data-choice=bits]").select_option("8")
    exact, bars = (values for _, values in data("ranges"))
    assert bars[0] == pytest.approx([mean("lsh", 8) - 0.1, mean("lsh", 8) + 0.1], abs=1e-5)
    said = shown.locator("[data-kind=recall] canvas").get_attribute("aria-label")
    assert said.endswith("one point per Hamming radius. Digits (levels), NDCG_T, 8 bits.")
    for _, points in data("recall"):
        assert len(points) == 9
    shown.locator("figure:has([data-kind=training]) select").select_option("itq")
    seeds = data("training")
    assert len(seeds) == 2 and [p["objective"] for p in seeds[0][1]][:1] == [3.0]
    assert seeds[0][1][-1]["x"] == 100 and len(seeds[0][1]) == 60
    shown.locator("figure:has([data-kind=cost]) select").select_option("encode")
    for method, ((point,)) in data("cost"):
        assert point["x"] == pytest.approx(mean(method, 8), abs=1e-4)


def axis_labels(shown):
    """Of every numeric axis that is drawn: [kind, axis, [[value, label], …]]."""
    return shown.evaluate(
        """() => [...document.querySelectorAll(".chart")].flatMap(place => {
          const chart = Chart.getChart(place.querySelector("canvas"));
          return Object.values(chart?.scales ?? {}).filter(axis => axis.type !== "category").map(axis =>
            [place.dataset.kind, axis.id, axis.ticks.map(tick => [tick.value, tick.label])]);
        })"""
    )


@pytest.mark.parametrize("name", ["one", "bare", "crowded"])
def test_labels_of_axes_are_the_values_at_their_ticks(opened, name):
    shown = opened(name)
    drawn_charts(shown)
    axes = axis_labels(shown)
    assert ("ranges", "x") in {(kind, axis) for kind, axis, _ in axes}
    for kind, axis, ticks in axes:
        labels = [(value, label) for value, label in ticks if label]
        assert len(labels) >= 2 or kind in ("bits", "cost"), (kind, axis, ticks)
        for value, label in labels:
            written = float(label.replace(",", "").replace("−", "-"))
            assert written == pytest.approx(value, rel=1e-6, abs=1e-9), (kind, axis, label)


def test_no_name_is_lost_in_score_against_time(opened):
    """Twelve methods at nearly the same place: each has its name, inside the chart and clear of others."""
    shown = opened("crowded", width=1000)
    drawn_charts(shown)
    placed, width, height = shown.evaluate(
        """() => {
          const chart = Chart.getChart(document.querySelector("[data-kind=cost] canvas"));
          return [chart.placed, chart.width, chart.height];
        }"""
    )
    assert sorted(one["words"] for one in placed) == sorted(f"Method {number}" for number in range(12))
    boxes = [one["box"] for one in placed]
    for left, top, right, bottom in boxes:
        assert left >= 0 and top >= 0 and right <= width and bottom <= height
    for one, other in itertools.combinations(boxes, 2):
        across = min(one[2], other[2]) - max(one[0], other[0])
        down = min(one[3], other[3]) - max(one[1], other[1])
        assert across <= 0 or down <= 0, (one, other)


def test_an_axis_of_equal_scores_does_not_magnify_them(opened):
    shown = opened("crowded")
    drawn_charts(shown)
    spans = shown.evaluate(
        """() => ["cost", "bits"].map(kind => {
          const {y} = Chart.getChart(document.querySelector(`[data-kind=${kind}] canvas`)).scales;
          return y.max - y.min;
        })"""
    )
    assert min(spans) >= 0.1 - 1e-9


def test_headings_sort_and_method_restores_the_groups(opened):
    shown = opened()
    assert rows(shown) == METHODS and sorting(shown) == ["other"] + ["none"] * 5
    headings = shown.locator("table.scores thead tr:nth-child(2) button")
    headings.nth(0).click()
    assert rows(shown) == ["talr_ap", "mihash", "itq", "lsh"]
    assert sorting(shown) == ["none", "descending"] + ["none"] * 4
    assert shown.locator("tr.family:visible").count() == 0
    headings.nth(0).click()
    assert rows(shown) == METHODS and sorting(shown)[1] == "ascending"
    assert shown.locator("tr.family:visible").count() == 0
    shown.locator("table.scores thead tr:nth-child(1) button").click()
    assert rows(shown) == METHODS and sorting(shown)[0] == "other"
    assert shown.locator("tr.family:visible").all_text_contents() == ["Unsupervised", "Listwise"]
    shown.locator("table.runs thead button", has_text="Training").click()
    seconds = shown.eval_on_selector_all(
        "table.runs tbody tr", "rows => rows.map(row => Number(row.cells[5].textContent))"
    )
    files = shown.locator("table.runs tbody tr").first.locator("td.files a")
    assert files.all_text_contents() == ["run", "training", "scores"]
    assert files.nth(1).get_attribute("href").startswith("runs/digits")
    assert files.nth(1).get_attribute("href").endswith("/training.jsonl")
    assert seconds == sorted(seconds, reverse=True) and seconds[0] > seconds[-1]


def test_the_filter_is_for_tables_charts_and_runs(opened):
    shown = opened()
    drawn_charts(shown)
    box = shown.locator("#filter")
    box.locator("[value=lsh]").uncheck()
    box.locator("[value=itq]").uncheck()
    box.locator("[name=bits][value='8']").uncheck()
    assert rows(shown) == ["mihash", "talr_ap"]
    assert shown.locator("tr.family:visible").all_text_contents() == ["Listwise"]
    columns = shown.locator("table.scores thead tr:nth-child(2) th:visible").all_text_contents()
    assert columns == ["16 bits", "24 bits", "16 bits"]
    assert shown.locator("table.scores th.group").nth(1).get_attribute("colspan") == "1"
    assert shown.locator("tr[data-method=mihash] td:visible").first.inner_text().startswith("0.638 ± 0.003 ?")
    charts = drawn_charts(shown)
    for kind in ("bits", "recall", "precision", "cost", "training"):
        assert charts[kind] == ["mihash", "talr_ap"]
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
    assert rows(shown) == [] and shown.locator(".nothing:visible").count() == 6
    box.get_by_label("All methods").click()
    assert rows(shown) == METHODS and shown.locator("#filtered").inner_text() != "all"
    box.locator("[name=bits][value='8']").check()
    assert shown.locator("#filtered").inner_text() == "all"
    assert shown.locator("table.runs tbody tr:visible").count() == 40


def test_published_values_can_be_hidden(opened):
    shown = opened()
    value = shown.locator("table.scores small")
    assert value.all_inner_texts() == ["pub. 0.7654"] and value.is_visible()
    shown.get_by_label("published").uncheck()
    assert not value.is_visible()


def test_the_pointer_over_a_chart_shows_its_numbers(opened):
    shown = opened()
    drawn_charts(shown)
    expected = {"bits": "16 bits", "precision": "first 10", "ranges": None, "recall": None, "cost": None}
    for kind, title in expected.items():
        canvas = shown.locator(f"[data-kind={kind}] canvas")
        canvas.scroll_into_view_if_needed()
        chart = f"""Chart.getChart(document.querySelector("[data-kind={kind}] canvas"))"""
        points = shown.evaluate(f"{chart}.getDatasetMeta(0).data.map(({{x, y}}) => ({{x, y}}))")
        canvas.hover(position=points[min(1, len(points) - 1)])
        shown.wait_for_function(f"{chart}.tooltip.opacity === 1")
        tooltip = shown.evaluate(f"[{chart}.tooltip.title, {chart}.tooltip.body.flatMap(part => part.lines)]")
        assert tooltip[1] and (title is None or tooltip[0] == [title])
    tooltip = shown.evaluate(
        """Chart.getChart(document.querySelector("[data-kind=ranges] canvas")).tooltip.body[0].lines"""
    )
    assert tooltip == ["AP_T 0.468", "worst order 0.418", "best order 0.498"]


def test_the_keyboard_is_enough(opened):
    shown = opened()
    details = shown.locator("#details")
    shown.locator("table.scores thead button").last.focus()
    shown.keyboard.press("Enter")
    assert sorting(shown)[-1] == "descending"
    shown.keyboard.press("Tab")
    assert details.is_visible() and "95% bootstrap interval" in details.inner_text()
    focused = (
        "document.activeElement.closest('tr').dataset.method + document.activeElement.closest('td').cellIndex"
    )
    first = shown.evaluate(focused)
    shown.keyboard.press("ArrowRight")
    shown.keyboard.press("ArrowDown")
    assert first == "talr_ap1" and shown.evaluate(focused) == "mihash2"
    assert shown.evaluate("document.activeElement.getAttribute('aria-describedby')") == "details"
    assert "−0.1000 from the best" in details.inner_text()
    shown.keyboard.press("Escape")
    assert not details.is_visible()
    shown.keyboard.press("End")
    assert shown.evaluate(focused) == "mihash5" and details.is_visible()
    # one stop in a table: the next is outside of it
    shown.keyboard.press("Tab")
    assert shown.evaluate("!document.activeElement.closest('table')") and not details.is_visible()
    shown.locator("#filter [value=lsh]").focus()
    shown.keyboard.press("Space")
    assert "lsh" not in rows(shown)
    shown.locator("[data-shows=table]").first.focus()
    shown.keyboard.press("Enter")
    table = shown.locator(".as-table:visible")
    assert table.locator("tbody th").all_text_contents() == ["ITQ", "MIHash", "TALR-AP"]
    assert table.locator("tbody tr").first.locator("td").all_text_contents() == ["0.4180", "0.4680", "0.4980"]


def test_every_chart_can_be_read_as_a_table(opened):
    shown = opened()
    drawn_charts(shown)
    for figure in shown.locator(".figure.charted").all():
        figure.locator("[data-shows=table]").click()
        table = figure.locator(".as-table table")
        assert table.locator("caption").count() == 1
        widths = table.locator("tr").evaluate_all("rows => rows.map(row => row.cells.length)")
        assert len(widths) > 3 and len(set(widths)) == 1
        assert "undefined" not in table.inner_text() and "NaN" not in table.inner_text()


def test_static_figures_stand_in_for_charts(opened):
    shown = opened()
    figure = shown.locator("figure:has([data-kind=ranges])")
    assert not figure.locator("svg").is_visible()
    figure.get_by_text("as a static figure").click()
    assert figure.locator("svg").is_visible()
    figure.get_by_text("as a static figure").click()
    assert not figure.locator("svg").is_visible()
    shown.emulate_media(media="print")
    assert figure.locator("svg").is_visible() and not figure.locator("canvas").is_visible()
    assert not shown.locator("#filter").is_visible() and not shown.locator(".only-chart").first.is_visible()
    shown.emulate_media(media="screen")
    pdf = shown.pdf(format="A4")
    assert pdf.startswith(b"%PDF-") and len(pdf) > 20_000


def test_the_page_is_whole_without_its_script(opened):
    shown = opened(java_script_enabled=False)
    assert shown.locator("figure:has([data-kind=ranges]) svg").is_visible()
    assert not shown.locator("canvas").first.is_visible() and not shown.locator("#filter").is_visible()
    assert shown.locator("table.scores td").first.get_attribute("title").startswith("Mean 0.31")
    assert shown.locator("tr.family").count() == 2


def test_downloads_have_the_right_bytes(opened):
    shown = opened()
    expected = {f'a[download="{name}"]': (name, text) for name, text in VIEW.files.items()}
    svg = VIEW.figures["tie_ranges"].svg
    expected['[data-file="tie_ranges_quick.svg"]'] = ("tie_ranges_quick.svg", svg)
    for link, (name, text) in expected.items():
        with shown.expect_download() as waiting:
            shown.locator(link).click()
        assert waiting.value.suggested_filename == name
        assert Path(waiting.value.path()).read_bytes() == text.encode()


@pytest.mark.parametrize("name", ["one", "several", "holes"])
@pytest.mark.parametrize("width", [360, 768])
def test_a_narrow_page_has_no_horizontal_scroll(opened, name, width):
    shown = opened(name, width=width, height=780)
    drawn_charts(shown)
    for button in shown.locator(".tool[aria-controls]:visible, .claim summary:visible").all():
        button.click()
    assert shown.evaluate("document.documentElement.scrollWidth") <= width
    for canvas in shown.locator("canvas:visible").all():
        assert canvas.bounding_box()["x"] + canvas.bounding_box()["width"] <= width


def test_the_colours_follow_the_scheme(opened):
    shown = opened(color_scheme="dark")
    drawn_charts(shown)
    surface = "getComputedStyle(document.body).backgroundColor"
    colours = """Chart.getChart(document.querySelector("[data-kind=bits] canvas")).data.datasets
      .map(set => [set.method, set.borderColor()])"""
    text = Path(shown.url.removeprefix("file://").replace("%20", " ")).read_text(encoding="utf-8")
    styles = json.loads(text.split('id="page-data">')[1].split("</script>")[0])["styles"]
    assert shown.evaluate(surface) == "rgb(21, 24, 27)"
    assert dict(shown.evaluate(colours)) == {method: styles[method]["dark"] for method in METHODS}
    shown.emulate_media(color_scheme="light")
    shown.wait_for_timeout(100)
    assert shown.evaluate(surface) == "rgb(255, 255, 255)"
    assert dict(shown.evaluate(colours)) == {
        method: method_styles.colour(table_of(TABLE), method) for method in METHODS
    }


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", ["one", "several", "holes"])
def test_axe_finds_nothing(opened, scheme, name):
    axe = browsers.package("axe_playwright_python.sync_playwright")
    shown = opened(name, color_scheme=scheme)
    drawn_charts(shown)
    for button in shown.locator("[data-shows=table]:visible, .claim summary:visible").all():
        button.click()
    shown.locator("table.scores .value").first.focus()
    found = axe.Axe().run(shown).response["violations"]
    violations = [(rule["id"], rule["impact"], [node["html"] for node in rule["nodes"]]) for rule in found]
    assert violations == []
