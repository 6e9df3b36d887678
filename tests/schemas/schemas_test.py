#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every document that a command prints with --json, or `lockstep mcp` answers, names its schema in docs/schemas, and is
what that says.

Usage: schemas_test.py SOURCE_TREE FOLDER_OF_PROGRAMS
"""
import http.server
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import threading
import unittest

SOURCE, BIN = (pathlib.Path(argument).resolve() for argument in (sys.argv.pop(1), sys.argv.pop(1)))
sys.path.insert(0, str(SOURCE / "tests/support"))
from json_schema import Schemas as Known  # noqa: E402

KNOWN = Known(SOURCE / "docs/schemas")
# As p2pBandwidthLatencyTest prints them: each GPU to itself, and to the other one.
MATRICES = """[P2P (Peer-to-Peer) GPU Bandwidth Latency Test]
Device: 0, NVIDIA H100 80GB HBM3, pciBusID: 1b, pciDeviceID: 0, pciDomainID:0
Device: 1, NVIDIA H100 80GB HBM3, pciBusID: 2b, pciDeviceID: 0, pciDomainID:0
Unidirectional P2P=Enabled Bandwidth (P2P Writes) Matrix (GB/s)
   D\\D     0      1
     0 2510.00  390.00
     1  391.00 2511.00
