"""How methods, protocols and metrics are written for people. An id without an entry is shown as it is."""

METHODS = {
    "bre": "BRE",
    "constant": "constant codes",
    "dpsh": "DPSH",
    "dtsh": "DTSH",
    "fasthash": "FastHash",
    "hashnet": "HashNet",
    "itq": "ITQ",
    "ksh": "KSH",
    "labels": "codes from labels",
    "lsh": "LSH",
    "machash": "MACHash",
    "mihash": "MIHash",
    "pcah": "PCAH",
    "random": "random codes",
    "sdh": "SDH",
    "sh": "SH",
    "structhash": "StructHash",
    "talr_ap": "TALR-AP",
    "talr_ap_continuation": "TALR-AP (increasing scale)",
    "talr_ndcg": "TALR-NDCG",
}

PROTOCOLS = {
    "cifar10_s1": "CIFAR-10 (S1)",
    "cifar10_s2": "CIFAR-10 (S2)",
    "digits": "Digits",
    "digits_levels": "Digits (levels)",
    "imagenet100": "ImageNet100",
    "labelme": "LabelMe",
    "nus_wide": "NUS-WIDE",
    "nus_wide_levels": "NUS-WIDE (shared labels)",
}

# Every other metric is its kind, written as here, and what follows it ("ap@1000": AP@1000).
KINDS = {"ap": "AP", "ndcg": "NDCG", "precision": "Precision", "recall": "Recall"}


FAMILIES = {
    "unsupervised": "Unsupervised",
    "classwise": "Class codes",
    "pointwise": "Pointwise (pairs)",
    "pairwise": "Pairwise (triplets)",
    "listwise": "Listwise",
}


def family_name(family: str) -> str:
    """Name of a family of methods for people: "pointwise" is "Pointwise (pairs)"."""
    return FAMILIES.get(family, family)


def method_name(method: str) -> str:
    """Name of a method for people: "talr_ap" is "TALR-AP"; an unknown id is returned unchanged."""
    return METHODS.get(method, method)


def protocol_name(protocol: str) -> str:
    """Name of a protocol for people: "nus_wide" is "NUS-WIDE"; an unknown id is returned unchanged."""
    return PROTOCOLS.get(protocol, protocol)


def metric_name(metric: str) -> tuple[str, str]:
    """Name of a metric for people as (text, subscript).

    "ap" and "ndcg" are the tie-aware metrics of the full ranking: ("AP", "T"), ("NDCG", "T"). "ap@1000" is
    ("AP@1000", ""), "precision_radius_2" is ("Precision within radius 2", ""). An unknown id is returned
    unchanged, without a subscript.
    """
    if metric in ("ap", "ndcg"):
        return KINDS[metric], "T"
    kind, at, cutoff = metric.partition("@")
    if at and kind in KINDS:
        return f"{KINDS[kind]}@{cutoff}", ""
    kind, within, radius = metric.partition("_radius_")
    if within and kind in KINDS:
        return f"{KINDS[kind]} within radius {radius}", ""
    return metric, ""
