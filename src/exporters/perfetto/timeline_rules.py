#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks a timeline in Perfetto's format against what trace_processor asks of it, and against the JSON of the same run.

    timeline_rules.py FILE [--json TIMELINE.json]

Expands bundles, decodes with protoc and testing/timeline.proto, then follows the importer: the state of each packet sequence, clocks,
interned numbers, tracks and their parents, the stack of open slices of each track, counters, flows. Prints every broken rule and
exits with 1, or a summary and 0. Standard library and protoc.
"""
import collections
import decimal
import gzip
import json
import pathlib
import re
import subprocess
import sys
import zlib

HERE = pathlib.Path(__file__).resolve().parent
PROTO = HERE / "testing/timeline.proto"
REALTIME, OWN_CLOCKS = 1, range(64, 128)
BEGIN, END, INSTANT, COUNTER = 1, 2, 3, 4
UNITS = {2: "count"}
CLEARED, NEEDS_STATE = 1, 2
COMPRESSED = 50
MAX_DEPTH = 512
DOUBLES = {"double_counter_value"}
TYPES = {"int64": 3, "uint64": 4, "bool": 8}
problems = collections.Counter()
examples = {}


def broken(rule, what):
    problems[rule] += 1
    examples.setdefault(rule, str(what)[:500])


def unescape(text):
    """The bytes that protoc's text stands for."""
    simple = {"n": 10, "r": 13, "t": 9, '"': 34, "'": 39, "\\": 92}
    out, i = bytearray(), 0
    raw = text.encode("utf-8")
    while i < len(raw):
        if raw[i] != 92:
            out.append(raw[i])
            i += 1
        elif chr(raw[i + 1]) in simple:
            out.append(simple[chr(raw[i + 1])])
            i += 2
        else:
            out.append(int(raw[i + 1:i + 4], 8))
            i += 4
    return bytes(out)


def varint(data, at):
    value = shift = 0
    while True:
        value |= (data[at] & 0x7F) << shift
        shift += 7
        at += 1
        if data[at - 1] < 0x80: return value, at


def expand(data):
    """The packets of a file, those of bundles in their place."""
    out, at = bytearray(), 0
    while at < len(data):
        begin = at
        size, at = varint(data, at + 1)
        end = at + size
        field, at = varint(data, at)
        if field != COMPRESSED << 3 | 2:
            out += data[begin:end]
        else:
            size, at = varint(data, at)
            if at + size != end: broken("a bundle has nothing beside it", data[begin:at])
            if end - begin >= 512 << 10: broken("a bundle is smaller than 512 KiB", end - begin)
            out += zlib.decompress(data[at:end])
        at = end
    return bytes(out)


def decode(data):
    """The packets, each message a dict of lists."""
    command = ["protoc", f"--proto_path={PROTO.parent}", "--decode=lockstep.test.Trace", PROTO.name]
    done = subprocess.run(command, input=data, capture_output=True, check=False)
    if done.returncode != 0: sys.exit(f"protoc: {done.stderr.decode()}")
    root = collections.defaultdict(list)
    stack = [root]
    for line in done.stdout.decode().split("\n"):
        line = line.strip()
        if line == "}":
            stack.pop()
        elif line.endswith(" {"):
            inner = collections.defaultdict(list)
            stack[-1][line[:-2]].append(inner)
            stack.append(inner)
        elif line:
            name, value = line.split(": ", 1)
            if value[0] == '"':
                try:
                    value = unescape(value[1:-1]).decode("utf-8")
                except UnicodeDecodeError:
                    broken("texts are UTF-8", value)
            else:
                value = {"true": True, "false": False}[value] if value in ("true", "false") else decimal.Decimal(value) if name in DOUBLES else int(value)
            if name.isdigit(): broken("every field is one of testing/timeline.proto", line)
            stack[-1][name].append(value)
    return root["packet"]


