# SPDX-License-Identifier: Apache-2.0
"""Tables that a benchmark wrote: each stands between two marks of its name, below the day and the machine."""
import datetime
import os
import pathlib
import platform
import re


def machine():
    cpu = re.search(r"model name\s*: (.*)", pathlib.Path("/proc/cpuinfo").read_text())
    return f"{cpu.group(1) if cpu else platform.machine()}, {os.cpu_count()} cores"


def heading(load=None):
    """The line above a table; `load`: of the machine, before the run."""
    memory = int(re.search(r"MemTotal:\s*(\d+)", pathlib.Path("/proc/meminfo").read_text()).group(1)) / 2**20
    line = f"{datetime.date.today().isoformat()}; {machine()}, {memory:.0f} GiB, Linux {platform.release().split('-')[0]}"
    return line + (f"; load before the run {load:.1f}" if load is not None else "") + ".\n\n"


def rewrite(page, name, text):
    marked = re.compile(rf"(<!-- {name} -->\n)(.*?)(<!-- /{name} -->)", re.DOTALL)
    old = page.read_text()
    found = marked.search(old)
    assert found, f"{page} has no <!-- {name} --> marks"
    new = text(found.group(2)) if callable(text) else text
    page.write_text(old[:found.start(2)] + new + old[found.end(2):])


def rewrite_section(page, name, text):
    """Only the section of this machine between the marks: what other machines gave stays."""
    title = f"### {machine()}\n"

    def replace(old):
        others = [section for section in re.split(r"(?m)^(?=### )", old) if section.strip() and not section.startswith(title)]
        return "".join(others) + f"{title}\n{text}\n"
    rewrite(page, name, replace)
