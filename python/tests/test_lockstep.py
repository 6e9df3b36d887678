# SPDX-License-Identifier: Apache-2.0
"""The module with and without a recorder. LOCKSTEP_TEST_LIBRARY names liblockstep.so; each case runs in its own interpreter."""
import glob
import importlib.util
import os
import struct
import subprocess
import sys
import tempfile
import types
import unittest
import unittest.mock

LIBRARY = os.environ.get("LOCKSTEP_TEST_LIBRARY", "")
PYTHON = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def run(script, directory, **environment):
    env = {**os.environ, "PYTHONPATH": PYTHON, "LOCKSTEP_DIR": directory, "RANK": "1", **environment}
    env.pop("LOCKSTEP_MODE", None)
    return subprocess.run([sys.executable, "-c", script], env=env, capture_output=True, text=True, timeout=60)


def chunks(data):
    """(purpose, entries) of each chunk of a process file, as docs/format.md draws it."""
    for at in range(4096, len(data) - 32767, 32768):
        magic, purpose = struct.unpack_from("<IB", data, at)
        if magic == 0x4B4E4843:
            yield purpose, data[at + 64:at + 32768]


def definitions(data, kind):
    for purpose, chunk in chunks(data):
        at = 0
        while purpose in (1, 2) and at + 16 <= len(chunk):
            found, units = struct.unpack_from("<HH", chunk, at + 12)
            if found == 0:
                break
            if found == kind:
                yield chunk[at:at + units * 16]
            at += units * 16


def records(data, kind, sizes={17: 80, 18: 32, 19: 32, 27: 64}):
    for purpose, chunk in chunks(data):
        at = 0
        while purpose == 3 and at + 16 <= len(chunk) and chunk[at + 12] != 0:
            size = sizes[chunk[at + 12]]
            if chunk[at + 12] == kind:
                yield chunk[at:at + size]
            at += size


def text(field):
    return field.split(b"\0")[0].decode()


class WithoutRecorder(unittest.TestCase):
    SCRIPT = """
import lockstep
group = lockstep.Group("tp:3", [0, 1])
with group.operation("allreduce", 4, 4, "Float") as op:
    op.set_gpu_times(1, 2)
lockstep.step(1)
lockstep.mark("m")
assert not lockstep.loaded()
"""

    def check(self, **environment):
        with tempfile.TemporaryDirectory() as directory:
            done = run(self.SCRIPT, directory, **environment)
            self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))
            self.assertEqual(os.listdir(directory), [])

    def test_nothing_named(self):
        self.check(LOCKSTEP_LIBRARY="")

    def test_no_such_library(self):
        self.check(LOCKSTEP_LIBRARY="/nonexistent/liblockstep.so")

    def test_another_library(self):
        self.check(LOCKSTEP_LIBRARY="libc.so.6")