def one(message, name, default=None):
    values = message.get(name, [])
    if len(values) > 1: broken("a field is there once", (name, values))
    return values[0] if values else default


class Sequence:
    """What the importer keeps of the packets with one sequence number."""

    def __init__(self):
        self.valid = False
        self.clocks = {}  # id: time of the last packet
        self.clear()

    def clear(self):
        self.texts = collections.defaultdict(dict)
        self.track = self.clock = None


class Importer:
    def __init__(self, packets):
        self.sequences = collections.defaultdict(Sequence)
        self.processes, self.threads, self.named, self.counters = {}, {}, {}, {}  # by uuid: descriptors
        self.values = collections.defaultdict(list)  # by uuid of a counter: (ns, value)
        self.events = []  # (ns, track, type, category, name, arguments, flows)
        self.realtime_is_trace_clock = False
        for packet in packets: self.packet(packet)

    def packet(self, packet):
        number = one(packet, "sequence", 0)
        state = self.sequences[number]
        flags = one(packet, "sequence_flags", 0)
        if flags and not number: broken("flags need a sequence", packet)
        if flags & CLEARED:
            state.valid = True
            state.clear()
        if flags & NEEDS_STATE and not state.valid: broken("packet_skipped_seq_needs_incremental_state_invalid", packet)
        if "defaults" in packet:
            if not flags & NEEDS_STATE: broken("what needs state says so", packet)
            defaults = one(packet, "defaults")
            state.clock = one(defaults, "timestamp_clock")
            state.track = one(one(defaults, "track_event"), "track")
        for kind, entries in one(packet, "interned_data", {}).items():
            if not state.valid: broken("interned_data_skipped_incremental_state_invalid", packet)
            for entry in entries:
                iid = one(entry, "iid")
                if not iid: broken("interned numbers are not 0", entry)
                if iid in state.texts[kind]: broken("an interned number is given once", entry)
                state.texts[kind][iid] = one(entry, "text", "")
        if "clock_snapshot" in packet: self.snapshot(one(packet, "clock_snapshot"), number, state)
        if "track_descriptor" in packet: self.descriptor(one(packet, "track_descriptor"))
        if "track_event" in packet: self.event(packet, number, flags, state)
        if "extension_descriptor" in packet: check_descriptor(packet["extension_descriptor"][0])

    def snapshot(self, snapshot, number, state):
        clocks = {one(clock, "id"): clock for clock in snapshot["clocks"]}
        primary = one(snapshot, "primary_clock")
        if primary is not None:
            if primary != REALTIME: broken("the trace's clock is REALTIME", snapshot)
            self.realtime_is_trace_clock = True
        for clock_id, clock in clocks.items():
            if clock_id == REALTIME: continue
            if clock_id not in OWN_CLOCKS or not number: broken("clocks of ours belong to a sequence", snapshot)
            if clock_id in state.clocks: broken("clock_sync_failure: a clock of ours is set once", snapshot)
            if REALTIME not in clocks or one(clocks[REALTIME], "timestamp") != one(clock, "timestamp"):
                broken("a clock of ours is tied to REALTIME", snapshot)
            if not one(clock, "is_incremental"): broken("a clock of ours counts from packet to packet", snapshot)
            state.clocks[clock_id] = one(clock, "timestamp")

    def descriptor(self, track):
        uuid = one(track, "uuid")
        if uuid == 0:
            if one(track, "process_ordering") != 1 or one(track, "thread_ordering") != 1: broken("tracks are ordered by rank", track)
            return
        if uuid is None: broken("track_descriptor_missing_uuid", track)
        if any(uuid in known for known in (self.processes, self.threads, self.named, self.counters)): broken("a track is described once", track)
        if "process" in track:
            pid = one(one(track, "process"), "pid")
            if not pid: broken("track_descriptor_process_missing_pid", track)
            if any(one(one(t, "process"), "pid") == pid for t in self.processes.values()): broken("a process is described once", track)
            self.processes[uuid] = track
        elif "thread" in track:
            thread = one(track, "thread")
            place = one(thread, "pid"), one(thread, "tid")
            if not all(place): broken("track_descriptor_thread_missing_pid_tid", track)
            parent = self.processes.get(one(track, "parent"))
            if parent is None or one(one(parent, "process"), "pid") != place[0]: broken("a thread's parent is its process", track)
            if not one(thread, "name"): broken("tracks are named", track)
            self.threads[uuid] = track
        else:
            if not one(track, "name"): broken("tracks are named", track)
            if "counter" in track and one(track, "parent") not in self.processes: broken("a counter's parent is its process", track)
            (self.counters if "counter" in track else self.named)[uuid] = track

    def event(self, packet, number, flags, state):
        event = one(packet, "track_event")
        if not number: broken("track_event_tokenizer_errors: no sequence", packet)
        time, clock = one(packet, "timestamp"), one(packet, "timestamp_clock")
        uses_state = clock is None or "track" not in event or "name_iid" in event or "category_iid" in event
        if uses_state and not flags & NEEDS_STATE: broken("what needs state says so", packet)
        if time is None: broken("track_event_tokenizer_errors: no timestamp", packet)
        if clock is None: clock = state.clock
        if clock in OWN_CLOCKS:
            if clock not in state.clocks: broken("clock_sync_failure: unknown clock", packet)
            if time >= 1 << 63: broken("time does not go back on a track", packet)
            time += state.clocks.get(clock, 0)
            state.clocks[clock] = time
        elif clock != REALTIME or not self.realtime_is_trace_clock:
            broken("clock_sync_failure: unknown clock", packet)
        track = one(event, "track", state.track)
        if not any(track in known for known in (self.threads, self.named, self.counters)): broken("a track is described before its events", packet)

        def text(kind, iid):
            if iid not in state.texts[kind]: broken("interned numbers are known", packet)
            return state.texts[kind].get(iid)

        name = text("event_names", one(event, "name_iid")) if "name_iid" in event else one(event, "name")
        categories = [text("categories", iid) for iid in event.get("category_iid", [])] + event.get("category", [])
        arguments = {key: values[0] for key, values in one(event, "lockstep", {}).items()}
        for annotation in event.get("annotations", []):
            key = text("annotation_names", one(annotation, "name_iid")) if "name_iid" in annotation else one(annotation, "name")
            values = [one(annotation, kind) for kind in ("unsigned", "signed", "text") if kind in annotation]
            if "text_iid" in annotation: values.append(text("annotation_texts", one(annotation, "text_iid")))
            if len(values) != 1 or key in arguments: broken("an annotation has one value", packet)
            arguments[key] = values[0] if values else None
        kind = one(event, "type")
        if kind not in (BEGIN, END, INSTANT, COUNTER): broken("types of events", packet)
        if (kind == COUNTER) != (track in self.counters): broken("track_event_counter_invalid_track_uuid: counters have values, and nothing else has", packet)
        if kind == COUNTER:
            values = event.get("counter_value", []) + event.get("double_counter_value", [])
            if len(values) != 1: broken("track_event_counter_missing_value", packet)
            self.values[track].append((time, sum(values)))
            return
        if kind != END and (name is None or len(categories) != 1): broken("events have a name and a category", packet)
        self.events.append((time, track, kind, categories[0] if categories else None, name, arguments, event.get("flows", [])))

    def slices(self):
        """(track, ns, length, category, name, arguments, flows) of all slices, and the instants."""
        done, instants, stacks = [], [], collections.defaultdict(list)
        for event in sorted(self.events, key=lambda e: e[0]):  # stable: equal times in the order of the file
            time, track, kind, category, name, arguments, flows = event
            stack = stacks[track]
            if kind == INSTANT:
                instants.append((track, time, category, name, arguments))
            elif kind == BEGIN:
                if len(stack) >= MAX_DEPTH: broken("slice_max_depth_exceeded", event)
                stack.append(event)
            elif not stack:
                broken("misplaced_end_event", event)
            else:
                begin = stack.pop()
                done.append((track, begin[0], time - begin[0]) + begin[3:])
        for track, stack in stacks.items():
            if stack: broken("every slice ends", (track, stack[0]))
        return done, instants


