#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Breaks a running job in several ways and measures how soon `lockstep diagnose RUN` names the culprit, and whether it names anybody else first.

    run_live_faults.py LIB OUT.jsonl [--faults pause,starved] [--times 10] [--modes default] [--ranks 2] [--seconds 560] [--keep FOLDER]

LIB is the `lib` folder of a build or an installation, with `lockstep` in the `bin` beside it. Every job (faulty_job.py) runs for real on GPUs;
`diagnose --json` is asked twice a second from its start until it names the right class and rank, or for WAIT_S after the fault began; healthy
jobs for HEALTHY_S. The ranks of the next job start while a faulty one is watched, on other CPUs, so that a job costs some 7 s; not beside a
healthy one, which they would truly hold up: they make their contexts on the same GPUs. Writes one JSON object a job, as it ends, and prints
a table at the end; starts no job that may end after --seconds. Ten times the six jobs of training in ten minutes on two GPUs (then the rest,
with another OUT):

    bench/gpu/run_live_faults.py build/release/lib live.jsonl --times 10 --faults pause,starved,periodic,growing,uneven-eval,healthy --seconds 570
    bench/gpu/run_live_faults.py build/release/lib live-2.jsonl --times 10 --faults sharded,sleep,other-op,slow,kill,stop --seconds 570

