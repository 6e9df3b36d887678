#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What `lockstep fleet` answers on a real clickhouse-server: the faults of generated fleets, and runs that were pushed.

Usage: questions_test.py SOURCE_TREE FOLDER_OF_PROGRAMS. Without a clickhouse-server it exits with 77.
"""
import json
import pathlib
import subprocess
import sys
import unittest

import generated_fleet
from generated_fleet import Fleet, judge, named

SOURCE, BIN = (pathlib.Path(argument).resolve() for argument in (sys.argv.pop(1), sys.argv.pop(1)))
LOCKSTEP = BIN / "lockstep"
RUN = SOURCE / "tests/traces/v1.7/ring.lks.gz"
QUESTIONS = ("hosts", "versions", "busbw", "lost", "verdicts", "findings")


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

    def rows(self, question, url, days=3650):
        return json.loads(self.ask(question, "--json", "--from", url, "--days", str(days)))["rows"]

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

    def test_of_a_pushed_run(self):
        url = self.pushed("pushed")
        self.server.ask("INSERT INTO pushed.runs (day, run, schema, version) SELECT day, 7, 0, version FROM pushed.runs")
        for question in QUESTIONS:
            self.ask(question, "--from", url, "--days", "3650")
        self.assertEqual(sum(row["runs"] for row in self.rows("verdicts", url)), 2)
        self.assertIn("1 run of an earlier Lockstep could not be counted", self.ask("lost", "--from", url, "--days", "3650"))

    def test_by_users_who_may_only_read(self):
        url = self.store("read").replace("//", "//reader@")
        for question in QUESTIONS:
            self.ask(question, "--from", url)

    def test_as_sql_that_others_can_ask(self):
        url = self.store("plain")
        for question in QUESTIONS:
            sql = self.ask(question, "--sql", "--from", url)
            self.server.ask(sql)
            self.assertIn("`plain`.", sql)
            self.assertIn("`fleet`.", self.ask(question, "--sql"))

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
                            (("hosts", "--from", url, "--days", "0"), "--days takes"), (("hosts", "--from", "store"), "http://HOST"),
                            (("hosts", "--from", self.server.url + "/nothing"), "nothing has no runs")):
            told = self.ask(*words, code=2)
            self.assertIn(part, told)
            self.assertEqual(told.count("\n"), 1, told)
        told = self.ask("hosts", "--from", "http://127.0.0.1:1/", "--patience", "1ms", code=3)
        self.assertEqual(told.count("\n"), 1, told)


if __name__ == "__main__":
    try:
        generated_fleet.program()
    except FileNotFoundError as error:
        print(error)
        sys.exit(77)
    unittest.main(verbosity=2)
