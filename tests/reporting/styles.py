"""Titles, colours and markers of a few methods, as a table's settings bring them; what figures show."""

import matplotlib

from methods.base.catalogue import catalogue

FEW = ("talr_ap", "talr_ndcg", "mihash", "hashnet", "dtsh", "dpsh", "itq", "structhash", "fasthash", "lsh")
FEW += ("machash", "bre")
SAID = ("title", "family", "colour", "marker")
STYLES = {
    name: {"paper": None} | {key: getattr(of, key) for key in SAID}
    for name, of in catalogue().items()
    if name in FEW
}
VARIANT = {"title": "TALR-AP (increasing scale)", "colour": "#EE6677", "marker": "*"}
STYLES["talr_ap_continuation"] = STYLES["talr_ap"] | VARIANT


def is_data(gid):
    """Whether an artist of this gid shows data; others are panels, names and handles."""
    return bool(gid) and not gid.startswith(("panel-", "handle-", "leader-", "name-", "value-"))


def artists(figure):
    """gid -> artist, of everything that shows data."""
    found = [artist for artist in figure.findobj() if is_data(artist.get_gid())]
    assert len({artist.get_gid() for artist in found}) == len(found)
    return {artist.get_gid(): artist for artist in found}


def texts(figure):
    """The texts that a figure shows."""
    return [text for text in figure.findobj(matplotlib.text.Text) if text.get_text() and text.get_visible()]


def check_texts(figure, least=7):
    """Every text of a figure is at least so large, inside of it, and apart from all others."""
    renderer = figure.canvas.get_renderer()
    figure.draw(renderer)
    boxes = []
    for text in texts(figure):
        assert text.get_fontsize() >= least
        boxes.append((text.get_text(), matplotlib.text.Text.get_window_extent(text, renderer)))
    page = figure.bbox
    for index, (words, box) in enumerate(boxes):
        assert box.x0 >= page.x0 and box.x1 <= page.x1 and box.y0 >= page.y0 and box.y1 <= page.y1, words
        for others, other in boxes[index + 1 :]:
            # one pixel of 100 per inch of slack: boxes hold the line's full height
            apart = min(box.x1, other.x1) - max(box.x0, other.x0) <= 1 or (
                min(box.y1, other.y1) - max(box.y0, other.y0) <= 1
            )
            assert apart, (words, others)