--simulated instead has processes of `lockstep-sim-job --live` play the jobs, where there is no GPU: a check of this program, and of what needs no GPU.
"""
import argparse
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import threading
import time

import live_scoring
import observers

HERE = pathlib.Path(__file__).resolve().parent
START_S, WAIT_S, HEALTHY_S, MOST_S = 60, 12, 8, 15  # MOST_S: of a usual job, to know whether there is time for another
ASK_EVERY_S = 0.5
# What comes nearest among simulated faults.
SIMULATED = {"healthy": "none", "none": "none", "sleep": "never-joined", "other-op": "joined-other-op", "slow": "late:since", "kill": "rank-dead",
             "stop": "never-joined:stopped", "pause": "late:window", "periodic": "late:periodic", "growing": "late:growing"}
SIMULATED_STEPS = 300


class Job:
    """The processes of one job, and what they print: `ready`, `begin TIME`, `onset TIME`."""

    def __init__(self, options, fault, mode, work):
        self.fault, self.mode, self.run, self.words = fault, mode, os.path.join(work, "run"), []
        self.folder = work
        self.processes = self.start(options)
        for process in self.processes:
            threading.Thread(target=self.listen, args=(process,), daemon=True).start()

    def listen(self, process):
        for line in process.stdout:
            self.words.append(line.split())

    def times(self, word):
        return [float(words[1]) for words in list(self.words) if len(words) > 1 and words[0] == word]

    @property
    def onset(self):
        return min(self.times("onset"), default=None)

    def stop(self):
        observers.stop_ranks(self.processes)


class RealJob(Job):
    """faulty_job.py on GPUs."""

    def start(self, options):
        command = [sys.executable, str(HERE / "faulty_job.py"), "--fault", self.fault, "--rank", str(options.ranks - 1), "--wait"]
        variables = {**observers.lockstep_environment(options.libs, self.run, self.mode), "TORCH_NCCL_ENABLE_MONITORING": "0", "TORCH_NCCL_ASYNC_ERROR_HANDLING": "0"}
        return observers.start_ranks(command, options.ranks, variables, errors=self.folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def pin(self, cpus):
        """Each rank to CPUs of its own. Those of the next job, which starts, are others."""
        each = max(1, len(cpus) // len(self.processes))
        for rank, process in enumerate(self.processes):
            own = set(cpus[rank * each:(rank + 1) * each]) or set(cpus)
            for thread in os.listdir(f"/proc/{process.pid}/task"):
                os.sched_setaffinity(int(thread), own)

    def go(self):
        """Lets the ranks meet; a line of trouble if they do not."""
        until = time.time() + START_S
        while sum(words == ["ready"] for words in list(self.words)) < len(self.processes):
            if time.time() > until or any(process.poll() is not None for process in self.processes):
                said = " | ".join(path.read_text(errors="replace").strip()[-300:] for path in sorted(pathlib.Path(self.folder).glob("rank*.err")))
                return f"the ranks did not start: {said}"
            time.sleep(0.05)
        for process in self.processes:
            process.stdin.write("go\n")
            process.stdin.flush()
        return None

    def signal_culprit(self):
        number = {"kill": signal.SIGKILL, "stop": signal.SIGSTOP}.get(self.fault)
        if number is not None:
            self.processes[-1].send_signal(number)


class SimulatedJob(Job):
    """Processes that call the capture library and wait for each other."""

    def start(self, options):
        return [subprocess.Popen([*self.command(options), "--live", "-o", self.run, "--plugin", os.path.join(options.libs, "liblockstep-nccl.so")],
                                 stdout=subprocess.PIPE, text=True)]

    def command(self, options):
        """With the first seed whose culprit is the last rank."""
        base = [options.simulated, "--ranks", str(options.ranks), "--steps", str(SIMULATED_STEPS), "--mode", self.mode, "--fault", SIMULATED[self.fault]]
        for seed in range(1, 100):
            with tempfile.TemporaryDirectory() as folder:
                planned = os.path.join(folder, "run")
                subprocess.run([*base, "--seed", str(seed), "-o", planned], check=True, stdout=subprocess.DEVNULL)
                fault = json.loads(pathlib.Path(planned, "truth.json").read_text())["fault"]
            if fault is None or fault["ranks"] == [options.ranks - 1] or fault["any_of"]:
                return [*base, "--seed", str(seed)]
        raise RuntimeError(f"no seed below 100 has rank {options.ranks - 1} misbehave")

    def pin(self, cpus):
        pass

    def go(self):
        return None

    def signal_culprit(self):
        pass

    def stop(self):
        for process in self.processes:
            process.terminate()  # it kills its ranks
            process.wait()


def ask(program, run):
    began = time.time()
    done = subprocess.run([program, "diagnose", "--json", run], capture_output=True, text=True)
    try:
        verdict, error = json.loads(done.stdout)["verdict"], ""
    except (ValueError, KeyError):
        verdict, error = None, done.stderr.strip()[-300:]
    return live_scoring.Said(began, verdict, round(time.time() - began, 3), error)


def watch(job, program, ranks):
    """All answers from the moment that the ranks meet, until the right one or until the time is up."""
    answers, signalled, began = [], False, time.time()
    while True:
        onset = job.onset
        if onset is not None and not signalled:
            job.signal_culprit()
            signalled = True
        said = ask(program, job.run) if os.path.isdir(job.run) else None
        if said is not None and (job.times("begin") or not said.error):  # before that there may be no file yet
            answers.append(said)
            if onset is not None and answers[-1].time >= onset and live_scoring.is_right(job.fault, ranks, answers[-1]):
                return answers
        if live_scoring.EXPECTED[job.fault]:
            ends = onset + WAIT_S if onset is not None else began + START_S
        else:
            ends = min(job.times("begin"), default=began + START_S) + HEALTHY_S
        if time.time() > ends:
            return answers
        time.sleep(max(0.0, ASK_EVERY_S - (said.cost if said is not None else 0)))


def changes(answers, onset):
    """Each answer that is not what was said before."""
    told = []
    for said in answers:
        entry = {"class": said.verdict and said.verdict["class"], "ranks": said.verdict and said.verdict["ranks"],
                 "statement": said.verdict and said.verdict["statement"], "error": said.error}
        if not told or entry["class"] != told[-1]["class"] or entry["ranks"] != told[-1]["ranks"] or entry["error"] != told[-1]["error"]:
            told.append({"seconds": round(said.time - (onset if onset is not None else answers[0].time), 2), "cost": said.cost, **entry})
    return told


def measure(options, job):
    result = {"fault": job.fault, "mode": job.mode, "ranks": options.ranks, "simulated": bool(options.simulated)}
    trouble = job.go()
    if trouble:
        return {**result, "right": False, "seconds": None, "wrong_names": [], "errors": [trouble], "asked": 0}
    answers = watch(job, options.program, options.ranks)
    onset = job.onset
    result.update(live_scoring.judge(job.fault, options.ranks, onset, answers))
    if live_scoring.EXPECTED[job.fault] and onset is None:
        result["errors"].append("the fault did not begin")
    begun = min(job.times("begin"), default=None)
    result.update(seconds_before_onset=onset and begun and round(onset - begun, 2), asked=len(answers), said=changes(answers, onset))
    return result


def keep(folder, job, number):
    os.makedirs(folder, exist_ok=True)
    subprocess.run(["tar", "-czf", os.path.join(folder, f"{job.fault}-{job.mode}-{number}.tgz"), "-C", job.folder, "run"], check=False)


def run_all(options, out):
    """The jobs round by round, so that what the machine does meanwhile meets all faults."""
    plan = [(fault, mode) for _ in range(options.times) for mode in options.modes for fault in options.faults]
    cpus = sorted(os.sched_getaffinity(0))
    halves = [cpus[:len(cpus) // 2], cpus[len(cpus) // 2:]]
    results, until, folders = [], time.time() + options.seconds, []

    def start(number):
        folders.append(tempfile.TemporaryDirectory(prefix="lockstep-live-"))
        job = (SimulatedJob if options.simulated else RealJob)(options, *plan[number], folders[-1].name)
        job.pin(halves[number % 2])
        return job

    job = start(0)
    for number in range(len(plan)):
        beside = number + 1 < len(plan) and not options.simulated and live_scoring.EXPECTED[plan[number][0]]
        following = start(number + 1) if beside else None
        result = measure(options, job)
        job.stop()
        if options.keep and not result["right"]:
            keep(options.keep, job, number)
        folders[0].cleanup()
        del folders[0]
        results.append(result)
        out.write(json.dumps(result) + "\n")
        out.flush()
        print(f"{number + 1}/{len(plan)} {result['mode']} {result['fault']} {'right' if result['right'] else 'WRONG'} {result['seconds']}",
              *(f"named {wrong['ranks']} {wrong['class']}" for wrong in result["wrong_names"]), *result["errors"][:1], flush=True)
        if number + 1 < len(plan) and time.time() + MOST_S > until:
            print(f"no time for {len(plan) - number - 1} more jobs", flush=True)
            if following is not None:
                following.stop()
            break
        job = following or (start(number + 1) if number + 1 < len(plan) else None)
    return results


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("libs", type=os.path.abspath)
    parser.add_argument("out")
    parser.add_argument("--faults", default=",".join(live_scoring.EXPECTED))
    parser.add_argument("--times", type=int, default=1)
    parser.add_argument("--modes", default="default")
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=3600)
    parser.add_argument("--keep", help="folder for the runs that were not diagnosed")
    parser.add_argument("--simulated", metavar="LOCKSTEP_SIM_JOB")
    options = parser.parse_args()
    options.faults, options.modes = options.faults.split(","), options.modes.split(",")
    known = SIMULATED if options.simulated else live_scoring.EXPECTED
    for fault in options.faults:
        if fault not in known:
            parser.error(f"no fault '{fault}'; there are {', '.join(known)}")
    options.program = observers.lockstep_program(options.libs)
    if options.program is None:
        parser.error(f"no program lockstep beside {options.libs}")
    with open(options.out, "w", encoding="utf-8") as out:
        results = run_all(options, out)
    print("\n" + live_scoring.table(results))


main()
