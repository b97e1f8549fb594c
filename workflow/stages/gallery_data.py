"""What the gallery of a table shows: a few queries, and the items nearest to them by each method."""

from pathlib import Path

import numpy as np
from PIL import Image

from tiebench.files import read_npz, reading_result
from tiebench.search.neighbours import nearest
from workflow.stages.protocol_data import ProtocolData

NEIGHBOURS = 12
LONGEST_SIDE = 48  # pixels of a thumbnail


def collect(cells, dataset_of, settings_of, seed, queries):
    """Neighbours of a few queries by the codes of each method, with thumbnails.

    cells: [(protocol, method, bits), …]; dataset_of: protocol -> folder of its dataset; settings_of:
    protocol -> {"affinity": …, "picture": shape of the picture that a vector of pixels is, or None};
    queries: how many, spread evenly over the query set, not selected by hand.
    Returns name -> array. For each protocol: "<protocol>/pictures" uint8 (n, h, w, 3), "/queries" int64 (G,),
    places among the pictures, "/run" int64 (2,): bits and seed. For each method, all (G, K):
    "<protocol>/<method>/neighbours", places among the pictures, nearest first, items of one distance in the
    order of the database; "/distances"; "/relevant", bool; "/tied", how many items of the database are at
    that distance. A method whose run was refused has no codes and no arrays. Raises ValueError where vectors
    have not as many values as their picture has pixels.
    """
    found = {}
    for protocol in dict.fromkeys(protocol for protocol, _, _ in cells):
        folder, settings = dataset_of[protocol], settings_of[protocol]
        opened = ProtocolData(f"resources/protocols/{protocol}", folder, settings, f"{folder}/items.npy")
        split = opened.split
        chosen = np.linspace(0, len(split.query) - 1, min(queries, len(split.query))).round().astype(np.int64)
        affinity = opened.affinity.block(split.query[chosen], split.database)
        seen: dict[int, int] = {}  # item -> its place among the pictures

        def place(items, seen=seen):
            return np.array([seen.setdefault(int(item), len(seen)) for item in items], np.int64)

        found[f"{protocol}/queries"] = place(split.query[chosen])
        for _, method, bits in (cell for cell in cells if cell[0] == protocol):
            path = Path("results/runs", protocol, method, str(bits), str(seed), "codes.npz")
            with reading_result(path):
                codes = read_npz(path, ("query", "database"))
                query, database = codes["query"], codes["database"]
            if not len(query):  # the run was refused, or its loss was not finite
                continue
            found[f"{protocol}/run"] = np.array([bits, seed])
            near = list(nearest(query[chosen], database, bits, NEIGHBOURS, whole_ties=True))
            rows = np.stack([one.items[:NEIGHBOURS] for one in near])
            distances = [one.distances[:NEIGHBOURS] for one in near]
            tied = [np.bincount(one.distances)[shown] for one, shown in zip(near, distances)]
            found |= {
                f"{protocol}/{method}/neighbours": np.stack([place(split.database[row]) for row in rows]),
                f"{protocol}/{method}/distances": np.stack(distances),
                f"{protocol}/{method}/relevant": np.take_along_axis(affinity, rows, axis=1) > 0,
                f"{protocol}/{method}/tied": np.stack(tied),
            }
        found[f"{protocol}/pictures"] = _thumbnails(opened.items, list(seen), settings["picture"])
    return found


def _thumbnails(items, rows, shape):
    """Pictures of some items, uint8 (n, h, w, 3): images made small, or vectors of pixels."""
    if shape is None:
        pictures = [Image.fromarray(np.asarray(items[row])) for row in rows]
        for picture in pictures:
            picture.thumbnail((LONGEST_SIDE, LONGEST_SIDE))
        return np.stack([np.asarray(picture) for picture in pictures])
    vectors = np.stack([np.asarray(items[row], np.float64) for row in rows])
    if vectors.shape[1] != np.prod(shape):
        raise ValueError(f"picture: {list(shape)} pixels are not the {vectors.shape[1]} values of an item")
    low, high = vectors.min(), vectors.max()
    grey = np.round(255 * (vectors - low) / (high - low or 1)).astype(np.uint8)
    grey = grey.reshape(len(rows), *shape[:2], -1)
    return np.ascontiguousarray(np.broadcast_to(grey, (*grey.shape[:3], 3)))
