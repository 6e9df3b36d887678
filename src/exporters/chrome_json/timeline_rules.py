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
METADATA = {"process_name", "process_labels", "process_sort_index", "thread_name", "thread_sort_index"}
LAUNCHES = {"cudaLaunchKernel", "cudaLaunchKernelExC", "cuLaunchKernel", "cuLaunchKernelEx"}  # what HTA counts
PERFETTO_DEPTH = 512
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


def check_perfetto(events):
    """What trace_processor's JSON importer does with the file: everything in order of time, equal times in the order of
    the file; a stack of open slices per thread; a flow belongs to the top of the stack, ended or not, that it meets."""
    flows, starts = set(), collections.Counter()
    stacks = collections.defaultdict(list)  # (end, event), outermost first
    for event in sorted((e for e in events if "ts" in e), key=lambda e: nanoseconds(e["ts"])):
        phase, stack, time = event["ph"], stacks[event["pid"], event["tid"]], nanoseconds(event["ts"])
        if phase not in "XistfMC": broken("phases that all readers know", phase)
        if phase in "Xi":
            if phase == "X" and "dur" not in event: broken("json_parser_failure: X without dur", event)
            if phase == "i" and event.get("s") != "t": broken("json_parser_failure: scope of an instant", event)
            length = nanoseconds(event.get("dur", 0))
            while stack and (stack[-1][0] < time or stack[-1][0] == time and
                             (length or nanoseconds(stack[-1][1].get("dur", 0)))):
                stack.pop()
            if any(time < end < time + length for end, _ in stack):
                broken("slice_spill_overlapping_complete_event", event)
                continue
            if len(stack) >= PERFETTO_DEPTH: broken("slice_max_depth_exceeded", event)
            stack.append((time + length, event))
        elif phase in "stf":
            flow = event["cat"], event["name"], event["id"]
            if not stack: broken("flow_no_enclosing_slice", event)
            if phase == "s" and flow in flows: broken("flow_duplicate_id", event)
            if phase == "t" and flow not in flows: broken("flow_step_without_start", event)
            if phase == "f" and flow not in flows: broken("flow_end_without_start", event)
            if phase != "s" and event.get("bp") != "e": broken("a flow binds to the enclosing slice", event)
            flows.add(flow)
            starts[flow] += {"s": 1, "t": 0, "f": -1}[phase]
            # It met the slice that it was written for, or one nested in that which begins with it.
            if not any(e.get("cat") in ("cpu_op", "cuda_driver", "kernel", "gpu_memcpy") and nanoseconds(e["ts"]) == time and end >= time
                       for end, e in stack):
                broken("a flow's end is the begin of an operation, a launch or GPU work", event)
    for flow, balance in starts.items():
        if balance: broken("a flow is s, t..., f", flow)


def check_counters(events, named):
    """A counter is a name in a process, with a series for each key of `args`."""
    last = {}
    for event in events:
        key = event["pid"], event["name"]
        if ("process_name", event["pid"]) not in named: broken("a counter's process is named", event)
        if not event.get("name") or not event.get("args"): broken("json_parser_failure: a counter has a name and a value", event)
        if any(isinstance(value, bool) or not isinstance(value, (int, float)) for value in event["args"].values()):
            broken("json_parser_failure: values are numbers", event)
        if "cat" in event or "dur" in event: broken("HTA takes what has cat and dur for a slice", event)
        if key in last:
            before = last[key]
            if nanoseconds(event["ts"]) < nanoseconds(before["ts"]): broken("a counter is in order of time", event)
            if event["args"] == before["args"]: broken("a counter has one value a change", event)
            if event["args"].keys() != before["args"].keys(): broken("a counter keeps its unit", event)
        last[key] = event


def check_metadata(events):
    for event in events:
        if event["name"] not in METADATA: broken("metadata that chrome://tracing knows", event["name"])
        if event["name"].endswith("_name") and not event["args"].get("name"): broken("json_parser_failure: no name", event)
        if event["name"].endswith("sort_index") and not -1 << 31 <= event["args"]["sort_index"] < 1 << 31:
            broken("sort indices have 32 bits", event)


