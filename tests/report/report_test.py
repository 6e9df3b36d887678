#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`lockstep report` as a user runs it: the data are what docs/report-data.md says, and their figures those of `diagnose --json` and `summary --json`.

Usage: tests/report/report_test.py SOURCES BUILD SCRATCH
"""
import json
import pathlib
import re
import shutil
import subprocess
import sys
import time
import unittest
import urllib.error
import urllib.request

import check_report_data

SOURCES, BUILD, SCRATCH = (pathlib.Path(argument).resolve() for argument in sys.argv[1:4])
LOCKSTEP = BUILD / "bin/lockstep"
DATA = SOURCES / "tests/data"


def lockstep(*words, code=0):
    done = subprocess.run([LOCKSTEP, *map(str, words)], capture_output=True, text=True, timeout=300)
    if code is not None:
        assert done.returncode == code, f"{words}: exit {done.returncode}: {done.stderr}"
    return done


def document(command, *paths):
    return json.loads(lockstep(command, "--json", *paths, code=None).stdout)


def simulated(name, *options):
    run = SCRATCH / name
    shutil.rmtree(run, ignore_errors=True)
    subprocess.run([BUILD / "bin/lockstep-sim-job", *map(str, options), "-o", run], check=True, stdout=subprocess.DEVNULL)
    return run


class Report(unittest.TestCase):
    maxDiff = 2000

    def examine(self, *paths, summary=True):
        data = document("report", *paths)
        self.assertEqual(check_report_data.check(data), [])
        self.assertEqual(data["diagnosis"], document("diagnose", *paths))
        if summary:
            self.compare_with_summary(data, document("summary", *paths))
        return data

    def compare_with_summary(self, data, summary):
        rates = data["bandwidth"].get("rates", [])
        self.assertEqual(len(rates), len(summary["bandwidth_list"]))
        for mine, its in zip(rates, summary["bandwidth_list"]):
            for key, other in (("func", "func"), ("ops", "ops"), ("size_from_bytes", "size_from"), ("busbw_gbps", "busbw_gbps"),
                               ("ceiling_gbps", "ceiling_gbps"), ("of_best", "of_best"), ("uncertain", "uncertain_ops")):
                self.assertEqual(mine[key], its[other], key)
            self.assertEqual(data["comms"][mine["comm"]]["name"], its["comm"])
        self.assertEqual([fit["alpha_ns"] for fit in data["bandwidth"].get("fits", [])], [fit["alpha_ns"] for fit in summary["fit_list"]])

        waits = {(of["rank"], of["pid"]): of for of in summary["rank_wait_list"]}
        who = data["who"]
        totals = data["lateness"].get("totals", {})
        mine = {name: {column: values[i] for column, values in totals.items()} for i, name in enumerate(zip(who["rank"], who["pid"])) if totals and totals["ops"][i] > 0}
        self.assertEqual(mine.keys(), {name for name, its in waits.items() if its["ops"] > 0})
        for name, total in mine.items():
            its = waits[name]
            for key, other in (("ops", "ops"), ("timed", "timed_ops")):
                self.assertEqual(total[key], its[other])
            for key in ("waiting_ns", "blamed_ns", "late_p50_ns", "late_p99_ns"):
                self.assertAlmostEqual(total[key], its[key], delta=1)
        for row in data["lateness"].get("rows", []):
            its = waits.get((who["rank"][row["who"]], who["pid"][row["who"]])) if row["who"] is not None else None
            if its is None:
                continue
            cells = [ns for ns in row["waiting_ns"] if ns is not None]
            self.assertAlmostEqual(sum(cells), its["waiting_ns"], delta=len(cells) + 1e-6 * its["waiting_ns"])

        pairs = {}
        for pair in data["network"].get("pairs", []):
            if data["network"]["by"] == "rank":
                ends = tuple(who["rank"][data["network"]["axis"][pair[end]]["who"]] for end in ("source", "target"))
                pairs[ends + (data["comms"][pair["comm"]]["name"],)] = pair
        for link in summary["link_list"] if pairs else []:
            pair = pairs[link["source"], link["target"], link["comm"]]
            for key in ("transfers", "bytes", "peer_wait_ns", "send_wait_ns", "gpu_wait_ns", "receive_wait_ns", "flush_wait_ns"):
                self.assertEqual(pair[key], link[key], key)

        split = data["steps"].get("split", {})
        self.assertEqual([of["exposed_ns"] for of in split.get("average", [])],
                         [round(of["exposed_ns"]) for of in summary["overlap_list"]])

    def test_healthy(self):
        data = self.examine(simulated("healthy", "--marks", "--steps", 20))
        self.assertEqual(data["verdict"]["state"], "healthy")
        self.assertTrue(data["verdict"]["headline"].startswith("No problem found"))
        self.assertEqual(data["steps"]["source"], "marks")

    def test_the_late_rank_stands_out(self):
        run = simulated("late", "--ranks", 16, "--steps", 20, "--seed", 5, "--fault", "host-late")
        truth = json.loads((run / "truth.json").read_text())
        data = self.examine(run)
        card = data["verdict"]["cards"][data["verdict"]["finding"]]
        self.assertEqual([data["who"]["rank"][who] for who in card["who"]], truth["fault"]["ranks"])
        blamed = [sum(ns or 0 for ns in row["blamed_ns"]) for row in data["lateness"]["rows"]]
        self.assertEqual(blamed.index(max(blamed)), card["rows"][0])
        self.assertIsNotNone(card["operation"])

    def test_deep_with_a_slow_pair(self):
        run = simulated("slow", "--ranks", 16, "--ranks-per-host", 4, "--mode", "deep", "--layout", "tp=4", "--seed", 3, "--fault", "slow-link")
        data = self.examine(run)
        self.assertEqual(data["diagnosis"]["verdict"]["class"], "slow-link")
        slow = [pair for pair in data["network"]["pairs"] if pair["finding"] == data["verdict"]["finding"]]
        lit = [edge for edge in data["topology"]["edges"] if edge["slow"] == data["verdict"]["finding"]]
        self.assertTrue(slow and lit)

    def test_counters_lie_in_the_columns_of_the_ranks(self):
        run = simulated("counters", "--ranks", 24, "--mode", "deep", "--seed", 3, "--fault", "slow-nic")
        guilty = json.loads((run / "truth.json").read_text())["fault"]["ranks"][0]
        host = next(process for process in document("info", run)["process_list"] if process["rank"] == guilty)
        middle = 1000 + (host["last_ns"] - host["first_ns"]) // 2_000_000
        (run / "links.hostile.1.log").write_text(
            f"lockstep link samples 2\nhost {host['host']}\nboot b\npid 1\nstart {host['first_ns'] - 10**9}\n"
            "counter 0 port </script>/1 symbol_error\ncounter 1 port </script>/1 port_xmit_data\n"
            f"at 0 0=3 1=0\nat {middle} 0=5003 1=18446744073709551615\nat {2 * middle}\n")
        errors, sent = self.examine(run)["lateness"]["links"]["rows"]
        self.assertEqual([errors[key] for key in ("host", "device", "severity", "total")], [host["host"], "</script>/1", "warning", 5000])
        self.assertEqual(sum(errors["values"]), 5000)
        self.assertAlmostEqual(errors["values"].index(5000) / len(errors["values"]), 0.5, delta=0.1)
        self.assertEqual(sent["kind"], "traffic")

    def test_hang(self):
        run = simulated("hang", "--ranks", 16, "--layout", "tp=4,pp=2", "--seed", 7, "--fault", "never-joined")
        data = self.examine(run)
        card = data["verdict"]["cards"][data["verdict"]["finding"]]
        ranks = data["operations"]["list"][card["operation"]]["ranks"]
        missing = [who for who, state in zip(ranks["who"], ranks["state"]) if state == "not called"]
        self.assertEqual(missing, card["who"])

    def test_every_fault_keeps_to_the_page(self):
        for number, fault in enumerate(("joined-other-op", "cross-comm-deadlock", "rank-dead", "init-stuck", "evidence-missing", "too-many-failed",
                                        "imbalance:once")):
            with self.subTest(fault):
                self.examine(simulated("fault", "--ranks", 16, "--seed", number + 1, "--fault", fault))

    def test_large_runs_are_groups(self):
        run = simulated("large", "--ranks", 320, "--layout", "dp=40,tp=8", "--steps", 4, "--mode", "deep", "--fault", "gpu-late", "--seed", 2)
        data = self.examine(run)
        rows = data["lateness"]["rows"]
        self.assertLessEqual(len(rows), 256)
        self.assertEqual(sum(row["of"] for row in rows if row["who"] is None), 320)
        self.assertEqual(data["network"]["by"], "host")

    def test_dumps_alone(self):
        data = self.examine(DATA / "flight_recorder/hang")
        self.assertEqual(data["verdict"]["state"], "problem")
        for page in ("network", "bandwidth"):
            self.assertIn("missing", data[page])

    def test_profiler_traces_alone(self):
        data = self.examine(*sorted((DATA / "kineto").glob("rank*.json.gz")))
        self.assertEqual(len(data["steps"]["split"]["rows"]), 8)

    def test_logs_alone(self):
        data = self.examine(DATA / "logs/hang", summary=False)
        self.assertIsNone(data["run"]["main"])
        for page in ("lateness", "operations", "bandwidth", "topology", "network", "steps"):
            self.assertIn("missing", data[page])

    def test_against_another_run(self):
        before, after = simulated("before", "--layout", "dp=8", "--steps", "40", "--mode", "deep"), simulated("after", "--layout", "dp=8", "--steps", "40", "--mode", "deep", "--again", "1", "--slow", "AllReduce=1.2")
        data = document("report", "--against", before, after)
        self.assertEqual(check_report_data.check(data), [])
        compared = document("compare", before, after)["comparison"]
        self.assertEqual(data["comparison"]["verdict"], compared["verdict"])
        self.assertEqual(data["comparison"]["rows"], compared["rows"][:300])
        self.assertTrue(any(row["change"] == "worse" and row["func"] == "AllReduce" for row in data["comparison"]["rows"]))
        lockstep("report", "--json", "--against", before, after, after, code=2)
        lockstep("report", "--serve=0", "--against", before, after, code=2)

    def test_what_cannot_be_read_is_an_error(self):
        no_text = SCRATCH / "no_text"
        no_text.write_bytes(b"\x7fELF" + bytes(range(256)) * 4)
        for path in (SCRATCH / "absent", no_text):
            done = lockstep("report", "--json", path, code=2)
            self.assertRegex(done.stderr, r"^lockstep: ")

    def test_wrong_usage(self):
        run = DATA / "flight_recorder/hang"
        self.assertIn("choose one", lockstep("report", "--json", "-o", "x.html", run, code=2).stderr)
        self.assertIn("--serve", lockstep("report", "--listen", "::1", run, code=2).stderr)
        if self.has_page():
            self.assertIn("port", lockstep("report", "--serve=70000", run, code=2).stderr)
            self.assertIn("IP address", lockstep("report", "--serve=0", "--listen", "localhost", run, code=2).stderr)

    def has_page(self):
        parts = json.loads(lockstep("version", "--json").stdout)["parts"]
        return parts["report page"]["present"]

    def test_the_file(self):
        run, out = DATA / "flight_recorder/hang", SCRATCH / "report.html"
        out.unlink(missing_ok=True)
        if not self.has_page():
            self.assertIn("--json", lockstep("report", "-o", out, run, code=2).stderr)
            self.skipTest("built without the page")
        lockstep("report", "-o", out, run)
        text = out.read_text(encoding="utf-8")
        element = re.findall(r'<script type="application/json" id="lockstep-data">(.*?)</script>', text, re.DOTALL)
        self.assertEqual(len(element), 1)
        data = json.loads(element[0])
        self.assertEqual(data["diagnosis"], document("diagnose", run))
        self.assertNotRegex(text.replace(element[0], ""), r'(src|href)="(https?:)?//')
        self.assertIn("exists", lockstep("report", "-o", out, run, code=2).stderr)
        lockstep("report", "--force", "-o", out, run)
        self.assertIn("is an input", lockstep("report", "--force", "-o", out, out, code=2).stderr)
        self.assertEqual([path.name for path in SCRATCH.glob("report.html*")], ["report.html"])

    def test_serve(self):
        if not self.has_page():
            self.skipTest("built without the page")
        run = DATA / "flight_recorder/hang"
        server = subprocess.Popen([LOCKSTEP, "report", "--serve=0", run], stderr=subprocess.PIPE, text=True)
        try:
            url = re.search(r"http://127\.0\.0\.1:\d+/", server.stderr.readline()).group(0)
            with urllib.request.urlopen(url + "data.json", timeout=30) as answer:
                data = json.load(answer)
            self.assertEqual(check_report_data.check(data), [])
            self.assertFalse(data["live"], "nothing of it runs")
            with urllib.request.urlopen(url, timeout=30) as answer:
                self.assertIn(b'id="lockstep-data">null</script>', answer.read())
                self.assertIn("default-src 'none'", answer.headers["Content-Security-Policy"])
            for path, host in (("passwd", None), ("data.json", "evil.example")):
                request = urllib.request.Request(url + path, headers={"Host": host} if host else {})
                with self.assertRaises(urllib.error.HTTPError):
                    urllib.request.urlopen(request, timeout=30)
            server.terminate()
            self.assertEqual(server.wait(timeout=30), 0)
        finally:
            server.kill()
            server.stderr.close()

    def wait_for(self, data, is_so):
        """Asks as the page does, for a minute at most."""
        for _ in range(120):
            seen = data()
            if is_so(seen):
                return seen
            time.sleep(0.5)
        self.fail("it never came")

    def test_serve_a_live_job(self):
        if not self.has_page():
            self.skipTest("built without the page")
        run = SCRATCH / "live"
        shutil.rmtree(run, ignore_errors=True)
        run.mkdir()
        server = subprocess.Popen([LOCKSTEP, "report", "--serve=0", run], stderr=subprocess.PIPE, text=True)
        job = None
        try:
            url = re.search(r"http://127\.0\.0\.1:\d+/", server.stderr.readline()).group(0)

            def data():
                with urllib.request.urlopen(url + "data.json", timeout=30) as answer:
                    return json.load(answer)
            first = data()
            self.assertEqual(check_report_data.check(first), [])
            self.assertTrue(first["live"])
            self.assertIn("missing", first["lateness"])
            job = subprocess.Popen([BUILD / "bin/lockstep-sim-job", "--live", "--ranks", "2", "--steps", "100000", "-o", run],
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            running = self.wait_for(data, lambda of: "missing" not in of["lateness"])
            self.assertEqual(check_report_data.check(running), [])
            self.assertTrue(running["live"])
            self.assertGreaterEqual(running["refresh_ns"], 2_000_000_000)
            later = self.wait_for(data, lambda of: of["run"]["length_ns"] > running["run"]["length_ns"])
            self.assertGreater(later["lateness"]["compared"], running["lateness"]["compared"])
            job.terminate()
            job.wait(timeout=60)
            self.assertFalse(self.wait_for(data, lambda of: not of["live"])["live"])
        finally:
            for process in (job, server):
                if process:
                    process.kill()
                    process.wait()
            server.stderr.close()


if __name__ == "__main__":
    SCRATCH.mkdir(parents=True, exist_ok=True)
    unittest.main(argv=sys.argv[:1] + sys.argv[4:])
