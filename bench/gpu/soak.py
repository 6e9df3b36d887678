#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A job of mixed collectives for many minutes under Lockstep, then one rank killed with signal 9: nothing may be missing.

    soak.py LIBDIR OUT.json [--minutes 8] [--ranks N] [--mode default] [--folder DIR] [--load]

Prints the memory of every rank each minute. Then checks: memory is flat; diagnose finds the running job healthy; after the kill it
names the dead rank; no event is counted as lost; and the files hold every operation whose call had returned. Exit 1 if one of these does
not hold, 2 if the job did not run. LIBDIR as for run_overhead. The run's files go below DIR; --load writes 128 MB with fsync, then syncs,
again and again on the same file system.
"""
import argparse
import contextlib
import json
import os
import pathlib
import signal
import struct
import subprocess
import sys
import tempfile
import time

import observers

HERE = pathlib.Path(__file__).resolve().parent
sys.path.append(str(HERE.parent))
import loop_disk

LOAD_MB = 128
GROWTH_MIB = 24  # of memory that is the process' own, from the second minute to the last


def memory_mib(pid):
    """Resident memory of a process by kind; files are those mapped from disk, the run's own among them."""
    fields = {}
    with open(f"/proc/{pid}/status", encoding="utf-8") as status:
        for line in status:
            name, _, value = line.partition(":")
            if name in ("VmRSS", "RssAnon", "RssFile", "RssShmem"):
                fields[name] = int(value.split()[0]) / 1024
    return {"all": fields["VmRSS"], "own": fields["RssAnon"] + fields["RssShmem"], "files": fields["RssFile"]}


def asked(program, *arguments):
    done = subprocess.run([program, *arguments], capture_output=True, text=True)
    try:
        return done.returncode, json.loads(done.stdout)
    except ValueError:
        return done.returncode, {"error": done.stderr.strip()[-300:]}


class Checks:
    def __init__(self):
        self.results = []

    def add(self, name, holds, detail):
        self.results.append({"check": name, "holds": bool(holds), "detail": detail})
        print(f"{'ok    ' if holds else 'FAILED'} {name}: {detail}", flush=True)

    def all_hold(self):
        return all(result["holds"] for result in self.results)


def watch(ranks, minutes):
    """Memory by minute and rank. Ends early, with an exit, when a rank does."""
    samples = []
    for minute in range(minutes + 1):
        until = time.monotonic() + (15 if minute == 0 else 60)
        while time.monotonic() < until:
            ended = [(rank, process.returncode) for rank, process in enumerate(ranks) if process.poll() is not None]
            if ended:
                return samples, f"rank {ended[0][0]} ended with {ended[0][1]} in minute {minute}"
            time.sleep(1)
        samples.append([memory_mib(process.pid) for process in ranks])
        print(f"minute {minute}: resident MiB a rank, its own + files: " +
              ", ".join(f"{rank['own']:.0f} + {rank['files']:.0f}" for rank in samples[-1]), flush=True)
    return samples, None


def check_verdict(checks, name, program, run, holds):
    code, answer = asked(program, "diagnose", "--json", str(run))
    verdict = answer.get("verdict")
    detail = answer.get("error") or (f"{verdict['class']} ranks {verdict['ranks']}: {verdict.get('statement', '')}" if verdict else "no finding")
    checks.add(name, "error" not in answer and holds(verdict), f"exit {code}; {detail}")


def check_operations(checks, program, run, counts):
    _, info = asked(program, "info", "--json", str(run))
    if "error" in info:
        checks.add("the files can be read", False, info["error"])
        return
    in_file = {process["rank"]: process["ops"] for process in info["process_list"]}
    wrong = [f"rank {rank}: {in_file.get(rank, 0):,} in the file, {returned:,} calls had returned of {begun:,} begun"
             for rank, (begun, returned) in enumerate(counts) if not returned <= in_file.get(rank, 0) <= begun]
    checks.add("every operation is in the files", not wrong,
               "; ".join(wrong) or f"{sum(in_file.values()):,} operations of {len(counts)} ranks, {info['bytes'] / max(1, info['ops']):.1f} bytes each")
    lost = [loss for loss in info["losses"] if loss["stage"] in ("capture", "read")]
    checks.add("nothing is counted as lost", not lost, ", ".join(f"{loss['count']:,} x {loss['kind']}" for loss in lost) or "no loss")


def soak(options, work, checks):
    program = observers.lockstep_program(options.libs)
    if program is None:
        sys.exit("no program lockstep beside the libraries")
    rank_program, run, counts_file = observers.compile_with_nccl(work, HERE / "soak_rank.cc"), work / "run", work / "counts"
    counts_file.write_bytes(bytes(16 * options.ranks))
    ranks = observers.start_ranks([str(rank_program), str(work / "id"), str(counts_file)], options.ranks,
                                  observers.lockstep_environment(options.libs, str(run), options.mode), errors=work)
    try:
        samples, failure = watch(ranks, options.minutes)
        if failure:
            said = " | ".join((work / f"rank{rank}.err").read_text(errors="replace").strip()[-300:] for rank in range(options.ranks))
            print(f"{failure}: {said}", flush=True)
            return samples, 2
        check_verdict(checks, "the running job is healthy", program, run, lambda verdict: verdict is None)
        # Stopped first, wherever it is: its GPU finishes, the others go on to what it has not called, and it dies there.
        victim = options.ranks - 1
        ranks[victim].send_signal(signal.SIGSTOP)
        time.sleep(1)
        ranks[victim].kill()
        ranks[victim].wait()
        time.sleep(10)
        check_verdict(checks, "the dead rank is named", program, run,
                      lambda verdict: verdict is not None and verdict["class"] == "rank-dead" and verdict["ranks"] == [victim])
    finally:
        observers.stop_ranks(ranks)
    first = samples[min(1, len(samples) - 1)]
    growth = [last["own"] - before["own"] for before, last in zip(first, samples[-1])]
    checks.add("memory is flat", max(growth) <= GROWTH_MIB, f"own memory of the rank that grew most: {max(growth):+.1f} MiB in {options.minutes - 1} minutes")
    counted = [struct.unpack_from("QQ", counts_file.read_bytes(), 16 * rank) for rank in range(options.ranks)]
    check_operations(checks, program, run, counted)
    return samples, 0 if checks.all_hold() else 1


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("libs", type=os.path.abspath)
    parser.add_argument("out")
    parser.add_argument("--minutes", type=int, default=8)
    parser.add_argument("--ranks", type=int, default=0)
    parser.add_argument("--mode", default="default")
    parser.add_argument("--folder", help="default: that of temporary files")
    parser.add_argument("--load", action="store_true")
    options = parser.parse_args()
    options.ranks = options.ranks or observers.gpus()
    checks = Checks()
    with tempfile.TemporaryDirectory(dir=options.folder) as work:
        file_system = subprocess.run(["stat", "-f", "-c", "%T", work], capture_output=True, text=True).stdout.strip()
        with loop_disk.writing(work, LOAD_MB) if options.load else contextlib.nullcontext([]) as written:
            samples, code = soak(options, pathlib.Path(work), checks)
        print(f"on {file_system}; {sum(written):,} MB were written and synced beside it", flush=True)
    with open(options.out, "w", encoding="utf-8") as out:
        json.dump({"ranks": options.ranks, "mode": options.mode, "minutes": options.minutes, "file_system": file_system, "mb_written_beside": sum(written),
                   "memory_mib": samples, "checks": checks.results}, out)
    return code


sys.exit(main())
