# SPDX-License-Identifier: Apache-2.0
"""What every package must be able to do once it is installed."""
import subprocess
import sys

HANG = ["--ranks", "4", "--steps", "20", "--fault", "never-joined", "--seed", "3", "-o"]


def run(*command, code=0, **how):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, **how)
    if done.returncode != code:
        sys.exit(f"{command}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def check_diagnosis(text):
    if "never called operation" not in text:
        sys.exit(f"no diagnosis of the hang:\n{text}")


def check_diagnosed_hang(inside, programs, hang):
    """`inside` is the command that runs another one where the package is installed, if that is not here."""
    run(*inside, programs / "lockstep-sim-job", *HANG, hang)
    check_diagnosis(run(*inside, programs / "lockstep", "diagnose", hang, code=1))


def check_recording(inside, programs, libraries, db):
    """What NCCL would tell the plugin, recorded under `lockstep trace` and read again."""
    run(*inside, programs / "lockstep", "trace", "-o", db, programs / "lockstep-nccl-host", "--script", "allreduce", "--events", "50",
        "--plugin", libraries / "liblockstep-nccl.so")
    if "AllReduce" not in run(*inside, programs / "lockstep", "summary", db):
        sys.exit("the recording has no AllReduce")
