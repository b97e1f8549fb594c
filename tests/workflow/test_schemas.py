"""The schemas: each is valid, describes every key, and its words for a mistake name the place."""

import re
from pathlib import Path

import jsonschema
import pytest
import yaml

from workflow.configuration import reference, schema_validation

FOLDER = Path(__file__).parents[2] / "workflow" / "schemas"
SCHEMAS = {path.stem: yaml.safe_load(path.read_text(encoding="utf-8")) for path in FOLDER.glob("*.yaml")}


def keys_of(schema, where=()):
    """(place, schema) of every key that a schema allows, at any depth."""
    for key, part in schema.get("properties", {}).items():
        yield (*where, key), part
        yield from keys_of(part, (*where, key))
    for inner in ("items", "additionalProperties"):
        if isinstance(schema.get(inner), dict):
            yield from keys_of(schema[inner], (*where, inner))
    for name, part in schema.get("$defs", {}).items():
        yield from keys_of(part, (*where, name))


KEYWORDS = {"type", "description", "default", "enum", "pattern", "properties", "required", "items", "anyOf"}
KEYWORDS |= {"not", "additionalProperties", "propertyNames", "uniqueItems", "$ref"}
KEYWORDS |= {f"{end}{what}" for end in ("min", "max") for what in ("Items", "Length", "imum", "Properties")}
KEYWORDS |= {"exclusiveMinimum", "exclusiveMaximum"}


@pytest.mark.parametrize("name", sorted(SCHEMAS))
def test_every_key_is_described_and_no_keyword_is_misspelt(name):
    """JSON Schema ignores unknown keywords, such as the second half of a text with an unquoted comma."""
    jsonschema.Draft202012Validator.check_schema(SCHEMAS[name])
    assert SCHEMAS[name]["description"]
    places = {".".join(place): part for place, part in keys_of(SCHEMAS[name])}
    assert places
    assert [place for place, part in places.items() if not part.get("description")] == []
    assert [place for place, part in places.items() if set(part) - KEYWORDS] == []


def test_the_reference_in_the_docs_is_that_of_the_schemas():
    page = (FOLDER.parents[1] / "docs" / "configuration.md").read_text(encoding="utf-8")
    assert page == reference.page(), "run the command at its top"
    assert set(reference.FILES) == set(SCHEMAS)
    listed = re.findall(r"^\| (?:\*\*)?`([^`]+)`", page, re.M)
    assert [key.rpartition(".")[2] for key in listed].count("by_bits") == 3  # also through $ref
    nested = {"blocks[].metric", "figures.<name>.width", "runs_per_job.bits", "claims[].left.metric"}
    assert nested | {"weights.sha256"} <= set(listed)
    of_kinds = {("random", "**`query`**"), ("neighbours", "`distance`"), ("images", "`paths`")}
    assert of_kinds <= set(re.findall(r"^\| `(\w+)` \| (\S+) \|", page, re.M))


def test_defaults_are_accepted_by_their_schema():
    for schema in SCHEMAS.values():
        for place, part in keys_of(schema):
            if "default" in part:
                whole = {"$defs": schema.get("$defs", {}), **part}
                assert schema_validation.mistake(part["default"], whole) is None, place


SCHEMA = yaml.safe_load("""
type: object
additionalProperties: false
required: [kind]
properties:
  kind: {enum: [one, two]}
  count: {type: integer, default: 3}
  parts: {type: array, items: {type: object, properties: {size: {type: integer, default: 1}}}}
  named:
    type: object
    default: {}
    additionalProperties: {type: object, properties: {on_: {default: true}}}
""")


@pytest.mark.parametrize(
    ("value", "keys", "message"),
    [
        ({"kind": "one", "cuont": 1}, ("cuont",), "unknown key; did you mean 'count'"),
        ({"count": 1}, (), "'kind' is missing"),
        ({"kind": "tow"}, ("kind",), "'tow' is not allowed; did you mean 'two'"),
        ({"kind": "one", "count": 8.0}, ("count",), "8.0 is not of type 'integer'"),
        ({"kind": "one", "count": True}, ("count",), "True is not of type 'integer'"),
        ({"kind": "one", "parts": [{}, {"size": "x" * 500}]}, ("parts", "[1]", "size"), "…"),
    ],
)
def test_a_mistake_is_its_keys_and_a_message(value, keys, message):
    found, words = schema_validation.mistake(value, SCHEMA)
    assert found == keys
    assert message in words and len(words) < 200


def test_defaults_are_filled_in_at_every_depth_and_change_no_schema():
    value = {"kind": "one", "parts": [{}, {"size": 5}], "named": {"a": {}}}
    assert schema_validation.mistake(value, SCHEMA) is None
    schema_validation.fill_defaults(value, SCHEMA)
    parts = [{"size": 1}, {"size": 5}]
    assert value == {"kind": "one", "count": 3, "parts": parts, "named": {"a": {"on_": True}}}
    other = {"kind": "one"}
    schema_validation.fill_defaults(other, SCHEMA)
    other["named"]["b"] = {}
    assert SCHEMA["properties"]["named"]["default"] == {}
