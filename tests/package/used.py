# SPDX-License-Identifier: Apache-2.0
"""What every package must be able to do once it is installed."""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
HANG = ["--ranks", "4", "--steps", "20", "--fault", "never-joined", "--seed", "3", "-o"]
TAPES = ROOT / "examples/recordings/train2h"
READY = ("jobs/slurm.sbatch", "jobs/kubernetes.yaml", "jobs/ray_job.py", "jobs/torchrun.sh", "jobs/Dockerfile", "notebook/lockstep.ipynb")
SKIPPED = 77


def run(*command, code=0, **how):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, **how)
    if done.returncode != code:
        sys.exit(f"{command}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def install(what, *command, **how):
    """Says how long it took."""
    began = time.monotonic()
    told = run(*command, **how)
    print(f"{what}: installed in {time.monotonic() - began:.1f} s")
    return told


def skip(reason):
    print(f"skipped: {reason}")
    sys.exit(SKIPPED)


def check_diagnosis(text):
    if "never called operation" not in text:
        sys.exit(f"no diagnosis of the hang:\n{text}")


def check_pages(folder):
    """Each link of each page leads to what is installed with it, and the ready files are there."""
    pages = sorted(folder.rglob("*.md"))
    prose = {page: re.sub(r"^```.*?^```", "", page.read_text(), flags=re.DOTALL | re.MULTILINE) for page in pages}
    dead = [f"{page.relative_to(folder)} links to {link}" for page in pages for link in re.findall(r"\]\(([^)#\s]+)", prose[page])
            if not re.match(r"[a-z]+:", link) and not (page.parent / link).exists()]
    dead += [f"no {name}" for name in READY if not (folder / "examples" / name).exists()]
    dead += [f"{name} cannot be run" for name in READY if name.endswith(".sh") and not os.access(folder / "examples" / name, os.X_OK)]
    if len(pages) < 30 or dead:
        sys.exit(f"{folder}: {len(pages)} pages; {dead}")


def check_tapes(inside, programs, plugin, folder, seen):
    """Eight processes at once play to the plugin what NCCL called on as many GPUs; what they record is diagnosed as one job."""
    started = []
    for tape in sorted(TAPES.glob("rank*.jsonl.gz")):
        shutil.copy(tape, seen / tape.name)
        command = [*inside, programs / "lockstep-nccl-host", "--plugin", plugin, folder / tape.name]
        started.append(subprocess.Popen([str(word) for word in command], env={**os.environ, "LOCKSTEP_DIR": str(folder / "played")},
                                        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True))
    for process in started:
        told = process.communicate()[0]
        if process.returncode != 0:
            sys.exit(f"{process.args}: exit code {process.returncode}\n{told}")
    done = subprocess.run([*map(str, inside), str(programs / "lockstep"), "diagnose", str(folder / "played")], capture_output=True, text=True)
    # On a busy machine a rank may well be late.
    if done.returncode not in (0, 1) or "712 operations matched" not in " ".join(done.stdout.split()):
        sys.exit(f"no diagnosis of the recording: {done}")
    for path in seen.glob("rank*.jsonl.gz"):
        path.unlink()
    shutil.rmtree(seen / "played")


def check(inside, programs, libraries, folder, seen, emulator=()):
    """Simulates a hang and diagnoses it, records what NCCL would tell the plugin, and reads that again. `inside` is the command that runs another
    one where the package is installed, if that is not here; `folder` is there what `seen` is here. `emulator` runs a program of the package,
    if this machine cannot. Leaves `hang` in `seen`."""
    inside = (*inside, *emulator)
    lockstep = programs / "lockstep"
    run(*inside, programs / "lockstep-sim-job", *HANG, folder / "hang")
    check_diagnosis(run(*inside, lockstep, "diagnose", folder / "hang", code=1))
    if "4 process files" not in (told := run(*inside, lockstep, "info", folder / "hang")):
        sys.exit(f"info of a job of four ranks:\n{told}")
    database, page = folder / "played.db", folder / "page.html"
    run(*inside, lockstep, "trace", "-o", database, *emulator, programs / "lockstep-nccl-host", "--script", "allreduce",
        "--events", "50", "--plugin", libraries / "liblockstep-nccl.so")
    if "AllReduce" not in run(*inside, lockstep, "summary", database):
        sys.exit("the recording has no AllReduce")
    check_tapes(inside, programs, libraries / "liblockstep-nccl.so", folder, seen)
    if json.loads(run(*inside, lockstep, "version", "--json"))["parts"]["report page"]["present"]:
        run(*inside, lockstep, "report", "-o", page, folder / "hang")
        if (size := (seen / page.name).stat().st_size) < 100_000:
            sys.exit(f"the report has only {size} bytes")
        (seen / page.name).unlink()
    absent = subprocess.run([*map(str, inside), str(lockstep), "diagnose", "/absent"], capture_output=True, text=True)
    if absent.returncode != 2 or "cannot open" not in absent.stderr:
        sys.exit(f"diagnose of what is absent: {absent}")
    (seen / database.name).unlink()
