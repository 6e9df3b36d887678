#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Each query of examples/clickhouse on a real clickhouse-server, with what it says of a job that stands still, and of one that does not.

Usage: dashboards_test.py SOURCE_TREE FOLDER_OF_PROGRAMS. Without a clickhouse-server it exits with 77.
"""
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import textwrap
import unittest
import xml.etree.ElementTree

import generated_fleet

SOURCE, BIN = (pathlib.Path(argument).resolve() for argument in (sys.argv.pop(1), sys.argv.pop(1)))
PLACE = SOURCE / "examples/clickhouse"
DASHBOARD = json.loads((PLACE / "grafana/lockstep-fleet.json").read_text())
ALERTS = (PLACE / "grafana/alerts.yaml").read_text()


def panels():
    return [panel for panel in DASHBOARD["panels"] if panel["type"] != "row"]


def alert_queries():
    """By uid. Without a YAML parser: blocks of text end where the indentation does."""
    rules = re.split(r"^      - uid: ", ALERTS, flags=re.M)[1:]
    return {rule.split("\n", 1)[0]: textwrap.dedent(re.search(r"rawSql: \|-\n((?: {16}.*\n)+)", rule)[1]) for rule in rules}


class Dashboards(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = generated_fleet.Server()
        cls.addClassCleanup(cls.server.close)
        url = f"{cls.server.url}/fleet"
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run([BIN / "lockstep-sim-job", "--ranks", "8", "--steps", "4", "--mode", "deep", "-o", f"{folder}/run"], check=True, stdout=subprocess.DEVNULL)
            subprocess.run([BIN / "lockstep", "push", "--follow", f"{folder}/run", "--to", url + "#ended"], check=True)
            subprocess.run([BIN / "lockstep", "push", f"{folder}/run", "--to", url], check=True, stdout=subprocess.DEVNULL)

    def ask(self, sql):
        for macro, meant in (("$database", "fleet"), ("$__fromTime", "toDateTime(0)"), ("$__toTime", "now()")):
            sql = sql.replace(macro, meant)
        self.assertNotIn("$", sql)
        document = json.loads(self.server.ask(sql + "\nFORMAT JSON"))
        return [{name: float(value) if str(value).lstrip("-").replace(".", "", 1).isdigit() else value for name, value in row.items()} for row in document["data"]]

    def panel(self, title, kind):
        [panel] = [panel for panel in panels() if (panel["title"], panel["type"]) == (title, kind)]
        return self.ask(panel["targets"][0]["rawSql"])

    def job(self, name, silent_s, called_s):
        """A rank of a running job that called its last operation, and whose host wrote last, so many seconds ago."""
        ago = "toInt64(toUnixTimestamp(now()) - {}) * 1000000000".format
        self.server.ask(f"INSERT INTO fleet.now_processes (day, run, process, name, host, rank, liveness, closed, seen_ns, version) SELECT today(), cityHash64('{name}'), "
                        f"cityHash64('{name}'), '{name}', 'node-{name}', toInt32(3), 'running', toUInt8(0), {ago(silent_s)}, toUInt64(1)")
        self.server.ask("INSERT INTO fleet.now (day, run, process, comm, comm_name, host, rank, func, state, since_ns, version) SELECT today(), "
                        f"cityHash64('{name}'), cityHash64('{name}'), toUInt32(number), 'dp', 'node-{name}', toInt32(3), 'AllReduce', 'called', "
                        f"{ago(f'{called_s} - number * 1000')}, toUInt64(1) FROM system.numbers LIMIT 1")

    def test_every_query_runs(self):
        for panel in panels():
            with self.subTest(panel["title"]):
                rows = self.ask(panel["targets"][0]["rawSql"])
                if panel["type"] == "timeseries" or panel["title"] in ("Hosts that cost most", "Jobs that write"):
                    self.assertTrue(rows)
        for rule, sql in alert_queries().items():
            with self.subTest(rule):
                self.assertEqual(len(self.ask(sql)), 1)
        self.assertEqual(len(alert_queries()), 3)

    def test_a_job_that_stands_still_is_told_from_others(self):
        self.job("stuck", silent_s=2, called_s=900)
        self.job("moves", silent_s=2, called_s=3)
        self.job("away", silent_s=400, called_s=900)
        stuck = [row for row in self.panel("Ranks without a call for 5 min", "table") if row["job"] != "ended"]
        self.assertEqual([(row["job"], row["rank"], row["host"], row["operation"], row["communicator"]) for row in stuck], [("stuck", 3, "node-stuck", "AllReduce", "dp")])
        self.assertAlmostEqual(stuck[0]["minutes"], 15, delta=1)
        silent = [row["job"] for row in self.panel("Hosts that fell silent", "table")]
        self.assertIn("away", silent)
        self.assertFalse({"stuck", "moves"} & set(silent))
        queries = alert_queries()
        self.assertEqual(self.ask(queries["lockstep-stalled"]), [{"ranks": 1}])
        self.assertGreater(self.ask(queries["lockstep-silent"])[0]["hosts"], 0)

    def test_alert_on_a_run_that_hangs(self):
        [rule] = [sql for rule, sql in alert_queries().items() if rule == "lockstep-critical"]
        self.assertEqual(self.ask(rule), [{"runs": 0}])
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run([BIN / "lockstep-sim-job", "--ranks", "8", "--fault", "never-joined", "-o", f"{folder}/run"], check=True, stdout=subprocess.DEVNULL)
            subprocess.run([BIN / "lockstep", "push", f"{folder}/run", "--to", f"{self.server.url}/hang"], check=True, stdout=subprocess.DEVNULL)
        self.assertEqual(self.ask(rule.replace("today() - 60", "toDate(0)").replace("fleet.", "hang.")), [{"runs": 1}])

    def test_users_are_well_formed(self):
        users = xml.etree.ElementTree.parse(PLACE / "users.xml").find("users")
        self.assertEqual([user.tag for user in users], ["writer", "reader"])

    def test_panels_lie_side_by_side(self):
        cells = set()
        for panel in DASHBOARD["panels"]:
            place = panel["gridPos"]
            own = {(x, y) for x in range(place["x"], place["x"] + place["w"]) for y in range(place["y"], place["y"] + place["h"])}
            self.assertFalse(own & cells, panel["title"])
            self.assertLessEqual(place["x"] + place["w"], 24)
            cells |= own
        self.assertEqual(len({panel["id"] for panel in DASHBOARD["panels"]}), len(DASHBOARD["panels"]))


if __name__ == "__main__":
    generated_fleet.run_tests()
