# SPDX-License-Identifier: Apache-2.0
"""Who may watch a job: the environment of each observer, and the ranks of a job started in one.

Ranks are started one by one with the variables that torchrun sets, so that a preloaded library is in them and in nothing else.
"""
import os
import socket
import subprocess
import sys

# The events that each mode asks for: kLiteMask, kDefaultMask and kDeepMask in src/capture/nccl.
MASKS = {"lite": "0x1706", "default": "0x7f07", "deep": "0xffff"}


def lockstep_environment(libs, run, mode, cuda=True):
    variables = {"NCCL_PROFILER_PLUGIN": os.path.join(libs, "liblockstep-nccl.so"), "LOCKSTEP_DIR": run, "LOCKSTEP_MODE": mode}
    library = os.path.join(libs, "liblockstep-cuda.so")
    if cuda:
        variables["CUDA_INJECTION64_PATH"] = library
        variables["LD_PRELOAD"] = " ".join(filter(None, [library, os.environ.get("LD_PRELOAD")]))
    else:
        variables["LOCKSTEP_CUDA"] = "off"
    return variables


def empty_environment(libs, mode):
    return {"NCCL_PROFILER_PLUGIN": empty_plugin(libs), "EMPTY_MASK": MASKS[mode]}


def empty_plugin(libs):
    return os.path.join(libs, "libempty-plugin.so")


def empty_cupti_environment(libs, records):
    return {**nobody(), "CUDA_INJECTION64_PATH": os.path.join(libs, "libempty-cupti.so"), "EMPTY_CUPTI": records}


def nobody():
    return {"NCCL_PROFILER_PLUGIN": "none"}


def inspector_environment(plugin, folder):
    return {"NCCL_PROFILER_PLUGIN": plugin, "NCCL_INSPECTOR_ENABLE": "1", "NCCL_INSPECTOR_DUMP_DIR": folder,
            "NCCL_INSPECTOR_DUMP_THREAD_INTERVAL_MICROSECONDS": "500", "NCCL_INSPECTOR_DUMP_MIN_SIZE_BYTES": "0"}


def chained_environment(ours, other):
    """Ours, with what `other` asks for behind it."""
    return {**other, **ours, "LOCKSTEP_CHAIN": other["NCCL_PROFILER_PLUGIN"]}


def lockstep_program(libs):
    """The program that lies beside the libraries of a build or an installation; None if there is none."""
    for folder in (os.path.join(libs, os.pardir, "bin"), libs):
        program = os.path.join(folder, "lockstep")
        if os.access(program, os.X_OK):
            return os.path.abspath(program)
    return None


def compile_with_nccl(folder, source):
    """The program that nvcc makes of a source, in a folder, with the NCCL of PyTorch's wheel."""
    import nvidia.nccl
    root = list(nvidia.nccl.__path__)[0]
    include, libraries = os.path.join(root, "include"), os.path.join(root, "lib")
    link = os.path.join(folder, "libnccl.so")  # the wheel has no name to link with
    if not os.path.lexists(link):
        os.symlink(os.path.join(libraries, "libnccl.so.2"), link)
    program = os.path.join(folder, os.path.splitext(os.path.basename(source))[0])
    subprocess.run(["nvcc", "-x", "cu", "-O2", "-std=c++17", f"-I{include}", f"-L{folder}", "-Xlinker", f"-rpath={libraries}", "-o", program, str(source),
                    "-lnccl"], check=True)
    return program


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def start_ranks(command, ranks, variables, errors=None, pinned=False, **popen):
    """One process a rank. What the caller's own environment says of other observers does not reach them. `errors`: a folder for what
    they say on stderr, as rank<R>.err. `pinned`: each rank keeps to CPUs of its own, the same for every job, so that where the kernel
    happens to put a process does not differ between jobs. With more ranks than GPUs several share one: NCCL refuses that to ranks of one
    host, so each rank says that it is a host of its own, and all traffic goes through sockets.
    """
    cpus = sorted(os.sched_getaffinity(0))
    each = max(1, min(8, len(cpus) // ranks))
    inherited = {name: value for name, value in os.environ.items()
                 if not name.startswith("LOCKSTEP_") and name not in ("NCCL_PROFILER_PLUGIN", "CUDA_INJECTION64_PATH")}
    port = str(free_port())
    shared = ranks > gpus()
    started = []
    for rank in range(ranks):
        environment = {**inherited, "RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(ranks), "LOCAL_WORLD_SIZE": str(ranks),
                       "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "PYTHONUNBUFFERED": "1", **({"NCCL_HOSTID": f"shares-{rank}"} if shared else {}), **variables}
        own = [cpus[(rank * each + i) % len(cpus)] for i in range(each)]
        with open(os.path.join(errors, f"rank{rank}.err") if errors else os.devnull, "ab") as stderr:
            process = subprocess.Popen(command, env=environment, stderr=stderr, **popen)
        if pinned:
            os.sched_setaffinity(process.pid, own)
        started.append(process)
    return started


def stop_ranks(processes):
    """Kills those that still run, and waits for all: exit codes by rank."""
    for process in processes:
        if process.poll() is None:
            process.kill()
    return [process.wait() for process in processes]


def gpus():
    listed = subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True)
    if listed.returncode != 0:
        sys.exit("no GPUs here: nvidia-smi -L failed")
    return len(listed.stdout.splitlines())
