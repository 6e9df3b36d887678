#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What tools/setup says where packages are missing, on stand-ins of other distributions: one command that installs them, by their names there.

Usage: check_setup.py SOURCE_TREE SCRATCH.
"""
import pathlib
import shutil
import subprocess
import sys

source, scratch = (pathlib.Path(argument).resolve() for argument in sys.argv[1:3])
problems = []
DEBIAN = "sudo apt-get install -y -qq --no-install-recommends g++ "
# Distribution, its lines of os-release, package manager, what is there already; exit code, what is said, what is not.
CASES = [
    ("debian", "ID=debian\nVERSION_ID=12", "dpkg", ["cmake", "python3"], 1, [DEBIAN, " libsimdjson-dev ", "missing: g++ ninja-build "], [" cmake", "universe", "dnf"]),
    ("ubuntu", "ID=ubuntu\nID_LIKE=debian\nVERSION_ID=24.04", "dpkg", [], 1, [DEBIAN, "sudo add-apt-repository universe"], ["dnf"]),
    ("fedora", "ID=fedora\nVERSION_ID=42", "rpm", ["gcc-c++"], 0, ["sudo dnf install cmake ninja-build sqlite-devel ", " simdjson-devel json-devel "], ["gcc-c++", "epel", "apt"]),
    ("rocky 9", 'ID="rocky"\nID_LIKE="rhel centos fedora"\nVERSION_ID="9.4"', "rpm", [], 0, ["epel-release", "--set-enabled crb && sudo dnf install gcc-c++ cmake "], ["toolset", "apt"]),
    ("rhel 8", 'ID="rhel"\nID_LIKE="fedora"\nVERSION_ID="8.10"', "rpm", [], 0, ["gcc-toolset-12", "powertools", "sudo dnf install gcc-c++ cmake "], ["crb ", "apt"]),
    ("another", "ID=suse", "rpm", [], 0, ["missing: gcc-c++ ", "what Debian calls g++ cmake "], ["dnf", "apt"]),
]


def program(folder, name, text):
    path = folder / name
    path.write_text("#!/bin/bash\n" + text)
    path.chmod(0o755)


def check(title, release, manager, present, code, said, unsaid):
    place = scratch / "setup" / title
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    for name in ("bash", "env", "dirname", "cat"):
        (place / name).symlink_to(shutil.which(name))
    (place / "os-release").write_text(release + "\n")
    program(place, "id", "echo 1000\n")  # not root, who would install them
    names = " ".join(present)
    if manager == "dpkg":
        program(place, "dpkg", "")
        program(place, "dpkg-query", f'for there in {names}; do [[ "${{@: -1}}" == "$there" ]] && echo -n installed && exit; done; exit 1\n')
    else:
        program(place, "rpm", f'for there in {names}; do [[ "${{@: -1}}" == "$there" ]] && exit; done; exit 1\n')
    done = subprocess.run([source / "tools/setup"], env={"PATH": str(place), "OS_RELEASE": str(place / "os-release")}, capture_output=True, text=True, check=False)
    if done.returncode != code:
        problems.append(f"{title}: exit code {done.returncode}, wanted {code}")
    problems.extend(f"{title}: does not say '{text}':\n{done.stderr}" for text in said if text not in done.stderr)
    problems.extend(f"{title}: says '{text}':\n{done.stderr}" for text in unsaid if text in done.stderr)


for case in CASES:
    check(*case)
for problem in problems:
    print(problem)
print(f"{len(CASES)} distributions, {len(problems)} failed")
sys.exit(1 if problems else 0)
