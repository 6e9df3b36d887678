#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A scripted client of `lockstep mcp`: the protocol, every tool beside its command, pages, and what must be refused.

Usage: client_test.py FOLDER_OF_PROGRAMS
"""
import json
import os
import subprocess
import sys
import tempfile
import unittest

BIN = sys.argv.pop(1) if len(sys.argv) > 1 else ""
MOST = 32 << 10


def program(name, *arguments, folder=None):
    return subprocess.run([os.path.join(BIN, name), *arguments], capture_output=True, text=True, cwd=folder, timeout=120)


class Client:
    def __init__(self, folder, *words):
        self.process = subprocess.Popen([os.path.join(BIN, "lockstep"), "mcp", *words], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=folder)
        self.number = 0

    def send(self, line):
        self.process.stdin.write(line if isinstance(line, bytes) else json.dumps(line).encode())
        self.process.stdin.write(b"\n")
        self.process.stdin.flush()

    def answer(self):
        line = self.process.stdout.readline()
        assert line.endswith(b"\n") and len(line) <= MOST, len(line)
        return json.loads(line)

    def ask(self, method, params=None):
        self.number += 1
        self.send({"jsonrpc": "2.0", "id": self.number, "method": method, **({} if params is None else {"params": params})})
        answer = self.answer()
        assert answer["id"] == self.number and answer["jsonrpc"] == "2.0", answer
        return answer

    def call(self, tool, **arguments):
        return self.ask("tools/call", {"name": tool, "arguments": arguments})["result"]

    def whole(self, tool, **arguments):
        """(text of all pages, pages)."""
        text, pages, cursor = "", 0, None
        while True:
            result = self.call(tool, **arguments, **({} if cursor is None else {"cursor": cursor}))
            assert not result["isError"], result
            text += result["content"][0]["text"]
            pages += 1
            cursor = result["structuredContent"]["next_cursor"]
            if cursor is None:
                return text, pages

    def close(self):
        self.process.stdin.close()
        code = self.process.wait(timeout=60)
        self.process.stdout.close()
        self.process.stderr.close()
        return code


class Protocol(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory()
        cls.folder = os.path.join(os.path.realpath(cls.temporary.name), "runs")
        os.mkdir(cls.folder)
        for name, fault in (("hang", "never-joined"), ("good", "none"), ("late", "host-late")):
            made = program("lockstep-sim-job", "--ranks", "8", "--steps", "60", "--seed", "3", "--fault", fault, "-o", name,
                           folder=cls.folder)
            assert made.returncode == 0, made.stderr
        program("lockstep", "merge", "-o", "trace.db", "good", folder=cls.folder)
        cls.outside = os.path.join(os.path.dirname(cls.folder), "outside")
        os.mkdir(cls.outside)
        os.symlink(cls.outside, os.path.join(cls.folder, "link"))

    @classmethod
    def tearDownClass(cls):
        cls.temporary.cleanup()

    def setUp(self):
        self.client = Client(self.folder)
        self.addCleanup(self.client.close)

    def test_begin_and_end(self):
        begun = self.client.ask("initialize", {"protocolVersion": "2025-06-18", "capabilities": {},
                                               "clientInfo": {"name": "test", "version": "1"}})["result"]
        self.assertEqual(begun["protocolVersion"], "2025-06-18")
        self.assertEqual(begun["serverInfo"]["name"], "lockstep")
        self.assertIn("tools", begun["capabilities"])
        self.client.send({"jsonrpc": "2.0", "method": "notifications/initialized"})  # no answer: the next is of ping
        self.assertEqual(self.client.ask("ping")["result"], {})
        for asked, given in (("2024-11-05", "2024-11-05"), ("1999-01-01", "2025-06-18"), (7, "2025-06-18")):
            self.assertEqual(self.client.ask("initialize", {"protocolVersion": asked})["result"]["protocolVersion"], given)
        self.assertEqual(self.client.close(), 0)

    def test_tools_are_listed(self):
        tools = {tool["name"]: tool for tool in self.client.ask("tools/list")["result"]["tools"]}
        self.assertEqual(set(tools), {"diagnose", "summary", "show", "explain", "compare", "sql"})
        for tool in tools.values():
            self.assertTrue(tool["annotations"]["readOnlyHint"])
            schema = tool["inputSchema"]
            self.assertEqual(schema["type"], "object")
            self.assertFalse(schema["additionalProperties"])
            self.assertLessEqual(set(schema["required"]), set(schema["properties"]))

    def test_tools_say_what_commands_print(self):
        for words, tool, arguments in (
                (("diagnose", "--", "hang"), "diagnose", {"paths": ["hang"]}),
                (("diagnose", "--json", "--", "hang"), "diagnose", {"paths": ["hang"], "json": True}),
                (("diagnose", "--", "good"), "diagnose", {"paths": ["good"]}),
                (("summary", "--", "good"), "summary", {"paths": ["good"]}),
                (("show", "--comm=mesh_dp:1", "--op=5", "--", "good"), "show",
                 {"paths": ["good"], "comm": "mesh_dp:1", "op": "5"}),
                (("explain", "never-joined"), "explain", {"id": "never-joined"}),
                (("explain",), "explain", {}),
                (("compare", "--", "good", "late"), "compare", {"a": "good", "b": "late"})):
            whole = [word if word not in ("hang", "good", "late") else os.path.join(self.folder, word) for word in words]
            printed = program("lockstep", *whole, folder=self.folder)
            text, _ = self.client.whole(tool, **arguments)
            self.assertEqual(text, printed.stdout, words)
            self.assertEqual(self.client.call(tool, **arguments)["structuredContent"]["exit_code"], printed.returncode)

    def test_long_answers_come_in_pages(self):
        text, pages = self.client.whole("show", paths=["good"], json=True)
        self.assertGreater(pages, 3)
        self.assertEqual(len(json.loads(text)["op_list"]), len(json.loads(
            program("lockstep", "show", "--json", "good", folder=self.folder).stdout)["op_list"]))
        result = self.client.call("show", paths=["good"], json=True, cursor=str(len(text) + 1))
        self.assertTrue(result["isError"])

    def test_sql(self):
        text, _ = self.client.whole("sql", database="trace.db", query="SELECT count(*), max(rank) FROM processes")
        self.assertEqual(json.loads(text), {"schema": "lockstep.sql.v1", "columns": ["count(*)", "max(rank)"], "more": False, "rows": [[8, 7]]})
        answer = json.loads(self.client.whole("sql", database="trace.db", query="SELECT id FROM ops", rows=1000)[0])
        self.assertEqual((len(answer["rows"]), answer["more"]), (1000, True))
        for query in ("DELETE FROM process", "ATTACH '/etc/passwd' AS x", "SELECT 1; SELECT 2", "PRAGMA table_info(process)", "x"):
            self.assertTrue(self.client.call("sql", database="trace.db", query=query)["isError"], query)
        for arguments in ({"rows": 0}, {"rows": 1001}, {"rows": "5"}, {"rows": 1.5}):
            self.assertTrue(self.client.call("sql", database="trace.db", query="SELECT 1", **arguments)["isError"], arguments)

    def test_only_the_folders_are_read(self):
        program("lockstep-sim-job", "--ranks", "2", "--steps", "2", "-o", os.path.join(self.outside, "run"))
        for path in (os.path.join(self.outside, "run"), "../outside/run", "link/run", "/etc/passwd", "/proc/self/environ", "-",
                     "absent", "good/../../outside/run"):
            result = self.client.call("diagnose", paths=[path])
            self.assertTrue(result["isError"], path)
            self.assertIn("outside the folders", result["content"][0]["text"], path)
        self.assertFalse(self.client.call("diagnose", paths=[os.path.join(self.folder, "good")])["isError"])
        # What a folder holds is read with it, so its links count as well.
        log = os.path.join(self.outside, "secret.log")
        with open(log, "w") as file:
            file.write("vm:1:1 [0] NCCL INFO NCCL version 2.28.9+cuda13.0\n")
        for name, target, refused in (("to_log", log, True), ("to_run", os.path.join(self.outside, "run"), True),
                                      ("to_good", os.path.join(self.folder, "good"), False)):
            os.makedirs(os.path.join(self.folder, name))
            os.symlink(target, os.path.join(self.folder, name, "x.lks" if target == log else "x"))
            result = self.client.call("diagnose", paths=[name])
            self.assertEqual(result["isError"], refused, (name, result))
            if refused:
                self.assertIn("leads outside the folders", result["content"][0]["text"])
        wider = Client(self.folder, self.outside, self.folder)
        self.assertFalse(wider.call("diagnose", paths=["run"])["isError"])
        wider.close()

    def test_wrong_arguments_are_refused(self):
        for tool, arguments in (
                ("diagnose", {}), ("diagnose", {"paths": []}), ("diagnose", {"paths": "good"}), ("diagnose", {"paths": [7]}),
                ("diagnose", {"paths": ["good\0x"]}), ("diagnose", {"paths": ["good"] * 65}), ("diagnose", {"paths": ["a" * 70000]}),
                ("diagnose", {"paths": ["good"], "output": "/tmp/x"}), ("diagnose", {"paths": ["good"], "json": 1}),
                ("diagnose", {"paths": ["--json"]}), ("show", {"paths": ["good"], "op": "--all"}),
                ("show", {"paths": ["good"], "rank": -1}), ("show", {"paths": ["good"], "limit": 1e30}),
                ("explain", {"id": "no such"}), ("explain", {"id": ["x"]}), ("compare", {"a": "good"}),
                ("sql", {"database": "good", "query": "SELECT 1"}), ("diagnose", {"paths": ["good"], "cursor": "x"}),
                ("diagnose", {"paths": ["good"], "cursor": "-1"}), ("diagnose", {"paths": ["good"], "cursor": 5})):
            self.assertTrue(self.client.call(tool, **arguments)["isError"], (tool, str(arguments)[:200]))
        for params in ({"name": "rm", "arguments": {}}, {"arguments": {}}, {"name": ["diagnose"]}, {"name": "explain", "arguments": []}):
            self.assertEqual(self.client.ask("tools/call", params)["error"]["code"], -32602)
        self.assertFalse(self.client.call("explain")["isError"])  # it goes on

    def test_broken_messages_are_answered_and_forgotten(self):
        deep = b'{"jsonrpc":"2.0","id":1,"method":"ping","params":' + b'{"a":' * 100000 + b"1" + b"}" * 100001
        for line, code in ((b"{", -32700), (b"\xff\xfe", -32700), (deep, -32700), (b"[]", -32600), (b"7", -32600),
                           (b'{"id":1,"method":"ping"}', -32600), (b'{"jsonrpc":"2.0","id":{},"method":"ping"}', -32600),
                           (b'{"jsonrpc":"2.0","id":1,"method":7}', -32600), (b'{"jsonrpc":"2.0","id":1,"method":"x"}', -32601),
                           (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}', -32602),
                           (b'{"jsonrpc":"2.0","id":1,"method":"ping","x":"' + b"y" * (2 << 20) + b'"}', -32600)):
            self.client.send(line)
            self.assertEqual(self.client.answer()["error"]["code"], code, line[:60])
        self.client.send(b"")
        self.client.send({"jsonrpc": "2.0", "method": "tools/call", "params": {"name": "explain"}})  # wants no answer
        self.client.send({"jsonrpc": "2.0", "id": 9, "result": {}})  # an answer to nothing
        self.assertEqual(self.client.ask("ping")["result"], {})

    def test_nothing_is_written(self):
        def state():
            return sorted((entry.path, entry.stat().st_size, entry.stat().st_mtime_ns) for folder in (self.folder, self.folder + "/good")
                          for entry in os.scandir(folder) if not entry.is_symlink())

        before = state()
        for tool, arguments in (("diagnose", {"paths": ["good"]}), ("summary", {"paths": ["trace.db"]}),
                                ("sql", {"database": "trace.db", "query": "SELECT 1"}), ("compare", {"a": "good", "b": "late"})):
            self.assertFalse(self.client.call(tool, **arguments)["isError"])
        self.assertEqual(state(), before)


if __name__ == "__main__":
    unittest.main()