@unittest.skipUnless(LIBRARY, "LOCKSTEP_TEST_LIBRARY is not set")
class WithRecorder(unittest.TestCase):
    def record(self, script):
        with tempfile.TemporaryDirectory() as directory:
            done = run("import lockstep\nassert lockstep.loaded()\n" + script, directory, LOCKSTEP_LIBRARY=LIBRARY)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            (path,) = glob.glob(directory + "/*.api.lks")
            with open(path, "rb") as file:
                return file.read()

    def test_operations_are_recorded(self):
        data = self.record("""
group = lockstep.Group("tp:3", [1, 5, 9])
with group.operation("reduce_scatter", 12, 4, "float16", root=2, stream=0x7000, algorithm="one-shot") as op:
    op.set_gpu_times(10, 20, lockstep.Clock.REALTIME)
with group.operation("send", 1, 1, "Float", peer=2):
    pass
""")
        (comm,) = definitions(data, 1)
        self.assertEqual(struct.unpack_from("<ii", comm, 24), (0, 3))
        self.assertEqual(text(comm[80:144]), "tp:3")
        (ranks,) = definitions(data, 5)
        self.assertEqual(struct.unpack_from("<IIiii", ranks, 16), (0, 3, 1, 5, 9))
        first, second = records(data, 17)
        self.assertEqual(struct.unpack_from("<QQQQQQIHHiI", first, 16), (12, 4, 0x7000, 10, 20, 0, 0, 1, 2, -1, 2))
        self.assertEqual(struct.unpack_from("<QQQQQQIHHiI", second, 16), (1, 1, 0, 0, 0, 0, 0, 2, 0, 2, 4))
        self.assertEqual((first[13], second[13]), (0xC0, 0x84), "GPU times and stopped; a send, stopped")
        shapes = list(definitions(data, 34))
        self.assertEqual([struct.unpack_from("<i", shape, 16)[0] for shape in shapes], [2, -1])
        self.assertEqual([text(shape[24:64]) for shape in shapes], ["reduce_scatter", "send"])
        self.assertEqual([text(shape[64:88]) for shape in shapes], ["Half", "Float"])
        self.assertEqual(text(shapes[0][88:112]), "one-shot")

    def test_operations_of_a_group_are_numbered(self):
        data = self.record("""
group = lockstep.Group("tp:3", [1, 5, 9])
for _ in range(3):
    with group.operation("allreduce", 1, 1, "Float"):
        pass
""")
        self.assertEqual([struct.unpack_from("<Q", operation, 56)[0] for operation in records(data, 17)], [0, 1, 2])

    def test_steps_and_marks(self):
        data = self.record('lockstep.step(41)\nlockstep.mark("checkpoint", -3)')
        step, mark = records(data, 18)
        self.assertEqual(struct.unpack_from("<qHH", step, 16), (41, 0, 1))
        self.assertEqual(struct.unpack_from("<qHH", mark, 16), (-3, 1, 0))
        (shape,) = definitions(data, 34)
        self.assertEqual(text(shape[24:64]), "checkpoint")

    def test_an_exception_ends_the_operation_and_passes(self):
        data = self.record("""
try:
    with lockstep.Group("g", [0, 1]).operation("allreduce", 1, 1, "Float"):
        raise KeyError
except KeyError:
    lockstep.step(1)
""")
        (operation,) = records(data, 17)
        self.assertEqual(operation[13], 0x80)
        self.assertEqual(len(list(records(data, 18))), 1)

    def test_gpu_times_may_follow_the_end(self):
        data = self.record("""
operation = lockstep.Group("g", [0, 1]).operation("allreduce", 1, 1, "Float").start()
operation.end()
operation.set_gpu_times(30, 40)
""")
        (operation,) = records(data, 17)
        self.assertEqual(struct.unpack_from("<QQ", operation, 40), (30, 40))

    def test_spawned_processes_record_themselves(self):
        with tempfile.TemporaryDirectory() as directory:
            script = "import lockstep, os\nlockstep.step(int(os.environ['RANK']))"
            for rank in "01":
                self.assertEqual(run(script, directory, LOCKSTEP_LIBRARY=LIBRARY, RANK=rank).returncode, 0)
            self.assertEqual(len(glob.glob(directory + "/*.api.lks")), 2)


class Recorded:
    """A table of functions that notes how it is called."""

    def __init__(self):
        self.calls = []

    def declare_group(self, info):
        return 7

    def begin(self, info):
        self.calls.append(("begin", info.seq))
        return 5

    def end(self, handle, times):
        self.calls.append(("end", handle, None if times is None else (times.start, times.end)))

    def set_gpu_times(self, handle, times):
        self.calls.append(("times", handle, (times.start, times.end)))


class Calls(unittest.TestCase):
    def setUp(self):
        sys.path.insert(0, PYTHON)
        import lockstep

        self.native, self.api = lockstep._native, Recorded()
        for name, value in (("_api", self.api), ("_looked", True)):
            patch = unittest.mock.patch.object(self.native, name, value)
            patch.start()
            self.addCleanup(patch.stop)
        self.operation = lambda **more: lockstep.Group("g", [0, 1]).operation("allreduce", 1, 1, "Float", **more)

    def test_gpu_times_are_told_once(self):
        with self.operation() as op:
            op.set_gpu_times(1, 2)
        self.assertEqual(self.api.calls, [("begin", 0), ("times", 5, (1, 2)), ("end", 5, None)])

    def test_gpu_times_before_the_begin_come_with_the_end(self):
        op = self.operation()
        op.set_gpu_times(3, 4)
        op.start()
        op.end()
        self.assertEqual(self.api.calls, [("begin", 0), ("end", 5, (3, 4))])

    def test_a_number_is_the_callers_and_else_left_to_the_recorder(self):
        for given, told in (({}, 0), ({"seq": 9}, 9)):
            self.api.calls.clear()
            self.operation(**given).start()
            self.assertEqual(self.api.calls, [("begin", told)])

    def test_a_table_that_is_shorter_than_ours_is_not_taken(self):
        first = self.native.Api.count.offset  # the first recorders end there
        for size, taken in ((first, True), (first + 8, True), (first - 1, False), (0, False)):
            table = self.native.Api(size=size)
            with unittest.mock.patch.object(self.native.Api, "in_dll", lambda *_: table):
                self.assertIs(self.native._find(), table if taken else None)

    def test_counters_number_their_marks_with_recorders_of_before_too(self):
        calls = []
        table = types.SimpleNamespace(size=self.native.Api.count.offset, step=lambda number: calls.append(number),
                                      mark=lambda name, number: calls.append((name, number)))
        step, mark = self.native.counting(table, None, 7), self.native.counting(table, b"load", 0)
        for tick in (step, mark, step, mark):
            tick()
        self.assertEqual(calls, [7, (b"load", 0), 8, (b"load", 1)])


