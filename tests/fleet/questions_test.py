#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What `lockstep fleet` answers on a real clickhouse-server: the faults of generated fleets, and runs that were pushed.

Usage: questions_test.py SOURCE_TREE FOLDER_OF_PROGRAMS. Without a clickhouse-server it exits with 77.
"""
import http.server
import json
import pathlib
import shutil
import ssl
import subprocess
import sys
import tempfile
import threading
import unittest

import generated_fleet
from generated_fleet import Fleet, judge, named

SOURCE, BIN = (pathlib.Path(argument).resolve() for argument in (sys.argv.pop(1), sys.argv.pop(1)))
LOCKSTEP = BIN / "lockstep"
RUN = SOURCE / "tests/traces/v1.7/ring.lks.gz"
ABOUT = {"jobs": ("--host", "node-0001"), "compare": ("--runs", "a,b"), "op": ("--comms-id", "7")}  # what some questions need
QUESTIONS = ("hosts", "versions", "busbw", "lost", "verdicts", "findings", "links", *ABOUT)


class Questions(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = generated_fleet.Server()
        cls.addClassCleanup(cls.server.close)

    def pushed(self, database):
        """The URL of a store with one run."""
        url = f"{self.server.url}/{database}"
        subprocess.run([LOCKSTEP, "push", RUN, "--to", url], check=True, stdout=subprocess.DEVNULL)
        return url

    def store(self, database):
        """The same, empty."""
        url = self.pushed(database)
        for table in ("runs", "processes", "rollups", "findings"):
            self.server.ask(f"TRUNCATE TABLE {database}.{table}")
        return url

    def ask(self, *words, code=0):
        done = subprocess.run([LOCKSTEP, "fleet", *words], capture_output=True, text=True, timeout=200)
        self.assertEqual(done.returncode, code, done.stderr)
        return done.stdout if code == 0 else done.stderr

    def rows(self, question, url, days=3650, about=()):
        return json.loads(self.ask(question, "--json", "--from", url, "--days", str(days), *about))["rows"]

    def test_name_the_fault_of_a_fleet_and_nothing_else(self):
        for seed, kind in enumerate(generated_fleet.FAULTS):
            with self.subTest(kind):
                url, fleet = self.store(f"{kind}_fleet"), Fleet(seed, kind, hosts=48, days=20, jobs_a_day=24)
                fleet.push(self.server.ask, f"{kind}_fleet")
                found = named(LOCKSTEP, url, fleet.days)
                self.assertEqual(judge(fleet.fault, found), "right", (fleet.fault, found))
                if kind in ("host", "link"):
                    self.assertTrue(generated_fleet.is_dated(fleet.fault, found), (fleet.fault, found))

    def test_count_what_is_there(self):
        url, fleet = self.store("counted"), Fleet(7, "none", hosts=16, days=3, jobs_a_day=12)
        fleet.push(self.server.ask, "counted")
        fleet.push(self.server.ask, "counted")  # as a pusher that was killed would
        runs, findings = fleet.rows["runs"], fleet.rows["findings"]
        verdicts = {row["verdict"]: row["runs"] for row in self.rows("verdicts", url, 4)}
        self.assertEqual(verdicts, {verdict: sum(run["verdict"] == verdict for run in runs) for verdict in {run["verdict"] for run in runs}})
        pairs = {}
        for finding in findings:
            for host in finding["hosts"]:
                pairs.setdefault((finding["id"], host), set()).add(finding["run"])
        self.assertEqual({(row["id"], row["host"]): row["runs"] for row in self.rows("findings", url, 4)},
                         {pair: len(of) for pair, of in pairs.items() if len(of) > 1})
        lost = self.rows("lost", url, 4)
        self.assertEqual(sum(row["runs"] for row in lost), len(runs))
        waited = sum(row["waited_ns"] for row in fleet.rows["rollups"]) / 3.6e12
        self.assertAlmostEqual(sum(row["waited_hours"] for row in lost), waited, places=6)
        hours = sum((row["last_ns"] - row["first_ns"]) for row in fleet.rows["processes"]) / 3.6e12
        self.assertAlmostEqual(sum(row["gpu_hours"] for row in lost), hours, places=6)
        self.assertEqual(sum(row["runs"] for row in self.rows("busbw", url, 4)), len(runs) * len(generated_fleet.SHAPES))

    def test_name_a_bad_link_and_no_other(self):
        url, fleet = self.store("links"), Fleet(5, "none", hosts=48, days=20, jobs_a_day=24)
        fleet.reserved[0] = sorted(fleet.pick(4))  # together every day
        fleet.push(self.server.ask, "links")
        self.assertEqual(self.rows("links", url), [])
        bad = fleet.reserved[0][1:3]
        together = [run for run in fleet.rows["runs"] if set(bad) <= set(run["hosts"])]
        named = [run for run in together if run["hosts"] == fleet.reserved[0]][:16]
        for run in named:
            self.server.ask("INSERT INTO links.findings (day, run, finding, id, class, severity, hosts, version) FORMAT TabSeparated",
                            f"{run['day']}\t{run['run']}\t9\tslow-link\tslow-link\twarning\t['{bad[1]}','{bad[0]}']\t1\n".encode())
        [row] = self.rows("links", url)
        self.assertEqual((row["what"], row["host"], row["peer"], row["of_runs"]), ("slow-link", *bad, len(together)))
        self.assertGreaterEqual(row["runs"], len(named))
        self.assertLess(row["expected_runs"], row["runs"] / 3)
        self.assertEqual(row["first_ns"], min(run["started_ns"] for run in named))

    def test_say_what_a_host_did_to_which_jobs(self):
        url, fleet = self.store("jobs"), Fleet(11, "host", hosts=16, days=5, jobs_a_day=12)
        fleet.push(self.server.ask, "jobs")
        host = fleet.fault.name
        rows = self.rows("jobs", url, about=("--host", host))
        runs = [run for run in fleet.rows["runs"] if host in run["hosts"]]
        self.assertEqual([row["run"] for row in rows], [str(run["run"]) for run in sorted(runs, key=lambda run: -run["started_ns"])])
        named, blamed = {}, {}
        for finding in fleet.rows["findings"]:
            if host in finding["hosts"]:
                named.setdefault(finding["run"], set()).add(finding["id"])
        for row in fleet.rows["rollups"]:
            if row["host"] == host:
                blamed[row["run"]] = blamed.get(row["run"], 0) + row["blamed_ns"]
        for row in rows:
            self.assertEqual(row["findings_on_host"], ", ".join(sorted(named.get(int(row["run"]), ()))))
            self.assertAlmostEqual(row["blamed_hours"], blamed[int(row["run"])] / 3.6e12)
        self.assertTrue(any(row["findings_on_host"] for row in rows))
        self.assertEqual(self.rows("jobs", url, about=("--host", "node-9999")), [])

    def test_compare_two_runs(self):
        url, fleet = self.store("compared"), Fleet(12, "none", hosts=16, days=4, jobs_a_day=6)
        fleet.push(self.server.ask, "compared")
        one, other = fleet.rows["runs"][0], fleet.rows["runs"][7]
        rows = self.rows("compare", url, about=("--runs", f"{one['run']},{other['name']}"))
        self.assertEqual({(row["func"], row["size_bits"]) for row in rows}, {(func, bits) for func, bits, _ in generated_fleet.SHAPES})

        def sums(run, row, column):
            return sum(of[column] for of in fleet.rows["rollups"] if (of["run"], of["func"], of["size_bits"]) == (run["run"], row["func"], row["size_bits"]))
        for row in rows:
            busbw = [sums(run, row, "bus_bytes") / sums(run, row, "moving_ns") for run in (one, other)]
            for found, wanted in zip((row["first_busbw"], row["second_busbw"], row["change"]), (*busbw, busbw[1] / busbw[0] - 1)):
                self.assertAlmostEqual(found, wanted, places=6)
            self.assertAlmostEqual(row["first_waited_ns"], sums(one, row, "waited_ns") / sums(one, row, "compared"), places=3)
            self.assertEqual(row["second_ops"], sums(other, row, "ops"))
        self.assertEqual(self.rows("compare", url, about=("--runs", f"{one['run']},nobody")), [])

    def test_show_one_operation_on_all_ranks(self):
        url = self.pushed("op")
        self.server.ask("TRUNCATE TABLE op.ops")
        self.server.ask("INSERT INTO op.ops (day, run, comm, op_index, rank, host, func, comms_id, entered_ns, clock_error_ns, gpu_ns, version) SELECT today(), "
                        "toUInt64(1), toUInt64(2), toUInt32(8), toInt32(number), concat('node-', toString(number)), 'AllReduce', toUInt64(18446744073709551615), "
                        "toInt64(if(number = 3, 0, 1700000000000000000 + number * 1000)), toInt64(if(number = 2, -1, 5)), toInt64(number * 10), toUInt64(1) FROM system.numbers LIMIT 4")
        rows = self.rows("op", url, about=("--comms-id", str(2**64 - 1)))
        self.assertEqual([(row["rank"], row["host"], row["late_ns"], row["gpu_ns"]) for row in rows],
                         [(1, "node-1", 1000, 10), (0, "node-0", 0, None), (2, "node-2", None, 20), (3, "node-3", None, 30)])
        self.assertEqual(self.rows("op", url, about=("--comms-id", "0")), [])

    def test_of_a_pushed_run(self):
        url = self.pushed("pushed")
        self.server.ask("INSERT INTO pushed.runs (day, run, schema, version) SELECT day, 7, 0, version FROM pushed.runs")
        for question in QUESTIONS:
            self.ask(question, "--from", url, "--days", "3650", *ABOUT.get(question, ()))
        self.assertEqual(sum(row["runs"] for row in self.rows("verdicts", url)), 2)
        self.assertIn("1 run of an earlier Lockstep could not be counted", self.ask("lost", "--from", url, "--days", "3650"))

    def test_by_users_who_may_only_read(self):
        url = self.store("read").replace("//", "//reader@")
        for question in QUESTIONS:
            self.ask(question, "--from", url, *ABOUT.get(question, ()))

    def test_as_sql_that_others_can_ask(self):
        url = self.store("plain")
        for question in QUESTIONS:
            sql = self.ask(question, "--sql", "--from", url, *ABOUT.get(question, ()))
            self.server.ask(sql)
            self.assertIn("`plain`.", sql)
            self.assertIn("`fleet`.", self.ask(question, "--sql", *ABOUT.get(question, ())))

    @unittest.skipIf(shutil.which("openssl") is None, "openssl makes the certificate")
    def test_a_certificate_that_nobody_signed_is_said(self):
        with tempfile.TemporaryDirectory() as folder, http.server.HTTPServer(("127.0.0.1", 0), http.server.BaseHTTPRequestHandler) as server:
            subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj", "/CN=127.0.0.1", "-keyout", f"{folder}/key",
                            "-out", f"{folder}/certificate"], check=True, capture_output=True)
            tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            tls.load_cert_chain(f"{folder}/certificate", f"{folder}/key")
            server.socket = tls.wrap_socket(server.socket, server_side=True)
            threading.Thread(target=server.serve_forever, daemon=True).start()
            told = self.ask("verdicts", "--from", f"https://127.0.0.1:{server.server_port}/", code=2)
            server.shutdown()
        self.assertIn("certificate", told)
        self.assertEqual(told.count("\n"), 1, told)

    def test_show_hostile_names_as_text(self):
        url = self.store("hostile")
        name = "\\x1b[2Jnode\\'`\\\\\\t"
        self.server.ask("INSERT INTO hostile.runs (day, run, verdict, schema, version) SELECT today(), toUInt64(1), '" + name + "x" * 5000 + "', toUInt32(1), toUInt64(1)")
        answer = self.ask("verdicts", "--from", url)
        self.assertNotIn("\x1b", answer)
        self.assertIn("node'`", answer)
        self.assertLess(len(answer), 2000)
        [row] = self.rows("verdicts", url, 1)
        self.assertTrue(row["verdict"].startswith("\x1b[2Jnode'`\\\tx"))

    def test_are_refused_in_one_line(self):
        url = self.store("refused")
        for words, part in ((("host", "--from", url), "no question 'host'"), (("hosts",), "--from is missing"),
                            (("jobs", "--from", url), "--host is missing"), (("hosts", "--host", "x", "--from", url), "--host goes with jobs"),
                            (("compare", "--runs", "a", "--from", url), "--runs takes two runs"), (("op", "--comms-id", "x", "--from", url), "takes a number"),
                            (("hosts", "--from", url, "--days", "0"), "--days takes"), (("hosts", "--from", "store"), "http://HOST"),
                            (("hosts", "--from", self.server.url + "/nothing"), "nothing has no runs")):
            told = self.ask(*words, code=2)
            self.assertIn(part, told)
            self.assertEqual(told.count("\n"), 1, told)
        told = self.ask("hosts", "--from", "http://127.0.0.1:1/", "--patience", "1ms", code=3)
        self.assertEqual(told.count("\n"), 1, told)


if __name__ == "__main__":
    generated_fleet.run_tests()
