"""JSON Schema: the first mistake in words, and the defaults of a schema."""

import copy

import jsonschema

from tiebench.messages import did_you_mean, shorten


def _is_integer(_, value):
    return isinstance(value, int) and not isinstance(value, bool)  # 8.0 would become the folder 8.0


# JSON's types as YAML and people call them.
TYPES = {"array": "list", "string": "text", "object": "mapping", "boolean": "true or false"}
_VALIDATOR = jsonschema.validators.extend(
    jsonschema.Draft202012Validator,
    type_checker=jsonschema.Draft202012Validator.TYPE_CHECKER.redefine("integer", _is_integer),
)


def mistake(value, schema):
    """The most telling mistake of a value as (keys, message), or None if the schema accepts it."""
    error = jsonschema.exceptions.best_match(_VALIDATOR(schema).iter_errors(value))
    if error is None:
        return None
    keys = tuple(f"[{part}]" if isinstance(part, int) else str(part) for part in error.absolute_path)
    if error.validator == "additionalProperties":
        allowed = list(error.schema.get("properties", {}))
        unknown = next(key for key in error.instance if key not in allowed)
        return (*keys, str(unknown)), f"unknown key{did_you_mean(unknown, allowed)}"
    if error.validator == "required":
        missing = next(key for key in error.validator_value if key not in error.instance)
        return keys, f"{missing!r} is missing"
    shown = shorten(repr(error.instance))
    if error.validator == "enum":
        return keys, f"{shown} is not allowed{did_you_mean(error.instance, error.validator_value)}"
    if error.validator == "type":
        allowed = error.validator_value
        names = [repr(TYPES.get(one, one)) for one in ([allowed] if isinstance(allowed, str) else allowed)]
        return keys, f"{shown} is not of type {' or '.join(names)}"
    return keys, error.message.replace(repr(error.instance), shown)


def fill_defaults(value, schema):
    """Add the defaults of a schema to a value that it accepts, in place."""
    if isinstance(value, dict):
        for key, part in schema.get("properties", {}).items():
            if "default" in part and key not in value:
                value[key] = copy.deepcopy(part["default"])
            if key in value:
                fill_defaults(value[key], part)
        extra = schema.get("additionalProperties")
        if isinstance(extra, dict):
            for key in value.keys() - schema.get("properties", {}).keys():
                fill_defaults(value[key], extra)
    elif isinstance(value, list) and isinstance(schema.get("items"), dict):
        for part in value:
            fill_defaults(part, schema["items"])