def counters_of(importer):
    """The values of each counter by pid, name and unit."""
    told = {}
    for uuid, track in importer.counters.items():
        counter, values = one(track, "counter"), importer.values[uuid]
        unit = one(counter, "unit_name") or UNITS.get(one(counter, "unit"))
        if not unit: broken("a counter has a unit", track)
        if not values: broken("a counter has values", track)
        if any(a[0] >= b[0] for a, b in zip(values, values[1:])): broken("a counter has one value at a time", track)
        if any(a[1] == b[1] for a, b in zip(values, values[1:])): broken("a counter has one value a change", track)
        process = one(importer.processes.get(one(track, "parent"), {}), "process", {})
        told[one(process, "pid"), one(track, "name"), unit] = values
    return told


def check_descriptor(descriptor):
    """The definition in the file is that of testing/timeline.proto."""
    file = one(one(descriptor, "extension_set"), "file")
    message, extension = one(file, "message_type"), one(file, "extension")
    listed = re.search(r"message Arguments \{(.*?)\n\}", PROTO.read_text(), re.DOTALL).group(1)
    wanted = {(name, int(number), TYPES[kind]) for kind, name, number in re.findall(r"optional (\w+) (\w+) = (\d+);", listed)}
    given = {(one(f, "name"), one(f, "number"), one(f, "type")) for f in message["field"]}
    if given != wanted: broken("the message is that of testing/timeline.proto", given ^ wanted)
    if any(one(f, "label") != 1 for f in message["field"]): broken("arguments are optional", message)
    link = [one(extension, key) for key in ("name", "extendee", "number", "type", "type_name")]
    if link != ["lockstep", ".perfetto.protos.TrackEvent", 9911, 11, f".{one(file, 'package')}.{one(message, 'name')}"]:
        broken("the extension is of Perfetto's TrackEvent", link)


