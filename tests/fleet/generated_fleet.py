# SPDX-License-Identifier: Apache-2.0
"""Fleets for the golden answers of `lockstep fleet`: runs of many jobs over weeks, straight into a store's tables, with one
fault seeded, or none; a clickhouse-server of its own to put them in; and whether the answers name the fault.

What is healthy is uneven, too: which host a run blames is mostly chance, with heavy tails; some jobs run on the same hosts
each day; versions of NCCL are rolled out on one kind of GPU before the other; networks are congested for whole runs.
"""
import dataclasses
import datetime
import json
import math
import os
import pathlib
import random
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.error
import urllib.parse
import urllib.request

FAULTS = ("host", "link", "version", "none")
VERSIONS = (21805, 22005, 22304, 22602)
SHAPES = (("AllReduce", 27, 1.0), ("AllReduce", 22, 0.6), ("AllGather", 25, 0.85), ("ReduceScatter", 25, 0.8))
GPUS = {"NVIDIA H100 80GB HBM3": 320.0, "NVIDIA A100-SXM4-80GB": 150.0}


def program():
    found = shutil.which("clickhouse-server")
    if found is None:
        raise FileNotFoundError("clickhouse-server is not installed: tools/setup --test")
    return found


def run_tests():
    """Those of the calling script; 77, as ctest wants it of a skipped one, without a server."""
    try:
        program()
    except FileNotFoundError as error:
        print(error)
        sys.exit(77)
    unittest.main(verbosity=2)


class Server:
    """A clickhouse-server on a port of its own, with its data in a temporary folder."""

    def __init__(self):
        self.folder = tempfile.TemporaryDirectory()
        with socket.socket() as one:
            one.bind(("127.0.0.1", 0))
            self.url = f"http://127.0.0.1:{one.getsockname()[1]}"
        place = pathlib.Path(self.folder.name)
        (place / "config.xml").write_text(
            f"<yandex><logger><level>none</level></logger><listen_host>127.0.0.1</listen_host><http_port>{self.url.split(':')[2]}</http_port>"
            f"<path>{place}/data/</path><tmp_path>{place}/tmp/</tmp_path><users_config>{place}/users.xml</users_config>"
            "<default_profile>default</default_profile><default_database>default</default_database>"
            "<mark_cache_size>5368709</mark_cache_size></yandex>")
        user = "<{0}><password></password><networks><ip>127.0.0.1</ip></networks><profile>{1}</profile><quota>default</quota></{0}>"
        (place / "users.xml").write_text(
            "<yandex><profiles><default><max_threads>2</max_threads></default><reader><readonly>1</readonly></reader></profiles>"
            f"<users>{user.format('default', 'default')}{user.format('reader', 'reader')}</users><quotas><default/></quotas></yandex>")
        root = program().removesuffix("/usr/sbin/clickhouse-server")  # unpacked packages have their libraries beside them
        libraries = ":".join(f"{root}/usr/lib/{of}" for of in ("x86_64-linux-gnu", "aarch64-linux-gnu"))
        self.process = subprocess.Popen([program(), f"--config-file={place}/config.xml"], stdout=subprocess.DEVNULL,
                                        stderr=subprocess.DEVNULL, env={**os.environ, "LD_LIBRARY_PATH": libraries})
        deadline = time.monotonic() + 60
        while True:
            try:
                self.ask("SELECT 1")
                return
            except OSError:
                if time.monotonic() > deadline:
                    self.close()
                    raise
                time.sleep(0.1)

    def close(self):
        self.process.kill()
        self.process.wait()
        self.folder.cleanup()

    def ask(self, sql, body=b""):
        request = urllib.request.Request(f"{self.url}/?query={urllib.parse.quote(sql)}", data=body or b" ")
        try:
            with urllib.request.urlopen(request, timeout=120) as answer:
                return answer.read().decode()
        except urllib.error.HTTPError as error:
            raise RuntimeError(error.read().decode()) from None


def text(value):
    """As TabSeparated has it."""
    if isinstance(value, (list, tuple)):
        return "[" + ",".join(text(one) if isinstance(one, int) else "'" + text(one).replace("'", "\\'") + "'" for one in value) + "]"
    return str(value).replace("\\", "\\\\").replace("\t", "\\t").replace("\n", "\\n")


@dataclasses.dataclass
class Fault:
    kind: str
    name: str = ""  # the host, or the version
    onset_ns: int = 0


