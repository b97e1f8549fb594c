"""Titles, colours and markers of a few methods, as a table's settings bring them."""

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
