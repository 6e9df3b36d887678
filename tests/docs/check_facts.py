#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Whether the figures of docs/what-the-profiler-api-can-tell.md are those that tools/tape_facts finds. Usage: check_facts.py SOURCE_TREE"""
import pathlib
import re
import subprocess
import sys

# What tape_facts prints, and how the page says it.
SAID = [
    (r"CollApi, start to stop: median ([\d.]+), 99th ([\d.]+)", "| CollApi | {0} us | {1} us |"),
    (r"Coll, start to stop: median ([\d.]+), 99th ([\d.]+)", "| Coll | {0} us | {1} us |"),
    (r"Group, start to stop: median ([\d.]+), 99th ([\d.]+)", "| Group | {0} us | {1} us |"),
    (r"KernelCh: median [\d.,]+, .* us \((\d+)\)", "In {0} collectives"),
    (r"(\d+) kernels; .*another kernel\): 0\n", "Of {0} kernels that torch.profiler recorded"),
    (r"the same without its sign: median ([\d.]+), 99th [\d.]+, largest ([\d.]+)", "by {0} us in the median"),
    (r"the same without its sign: median ([\d.]+), 99th [\d.]+, largest ([\d.]+)", "and {1} us at most"),
    (r"KernelCh less CUPTI: median .*, largest -([\d.]+) us", "{0} us at least"),
    (r"mix: (?:.*; )?6 x depth 2: (16) calls, (8) launches", "{0} CollApi, {1} KernelLaunch, {1} plans of 2 operations"),
    (r"CollApi: (\d), of them captured: (\d); KernelLaunch: (\d)", "{0} CollApi, {1} of them with `graphCaptured`, {2} KernelLaunch"),
    (r"Coll of a captured call: \[(\d), \1, \1, \1\]", "call then gets {0} Coll"),
    (r"AllReduce seq 8: Coll stopped after ([\d.]+) us; (\d+) KernelCh began, \2 never ended", "stopped after {0} us as any other, and {1} KernelCh"),
    (r"AllReduce \| 201,498,624 \| 4 \| 2 \| 8 \| 2 \| (.*) \| (.*) \|", "| AllReduce | 192 Mi | 4 | 2 | 2 | {0} | {1} |"),
]

source = pathlib.Path(sys.argv[1])
facts = subprocess.run([sys.executable, source / "tools/tape_facts"], check=True, capture_output=True, text=True).stdout
page = (source / "docs/what-the-profiler-api-can-tell.md").read_text()
failures = 0
for pattern, template in SAID:
    found = re.search(pattern, facts)
    wanted = template.format(*found.groups()) if found else None
    if wanted is None or wanted not in page:
        failures += 1
        print(f"{pattern}: {'the page does not say: ' + wanted if found else 'tape_facts does not say so'}")
print(f"{len(SAID)} figures, {failures} failed")
sys.exit(1 if failures else 0)
