# SPDX-License-Identifier: Apache-2.0
"""Of JSON Schema what docs/schemas uses: where a document is not what its schema says."""
import json

KINDS = {"null": type(None), "boolean": bool, "integer": int, "number": (int, float), "string": str, "array": list, "object": dict}
KNOWN = {"$schema", "$id", "$ref", "$defs", "title", "type", "properties", "required", "additionalProperties", "items", "maxItems", "anyOf",
         "enum", "const"}


def is_kind(value, kind):
    return isinstance(value, KINDS[kind]) and (kind in ("boolean", "null") or not isinstance(value, bool))


class Schemas:
    """All schemas of a folder; one refers to another by its name."""

    def __init__(self, folder):
        self.all = {path.name.removesuffix(".json"): json.loads(path.read_text()) for path in folder.glob("*.json")}
        for name, schema in self.all.items():
            assert schema["$id"] == f"lockstep.{name}", name

    def problems(self, document, name):
        """Sentences; `name`: "merge.v1"."""
        return self._problems(document, self.all[name], name, "document")

    def _referred(self, reference, name):
        other, _, path = reference.partition("#")
        name = other.removeprefix("lockstep.") or name
        schema = self.all[name]
        for key in filter(None, path.split("/")):
            schema = schema[key]
        return schema, name

    def _problems(self, value, schema, name, at):
        assert set(schema) <= KNOWN, set(schema) - KNOWN
        if "$ref" in schema:
            return self._problems(value, *self._referred(schema["$ref"], name), at)
        if "anyOf" in schema:
            found = min((self._problems(value, one, name, at) for one in schema["anyOf"]), key=len)
            if found:
                return found
        if "const" in schema and value != schema["const"]:
            return [f"{at} is {value!r}, not {schema['const']!r}"]
        if "enum" in schema and value not in schema["enum"]:
            return [f"{at} is {value!r}, none of {schema['enum']}"]
        kinds = schema.get("type", list(KINDS))
        if not any(is_kind(value, kind) for kind in ([kinds] if isinstance(kinds, str) else kinds)):
            return [f"{at} is {json.dumps(value)[:60]}, not of type {kinds}"]
        if isinstance(value, dict):
            return self._object_problems(value, schema, name, at)
        return self._list_problems(value, schema, name, at) if isinstance(value, list) else []

    def _object_problems(self, value, schema, name, at):
        named, more = schema.get("properties", {}), schema.get("additionalProperties", True)
        found = [f"{at} has no {key!r}" for key in schema.get("required", []) if key not in value]
        for key, one in value.items():
            if key in named:
                found += self._problems(one, named[key], name, f"{at}.{key}")
            elif more is False:
                found.append(f"{at} has {key!r}, which the schema does not know")
            elif more is not True:
                found += self._problems(one, more, name, f"{at}.{key}")
        return found

    def _list_problems(self, value, schema, name, at):
        most = schema.get("maxItems", len(value))
        found = [f"{at} has {len(value)} entries, more than {most}"] if len(value) > most else []
        for i, one in enumerate(value if "items" in schema else []):
            found += self._problems(one, schema["items"], name, f"{at}[{i}]")
        return found