@dataclasses.dataclass
class Job:
    """One run: who takes part, and with what."""
    number: int
    start_s: int
    hosts: list
    gpu: str
    version: int


class Fleet:
    """hosts x days, from a seed. `push` writes it; `fault` is the answer."""

    def __init__(self, seed, kind, hosts=200, days=30, jobs_a_day=40):
        self.random = random.Random(f"{kind} {seed}")
        self.days, self.jobs_a_day = days, jobs_a_day
        half = hosts // 2
        self.hosts = {f"node-{i:04d}": list(GPUS)[i >= half] for i in range(hosts)}
        self.begin_s = int(time.time()) // 86400 * 86400 - days * 86400
        self.fault = Fault(kind)
        if kind in ("host", "link"):
            self.fault.name = self.random.choice(list(self.hosts))
            self.fault.onset_ns = (self.begin_s + self.random.randrange(days // 10, days * 6 // 10) * 86400) * 10**9
        self.used_from = {gpu: [0, *sorted(self.random.sample(range(days // 6, days - days // 6), len(VERSIONS) - 1))] for gpu in GPUS}
        if kind == "version":
            self.fault.name = str(self.random.choice(VERSIONS[1:]))
            self.slow_gpu, self.slow_shape = self.random.choice(list(GPUS)), self.random.randrange(len(SHAPES))
        self.reserved = [self.pick(self.random.choice((2, 4, 8))) for _ in range(4)]
        self.rows = {table: [] for table in ("runs", "findings", "rollups", "processes")}

    def pick(self, count):
        gpu = self.random.choice(list(GPUS))
        return self.random.sample([host for host, of in self.hosts.items() if of == gpu], min(count, len(self.hosts) // 2))

    def jobs(self):
        for day in range(self.days):
            for i in range(self.jobs_a_day):
                hosts = self.reserved[i] if i < len(self.reserved) else self.pick(self.random.choice((2, 4, 4, 8, 8, 16, 32)))
                gpu = self.hosts[hosts[0]]
                newest = max(v for v, since in zip(VERSIONS, self.used_from[gpu]) if since <= day)
                old = [v for v in VERSIONS if v <= newest]
                version = newest if self.random.random() < 0.7 else self.random.choice(old)
                start_s = self.begin_s + day * 86400 + self.random.randrange(80000)
                yield Job(self.random.getrandbits(63), start_s, hosts, gpu, version)

    def push(self, ask, database):
        for job in self.jobs():
            self.add(job)
        for table, rows in self.rows.items():
            for day in sorted({row["day"] for row in rows}):
                some = [row for row in rows if row["day"] == day]
                ask(f"INSERT INTO {database}.{table} ({','.join(some[0])}) FORMAT TabSeparated",
                    "".join("\t".join(map(text, row.values())) + "\n" for row in some).encode())

    def is_faulty(self, job, share):
        return self.fault.name in job.hosts and job.start_s * 10**9 >= self.fault.onset_ns and self.random.random() < share

    def add(self, job):
        day = datetime.datetime.fromtimestamp(job.start_s, datetime.timezone.utc).date().isoformat()
        minutes, common = self.random.randrange(2, 5), {"day": day, "run": job.number}
        blamed = {host: self.random.lognormvariate(20, 1.5) for host in job.hosts}  # ns
        verdict = ("", "")
        if self.random.random() < 0.12:  # one host is far behind, for once: a data loader, a noisy neighbour
            host = self.random.choice(job.hosts)
            blamed[host] += self.random.lognormvariate(24, 1)
            if self.random.random() < 0.5:
                verdict = self.found(common, "host-late", "host-late", [host], True)
        if self.fault.kind == "host" and self.is_faulty(job, 0.7):
            blamed[self.fault.name] += self.random.lognormvariate(24, 0.7)
            if not verdict[0] and self.random.random() < 0.5:
                verdict = self.found(common, "host-late", "host-late", [self.fault.name], True)
        for finding, kind, share in (("rank-dead", "rank-dead", 0.03), ("slow-link", "slow-link", 0.04)):
            if self.random.random() < share:
                hosts = self.random.sample(job.hosts, 1 if kind == "rank-dead" else 2)
                verdict = self.found(common, finding, kind, hosts, not verdict[0]) if not verdict[0] else verdict
        speed = self.random.lognormvariate(0, 0.04) * (0.7 if self.random.random() < 0.05 else 1)
        if self.fault.kind == "link" and self.is_faulty(job, 0.6):
            other = self.random.choice([host for host in job.hosts if host != self.fault.name])
            if self.random.random() < 0.75:  # else nobody says why it is slow
                verdict = self.found(common, "slow-link", "slow-link", [self.fault.name, other], True)
            speed *= 0.75
        self.add_sums(job, common, minutes, blamed, speed)
        begin, end = job.start_s * 10**9, (job.start_s + 60 * minutes) * 10**9
        self.rows["runs"].append({**common, "name": f"job-{job.number % 9999}", "started_ns": begin, "ended_ns": end,
                                  "processes": 2 * len(job.hosts), "hosts": sorted(job.hosts), "verdict": verdict[0],
                                  "verdict_class": verdict[1], "schema": 1, "version": 1})
        for i, host in enumerate(job.hosts):
            for local in (0, 1):
                self.rows["processes"].append({**common, "process": 2 * i + local, "rank": 2 * i + local, "host": host, "gpu_model": job.gpu,
                                               "nccl_version": job.version, "first_ns": begin, "last_ns": end, "version": 1})

    def found(self, common, finding, kind, hosts, is_verdict):
        number = sum(row["run"] == common["run"] for row in self.rows["findings"][-4:])
        self.rows["findings"].append({**common, "finding": number, "id": finding, "class": kind, "severity": "warning",
                                      "is_verdict": int(is_verdict), "hosts": hosts, "version": 1})
        return finding, kind

    def add_sums(self, job, common, minutes, blamed, speed):
        ranks = 2 * len(job.hosts)
        for minute in range(minutes):
            stamp = job.start_s // 60 * 60 + minute * 60
            for shape, (func, bits, share) in enumerate(SHAPES):
                slow = self.fault.kind == "version" and str(job.version) == self.fault.name and job.gpu == self.slow_gpu and shape == self.slow_shape
                busbw = GPUS[job.gpu] * share * speed * self.random.lognormvariate(0, 0.02) * (0.88 if slow else 1)
                busbw *= 1 - 0.03 * math.log2(len(job.hosts))
                for rank in range(ranks):
                    host = job.hosts[rank // 2]
                    moved = 100 * 2**bits if rank == 0 else 0
                    self.rows["rollups"].append({
                        **common, "minute": stamp, "process": rank, "comm": 7, "kind": 2, "func": func, "size_bits": bits, "rank": rank,
                        "host": host, "gpu_model": job.gpu, "nccl_version": job.version, "ranks": ranks, "nodes": len(job.hosts), "ops": 100,
                        "bytes": 100 * 2**bits, "compared": 100, "waited_ns": int(3e9 * self.random.random()),
                        "late_ops": 1, "blamed_ns": int(blamed[host] / 2 / minutes / len(SHAPES)), "moved_ops": 100 if moved else 0, "bus_bytes": moved,
                        "moving_ns": int(moved / busbw), "version": 1})


def named(lockstep, url, days):
    """[(kind, name, since when in ns: from, to)] of all that the questions name. A version is to blame if it is the slower one."""
    def rows(question):
        done = subprocess.run([lockstep, "fleet", question, "--from", url, "--days", str(days + 1), "--json"], capture_output=True, text=True, check=True)
        return json.loads(done.stdout)["rows"]

    found = [("link" if row["what"] == "slow-link" else "host", row["host"], row["changed_after_ns"] or 0, row["changed_until_ns"]) for row in rows("hosts")]
    return found + [("version", str(row["newer"] if row["change"] < 0 else row["older"]), 0, 0) for row in rows("versions")]


def judge(fault, found):
    """"right": the fault is named, and nothing else; "wrong": anything else is; "missed"."""
    others = [one for one in found if one[1] != fault.name or (one[0] == "version") != (fault.kind == "version")]
    if others:
        return "wrong"
    is_named = fault.kind == "none" or any(kind == fault.kind for kind, *_ in found)
    return "right" if is_named else "missed"


def is_dated(fault, found):
    """Whether a host or link is said to have changed when it did, as far as its first bad run can tell to a day."""
    return any(kind == fault.kind and after <= fault.onset_ns + 86400 * 10**9 and until >= fault.onset_ns for kind, _, after, until in found)
