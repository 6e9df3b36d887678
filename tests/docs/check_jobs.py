#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs what is in examples/jobs on stand-ins: Slurm's srun starts two tasks of one job, python, torchrun and train.py are a small job of ours.

Usage: check_jobs.py SOURCE_TREE BUILD_TREE SCRATCH. Ours must capture, name what went wrong and pass the job's exit code on. Of files that need a cluster, the words are checked:
every command, option and variable of Lockstep that they name exists.
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys

source, build, scratch = (pathlib.Path(argument).resolve() for argument in sys.argv[1:4])
jobs, work = source / "examples/jobs", scratch / "jobs"
problems = []
STAGE_LINES = 15


def expect(condition, what):
    if not condition:
        problems.append(what)


def program(name, text):
    path = work / "bin" / name
    path.write_text("#!/bin/sh\n" + text)
    path.chmod(0o755)


def prepare():
    shutil.rmtree(work, ignore_errors=True)
    (work / "bin").mkdir(parents=True)
    (work / "bin/lockstep").symlink_to(build / "bin/lockstep")
    job = build / "tests/lockstep-e2e-job"
    for name in ("python", "torchrun"):
        program(name, f'echo "{name} $*" >> "{work}/started"\nexec {job} ops 20 exit 7\n')
    # One that loads the plugin that the environment names, as NCCL does.
    program("train", f'{build}/bin/lockstep-nccl-host --plugin "$NCCL_PROFILER_PLUGIN" --script allreduce && exit 7\n')
    # Two tasks of a step, as Slurm tells them of themselves; its exit code is the largest of theirs.
    program("srun", '''export SLURM_JOB_ID=77 SLURM_STEP_ID=0 SLURM_NTASKS=2 SLURM_STEP_NUM_TASKS=2
SLURM_PROCID=0 "$@" & first=$!
SLURM_PROCID=1 "$@"; second=$?
wait $first; first=$?
[ $first -gt $second ] && exit $first
exit $second
''')


def run(command, **more):
    environment = {"PATH": f"{work / 'bin'}:{os.environ['PATH']}", "HOME": str(work), **more}
    return subprocess.run(command, cwd=work, env=environment, capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL)


def check_torchrun():
    done = run([jobs / "torchrun.sh", "8", "train.py", "--steps", "5 of them"])
    expect(done.returncode == 7, f"torchrun.sh: exit code {done.returncode}, the job's is 7: {done.stderr}")
    expect((work / "trace.db").exists(), "torchrun.sh: no trace.db")
    expect("20 operations" in done.stdout, f"torchrun.sh: the diagnosis says nothing of the operations: {done.stdout}")
    expect("torchrun --nproc_per_node=8 train.py --steps 5 of them" in (work / "started").read_text(), "torchrun.sh: words were lost")


def check_slurm():
    done = run(["sh", jobs / "slurm.sbatch"], SLURM_JOB_ID="77", RUN=str(work / "run"))
    expect(done.returncode == 7, f"slurm.sbatch: exit code {done.returncode}, the job's is 7: {done.stderr}")
    expect((work / "run.db").exists(), f"slurm.sbatch: no run.db: {done.stderr}")
    expect("2 ranks on 1 host" in done.stdout, f"slurm.sbatch: not both tasks are seen: {done.stdout}")


def check_slurm_hooks():
    silent = run([jobs / "slurm_task_prolog.sh"], SLURM_JOB_ID="78", SLURM_STEP_ID="0")
    expect((silent.returncode, silent.stdout) == (0, ""), f"slurm_task_prolog.sh: who did not ask is captured: {silent.stdout}")
    asked = {"LOCKSTEP_JOBS": str(work / "all"), "LOCKSTEP_PREFIX": str(build), "SLURM_JOB_ID": "78", "SLURM_STEP_ID": "0"}
    told = run([jobs / "slurm_task_prolog.sh"], **asked)
    variables = dict(re.findall(r"^export (\w+)=(.*)$", told.stdout, re.MULTILINE))
    expect(told.returncode == 0 and set(variables) == {"LOCKSTEP_DIR", "NCCL_PROFILER_PLUGIN"}, f"slurm_task_prolog.sh: {told.stdout} {told.stderr}")
    done = run(["train"], **variables)
    expect(done.returncode == 7, f"slurm_task_prolog.sh: the job's exit code changes to {done.returncode}")
    done = run([jobs / "slurm_epilog.sh"], **asked)
    diagnosis, report = work / "all/78.0/diagnosis.txt", work / "all/78.0/report.html"
    expect(done.returncode == 0 and diagnosis.exists() and "Seen " in diagnosis.read_text(), f"slurm_epilog.sh: no diagnosis: {done.stderr}")
    expect(report.exists() and report.stat().st_size > 10_000, "slurm_epilog.sh: no report")


