"""Titles, colours and markers of a few methods, as a table's settings bring them."""

import matplotlib

STYLES = {
    method: {"title": title, "family": family, "colour": colour, "marker": marker, "paper": None}
    for method, title, family, colour, marker in (
        ("talr_ap", "TALR-AP", "listwise", "#D55E00", "o"),
        ("talr_ndcg", "TALR-NDCG", "listwise", "#E69F00", "s"),
        ("mihash", "MIHash", "pointwise", "#0072B2", "^"),
        ("hashnet", "HashNet", "pointwise", "#56B4E9", "o"),
        ("dtsh", "DTSH", "pairwise", "#009E73", "^"),
        ("dpsh", "DPSH", "pointwise", "#CC79A7", "s"),
        ("itq", "ITQ", "unsupervised", "#AA4499", "X"),
        ("structhash", "StructHash", "listwise", "#332288", "D"),
        ("fasthash", "FastHash", "pointwise", "#225522", "v"),
        ("machash", "MACHash", "pointwise", "#666633", "D"),
        ("bre", "BRE", "pointwise", "#882255", "P"),
        ("lsh", "LSH", "unsupervised", "#777777", "v"),
        ("talr_ap_continuation", "TALR-AP (increasing scale)", "listwise", "#EE6677", "*"),
    )
}


def is_data(gid):
    """Whether an artist of this gid shows data; others are panels, names and handles."""
    return bool(gid) and not gid.startswith(("panel-", "handle-", "leader-", "name-", "value-"))


def artists(figure):
    """gid -> artist, of everything that shows data."""
    found = [artist for artist in figure.findobj() if is_data(artist.get_gid())]
    assert len({artist.get_gid() for artist in found}) == len(found)
    return {artist.get_gid(): artist for artist in found}


def check_texts(figure, least=7):
    """Every text of a figure is at least so large, inside of it, and apart from all others."""
    renderer = figure.canvas.get_renderer()
    figure.draw(renderer)
    boxes = []
    for text in figure.findobj(matplotlib.text.Text):
        if text.get_text() and text.get_visible():
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
