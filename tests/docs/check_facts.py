#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Whether the figures of docs/what-the-profiler-api-can-tell.md, README.md and tools/demo are those that tools/tape_facts finds.

Usage: check_facts.py SOURCE_TREE
"""
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

# The rows of README.md, blanks apart, and the demo's sentence.
README = [
    (r"in (0x6af\w+), (4) ranks: (240) times, least, mean, median, 99th (.*); ([\d.]+) ([\d.]+) GB/s",
     "AllReduce ncclFloat32 {0} {1} 16 MiB+ {2} 3.75 GiB 301 us {3} {4} {5}"),
    (r"of 4 B or more in (0x818\w+), (8) ranks: (48) times, least, mean, median, 99th (.*); ([\d.]+) ([\d.]+) GB/s",
     "AllReduce ncclFloat32 {0} {1} 4 B+ {2} 192 B 18.7 ms {3} {4} {5}"),
]
DEMO = [(r"of 4 B or more in 0x818\w+, 8 ranks: .* half less than (\d+) us, the longest (\d+) ms",
         "the 4-byte AllReduce of all 8 ranks: half of them take less than {0} us on the GPU, the longest {1} ms")]

source = pathlib.Path(sys.argv[1])
facts = subprocess.run([sys.executable, source / "tools/tape_facts"], check=True, capture_output=True, text=True).stdout
failures = figures = 0
for name, said in (("docs/what-the-profiler-api-can-tell.md", SAID), ("README.md", README), ("tools/demo", DEMO)):
    page = " ".join((source / name).read_text().split())
    for pattern, template in said:
        figures += 1
        found = re.search(pattern, facts)
        wanted = " ".join(template.format(*found.groups()).split()) if found else None
        if wanted is None or wanted not in page:
            failures += 1
            print(f"{pattern}: {f'{name} does not say: ' + wanted if found else 'tape_facts does not say so'}")
print(f"{figures} figures, {failures} failed")
sys.exit(1 if failures else 0)
