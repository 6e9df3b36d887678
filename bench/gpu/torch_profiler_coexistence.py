#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Whether torch.profiler sees the same GPU work with Lockstep in the process as without it.

    torch_profiler_coexistence.py LIBDIR OUT.json [--ranks N] [--mode default] [--scenarios during,twice] [--traces FOLDER]

A data-parallel loop is profiled in several ways, without Lockstep and with its plugin and its CUPTI library. Between start and stop
of each session lies the same work, so what the exported traces hold must be equal: kernels, copies and fills by name, the calls that
launched them, and the flows that join both. Calls that wait or ask (cudaEventQuery and the like) depend on time; they are shown and not
compared. Prints both side by side; exit 1 if they differ, 2 if a job failed.
"""
import argparse
import collections
import json
import os
import pathlib
import random
import re
import subprocess
import sys
import tempfile
import threading
import time

import observers

STEPS = 6  # in a session
SCENARIOS = {
    "before": "a session ends before the first communicator",
    "during": "one session in the middle of the job",
    "twice": "two sessions with unprofiled steps between them",
    "on-demand": "a second thread starts and stops the session at a random step",
}
GPU = ("kernel", "gpu_memcpy", "gpu_memset")
LAUNCH = re.compile(r"^(cuda|cu)(Launch|Memcpy|Memset|GraphLaunch)")


# ---- one rank --------------------------------------------------------------------------------------------------------------------

class Loop:
    """Steps of equal work. The first few allocate and connect; nobody profiles those."""

    def __init__(self, torch, communicates):
        from torch import nn
        self.torch = torch
        self.device = torch.device("cuda", torch.cuda.current_device())
        model = nn.Sequential(*[layer for _ in range(4) for layer in (nn.Linear(512, 512), nn.ReLU())]).to(self.device)
        if communicates:
            model = nn.parallel.DistributedDataParallel(model, device_ids=[self.device.index], bucket_cap_mb=1)
        self.communicates, self.model = communicates, model
        self.optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
        self.batch = torch.ones(64, 512).pin_memory()
        self.sums = torch.ones(1 << 18, device=self.device)
        self.steps(5)

    def steps(self, count):
        for _ in range(count):
            batch = self.batch.to(self.device, non_blocking=True)  # gpu_memcpy
            self.sums.zero_()                                     # gpu_memset
            self.model(batch).square().mean().backward()
            if self.communicates:
                self.torch.distributed.all_reduce(self.sums)
            self.optimizer.step()
            self.optimizer.zero_grad(set_to_none=False)
            self.sums[:1].cpu()
        self.torch.cuda.synchronize()


class Sessions:
    """Profiler sessions of this rank, exported and counted one after the other."""

    def __init__(self, torch, folder, rank):
        self.torch, self.folder, self.rank, self.counts = torch, folder, rank, []

    def attach(self):
        """Of a further thread: a new one sits on device 0."""
        self.torch.cuda.set_device(self.rank)

    def begin(self):
        from torch.profiler import ProfilerActivity, profile
        self.profile = profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA])
        self.profile.start()

    def end(self):
        self.torch.cuda.synchronize()
        self.profile.stop()
        threads = {int(task) for task in os.listdir("/proc/self/task")}
        path = self.folder / f"rank{self.rank}.session{len(self.counts)}.json"
        self.profile.export_chrome_trace(str(path))
        self.counts.append(count_events(json.loads(path.read_text(errors="replace"), strict=False)["traceEvents"], threads))

    def over(self, work):
        self.begin()
        work()
        self.end()


def count_events(events, threads):
    counts = {kind: collections.Counter() for kind in ("gpu", "launches", "flows", "launching threads", "other calls")}
    # Calls that wait have flows too, as many as there were such calls.
    on_gpu = {event.get("args", {}).get("correlation") for event in events if event.get("cat") in GPU}
    for event in events:
        category, name = event.get("cat"), event.get("name", "")
        if category in GPU:
            counts["gpu"][f"{category}: {name}"] += 1
        elif category in ("cuda_runtime", "cuda_driver"):
            launches = LAUNCH.match(name)
            counts["launches" if launches else "other calls"][f"{category}: {name}"] += 1
            if launches:
                where = "the main thread" if event.get("tid") == os.getpid() else \
                    "another of the process" if event.get("tid") in threads else "no thread of the process"
                counts["launching threads"][where] += 1
        elif category == "ac2g" and event.get("id") in on_gpu:
            counts["flows"]["ac2g " + {"s": "begin", "f": "end"}.get(event.get("ph"), "?")] += 1
    return counts


def run_rank(scenario, folder):
    import torch
    import torch.distributed as dist
    rank = int(os.environ["RANK"])
    torch.cuda.set_device(rank)
    torch.manual_seed(0)
    sessions = Sessions(torch, folder, rank)
    if scenario == "before":
        alone = Loop(torch, communicates=False)
        sessions.over(lambda: alone.steps(STEPS))
    dist.init_process_group("nccl", device_id=torch.device("cuda", rank))
    loop = Loop(torch, communicates=True)
    if scenario in ("during", "twice"):
        sessions.over(lambda: loop.steps(STEPS))
    loop.steps(STEPS)
    if scenario == "twice":
        sessions.over(lambda: loop.steps(STEPS))
    if scenario == "on-demand":
        on_demand(sessions, loop)
    loop.steps(STEPS)
    (folder / f"rank{rank}.counts").write_text(json.dumps(sessions.counts))
    dist.destroy_process_group()


def on_demand(sessions, loop):
    """The second thread holds the loop only while the profiler starts and stops: else the work between would differ."""
    begin, begun, end, ended = (threading.Event() for _ in range(4))

    def profile():
        sessions.attach()
        begin.wait()
        sessions.begin()
        begun.set()
        end.wait()
        sessions.end()
        ended.set()

    thread = threading.Thread(target=profile)
    thread.start()
    loop.steps(random.Random(7).randrange(3, 30))
    begin.set()
    begun.wait()
    loop.steps(STEPS)
    end.set()
    ended.wait()
    thread.join()


# ---- all of it -------------------------------------------------------------------------------------------------------------------

def run_job(options, scenario, watched, folder):
    """Counts by rank and session, and what ranks said of CUPTI. Raises RuntimeError when a rank failed."""
    folder.mkdir(parents=True)
    run = folder / "run"
    variables = observers.lockstep_environment(options.libs, str(run), options.mode) if watched else observers.nobody()
    command = [sys.executable, os.path.abspath(__file__), "--rank", scenario, str(folder)]
    ranks = observers.start_ranks(command, options.ranks, variables, errors=folder, stdout=subprocess.DEVNULL)
    end = time.monotonic() + 180
    while any(process.poll() is None for process in ranks) and time.monotonic() < end:
        if any(process.poll() for process in ranks):
            end = min(end, time.monotonic() + 5)  # one has failed; the others would wait for it
        time.sleep(0.1)
    codes = observers.stop_ranks(ranks)
    said = [(folder / f"rank{rank}.err").read_text(errors="replace") for rank in range(options.ranks)]
    if any(codes):
        raise RuntimeError(f"exit codes {codes}; " + " | ".join(text.strip()[-600:] for text in said if text.strip())[:3000])
    counts = [json.loads((folder / f"rank{rank}.counts").read_text()) for rank in range(options.ranks)]
    complaints = sorted({line.strip()[:160] for text in said for line in text.splitlines() if re.search("cupti|unknown buffer", line, re.I)})
    return {"counts": counts, "complaints": complaints, "recorded": recorded(options.libs, run) if watched else None}


def recorded(libs, run):
    """What Lockstep itself kept of the job, by kind of event; None without the program."""
    program = observers.lockstep_program(libs)
    if program is None:
        return None
    asked = subprocess.run([program, "info", "--json", str(run)], capture_output=True, text=True)
    try:
        info = json.loads(asked.stdout)
        return {"events": info["events"], "losses": info["losses"]}
    except (ValueError, KeyError):
        return {"error": asked.stderr.strip()[-300:]}


def differences(without, with_):
    """Rows (rank, session, kind, name, without, with) of what must be equal and is not."""
    rows = []
    for rank, (a, b) in enumerate(zip(without, with_)):
        for session in range(max(len(a), len(b))):
            left = a[session] if session < len(a) else {}
            right = b[session] if session < len(b) else {}
            for kind in ("gpu", "launches", "flows", "launching threads"):
                names = {**left.get(kind, {}), **right.get(kind, {})}
                rows += [(rank, session, kind, name, left.get(kind, {}).get(name, 0), right.get(kind, {}).get(name, 0)) for name in names
                         if left.get(kind, {}).get(name, 0) != right.get(kind, {}).get(name, 0)]
    return rows


def total(counts, session, kind, prefix=""):
    return sum(number for rank in counts if session < len(rank) for name, number in rank[session][kind].items() if name.startswith(prefix))


def table(scenario, without, with_):
    sessions = max(len(rank) for rank in without["counts"])
    for session in range(sessions):
        rows = [("gpu", f"{category}:") for category in GPU] + [("launches", "cuda_runtime:"), ("launches", "cuda_driver:"),
                                                               ("flows", ""), ("launching threads", "the main"),
                                                               ("launching threads", "another"), ("launching threads", "no"), ("other calls", "")]
        for kind, prefix in rows:
            a, b = (total(arm["counts"], session, kind, prefix) for arm in (without, with_))
            verdict = "not compared" if kind == "other calls" else "equal" if a == b else "DIFFERS"
            print(f"  {scenario:10} session {session}  {kind + ' ' + prefix:34} {a:8} {b:8}  {verdict}")


def main():
    if len(sys.argv) == 4 and sys.argv[1] == "--rank":
        return run_rank(sys.argv[2], pathlib.Path(sys.argv[3]))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("libs")
    parser.add_argument("out")
    parser.add_argument("--ranks", type=int)
    parser.add_argument("--mode", default="default")
    parser.add_argument("--scenarios", default=",".join(SCENARIOS))
    parser.add_argument("--traces", help="folder that keeps the exported traces and the runs")
    options = parser.parse_args()
    options.libs = os.path.abspath(options.libs)
    options.ranks = options.ranks or observers.gpus()

    result, code = {"ranks": options.ranks, "mode": options.mode, "scenarios": {}}, 0
    with tempfile.TemporaryDirectory() as work:
        root = pathlib.Path(options.traces or work)
        for scenario in options.scenarios.split(","):
            print(f"{scenario}: {SCENARIOS[scenario]}; without | with", flush=True)
            try:
                arms = [run_job(options, scenario, watched, root / f"{scenario}.{'with' if watched else 'without'}") for watched in (False, True)]
            except RuntimeError as error:
                print(f"  FAILED: {error}", flush=True)
                result["scenarios"][scenario] = {"failed": str(error)}
                code = 2
            else:
                without, with_ = arms
                rows = differences(without["counts"], with_["counts"])
                seen = sum(total(without["counts"], session, "gpu") for session in range(len(without["counts"][0])))
                table(scenario, without, with_)
                for row in rows[:20]:
                    print("  rank {} session {} {}: {}: {} without, {} with".format(*row))
                if seen == 0:
                    print("  no GPU event even without Lockstep: this proves nothing")
                for line in with_["complaints"][:5]:
                    print(f"  said with Lockstep: {line}")
                if with_["recorded"]:
                    print(f"  Lockstep kept: {json.dumps(with_['recorded'])}")
                result["scenarios"][scenario] = {"without": without, "with": with_, "differences": rows}
                if rows or seen == 0:
                    code = code or 1
            with open(options.out, "w", encoding="utf-8") as out:
                json.dump(result, out)
    print("the same GPU work is seen with Lockstep as without" if code == 0 else "NOT the same", flush=True)
    return code


if __name__ == "__main__":
    sys.exit(main())