def check_kubernetes():
    text = (jobs / "kubernetes.yaml").read_text()
    try:
        import yaml
    except ImportError:
        print("kubernetes.yaml is not parsed: no PyYAML here")
    else:
        service, job = yaml.safe_load_all(text)
        pod = job["spec"]["template"]["spec"]
        expect(pod["subdomain"] == service["metadata"]["name"], "kubernetes.yaml: no service gives the pods names")
        volumes = {volume["name"] for volume in pod["volumes"]}
        mounted = {mount["name"] for container in pod["containers"] + pod["initContainers"] for mount in container["volumeMounts"]}
        expect(mounted == volumes, f"kubernetes.yaml: volumes {volumes}, mounted {mounted}")
    # A job ends when its containers have; sidecars are none of them.
    before, containers = text.split("\n      containers:\n")
    expect('"lockstep", "exporter"' in before and "lockstep" not in "".join(re.findall("command: .*", containers)), "kubernetes.yaml: the job never ends")
    nodes = re.findall(r"--nnodes=(\d+)", containers)
    expect(nodes == re.findall(r"completions: (\d+)", text), f"kubernetes.yaml: torchrun starts {nodes} nodes: pods record jobs of their own")
    for line in re.findall(r'command: \["lockstep", (.*)\]', text):
        words = [word.strip().strip('"') for word in line.split(",")]
        shown = run(["lockstep", words[0], "--help"]).stdout
        for option in (word for word in words if word.startswith("--")):
            expect(option in shown, f"kubernetes.yaml: lockstep {words[0]} has no {option}")


def check_dockerfile():
    text = (jobs / "Dockerfile").read_text()
    stages = re.split(r"^(?=FROM )", text, flags=re.MULTILINE)[1:]
    expect(len(stages) == 2 and all(len(stage.splitlines()) <= STAGE_LINES for stage in stages), "Dockerfile: two stages of at most 15 lines")
    packer = (source / "tools/package").read_text()
    expect('f"lockstep-{version}-linux-{machine}"' in packer and "COPY lockstep-*.tar.gz" in text, "Dockerfile: the tarball has another name")


def check_ray():
    names = {}
    exec(compile((jobs / "ray_job.py").read_text(), "ray_job.py", "exec"), names)  # without ray: its main part does not run
    variables = names["runtime_env"](str(work / "ray"))["env_vars"]
    (work / "ray").mkdir()
    variables["NCCL_PROFILER_PLUGIN"] = variables["NCCL_PROFILER_PLUGIN"].replace(names["PREFIX"], str(build))
    run(["train"], **variables)
    expect(list((work / "ray").glob("*.lks")), "ray_job.py: a worker with these variables leaves no file")


def check_variables():
    known = "".join(path.read_text(errors="replace") for path in (*source.glob("src/**/*.cc"), *source.glob("docs/*.md")))
    own = {"LOCKSTEP_JOBS", "LOCKSTEP_PREFIX"}  # these files' own
    for path in sorted(jobs.iterdir()):
        for name in set(re.findall(r"\bLOCKSTEP_[A-Z]+\b", path.read_text())) - own:
            expect(name in known, f"{path.name}: nobody reads {name}")


prepare()
for check in (check_torchrun, check_slurm, check_slurm_hooks, check_kubernetes, check_dockerfile, check_ray, check_variables):
    check()
for problem in problems:
    print(problem)
print(f"{len(problems)} problems")
sys.exit(1 if problems else 0)
