"""docs/configuration.md, every key of the configuration, written from the schemas and from plug-ins.

python -m workflow.configuration.reference > docs/configuration.md
"""

import json
import re
from pathlib import Path

from datasets import affinity, loaders, splits
from reporting.printed.markdown import markdown_table
from workflow.configuration.schema_validation import TYPES
from workflow.configuration.yaml_reader import read_settings

SCHEMAS = Path(__file__).parents[1] / "schemas"
FILES = {  # schema -> the file that it describes
    "config": "config/config.yaml",
    "tables": "config/tables/<name>.yaml",
    "protocols": "config/protocols.yaml",
    "methods": "config/methods.yaml",
    "tuned": "config/tuned.yaml",
    "datasets": "config/datasets.yaml",
    "networks": "config/networks.yaml",
    "published": "config/published/<name>.yaml",
    "claims": "config/claims/<name>.yaml",
    "tuning": "config/tuning/<name>.yaml",
}
KINDS = {  # schema -> headings of its tables, and the plug-ins that have keys of their own
    "protocols": {"`kind` of `split`": splits.KIND, "`kind` of `affinity`": affinity.KIND},
    "datasets": {"`loader`": loaders.KIND},
}
# A word with <name> in it, which Markdown would take for HTML.
PLACEHOLDER = re.compile(r"[\w/@.]*<\w+>(?:[\w/@.<>]*[\w>])?")
HEAD = """# Configuration

Every key of the files in `config/`, with its type and default. This page is written from the schemas in
`workflow/schemas/`, and from what splits, affinities and loaders say of themselves, by
`python -m workflow.configuration.reference > docs/configuration.md`.

Put your own settings into a file, say `mine.yaml`, and pass it with `--configfile mine.yaml`. A top-level
key is a general setting or one of the sections `tables`, `protocols`, `methods`, `datasets`, `networks`,
`tuned`, `published`, `claims` and `tuning`, which map names to entries. Your file is merged with the
repository's key by key. Lists, the keys `split`, `affinity`, `input`, `blocks`, `sources`, `weights` and
`space`, and entries of a method in `tuned` replace the repository's value. Names of entries consist of a-z,
0-9 and _. An unknown key, or a value of the wrong type, ends the run before it starts, with one line that
names file and key.

In the tables below, `[]` stands for each element of a list, `<name>` for each key of a mapping; keys in
**bold** are required.
"""


def page():
    """The text of docs/configuration.md."""
    parts = [HEAD]
    for name, file in FILES.items():
        schema = read_settings(SCHEMAS / f"{name}.yaml")
        parts += [f"\n## `{file}`\n\n{_sentence(schema['description'])}\n\n", _table(schema)]
        parts += [f"\n{_table_of_kinds(*of)}" for of in KINDS.get(name, {}).items()]
    return "".join(parts)


def _table(schema):
    rows = []
    for key, part, required in _keys(schema, schema):
        default = f"`{json.dumps(part['default'])}`" if "default" in part else ""
        text = _sentence(part["description"]).replace("|", "\\|")
        rows.append((_name(key, required), _type(part, schema), default, text))
    return markdown_table(("key", "type", "default", "description"), rows, 0) + "\n"


def _table_of_kinds(heading, kind):
    """The keys that plug-ins must and may have beside their name."""
    rows = []
    for name, plugin in kind.find().items():
        needs = getattr(plugin.said, "needs", {})
        for key, text in (needs | plugin.said.options).items():
            rows.append((f"`{name}`", _name(key, key in needs), _marked(text)))
    return markdown_table((heading, "key", "description"), rows, 0) + "\n"


def _name(key, required):
    return f"**`{key}`**" if required else f"`{key}`"


def _keys(part, schema, prefix=""):
    """(dotted key, schema, whether it is required) of every key below a schema, depth first."""
    for key, inner in part.get("properties", {}).items():
        yield f"{prefix}{key}", inner, key in part.get("required", ())
        yield from _keys(_resolved(inner, schema), schema, f"{prefix}{key}.")
    for key, place in (("items", "[]"), ("additionalProperties", ".<name>")):
        if isinstance(part.get(key), dict):
            inner = _resolved(part[key], schema)
            yield from _keys(inner, schema, f"{prefix.removesuffix('.')}{place}.".removeprefix("."))


def _resolved(part, schema):
    """A schema with what its $ref names."""
    if "$ref" not in part:
        return part
    return schema["$defs"][part["$ref"].rpartition("/")[2]] | part


def _type(part, schema):
    part = _resolved(part, schema)
    if "enum" in part:
        return ", ".join(f"`{value}`" for value in part["enum"])
    if "anyOf" in part:
        return " or ".join(_type(one, schema) for one in part["anyOf"])
    if part.get("type") == "array":
        return f"list of {_type(part['items'], schema)}" if "items" in part else "list"
    names = part.get("type", "any")
    return " or ".join(TYPES.get(name, name) for name in ([names] if isinstance(names, str) else names))


def _sentence(text):
    """A description as a sentence of one line."""
    text = " ".join(text.split()).removesuffix(".")
    return _marked(f"{text[0].upper()}{text[1:]}.")


def _marked(text):
    """A text with its placeholders as code."""
    outside = text.split("`")
    outside[::2] = (PLACEHOLDER.sub(r"`\g<0>`", part) for part in outside[::2])
    return "`".join(outside)


if __name__ == "__main__":
    print(page(), end="")