class TorchProfiler(unittest.TestCase):
    """With what stands for torch.autograd.profiler: record_function(name, args), which opens a range where it is entered."""

    def setUp(self):
        sys.path.insert(0, PYTHON)
        import lockstep

        self.lockstep, self.seen = lockstep, []
        seen = self.seen

        class Range:
            def __init__(self, name, args=None):
                self.said = (name, args)

            def __enter__(self):
                seen.append(("begin", *self.said))

            def __exit__(self, *_):
                seen.append(("end", self.said[0]))

        self.profiler = types.ModuleType("torch.autograd.profiler")
        self.profiler.record_function, self.profiler._is_profiler_enabled = Range, True
        loaded = unittest.mock.patch.dict(sys.modules, {"torch.autograd.profiler": self.profiler})
        loaded.start()
        self.addCleanup(loaded.stop)
        self.addCleanup(lockstep.show_in_torch_profiler, False)

    def operate(self):
        with self.lockstep.Group("tensor:3", [0, 1]).operation("reduce_scatter", 8, 4, "torch.bfloat16", seq=5):
            self.seen.append("inside")

    def test_nothing_unless_asked(self):
        self.operate()
        self.assertEqual(self.seen, ["inside"])

    def test_a_range_while_the_profiler_runs(self):
        self.lockstep.show_in_torch_profiler()
        self.operate()
        self.assertEqual(self.seen, [("begin", "lockstep::reduce_scatter", "tensor:3, 8 to 4 of BFloat16, seq 5"), "inside",
                                     ("end", "lockstep::reduce_scatter")])
        with self.assertRaises(ValueError), self.lockstep.Group("g", [0]).operation("broadcast", 1, 1, "Int"):
            raise ValueError
        self.assertEqual(self.seen[-1], ("end", "lockstep::broadcast"))

    def test_nothing_while_it_does_not_run(self):
        self.lockstep.show_in_torch_profiler()
        self.profiler._is_profiler_enabled = False
        self.operate()
        self.assertEqual(self.seen, ["inside"])

    def test_before_2_1_it_is_asked(self):
        del self.profiler._is_profiler_enabled
        autograd = types.ModuleType("torch.autograd")
        self.lockstep.show_in_torch_profiler()
        with unittest.mock.patch.dict(sys.modules, {"torch.autograd": autograd}):
            self.operate()
            for autograd._profiler_enabled in (lambda: False, lambda: True):
                self.operate()
        self.assertEqual([said[0] for said in self.seen if said != "inside"], ["begin", "end"])

    def test_torch_is_never_imported(self):
        self.lockstep.show_in_torch_profiler()
        del sys.modules["torch.autograd.profiler"]
        self.operate()
        self.assertEqual(self.seen, ["inside"])
        self.assertNotIn("torch", sys.modules)


class PyTorchItself(unittest.TestCase):
    PROGRAM = """
import sys, torch, lockstep
from torch.profiler import profile, ProfilerActivity
lockstep.show_in_torch_profiler()
group = lockstep.Group("tp", [0, 1], rank=0)
def operate():
    with group.operation("allreduce", 4, 4, torch.bfloat16, seq=5):
        torch.ones(4)
operate()
with profile(activities=[ProfilerActivity.CPU]) as profiled:
    operate()
operate()
print(sum(event.name == "lockstep::allreduce" for event in profiled.events()))
"""

    @unittest.skipIf(importlib.util.find_spec("torch") is None, "PyTorch is not installed")
    def test_its_profiler_shows_operations_while_it_runs(self):
        ran = subprocess.run([sys.executable, "-c", self.PROGRAM], env={**os.environ, "PYTHONPATH": os.pathsep.join(
            [PYTHON, *filter(None, [os.environ.get("PYTHONPATH")])])}, capture_output=True, text=True)
        self.assertEqual(ran.stdout.strip(), "1", ran.stderr)


class Layouts(unittest.TestCase):
    def test_types_of_torch_and_numpy(self):
        sys.path.insert(0, PYTHON)
        import lockstep

        for name, expected in [("torch.bfloat16", "BFloat16"), ("float32", "Float"), ("Float", "Float"), ("ncclInt8", "ncclInt8")]:
            self.assertEqual(lockstep._type_name(name), expected)


if __name__ == "__main__":
    unittest.main()