"""


def fleet_questions():
    return {one["properties"]["question"]["const"]: one["properties"]["rows"]["items"]["properties"] for one in KNOWN.all["fleet.v1"]["anyOf"]}


def cell(kind):
    return {"string": "a", "integer": "7", "number": "0.5"}[kind if isinstance(kind, str) else kind[0]]


class Store(http.server.BaseHTTPRequestHandler):
    """As much of a ClickHouse as `lockstep fleet` asks of it; `row` is its answer to the question."""

    row = ""

    def do_POST(self):
        statement = self.rfile.read(int(self.headers["Content-Length"])).decode()
        answers = (("version()", "18.16.1"), ("system.columns", "2"), ("schema = 0", "3"), ("", Store.row))
        answer = next(answer for part, answer in answers if part in statement) + "\n"
        self.send_response(200)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer.encode())

    def log_message(self, *_):
        pass


class Schemas(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.seen, cls.verbs = set(), set()
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

    def lockstep(self, *words):
        return subprocess.run([BIN / "lockstep", *map(str, words)], capture_output=True, text=True, timeout=120, cwd=self.place)

    def hold(self, schema, *words, codes=(0, 1, 3), stream="stdout"):
        done = self.lockstep(*words)
        self.assertIn(done.returncode, codes, done.stderr)
        text = getattr(done, stream)
        document = json.loads(text[text.index("{"):])
        self.assertEqual(document["schema"], f"lockstep.{schema}")
        self.assertEqual(KNOWN.problems(document, schema)[:10], [], words)
        self.seen.add(schema)
        self.verbs.add(words[0])
        return document

    def hold_sql(self):
        query = "SELECT NULL, 1, 0.5, 'text'"
        call = {"name": "sql", "arguments": {"database": "good.db", "query": query}}
        asked = "".join(json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}) + "\n"
                        for method, params in (("initialize", {"protocolVersion": "2025-06-18"}), ("tools/call", call)))
        done = subprocess.run([BIN / "lockstep", "mcp"], input=asked, capture_output=True, text=True, timeout=120, cwd=self.place)
        document = json.loads(json.loads(done.stdout.splitlines()[-1])["result"]["content"][0]["text"])
        self.assertEqual(KNOWN.problems(document, "sql.v1"), [])
        self.assertEqual(document["rows"], [[None, 1, 0.5, "text"]])
        self.seen.add("sql.v1")

    def hold_runs(self):
        data = SOURCE / "tests/data"
        for run in ("hang", "late", "lite", "torn", "good.db", data / "kineto", data / "inspector"):
            for command in ("diagnose", "summary", "info"):
                self.hold(command + ".v1", command, "--json", run, codes=(0, 1, 2, 3) if run == "torn" else (0, 1, 3))
            self.hold("show-list.v1", "show", "--json", run)
            self.hold("report.v3", "report", "--json", run)
        for run in ("good", "late", "lite", "hang"):
            self.hold("show-operation.v1", "show", "--json", "--comm", "mesh_dp:1", "--op", "5", run)
            self.hold("top.v1", "top", "--once", "--json", run)
        for evidence in (data / "flight_recorder/hang", data / "logs/hang", data / "ras/behind_1.json", data / "stacks/stacks.txt"):
            self.hold("diagnose.v1", "diagnose", "--json", evidence)
            self.hold("report.v3", "report", "--json", evidence)
        for logs in (data / "logs").iterdir():
            self.hold("logs.v1", "logs", "--json", logs)

    def hold_links(self):
        for path, text in (("hca_type", "MT4129"), ("fw_ver", "28.1"), ("ports/1/state", "4: ACTIVE"), ("ports/1/counters/symbol_error", "3")):
            file = self.place / "host/sys/class/infiniband/mlx5_0" / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text + "\n")
        read = self.hold("links.v1", "links", "--checks", "--json", "--sysfs-root", "host")
        self.assertTrue(read["nics"] and read["counters"], read)
        (self.place / "p2p.txt").write_text(MATRICES)
        printed = self.hold("links.v1", "links", "--json", "--from", "p2p.txt")
        self.assertTrue(printed["measurements"] and printed["findings"], printed)

    def hold_fleet(self):
        with http.server.HTTPServer(("127.0.0.1", 0), Store) as store:
            threading.Thread(target=store.serve_forever, daemon=True).start()
            about = {"jobs": ("--host", "h"), "compare": ("--runs", "a,b"), "op": ("--comms-id", "7")}
            for question, columns in fleet_questions().items():
                Store.row = "\t".join(cell(column["type"]) for column in columns.values())
                answer = self.hold("fleet.v1", "fleet", question, "--json", "--from", f"http://127.0.0.1:{store.server_port}/", *about.get(question, ()))
                self.assertEqual(answer["question"], question)
                self.assertEqual(list(answer["rows"][0]), list(columns))
            store.shutdown()
        self.assertEqual([line.split()[0] for line in self.lockstep("fleet").stdout.splitlines()[2:]], [*fleet_questions(), "check"])

    def hold_traces(self):
        replay = (SOURCE / "tools/replay", "--host", BIN / "lockstep-nccl-host", SOURCE / "examples/recordings/train2h")
        self.hold("trace.v1", "trace", "--json", "-o", "traced.db", "--timeline", "traced.json", "--", *replay, stream="stderr")
        self.hold("trace.v1", "trace", "--json", "--dir", "kept", "--", *replay, stream="stderr")
        self.hold("trace.v1", "trace", "--json", "-o", "none.db", "--", "true", stream="stderr")
        self.hold("trace.v1", "trace", "--json", "--dir", "/proc/none", "--", "true", stream="stderr")

    def test_every_command(self):
        self.hold("merge.v1", "merge", "--json", "-o", "good.db", "good")
        self.hold("version.v1", "version", "--json")
        self.hold_sql()
        self.hold_runs()
        self.hold("compare.v1", "compare", "--json", "good", "late")
        self.hold("compare.v1", "compare", "--json", "--gate", "step<=1.03,busbw:allreduce>=0.9", "good", "good")
        self.hold("report.v3", "report", "--json", "--against", "good", "late")
        self.hold_links()
        self.hold_fleet()
        self.hold_traces()
        self.assertEqual(self.seen, set(KNOWN.all), "each schema is held by a document")
        commands = re.findall(r"^COMMAND\((\w+)\)", (SOURCE / "src/cli/commands.def").read_text(), re.MULTILINE)
        self.assertGreater(len(commands), 10)
        self.assertEqual(self.verbs, {verb for verb in commands if re.search(r"^ +--json\b", self.lockstep(verb, "--help").stdout, re.MULTILINE)},
                         "the document of each verb that has --json is held by a schema")

    def test_the_validator_can_fail(self):
        good = {key: ("lockstep.merge.v1" if key == "schema" else [] if key == "losses" else False if key == "salvaged" else "x" if key == "output" else 1)
                for key in KNOWN.all["merge.v1"]["required"]}
        self.assertEqual(KNOWN.problems(good, "merge.v1"), [])
        for broken in ({**good, "rows": "1"}, {**good, "rows": True}, {**good, "more": 1}, {**good, "schema": "lockstep.merge.v2"},
                       {key: one for key, one in good.items() if key != "rows"}, {**good, "losses": [{}]}):
            self.assertNotEqual(KNOWN.problems(broken, "merge.v1"), [], broken)
        fleet = {"schema": "lockstep.fleet.v1", "question": "lost", "database": "d", "days": 1, "rows": [], "is_cut": False, "runs_without_rollups": 0}
        self.assertEqual(KNOWN.problems(fleet, "fleet.v1"), [])
        for broken in ({**fleet, "question": "x"}, {**fleet, "rows": [{"day": "x"}]}, {**fleet, "days": "1"}):
            self.assertNotEqual(KNOWN.problems(broken, "fleet.v1"), [], broken)


if __name__ == "__main__":
    unittest.main()
