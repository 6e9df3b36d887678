# SPDX-License-Identifier: Apache-2.0
"""Breaks a running job in several ways and measures how soon `lockstep diagnose RUN` names the culprit.

    run_live_faults.py --lockstep BIN --plugin liblockstep-nccl.so --out results.jsonl [--ranks N] [--modes default,deep]

Every job runs for real on N GPUs; `diagnose --json` is asked twice a second, from before the fault until it names the right class and
rank or the time is up. A verdict before the fault, and a wrong one after it, is written down as well. One JSON object a job.
"""
import argparse
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time

EXPECTED = {
    "none": (None,),
    "sleep": ("never-joined",),
    "other-op": ("joined-other-op",),
    "slow": ("host-late",),
    "kill": ("rank-dead",),
    "stop": ("never-joined",),
}


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def start(options, fault, run, mode, blamed):
    port = str(free_port())
    ranks = []
    for rank in range(options.ranks):
        environment = dict(os.environ, RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=str(options.ranks), LOCAL_WORLD_SIZE=str(options.ranks),
                           MASTER_ADDR="127.0.0.1", MASTER_PORT=port, NCCL_PROFILER_PLUGIN=os.path.abspath(options.plugin),
                           LOCKSTEP_DIR=run, LOCKSTEP_MODE=mode, TORCH_NCCL_ENABLE_MONITORING="0", TORCH_NCCL_ASYNC_ERROR_HANDLING="0")
        job = os.path.join(os.path.dirname(os.path.abspath(__file__)), "faulty_job.py")
        ranks.append(subprocess.Popen([sys.executable, job, "--fault", fault, "--rank", str(blamed), "--at", str(options.at)],
                                      env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True))
    return ranks


def ask(options, run):
    began = time.time()
    done = subprocess.run([options.lockstep, "diagnose", "--json", run], capture_output=True, text=True)
    try:
        answer = json.loads(done.stdout)
    except ValueError:
        answer = {"error": done.stderr.strip()[-300:]}
    return answer, time.time() - began


def measure(options, fault, mode):
    blamed = options.ranks - 1
    result = {"fault": fault, "mode": mode, "ranks": options.ranks, "before": [], "after": []}
    with tempfile.TemporaryDirectory() as work:
        run = os.path.join(work, "run")
        ranks = start(options, fault, run, mode, blamed)
        try:
            line = ranks[blamed].stdout.readline().split()  # the fault begins
            if len(line) != 2:
                return dict(result, error="the job ended before its fault")
            began = float(line[1])
            if fault == "kill":
                ranks[blamed].send_signal(signal.SIGKILL)
            if fault == "stop":
                ranks[blamed].send_signal(signal.SIGSTOP)
            while time.time() - began < options.wait:
                answer, cost = ask(options, run)
                verdict = answer.get("verdict")
                said = verdict and verdict["class"]
                entry = {"seconds": round(time.time() - began, 2), "cost": round(cost, 3), "class": said,
                         "ranks": verdict and verdict["ranks"], "statement": verdict and verdict.get("statement"), "error": answer.get("error")}
                if not result["after"] or entry["class"] != result["after"][-1]["class"]:
                    result["after"].append(entry)
                # Of two ranks in different operations nothing tells which is wrong: both are named.
                culprits = [0, 1] if fault == "other-op" and options.ranks == 2 else [blamed]
                if fault != "none" and said in EXPECTED[fault] and verdict["ranks"] == culprits:
                    result.update(right=True, seconds_to_verdict=entry["seconds"], statement=entry["statement"], verdict=verdict)
                    break
                time.sleep(0.5)
            else:
                result["right"] = fault == "none" and all(entry["class"] is None for entry in result["after"])
        finally:
            for process in ranks:
                process.kill()
                process.wait()
        if options.keep and not result.get("right"):
            os.makedirs(options.keep, exist_ok=True)
            subprocess.run(["tar", "-czf", os.path.join(options.keep, f"{fault}-{mode}.tgz"), "-C", work, "run"], check=False)
        # The same files afterwards, when every process is gone.
        answer, _ = ask(options, run)
        verdict = answer.get("verdict")
        result["post_mortem"] = {"class": verdict and verdict["class"], "ranks": verdict and verdict["ranks"], "statement": verdict and verdict.get("statement")}
    return result


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lockstep", required=True)
    parser.add_argument("--plugin", required=True)
    parser.add_argument("--out", required=True)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--modes", default="default,deep")
    parser.add_argument("--faults", default=",".join(EXPECTED))
    parser.add_argument("--at", type=int, default=300)
    parser.add_argument("--wait", type=float, default=20)
    parser.add_argument("--keep", help="folder for the runs that were not diagnosed")
    options = parser.parse_args()
    with open(options.out, "w") as out:
        for mode in options.modes.split(","):
            for fault in options.faults.split(","):
                result = measure(options, fault, mode)
                print(mode, fault, "right" if result.get("right") else "WRONG", result.get("seconds_to_verdict"),
                      result.get("statement") or result["after"][-1:], flush=True)
                out.write(json.dumps(result) + "\n")
                out.flush()


main()
