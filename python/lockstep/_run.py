# SPDX-License-Identifier: Apache-2.0
"""A recorded run: its diagnosis, its tables and its report."""
from __future__ import annotations

import dataclasses
import enum
import html
import json
import os
from typing import Any, Iterator, Mapping, Optional, Sequence, Union

from lockstep import _arrow, _library

PathLike = Union[str, "os.PathLike[str]"]


class Outcome(enum.Enum):
    HEALTHY = 0
    PROBLEM = 1
    CANNOT_TELL = 3


@dataclasses.dataclass(frozen=True)
class Effect:
    """A cost, with the interval that holds the true one."""

    value: float
    unit: str
    low: float
    high: float


@dataclasses.dataclass(frozen=True)
class Who:
    """A process that a finding names; what is not known is None."""

    rank: Optional[int]
    host: Optional[str]
    pid: Optional[int]
    device: Optional[int]
    pci: Optional[str]
    text: str


@dataclasses.dataclass(frozen=True)
class Finding:
    """As `lockstep diagnose --json` has it; docs/diagnose.md says what each field is."""

    id: str
    finding_class: str
    severity: str
    statement: str
    ranks: Sequence[int]
    hosts: Sequence[str]
    who: Sequence[Who]
    comm: Optional[str]
    func: Optional[str]
    op_index: Optional[int]
    operation: Optional[str]
    torch_comms_id: Optional[str]
    since_ns: Optional[int]
    effect: Optional[Effect]
    evidence: Sequence[str]
    advice: str
    next: Sequence[str]
    needed_evidence: str
    sources: Sequence[str]

    @classmethod
    def _of(cls, found: Mapping[str, Any]) -> Finding:
        fields = dict(found)
        fields["finding_class"] = fields.pop("class")
        fields["since_ns"] = fields.pop("since")
        fields["effect"] = Effect(**fields["effect"]) if fields["effect"] else None
        known = {field.name for field in dataclasses.fields(Who)}
        fields["who"] = tuple(Who(**{key: one[key] for key in known}) for one in fields["who"])
        for name in ("ranks", "hosts", "evidence", "next", "sources"):
            fields[name] = tuple(fields[name])
        return cls(**{field.name: fields[field.name] for field in dataclasses.fields(cls)})

    def __str__(self) -> str:
        return f"{self.severity.upper()}: {self.statement} [{self.id}]"


@dataclasses.dataclass(frozen=True)
class Diagnosis:
    """What `lockstep diagnose` says. `json` is what `--json` prints, to the byte; `document` is it as Python has it."""

    outcome: Outcome
    verdict: Optional[Finding]
    findings: Sequence[Finding]
    json: str = dataclasses.field(repr=False)

    @property
    def document(self) -> dict[str, Any]:
        return dict(json.loads(self.json))

    def __str__(self) -> str:
        return "No problem found." if self.verdict is None else str(self.verdict)

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td>{html.escape(one.severity)}</td><td><code>{html.escape(one.id)}</code></td>"
            f"<td style='text-align:left'>{html.escape(one.statement)}</td></tr>" for one in self.findings)
        return f"<p><b>{html.escape(str(self))}</b></p>" + (f"<table>{rows}</table>" if rows else "")