def check_collective(event, args):
    for key in CPU_KEYS if event["cat"] == "cpu_op" else KERNEL_KEYS:
        if key not in args: broken("record_param_comms keys", (key, event["name"]))
    if args.get("dtype") not in C10_DTYPES: broken("dtype in c10 spelling", args.get("dtype"))
    if not isinstance(args.get("Process Group Ranks"), str): broken("ranks are a string", args.get("Process Group Ranks"))
    if ("Seq" in args) != ("Comms Id" in args): broken("Seq and Comms Id come together", args)
    if event["cat"] == "cpu_op" and "Comms Id" in args:
        # Some backends number sends among the collectives.
        wanted = [comms_id(args["Process Group Name"], args["Seq"], is_p2p, args.get("Global rank start", -1),
                           args.get("Global rank stride", 0 if args["Group size"] == 1 else -1), args["Group size"])
                  for is_p2p in ([True, False] if args["Collective name"] in ("send", "recv") else [False])]
        if args["Comms Id"] not in wanted: broken("Comms Id is PyTorch's hash of the event's own fields", args)


def main():
    path = sys.argv[1]
    ranks = int(sys.argv[sys.argv.index("--ranks") + 1]) if "--ranks" in sys.argv else None
    data = open(path, "rb").read()
    text = (gzip.decompress(data) if path.endswith(".gz") else data).decode("utf-8")
    trace = json.loads(text)
    check_top(trace, text, ranks)
    slices, named = collections.defaultdict(list), set()
    cpu_ids, kinds = {}, collections.Counter()
    for event in trace["traceEvents"]:
        kinds[event["ph"], event.get("cat", event["name"] if event["ph"] in "MC" else "")] += 1
        place = (event["pid"], event["tid"])
        if not all(isinstance(n, int) and 0 <= n < 1 << 32 for n in place): broken("pid and tid are 32-bit numbers", event)
        if event["ph"] == "X":
            slices[place].append(event)
            if not isinstance(event.get("args"), dict): broken("slices have args", event)
            if event["name"] == "record_param_comms": cpu_ids[event["args"]["External id"]] = event
        elif event["ph"] == "M":
            named.add((event["name"],) + place if event["name"].startswith("thread") else (event["name"], event["pid"]))
    launches = collections.Counter(event["args"].get("correlation") for track in slices.values() for event in track
                                   if event["cat"] != "kernel")
    correlations = {event["args"].get("correlation") for track in slices.values() for event in track
                    if event["cat"] in ("kernel", "gpu_memcpy")}
    for place, events in slices.items():
        if ("thread_name",) + place not in named: broken("tracks are named", place)
        for what in ("process_name", "process_labels", "process_sort_index"):
            if (what, place[0]) not in named: broken(what, place)
        for event in events:
            args = event["args"]
            if event["cat"] == "kernel" and "Collective name" in args:
                if not event["name"].startswith("nccl"): broken("kernels start with nccl", event["name"])
                if args.get("External id") not in cpu_ids: broken("a kernel's External id is that of a cpu_op", event)
                if launches[args.get("correlation")] != 1: broken("a kernel's correlation is that of one host event", event)
                check_collective(event, args)
            elif event["name"] == "record_param_comms":
                check_collective(event, args)
            elif event["cat"] == "cuda_runtime" and event["name"] not in LAUNCHES:
                broken("HTA knows the launch", event["name"])
    if len(cpu_ids) != kinds["X", "cpu_op"]: broken("External ids are unique", len(cpu_ids))
    for event in trace["traceEvents"]:
        if event.get("cat") == "ac2g" and event["id"] not in correlations: broken("ac2g ids are correlations", event["id"])
    if re.search(r"[\x00-\x09\x0b-\x1f\x7f]", text): broken("no bare control characters", "")
    check_metadata(event for event in trace["traceEvents"] if event["ph"] == "M")
    check_counters([event for event in trace["traceEvents"] if event["ph"] == "C"], named)
    check_perfetto(trace["traceEvents"])
    for rule, count in problems.items():
        print(f"broken {count} times: {rule}: {examples[rule]}")
    print(", ".join(f"{ph} {cat}: {count}" for (ph, cat), count in sorted(kinds.items())))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
