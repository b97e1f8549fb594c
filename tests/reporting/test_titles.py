"""Titles of methods, protocols and families come with the table, not from a list in reporting."""

import ast
from pathlib import Path

from models import table_of

from reporting.tables import titles

ROOT = Path(__file__).parents[2]
TABLE = table_of(
    {
        "name": "t",
        "methods": [],
        "seeds": [0],
        "styles": {"talr_ap": {"title": "TALR-AP"}, "plain": {"title": ""}},
        "protocols": {"digits": "Digits", "elsewhere": "Another place"},
        "blocks": [
            {"protocol": "digits", "metric": "ap", "bits": [8]},
            {"protocol": "digits", "metric": "ap", "bits": [16], "title": "Handwritten digits"},
            {"protocol": "raw", "metric": "ap", "bits": [8]},
        ],
    }
)


def test_a_method_has_the_title_of_its_table_or_else_its_name():
    assert TABLE.method_title("talr_ap") == "TALR-AP"
    assert TABLE.method_title("plain") == "plain"
    assert TABLE.method_title("mihash") == "mihash"


def test_a_protocol_has_the_title_of_its_block_then_of_the_table_then_its_name():
    found = {name: TABLE.protocol_title(name) for name in ("digits", "elsewhere", "raw", "unknown")}
    assert found == {
        "digits": "Handwritten digits",
        "elsewhere": "Another place",
        "raw": "raw",
        "unknown": "unknown",
    }


def test_families_without_a_name_keep_their_name():
    assert titles.family_title("pairwise") == "Triplets"
    assert titles.family_title("quantum") == "quantum"


def test_no_method_or_protocol_is_named_in_the_code_that_prints_tables():
    names = {path.stem for path in (ROOT / "methods").glob("[a-z]*.py")}
    names |= {"digits", "digits_levels", "cifar10_s1", "cifar10_s2", "nus_wide", "imagenet100", "labelme"}
    modules = [
        ROOT / "reporting" / "frames.py",
        *(
            path
            for of in ("tables", "printed", "statistics", "claims")
            for path in (ROOT / "reporting" / of).glob("*.py")
        ),
    ]
    assert len(modules) > 12
    for module in modules:
        tree = ast.parse(module.read_text(encoding="utf-8"))
        constants = {
            node.value
            for node in ast.walk(tree)
            if isinstance(node, ast.Constant) and isinstance(node.value, str)
        }
        assert not constants & names, (module, constants & names)
