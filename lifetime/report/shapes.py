"""Dataclasses to plain JSON values and back, driven by their type annotations, and the JSON Schema that says the same.

What comes back from a file may be truncated, hand-edited or hostile: every value is checked and nothing is executed.
"""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Mapping
from enum import Enum
from typing import Any, TypeVar

from lifetime.errors import ReportError

T = TypeVar("T")
LONGEST_TEXT = 65_536
MOST_ITEMS = 100_000
LARGEST_NUMBER = 1 << 62
SAID = ("description",)
"""Metadata of a field that goes into the schema as it is."""
_HINTS: dict[type[Any], dict[str, Any]] = {}


def encode(value: object) -> Any:
    """`value` as dicts, lists, strings and numbers."""
    if isinstance(value, Enum):
        return value.value
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: encode(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, (tuple, list)):
        return [encode(item) for item in value]
    if isinstance(value, Mapping):
        return {str(key): encode(item) for key, item in value.items()}
    return value


def decode(shape: type[T], value: object, where: str = "report") -> T:
    """`value` as an instance of `shape`. Keys that the shape does not know are ignored: a later version may add some.

    Raises:
        ReportError: a key is missing, a value has the wrong type, or something is larger than any honest report.
    """
    result: T = _decode(shape, value, where)
    return result


def _decode(shape: Any, value: object, where: str) -> Any:
    if dataclasses.is_dataclass(shape):
        return _decode_object(typing.cast("type[Any]", shape), value, where)
    if typing.get_origin(shape) in (types.UnionType, typing.Union):
        return _decode_optional(shape, value, where)
    if typing.get_origin(shape) is tuple:
        return _decode_list(typing.get_args(shape)[0], value, where)
    if typing.get_origin(shape) is Mapping:
        return _decode_mapping(value, where)
    if isinstance(shape, type) and issubclass(shape, Enum):
        return _decode_member(shape, value, where)
    return _decode_scalar(shape, value, where)


def _decode_object(shape: type[Any], value: object, where: str) -> Any:
    if not isinstance(value, dict):
        raise ReportError(f"{where} is not an object")
    hints = _hints(shape)
    missing = [f.name for f in dataclasses.fields(shape) if f.name not in value and not f.metadata]
    if missing:
        raise ReportError(f"{where} lacks {missing[0]!r}")
    return shape(**{name: _decode(hint, value[name], f"{where}.{name}") for name, hint in hints.items() if name in value})


def _decode_optional(shape: Any, value: object, where: str) -> Any:
    inner = [arm for arm in typing.get_args(shape) if arm is not type(None)]
    return None if value is None else _decode(inner[0], value, where)


def _decode_list(item: Any, value: object, where: str) -> Any:
    if not isinstance(value, list):
        raise ReportError(f"{where} is not a list")
    if len(value) > MOST_ITEMS:
        raise ReportError(f"{where} has {len(value)} items, more than any report that lifetime writes")
    return tuple(_decode(item, each, f"{where}[{k}]") for k, each in enumerate(value))


def _decode_mapping(value: object, where: str) -> Mapping[str, object]:
    """Plain JSON values under text keys, taken as they are."""
    if not isinstance(value, dict):
        raise ReportError(f"{where} is not an object")
    return value


def _decode_member(shape: type[Enum], value: object, where: str) -> Enum:
    try:
        return shape(value)
    except ValueError:
        known = ", ".join(str(member.value) for member in shape)
        raise ReportError(f"{where} is {str(value)[:40]!r}, not one of: {known}") from None


def _decode_scalar(shape: Any, value: object, where: str) -> Any:
    if isinstance(value, (int, float)) and abs(value) >= LARGEST_NUMBER:
        raise ReportError(f"{where} is larger than any number that lifetime writes")
    if shape is float and isinstance(value, (int, float)) and not isinstance(value, bool):
        return float(value)
    if not isinstance(value, shape) or (isinstance(value, bool) and shape is not bool):
        raise ReportError(f"{where} is not {'a number' if shape is int else f'a {shape.__name__}'}")
    if isinstance(value, str) and len(value) > LONGEST_TEXT:
        raise ReportError(f"{where} is longer than {LONGEST_TEXT} characters")
    return value


def _hints(shape: type[Any]) -> dict[str, Any]:
    if shape not in _HINTS:
        _HINTS[shape] = typing.get_type_hints(shape)
    return _HINTS[shape]


def schema(shape: type[Any], identity: str) -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) of `shape`."""
    definitions: dict[str, Any] = {}
    body = _schema(shape, definitions)
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": identity}
    return {**head, **body, "$defs": dict(sorted(definitions.items()))}


def _schema(shape: Any, definitions: dict[str, Any]) -> dict[str, Any]:
    origin, arms = typing.get_origin(shape), typing.get_args(shape)
    if dataclasses.is_dataclass(shape):
        return _schema_object(typing.cast("type[Any]", shape), definitions)
    if origin in (types.UnionType, typing.Union):
        return {"anyOf": [_schema(arm, definitions) for arm in arms]}
    if origin is tuple:
        return {"type": "array", "items": _schema(arms[0], definitions)}
    if isinstance(shape, type) and issubclass(shape, Enum):
        return {"enum": [member.value for member in shape]}
    names = {str: "string", int: "integer", float: "number", bool: "boolean", type(None): "null"}
    return {"type": names[shape]}


def _schema_object(shape: type[Any], definitions: dict[str, Any]) -> dict[str, Any]:
    if shape.__name__ not in definitions:
        definitions[shape.__name__] = {}
        hints = _hints(shape)
        required = [f.name for f in dataclasses.fields(shape) if not f.metadata]
        properties = {
            f.name: {**_schema(hints[f.name], definitions), **{key: f.metadata[key] for key in SAID if key in f.metadata}}
            for f in dataclasses.fields(shape)
        }
        definitions[shape.__name__] = {"type": "object", "properties": properties, "required": required}
    return {"$ref": f"#/$defs/{shape.__name__}"}
