# SPDX-License-Identifier: Apache-2.0
"""lockstep.open() beside the commands that say the same. LOCKSTEP_TEST_BIN names the folder of the built programs."""
import csv
import ctypes
import gc
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import types
import unittest
import unittest.mock

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import lockstep  # noqa: E402
import lockstep.torch  # noqa: E402
import notebook_cells  # noqa: E402
from lockstep import _arrow  # noqa: E402

BIN = os.environ.get("LOCKSTEP_TEST_BIN", "")


def has(module):
    return importlib.util.find_spec(module) is not None


def program(name, *arguments):
    return subprocess.run([os.path.join(BIN, name), *arguments], capture_output=True, text=True, timeout=120)


@unittest.skipUnless(BIN, "no built programs")
class Runs(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        for fault in ("none", "never-joined", "host-late"):
            done = program("lockstep-sim-job", "--ranks", "8", "--steps", "20", "--seed", "3", "--marks", "--fault", fault, "-o",
                           cls.path(fault))
            assert done.returncode == 0, done.stderr
        program("lockstep", "merge", "-o", cls.path("trace.db"), cls.path("none"))
        program("lockstep", "convert", "-f", "csv", "-o", cls.path("run.csv"), cls.path("none"))

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    @classmethod
    def path(cls, name):
        return os.path.join(cls.folder.name, name)

    def test_diagnosis_is_the_commands_to_the_byte(self):
        for name in ("none", "never-joined", "host-late", "trace.db"):
            printed = program("lockstep", "diagnose", "--json", self.path(name))
            diagnosis = lockstep.open(self.path(name)).diagnose()
            self.assertEqual(diagnosis.json, printed.stdout)
            self.assertEqual(diagnosis.outcome.value, printed.returncode)

    def test_findings_are_typed(self):
        diagnosis = lockstep.open(self.path("never-joined")).diagnose()
        self.assertIs(diagnosis.outcome, lockstep.Outcome.PROBLEM)
        verdict = diagnosis.verdict
        self.assertIsInstance(verdict, lockstep.Finding)
        self.assertEqual(verdict.finding_class, "never-joined")
        self.assertEqual(len(verdict.ranks), 1)
        self.assertEqual(verdict.who[0].rank, verdict.ranks[0])
        self.assertEqual(verdict.effect.unit, diagnosis.document["verdict"]["effect"]["unit"])
        self.assertIn(verdict.statement, str(diagnosis))
        self.assertIn("never-joined", diagnosis._repr_html_())
        healthy = lockstep.open(self.path("none")).diagnose()
        self.assertIsNone(healthy.verdict)
        self.assertEqual(str(healthy), "No problem found.")

    def tables(self, run):
        return {"ops": run.operations(), "processes": run.ranks(), "comms": run.communicators(), "kernels": run.kernels(),
                "marks": run.marks(), "ranges": run.ranges(), "losses": run.losses()}

    def test_tables_have_the_cells_of_csv(self):
        run = lockstep.open(self.path("none"))
        rows = 0
        for name, table in self.tables(run).items():
            with open(os.path.join(self.path("run.csv"), name + ".csv"), newline="", encoding="utf-8") as file:
                wanted = list(csv.DictReader(file))
            columns = table.to_dict()
            got = [dict(zip(columns, ("" if cell is None else str(cell) for cell in row))) for row in zip(*columns.values())]
            self.assertEqual(got, wanted, name)
            rows += len(got)
        self.assertGreater(rows, 1000)

    def test_a_capsule_hands_the_stream_over(self):
        table = lockstep.open(self.path("none")).operations()
        capsule = table.__arrow_c_stream__()
        address = ctypes.pythonapi.PyCapsule_GetPointer
        address.restype, address.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
        held = ctypes.cast(address(capsule, b"arrow_array_stream"), ctypes.POINTER(_arrow.Stream))

        def take(stream):
            # As consumers do: copy the struct, and mark the source released.
            ctypes.memmove(stream, held, ctypes.sizeof(_arrow.Stream))
            ctypes.memset(held, 0, ctypes.sizeof(_arrow.Stream))

        rows = sum(len(batch[0]) for batch in _arrow.batches(take))
        self.assertEqual(rows, len(table.to_dict()["id"]))
        del capsule, held
        gc.collect()
        for _ in range(3):  # nobody takes it
            table.__arrow_c_stream__()

    def test_nothing_is_written_to_the_run(self):
        def state():
            return [(entry.name, entry.stat().st_size, entry.stat().st_mtime_ns) for entry in os.scandir(self.path("none"))]

        before = state()
        run = lockstep.open(self.path("none"))
        run.diagnose()
        run.operations().to_dict()
        self.assertEqual(state(), before)

    def test_the_report_is_a_page(self):
        if json.loads(program("lockstep", "version", "--json").stdout)["parts"]["report page"]["present"]:
            report = lockstep.open(self.path("never-joined")).report()
            self.assertIn("never-joined", report.html)
            self.assertTrue(report._repr_html_().startswith("<iframe sandbox"))
            report.save(self.path("page.html"))
            self.assertGreater(os.path.getsize(self.path("page.html")), 100_000)
        else:
            with self.assertRaises(lockstep.LockstepError):
                lockstep.open(self.path("none")).report()

    def test_the_notebook_runs(self):
        path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../examples/notebook/lockstep.ipynb")
        has_page = json.loads(program("lockstep", "version", "--json").stdout)["parts"]["report page"]["present"]
        names = notebook_cells.run(path, self.folder.name, skipped=lambda cell: not has_page and "report" in cell)
        self.assertEqual(len(names["ranks"]["rank"]), 8)
        self.assertIn("AllReduce", names["operations"]["func"])

    def test_what_cannot_be_read_is_an_error(self):
        with self.assertRaisesRegex(lockstep.LockstepError, "at least one path"):
            lockstep.open()
        with self.assertRaisesRegex(lockstep.LockstepError, "absent"):
            lockstep.open(self.path("absent")).diagnose()
        with self.assertRaisesRegex(lockstep.LockstepError, "absent"):
            lockstep.open(self.path("absent")).operations().to_dict()

    @unittest.skipUnless(has("pandas"), "no pandas")
    def test_pandas(self):
        run = lockstep.open(self.path("none"))
        for table in (run.operations(), run.ranks(), run.marks()):
            frame, columns = table.to_pandas(), table.to_dict()
            self.assertEqual(list(frame.columns), list(columns))
            for name, values in columns.items():
                self.assertEqual([None if cell is not cell or str(cell) == "<NA>" else cell for cell in frame[name]], values)

    @unittest.skipUnless(has("pyarrow"), "no pyarrow")
    def test_pyarrow(self):
        import pyarrow
        table = lockstep.open(self.path("none")).operations()
        self.assertEqual(pyarrow.table(table).to_pydict(), table.to_dict())

    @unittest.skipUnless(has("polars"), "no polars")
    def test_polars(self):
        table = lockstep.open(self.path("none")).operations()
        self.assertEqual(table.to_polars().to_dict(as_series=False), table.to_dict())


class FakeOptimizer:
    def __init__(self):
        self.hooks = []

    def register_step_post_hook(self, hook):
        self.hooks.append(hook)
        return types.SimpleNamespace(remove=lambda: self.hooks.remove(hook))

    def step(self):
        for hook in self.hooks:
            hook(self, (), {})


class Torch(unittest.TestCase):
    def setUp(self):
        self.said = []
        for name in ("step", "mark"):
            patcher = unittest.mock.patch.object(lockstep.torch, name, lambda *words, name=name: self.said.append((name, *words)))
            patcher.start()
            self.addCleanup(patcher.stop)

    def test_steps_follow_the_optimizer(self):
        optimizer = FakeOptimizer()
        with lockstep.torch.watch(optimizer, first_step=5):
            optimizer.step()
            optimizer.step()
        optimizer.step()
        self.assertEqual(self.said, [("step", 5), ("step", 6), ("step", 7)])

    def test_collections_of_the_oldest(self):
        with lockstep.torch.watch(gc=True):
            gc.collect(0)
            gc.collect()
        gc.collect()
        self.assertEqual(self.said, [("mark", "gc begin", 2), ("mark", "gc end", 2)])

    def test_waits_for_data(self):
        self.assertEqual(list(lockstep.torch.loading("ab")), ["a", "b"])
        self.assertEqual(self.said[:4], [("mark", "load begin", 0), ("mark", "load end", 0), ("mark", "load begin", 1),
                                         ("mark", "load end", 1)])

        def broken():
            yield 1
            raise ValueError

        self.said.clear()
        with self.assertRaises(ValueError):
            list(lockstep.torch.loading(broken()))
        self.assertEqual(self.said[-1], ("mark", "load end", 1))


if __name__ == "__main__":
    unittest.main()
