# SPDX-License-Identifier: Apache-2.0
"""Tables of docs/ that a benchmark wrote: each stands between two marks of its name, below the day and the machine."""
import datetime
import os
import pathlib
import platform
import re


def heading(load=None):
    """The line above a table; `load`: of the machine, before the run."""
    cpu = re.search(r"model name\s*: (.*)", pathlib.Path("/proc/cpuinfo").read_text())
    memory = int(re.search(r"MemTotal:\s*(\d+)", pathlib.Path("/proc/meminfo").read_text()).group(1)) / 2**20
    line = (f"{datetime.date.today().isoformat()}; {cpu.group(1) if cpu else platform.machine()}, {os.cpu_count()} cores, "
            f"{memory:.0f} GiB, Linux {platform.release().split('-')[0]}")
    return line + (f"; load before the run {load:.1f}" if load is not None else "") + ".\n\n"


def rewrite(page, name, text):
    marked = re.compile(rf"(<!-- {name} -->\n).*?(<!-- /{name} -->)", re.DOTALL)
    old = page.read_text()
    assert marked.search(old), f"{page} has no <!-- {name} --> marks"
    page.write_text(marked.sub(lambda found: found.group(1) + text + found.group(2), old))