class Table:
    """A table of a run, for anything that reads Arrow: `pyarrow.table(t)`, `polars.DataFrame(t)`, `duckdb`, ... Read anew each
    time, a process at a time."""

    def __init__(self, handle: _library.Handle, name: str) -> None:
        self._handle = handle
        self.name = name

    def _fill(self, stream: Any) -> None:
        self._handle.fill_stream(self.name, stream)

    def __arrow_c_stream__(self, requested_schema: Optional[object] = None) -> object:
        """The Arrow PyCapsule protocol; a requested schema is best effort there, and not followed here."""
        return _arrow.capsule(_arrow.Stream, b"arrow_array_stream", self._fill)

    def batches(self) -> Iterator[dict[str, list[Any]]]:
        """Columns as lists, for one process after the other."""
        for batch in _arrow.Batches(self._fill):
            yield {column.name: column.to_list() for column in batch}

    def to_dict(self) -> dict[str, list[Any]]:
        """All rows, as a list for each column. None where a value is not known."""
        batches = _arrow.Batches(self._fill)
        whole: dict[str, list[Any]] = {name: [] for name, _ in batches.fields}
        for batch in batches:
            for column in batch:
                whole[column.name].extend(column.to_list())
        return whole

    def to_pandas(self) -> Any:
        """A pandas.DataFrame. Numbers that may be unknown are of pandas' nullable types."""
        import numpy
        import pandas

        batches = _arrow.Batches(self._fill)
        dtypes = {"U": "string", "l": "Int64", "L": "UInt64"}
        columns: dict[str, list[Any]] = {name: [pandas.Series(dtype=dtypes[kind])] for name, kind in batches.fields}
        for batch in batches:
            for column in batch:
                if column.format == "U":
                    piece = pandas.array(column.to_list(), dtype="string")
                else:
                    valid = column.valid()
                    mask = numpy.zeros(len(column), dtype=bool) if valid is None else ~numpy.unpackbits(
                        numpy.frombuffer(valid, dtype=numpy.uint8), bitorder="little")[:len(column)].astype(bool)
                    numbers = numpy.array(numpy.ctypeslib.as_array(column.values()))
                    piece = pandas.arrays.IntegerArray(numbers, mask)
                columns[column.name].append(pandas.Series(piece))
        return pandas.DataFrame({name: pandas.concat(pieces, ignore_index=True) for name, pieces in columns.items()})

    def to_polars(self) -> Any:
        """A polars.DataFrame."""
        import polars

        return polars.DataFrame(self)

    def __repr__(self) -> str:
        return f"<lockstep table {self.name}>"


class Report:
    """The page that `lockstep report` writes. A notebook shows it in place."""

    def __init__(self, page: str) -> None:
        self.html = page

    def save(self, path: PathLike) -> None:
        with open(path, "w", encoding="utf-8") as out:
            out.write(self.html)

    def _repr_html_(self) -> str:
        return ('<iframe sandbox="allow-scripts allow-downloads allow-modals allow-forms" '
                f'style="width:100%;height:860px;border:0" srcdoc="{html.escape(self.html)}"></iframe>')

    def __repr__(self) -> str:
        return f"<lockstep report of {len(self.html)} characters>"


class Run:
    """What open() names. Every call reads it anew, so that a run that goes on may be asked again. One thread at a time."""

    def __init__(self, paths: Sequence[PathLike]) -> None:
        self.paths = tuple(os.fspath(path) for path in paths)
        self._handle = _library.Handle(self.paths)

    def diagnose(self) -> Diagnosis:
        code, text = self._handle.text("lockstep_diagnose")
        document = json.loads(text)
        found = tuple(Finding._of(one) for one in document["findings"])
        verdict = Finding._of(document["verdict"]) if document["verdict"] else None
        return Diagnosis(Outcome(code), verdict, found, text)

    def report(self) -> Report:
        return Report(self._handle.text("lockstep_report")[1])

    def operations(self) -> Table:
        """An operation of one process a row."""
        return Table(self._handle, "ops")

    def ranks(self) -> Table:
        """A process of the job a row."""
        return Table(self._handle, "processes")

    def communicators(self) -> Table:
        """A communicator as one process sees it a row."""
        return Table(self._handle, "comms")

    def kernels(self) -> Table:
        """A kernel or copy on a GPU a row."""
        return Table(self._handle, "kernels")

    def marks(self) -> Table:
        """A step or a named instant a row."""
        return Table(self._handle, "marks")

    def ranges(self) -> Table:
        """A range that the program marked through NVTX a row."""
        return Table(self._handle, "ranges")

    def losses(self) -> Table:
        """What is missing or guessed."""
        return Table(self._handle, "losses")

    def __repr__(self) -> str:
        return f"lockstep.open({', '.join(map(repr, self.paths))})"


def open_run(*paths: PathLike) -> Run:
    """A run by what `lockstep diagnose` takes: a run directory, a trace.db, dumps, traces, logs, archives, in any mix."""
    return Run(paths)