def arguments_of_json(event, table):
    """An event's arguments as Perfetto has them."""
    said = {}
    for key, value in event["args"].items():
        kind, name = table[key, event["cat"] == "net"] if (key, event["cat"] == "net") in table else table[key, None]
        if kind == "J" or key == "event" and value == event["name"]: continue
        if key in ("grid", "block"): value = value[0]
        if kind == "X" and value == "[]" and key.endswith("split size"): continue  # said in JSON alone: its readers want the key
        said[key if kind == "X" else name] = round(value * 1000) if kind == "T" else value
    return said


def compare(importer, slices, instants, counters, path):
    """The same tracks, slices, instants, counters, flows and losses."""
    trace = json.loads(pathlib.Path(path).read_bytes(), parse_float=decimal.Decimal)
    base = trace["baseTimeNanoseconds"]
    time = lambda event: base + round(event["ts"] * 1000)
    table = {}
    for key, kind, name in re.findall(r'^ARGUMENT\(\w+, "([^"]+)", (\w), \d+, "(\w*)"\)', (HERE.parent / "common/arguments.def").read_text(), re.MULTILINE):
        table[(key, True) if name == "net_device" else (key, None)] = kind, name
    place = {uuid: (one(one(t, "thread"), "pid"), one(one(t, "thread"), "tid")) for uuid, t in importer.threads.items()}

    def same(what, ours, theirs):
        if ours != theirs: broken(f"{what} are those of the JSON", list(((ours - theirs) + (theirs - ours)).items())[:4])

    metadata = collections.defaultdict(dict)
    for event in trace["traceEvents"]:
        if event["ph"] == "M":
            where = event["pid"], event["tid"] if event["name"].startswith("thread") else None
            metadata[where].update({event["name"]: value for value in event["args"].values()})
    told = {(pid, None): {"process_name": one(p, "name"), "process_labels": one(p, "labels"), "process_sort_index": one(t, "order_rank")}
            for t in importer.processes.values() for p in t["process"] for pid in p["pid"]}
    told.update({place[uuid]: {"thread_name": one(t["thread"][0], "name"), "thread_sort_index": one(t, "order_rank")}
                 for uuid, t in importer.threads.items()})
    if told != metadata: broken("tracks are those of the JSON", [(k, told.get(k), metadata.get(k)) for k in told if told[k] != metadata.get(k)][:3])
    frozen = lambda said: frozenset(said.items())
    xs = [e for e in trace["traceEvents"] if e["ph"] == "X"]
    same("slices", collections.Counter((place.get(t), n, l, c, name, frozen(a)) for t, n, l, c, name, a, _ in slices),
         collections.Counter(((e["pid"], e["tid"]), time(e), round(e["dur"] * 1000), e["cat"], e["name"], frozen(arguments_of_json(e, table))) for e in xs))
    same("instants", collections.Counter((place[t], n, c, name, frozen(a)) for t, n, c, name, a in instants if t in place),
         collections.Counter(((e["pid"], e["tid"]), time(e), e["cat"], e["name"], frozen(e["args"])) for e in trace["traceEvents"] if e["ph"] == "i"))
    values = collections.defaultdict(list)
    for e in trace["traceEvents"]:
        if e["ph"] == "C":
            for unit, value in e["args"].items(): values[e["pid"], e["name"], unit].append((time(e), value))
    same("counters", collections.Counter((key, *at) for key, told in counters.items() for at in told),
         collections.Counter((key, *at) for key, told in values.items() for at in told))
    ours, theirs = collections.defaultdict(list), collections.defaultdict(list)
    for track, begin, _, _, _, _, flows in slices:
        for flow in flows: ours[flow].append((place[track], begin))
    for e in trace["traceEvents"]:
        if e["ph"] in "stf": theirs[e["cat"], e["id"]].append(((e["pid"], e["tid"]), time(e)))
    for kind, is_rank in (("ac2g", 0), ("ranks", 1)):
        same(f"flows ({kind})", collections.Counter(tuple(sorted(p)) for f, p in ours.items() if f >> 63 == is_rank and len(p) > 1),
             collections.Counter(tuple(sorted(p)) for (c, _), p in theirs.items() if c == kind))
    if any(len(points) != 2 for flow, points in ours.items() if not flow >> 63): broken("an arrow to the GPU has two ends", "")
    same("losses", collections.Counter((name, a["rank"], a["stage"], a["count"], a["detail"]) for t, _, c, name, a in instants if c == "loss"),
         collections.Counter((l["kind"], l["rank"], l["stage"], l["count"], l["detail"]) for l in trace["lockstep"]["losses"]))


def main():
    path = sys.argv[1]
    data = pathlib.Path(path).read_bytes()
    importer = Importer(decode(expand(gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data)))
    slices, instants = importer.slices()
    counters = counters_of(importer)
    if "--json" in sys.argv: compare(importer, slices, instants, counters, sys.argv[sys.argv.index("--json") + 1])
    for rule, count in problems.items():
        print(f"broken {count} times: {rule}: {examples[rule]}")
    kinds = collections.Counter(category for _, _, _, category, _, _, _ in slices)
    print(f"{len(importer.processes)} processes, {len(importer.threads)} tracks, {len(importer.sequences) - 1} sequences, {len(slices)} slices, "
          f"{len(instants)} instants, {len(counters)} counters with {sum(map(len, counters.values()))} values; " + ", ".join(f"{kind}: {count}" for kind, count in sorted(kinds.items())))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
