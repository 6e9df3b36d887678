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
import warnings

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import lockstep  # noqa: E402
import lockstep.torch  # noqa: E402
import notebook_cells  # noqa: E402
import stand_ins  # noqa: E402
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

    def test_a_table_without_rows_has_its_columns(self):
        columns = lockstep.open(self.path("none")).ranges().to_dict()
        self.assertIn("start_ns", columns)
        self.assertEqual(set(map(len, columns.values())), {0})

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

        rows = sum(len(batch[0]) for batch in _arrow.Batches(take))
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
        for table in (run.operations(), run.ranks(), run.marks(), run.ranges()):
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


class TorchTest(unittest.TestCase):
    """The calls of the library, kept in `said`."""

    def setUp(self):
        self.said = []
        declare, step, mark = (function for _, function in lockstep._native.Api._fields_ if _ in ("declare_group", "step", "mark"))

        def declared(info):
            info = info.contents
            self.said.append(("group", info.name.decode(), info.ranks[:info.count], info.rank, info.description.decode()))
            return 1

        self.api = lockstep._native.Api(declare_group=declare(declared), step=step(lambda number: self.said.append(("step", number))),
                                        mark=mark(lambda name, value: self.said.append(("mark", name.decode(), value))))
        patcher = unittest.mock.patch.object(lockstep._native, "api", lambda: self.api)
        patcher.start()
        self.addCleanup(patcher.stop)


class Torch(TorchTest):
    def test_steps_follow_the_optimizer(self):
        optimizer = stand_ins.Optimizer()
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
        self.said.clear()
        for _ in lockstep.torch.loading("ab"):
            break
        gc.collect()
        self.assertEqual(self.said, [("mark", "load begin", 0), ("mark", "load end", 0)])

    def test_nothing_without_a_recorder(self):
        self.api = None
        optimizer = stand_ins.Optimizer()
        before = len(gc.callbacks)
        lockstep.torch.watch(optimizer, gc=True, groups=True)
        self.assertEqual((optimizer.hooks, len(gc.callbacks)), ([], before))
        self.assertEqual(list(lockstep.torch.loading("ab")), ["a", "b"])


class FakeGroup:
    def __init__(self, rank, description):
        self._rank, self.group_desc = rank, description

    def rank(self):
        return self._rank


class TorchGroups(TorchTest):
    """PyTorch's state of process groups, as torch/distributed/distributed_c10d.py keeps it."""

    def setUp(self):
        super().setUp()
        self.world = types.SimpleNamespace(pg_names={}, pg_group_ranks={}, pg_backend_config={})
        patcher = unittest.mock.patch.dict(
            sys.modules, {"torch.distributed.distributed_c10d": types.SimpleNamespace(_world=self.world)})
        patcher.start()
        self.addCleanup(patcher.stop)

    def groups(self):
        return [words[1:] for words in self.said if words[0] == "group"]

    def new_group(self, name, description, ranks, rank, backend="cpu:gloo,cuda:nccl"):
        group = FakeGroup(ranks.index(rank), description)
        self.world.pg_names[group] = name
        self.world.pg_group_ranks[group] = {member: place for place, member in enumerate(ranks)}
        self.world.pg_backend_config[group] = backend
        return group

    def test_groups_on_nccl_are_declared(self):
        self.new_group("0", "default_pg", [0, 1, 2, 3], 2)
        self.new_group("1", "undefined", [0, 1, 2, 3], 2, "gloo")
        self.new_group("2", "mesh_tp", [3, 2], 2, "cuda:nccl")
        lockstep.torch.watch(groups=True)
        self.assertEqual(self.groups(), [("0", [0, 1, 2, 3], 2, "default_pg"), ("2", [3, 2], 1, "mesh_tp")])

    def test_later_groups_are_declared_at_the_next_step(self):
        optimizer = stand_ins.Optimizer()
        with lockstep.torch.watch(optimizer, groups=True):
            self.assertEqual(self.groups(), [])
            first = self.new_group("0", "default_pg", [0, 1], 0)
            optimizer.step()
            self.assertEqual(self.groups(), [("0", [0, 1], 0, "default_pg")])
            optimizer.step()
            self.assertEqual(len(self.groups()), 1)
            for state in (self.world.pg_names, self.world.pg_group_ranks, self.world.pg_backend_config):
                del state[first]
            self.new_group("1", "mesh_dp", [0, 1], 0)  # as many as before
            optimizer.step()
            self.assertEqual(self.groups()[1:], [("1", [0, 1], 0, "mesh_dp")])

    def test_a_pytorch_that_keeps_them_elsewhere_is_said_once(self):
        del self.world.pg_names
        optimizer = stand_ins.Optimizer()
        with self.assertWarnsRegex(UserWarning, "process groups"):
            lockstep.torch.watch(optimizer, groups=True)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            optimizer.step()

    def test_nothing_without_torch(self):
        with unittest.mock.patch.dict(sys.modules):
            del sys.modules["torch.distributed.distributed_c10d"]
            lockstep.torch.watch(groups=True)
        self.assertEqual(self.groups(), [])


@unittest.skipUnless(BIN and os.environ.get("LOCKSTEP_TEST_LIBRARY"), "no built library")
class TorchGroupsRecorded(unittest.TestCase):
    PROGRAM = """
import sys, types
import lockstep.torch
class Group:
    group_desc = "mesh_dp"
    rank = staticmethod(lambda: 1)
group = Group()
world = types.SimpleNamespace(pg_names={group: "1"}, pg_group_ranks={group: {0: 0, 2: 1}}, pg_backend_config={group: "cuda:nccl"})
sys.modules["torch.distributed.distributed_c10d"] = types.SimpleNamespace(_world=world)
lockstep.torch.watch(groups=True)
list(lockstep.torch.loading("ab"))
"""

    def test_names_and_waits_are_in_the_run(self):
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run([sys.executable, "-B", "-c", self.PROGRAM], capture_output=True, text=True, env={
                **os.environ, "PYTHONPATH": os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "LOCKSTEP_DIR": folder,
                "LOCKSTEP_LIBRARY": os.environ["LOCKSTEP_TEST_LIBRARY"], "RANK": "2"})
            self.assertEqual(done.returncode, 0, done.stderr)
            run = lockstep.open(folder)
            comms = run.communicators().to_dict()
            self.assertEqual([comms[key] for key in ("name", "rank", "ranks", "members")], [["mesh_dp:1"], [1], [2], ["0,2"]])
            marks = run.marks().to_dict()
            self.assertEqual(list(zip(marks["name"], marks["value"])), [("load begin", 0), ("load end", 0), ("load begin", 1), ("load end", 1),
                                                                       ("load begin", 2), ("load end", 2)])


if __name__ == "__main__":
    unittest.main()
