#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks a timeline against what Perfetto's UI, chrome://tracing, HTA and PyTorch's tools ask of it.

    timeline_rules.py FILE [--ranks N]

Prints every broken rule and exits with 1, or a summary and 0. Standard library only.
"""
import collections
import gzip
import json
import re
import sys

C10_DTYPES = set("""Byte Char Bool Float8_e5m2 Float8_e4m3fn Short Half BFloat16 UInt16 Int Float UInt32 Long Double
UInt64 ComplexFloat ComplexDouble""".split())
CPU_KEYS = ["Collective name", "dtype", "In msg nelems", "Out msg nelems", "In split size", "Out split size", "Group size",
            "Process Group Name", "Process Group Ranks", "External id", "Rank"]
KERNEL_KEYS = ["External id", "device", "stream", "correlation", "grid", "block", "Collective name", "dtype",
               "In msg nelems", "Out msg nelems", "Group size"]
MASK = (1 << 64) - 1
problems = collections.Counter()
examples = {}


def broken(rule, what):
    problems[rule] += 1
    examples.setdefault(rule, what)


def comms_id(name, seq, p2p, start, stride, world):
    """PyTorch's hash, written a second time and independently of the C++ one."""
    mul, data = 0xC6A4A7935BD1E995, name.encode()
    mix = lambda v: v ^ (v >> 47)
    h = 0xC70F6907 ^ (len(data) * mul & MASK)
    full = len(data) // 8 * 8
    for i in range(0, full, 8):
        d = mix(int.from_bytes(data[i:i + 8], "little") * mul & MASK) * mul & MASK
        h = (h ^ d) * mul & MASK
    if full < len(data):
        h = (h ^ int.from_bytes(data[full:], "little")) * mul & MASK
    t = mix(mix(h) * mul & MASK)
    for x in (seq, int(p2p), start, stride, world):
        x &= MASK
        t = x ^ ((t + 0x9E3779B9 + (x << 6) + (x >> 2)) & MASK)
        t &= MASK
    return t


def nanoseconds(micros):
    return round(micros * 1000)


def check_top(trace, text, ranks):
    if trace.get("schemaVersion") != 1: broken("schemaVersion is 1", trace.get("schemaVersion"))
    if trace.get("displayTimeUnit") != "ms": broken("displayTimeUnit is ms", trace.get("displayTimeUnit"))
    base = trace.get("baseTimeNanoseconds")
    if not isinstance(base, int) or base % 7889238000000000: broken("base is a multiple of 7889238 s", base)
    for match in re.finditer(r'"(?:ts|dur)":(-?[0-9.]+)', text):
        if not re.fullmatch(r"\d+\.\d{3}", match.group(1)): broken("ts and dur have three decimals and no sign", match.group(0))
    if ranks == 1 and not re.search(r'"rank":\s+(\d+)', text): broken("HTA finds the rank", "")
    if ranks != 1 and "distributedInfo" in trace: broken("no distributedInfo for several ranks", "")


def check_nesting(slices):
    for place, events in slices.items():
        stack, last = [], None
        for event in events:
            start = nanoseconds(event["ts"])
            end = start + nanoseconds(event["dur"])
            if last is not None and start < last: broken("slices of a track are in order", event)
            last = start
            while stack and stack[-1] <= start: stack.pop()
            if stack and end > stack[-1]: broken("slices nest or are apart", (place, event))
            stack.append(end)


def check_flows(flows, slices, correlations):
    for (cat, name, number), points in flows.items():
        points.sort(key=lambda point: point["ts"])  # as viewers do; equal times stay in the order of the file
        phases = "".join(p["ph"] for p in points)
        if not re.fullmatch("st*f", phases): broken("a flow is s, t..., f", (cat, number, phases))
        for point in points:
            inside = any(e["ts"] <= point["ts"] <= e["ts"] + e["dur"] for e in slices[point["pid"], point["tid"]])
            if not inside: broken("a flow's end lies inside a slice", point)
            if point["ph"] != "s" and point.get("bp") != "e": broken("a flow binds to the enclosing slice", point)
        if cat == "ac2g" and number not in correlations: broken("ac2g ids are correlations", number)


def check_collective(event, args):
    for key in CPU_KEYS if event["cat"] == "cpu_op" else KERNEL_KEYS:
        if key not in args: broken("record_param_comms keys", (key, event["name"]))
    if args.get("dtype") not in C10_DTYPES: broken("dtype in c10 spelling", args.get("dtype"))
    if not isinstance(args.get("Process Group Ranks"), str): broken("ranks are a string", args.get("Process Group Ranks"))
    if ("Seq" in args) != ("Comms Id" in args): broken("Seq and Comms Id come together", args)
    if event["cat"] == "cpu_op" and "Comms Id" in args:
        want = comms_id(args["Process Group Name"], args["Seq"], args["Collective name"] in ("send", "recv"),
                        args.get("Global rank start", -1), args.get("Global rank stride", 0 if args["Group size"] == 1 else -1),
                        args["Group size"])
        if args["Comms Id"] != want: broken("Comms Id is PyTorch's hash of the event's own fields", args)


def main():
    path = sys.argv[1]
    ranks = int(sys.argv[sys.argv.index("--ranks") + 1]) if "--ranks" in sys.argv else None
    data = open(path, "rb").read()
    text = (gzip.decompress(data) if path.endswith(".gz") else data).decode("utf-8")
    trace = json.loads(text)
    check_top(trace, text, ranks)
    slices, flows, named = collections.defaultdict(list), collections.defaultdict(list), set()
    cpu_ids, correlations, kinds = {}, set(), collections.Counter()
    for event in trace["traceEvents"]:
        kinds[event["ph"], event.get("cat", event["name"] if event["ph"] == "M" else "")] += 1
        place = (event["pid"], event["tid"])
        if not all(isinstance(n, int) and n >= 0 for n in place): broken("pid and tid are numbers", event)
        if event["ph"] == "X":
            slices[place].append(event)
            if not isinstance(event.get("args"), dict): broken("slices have args", event)
            if event["name"] == "record_param_comms": cpu_ids[event["args"]["External id"]] = event
        elif event["ph"] in "stf":
            flows[event["cat"], event["name"], event["id"]].append(event)
        elif event["ph"] == "M":
            named.add((event["name"],) + place if event["name"].startswith("thread") else (event["name"], event["pid"]))
    for place, events in slices.items():
        if ("thread_name",) + place not in named: broken("tracks are named", place)
        for what in ("process_name", "process_labels", "process_sort_index"):
            if (what, place[0]) not in named: broken(what, place)
        for event in events:
            args = event["args"]
            if event["cat"] == "kernel":
                correlations.add(args.get("correlation"))
                if not event["name"].startswith("nccl"): broken("kernels start with nccl", event["name"])
                if args.get("External id") not in cpu_ids: broken("a kernel's External id is that of a cpu_op", event)
                check_collective(event, args)
            elif event["name"] == "record_param_comms":
                check_collective(event, args)
    if len(cpu_ids) != kinds["X", "cpu_op"]: broken("External ids are unique", len(cpu_ids))
    check_nesting(slices)
    check_flows(flows, slices, correlations)
    for rule, count in problems.items():
        print(f"broken {count} times: {rule}: {examples[rule]}")
    print(", ".join(f"{ph} {cat}: {count}" for (ph, cat), count in sorted(kinds.items())))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
