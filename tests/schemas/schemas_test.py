#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every document that a command prints with --json names its schema in docs/schemas, and is what that says.

Usage: schemas_test.py SOURCE_TREE FOLDER_OF_PROGRAMS
"""
import http.server
import json
import pathlib
import subprocess
import sys
import tempfile
import threading
import unittest

SOURCE, BIN = (pathlib.Path(argument).resolve() for argument in (sys.argv.pop(1), sys.argv.pop(1)))
SCHEMAS = {path.name.removesuffix(".json"): json.loads(path.read_text()) for path in (SOURCE / "docs/schemas").glob("*.json")}
KINDS = {"null": type(None), "boolean": bool, "integer": int, "number": (int, float), "string": str, "array": list, "object": dict}
KNOWN = {"$schema", "$id", "$ref", "$defs", "title", "type", "properties", "required", "additionalProperties", "items", "anyOf",
         "enum", "const"}


def is_kind(value, kind):
    return isinstance(value, KINDS[kind]) and (kind in ("boolean", "null") or not isinstance(value, bool))


def problems(value, schema, root, at="document"):
    """Where a value is not what a schema says; of JSON Schema what the schemas here use."""
    assert set(schema) <= KNOWN, set(schema) - KNOWN
    if "$ref" in schema:
        assert schema["$ref"].startswith("#/$defs/")
        return problems(value, root["$defs"][schema["$ref"].split("/")[-1]], root, at)
    if "anyOf" in schema:
        tried = [problems(value, one, root, at) for one in schema["anyOf"]]
        return [] if not all(tried) else tried[-1]
    if "const" in schema and value != schema["const"]:
        return [f"{at} is {value!r}, not {schema['const']!r}"]
    if "enum" in schema and value not in schema["enum"]:
        return [f"{at} is {value!r}, none of {schema['enum']}"]
    kinds = schema.get("type", list(KINDS))
    if not any(is_kind(value, kind) for kind in ([kinds] if isinstance(kinds, str) else kinds)):
        return [f"{at} is {json.dumps(value)[:60]}, not of type {kinds}"]
    found = []
    if isinstance(value, dict):
        named, more = schema.get("properties", {}), schema.get("additionalProperties", True)
        found += [f"{at} has no {key!r}" for key in schema.get("required", []) if key not in value]
        for key, one in value.items():
            if key in named:
                found += problems(one, named[key], root, f"{at}.{key}")
            elif more is False:
                found.append(f"{at} has {key!r}, which the schema does not know")
            elif more is not True:
                found += problems(one, more, root, f"{at}.{key}")
    if isinstance(value, list) and "items" in schema:
        for i, one in enumerate(value):
            found += problems(one, schema["items"], root, f"{at}[{i}]")
    return found


class Store(http.server.BaseHTTPRequestHandler):
    """As much of a ClickHouse as `lockstep fleet hosts` asks of it."""

    def do_POST(self):
        statement = self.rfile.read(int(self.headers["Content-Length"])).decode()
        answers = (("version()", "18.16.1"), ("system.columns", "2"), ("schema = 0", "3"), ("", "node\tlate\t2\t1\t0.5\t1e-9\t0\t5\tnan"))
        answer = next(answer for part, answer in answers if part in statement) + "\n"
        self.send_response(200)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer.encode())

    def log_message(self, *_):
        pass


class Schemas(unittest.TestCase):
    seen = set()

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.place = pathlib.Path(cls.folder.name)
        for name, mode, fault in (("hang", "deep", "never-joined"), ("good", "deep", "none"), ("lite", "lite", "none"), ("late", "default", "host-late")):
            subprocess.run([BIN / "lockstep-sim-job", "--ranks", "8", "--steps", "30", "--seed", "3", "--mode", mode, "--marks", "--fault",
                            fault, "-o", cls.place / name], check=True, stdout=subprocess.DEVNULL)
        (cls.place / "torn").mkdir()
        for path in (cls.place / "hang").iterdir():
            (cls.place / "torn" / path.name).write_bytes(path.read_bytes()[:150_000])

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def hold(self, schema, *words, codes=(0, 1, 3)):
        done = subprocess.run([BIN / "lockstep", *map(str, words)], capture_output=True, text=True, timeout=120, cwd=self.place)
        self.assertIn(done.returncode, codes, done.stderr)
        document = json.loads(done.stdout)
        self.assertEqual(document["schema"], f"lockstep.{schema}.v1")
        self.assertEqual(problems(document, SCHEMAS[schema + ".v1"], SCHEMAS[schema + ".v1"])[:10], [], words)
        Schemas.seen.add(schema + ".v1")

    def test_every_command(self):
        data = SOURCE / "tests/data"
        self.hold("merge", "merge", "--json", "-o", "good.db", "good")
        self.hold("version", "version", "--json")
        for run in ("hang", "late", "lite", "torn", "good.db", data / "kineto", data / "inspector"):
            for command in ("diagnose", "summary", "info"):
                self.hold(command, command, "--json", run, codes=(0, 1, 2, 3) if run == "torn" else (0, 1, 3))
            self.hold("show-list", "show", "--json", run)
        for run in ("good", "late", "lite", "hang"):
            self.hold("show-operation", "show", "--json", "--comm", "mesh_dp:1", "--op", "5", run)
            self.hold("top", "top", "--once", "--json", run)
        for evidence in (data / "flight_recorder/hang", data / "logs/hang", data / "ras/behind_1.json", data / "stacks/stacks.txt"):
            self.hold("diagnose", "diagnose", "--json", evidence)
        for logs in (data / "logs").iterdir():
            self.hold("logs", "logs", "--json", logs)
        self.hold("compare", "compare", "--json", "good", "late")
        self.hold("compare", "compare", "--json", "--gate", "step<=1.03,busbw:allreduce>=0.9", "good", "good")
        with http.server.HTTPServer(("127.0.0.1", 0), Store) as store:
            threading.Thread(target=store.serve_forever, daemon=True).start()
            self.hold("fleet", "fleet", "hosts", "--json", "--from", f"http://127.0.0.1:{store.server_port}/")
            store.shutdown()
        self.assertEqual(self.seen, set(SCHEMAS), "each schema is held by a document")

    def test_the_validator_can_fail(self):
        schema = SCHEMAS["merge.v1"]
        good = {key: ("lockstep.merge.v1" if key == "schema" else [] if key == "losses" else False if key == "salvaged" else "x" if key == "output" else 1)
                for key in schema["required"]}
        self.assertEqual(problems(good, schema, schema), [])
        for broken in ({**good, "rows": "1"}, {**good, "rows": True}, {**good, "more": 1}, {**good, "schema": "lockstep.merge.v2"},
                       {key: one for key, one in good.items() if key != "rows"}, {**good, "losses": [{}]}):
            self.assertNotEqual(problems(broken, schema, schema), [], broken)


if __name__ == "__main__":
    unittest.main()
