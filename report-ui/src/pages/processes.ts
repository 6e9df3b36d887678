// SPDX-License-Identifier: Apache-2.0
// What was recorded of whom, and everything that was lost.
import { dataBytes, isMissing, known, processText, type Comm, type Host, type LossRow, type ProcessesPage, type Report } from '../data';
import { h, type Child } from '../dom';
import { bytes, clockTime, count, duration, name, plural, UNKNOWN } from '../format';
import { numberOf } from '../state';
import { table } from '../table';
import { change, facts, hostChip, missing, notes, panel, runLength, whoChip, whoName, type Page, type View } from '../view';

const BAD = new Set(['gone', 'stopped']);

/** A process, its columns put together. */
interface Row {
  who: number;
  rank: number | null;
  host: number;
  pid: number;
  device: number | null;
  pci: string | null;
  model: string | null;
  nccl: string | null;
  mode: string | null;
  argv: string | null;
  /** Null where Lockstep did not write its file. */
  closed: boolean | null;
  liveness: string;
  ops: number;
  lost: number;
  open: string | null;
  open_ns: number | null;
  last_ns: number | null;
  heartbeat_ns: number | null;
  named: boolean;
}

function rowsOf({ who }: Report, page: ProcessesPage): Row[] {
  const { captured, list } = page;
  if (list === null) return [];
  return who.pid.map((pid, at) => ({
    who: at, rank: who.rank[at] ?? null, host: who.host[at] as number, pid, device: who.device[at] ?? null,
    pci: processText(page, 'pci', at), model: processText(page, 'gpu_model', at), nccl: processText(page, 'nccl', at), argv: processText(page, 'argv', at),
    mode: captured ? processText(page, 'mode', at) : null, closed: captured ? list.closed[at] === 1 : null, liveness: processText(page, 'liveness', at) ?? UNKNOWN,
    ops: list.ops[at] as number, lost: list.lost[at] as number, open: processText(page, 'open', at), open_ns: list.open_ns[at] ?? null,
    last_ns: list.last_ns[at] ?? null, heartbeat_ns: list.heartbeat_ns[at] ?? null, named: list.named[at] === 1,
  }));
}

/** What all have in common is said once, above, and has no column. */
const SHARED: readonly (readonly [string, (row: Row) => string | null])[] = [
  ['Model', (row) => row.model], ['NCCL', (row) => row.nccl], ['Mode', (row) => row.mode], ['Command', (row) => row.argv],
];

function processRows(view: View, rows: readonly Row[]): Child {
  const { report } = view;
  const asked = numberOf(view.state, 'rank');
  const shared = SHARED.filter(([, read]) => rows.length > 1 && rows.every((row) => read(row) !== null && read(row) === read(rows[0] as Row)));
  return [shared.length > 0 ? facts(shared.map(([title, read]) => [title, name(read(rows[0] as Row), 120)])) : null, table<Row>({
    label: 'Processes', printing: view.printing, filter: true, rows, height: 460, sort: { column: 0, down: false }, isPicked: (row) => row.who === asked, reveal: view.turned,
    columns: [
      { title: 'Rank', value: (row) => row.rank ?? row.who, show: (row) => [row.named ? h('span', { class: 'severity critical', title: 'named by a finding' }, '▸ ') : null, whoChip(report, row.who)] },
      { title: 'Host', value: (row) => report.hosts[row.host]?.name ?? null, show: (row) => name(report.hosts[row.host]?.name, 32) },
      { title: 'Pid', numeric: true, value: (row) => (row.pid < 0 ? null : row.pid), show: (row) => (row.pid < 0 ? '–' : String(row.pid)) },
      { title: 'GPU', numeric: true, value: (row) => row.device, show: (row) => count(row.device) },
      { title: 'File', value: (row) => (row.closed === null ? null : row.closed ? 'closed' : 'not closed'), show: (row) => (row.closed === null ? '–' : row.closed ? 'closed' : h('strong', {}, 'not closed')) },
      { title: 'Process', value: (row) => row.liveness, show: (row) => (BAD.has(row.liveness) ? h('strong', { class: 'severity critical' }, `■ ${name(row.liveness, 24)}`) : name(row.liveness, 24)) },
      { title: 'Operations', numeric: true, value: (row) => row.ops, show: (row) => count(row.ops) },
      { title: 'Lost', numeric: true, value: (row) => row.lost, show: (row) => (row.lost > 0 ? h('strong', {}, count(row.lost)) : '0') },
      { title: 'Current operation', value: (row) => row.open, show: (row) => name(row.open, 80) },
      { title: 'For', hint: 'how long it was in its current operation when its record ends', numeric: true, unit: 'ns', value: (row) => row.open_ns, show: (row) => duration(row.open_ns) },
      { title: 'Last record', hint: 'since the start of the run', numeric: true, unit: 'ns', value: (row) => row.last_ns, show: (row) => duration(row.last_ns) },
      { title: 'Heartbeat', hint: 'since the start of the run', numeric: true, unit: 'ns', value: (row) => row.heartbeat_ns, show: (row) => duration(row.heartbeat_ns) },
      { title: 'PCI', value: (row) => row.pci, show: (row) => name(row.pci, 20) },
      ...SHARED.filter((entry) => !shared.includes(entry)).map(([title, read]) => ({ title, narrow: true, value: read, show: (row: Row) => name(read(row), 120) })),
    ],
  })];
}

function lossRows(view: View, rows: readonly LossRow[]): HTMLElement {
  const { report } = view;
  return table<LossRow>({
    label: 'Losses', printing: view.printing, filter: true, rows, sort: { column: 0, down: true },
    columns: [
      { title: 'Count', numeric: true, value: (row) => row.count, show: (row) => count(row.count) },
      { title: 'What', value: (row) => row.kind, show: (row) => name(row.kind, 60) },
      { title: 'Stage', value: (row) => row.stage, show: (row) => name(row.stage, 40) },
      { title: 'Process', value: (row) => row.who, show: (row) => (row.who === null ? 'the run' : whoName(report, row.who)) },
      { title: 'Detail', value: (row) => row.detail, show: (row) => name(row.detail, 300) },
      { title: 'Source', value: (row) => row.source, show: (row) => name(row.source, 40) },
    ],
  });
}

function hostRows(view: View): HTMLElement {
  const { report } = view;
  return table<Host>({
    label: 'Hosts', printing: view.printing, filter: true, rows: report.hosts, height: 300,
    columns: [
      { title: 'Host', value: (row) => row.name, show: (row) => (row.name === '' ? 'unknown' : hostChip(report, report.hosts.indexOf(row))) },
      { title: 'Processes', numeric: true, value: (row) => row.who.length, show: (row) => count(row.who.length) },
      { title: 'Clock', value: (row) => (row.reference ? 'reference' : row.aligned ? 'aligned' : 'not aligned'), show: (row) => (row.reference ? 'reference' : row.aligned ? 'aligned' : h('strong', {}, 'not aligned')) },
      { title: 'Offset', hint: 'host’s clock minus the reference host’s, at the last record', numeric: true, unit: 'ns', value: (row) => row.offset_ns, show: (row) => (row.reference ? '0 s' : duration(row.offset_ns)) },
      { title: '±', numeric: true, unit: 'ns', value: (row) => row.half_width_ns, show: (row) => duration(row.half_width_ns) },
      { title: 'Contradictions', numeric: true, value: (row) => row.contradictions, show: (row) => count(row.contradictions) },
    ],
  });
}

function commRows(view: View, report: Report): HTMLElement {
  return table<Comm>({
    label: 'Communicators', printing: view.printing, filter: true, rows: report.comms, height: 300,
    columns: [
      { title: 'Communicator', value: (row) => row.name, show: (row) => name(row.name, 40) },
      { title: 'Id', value: (row) => row.id, show: (row) => h('code', {}, name(row.id, 24)) },
      { title: 'Ranks', numeric: true, value: (row) => row.ranks, show: (row) => count(row.ranks) },
      { title: 'Captured', numeric: true, value: (row) => row.present, show: (row) => (row.present < row.ranks ? h('strong', {}, count(row.present)) : count(row.present)) },
      { title: 'Hosts', numeric: true, value: (row) => row.nodes, show: (row) => count(row.nodes) },
      { title: 'Operations', numeric: true, value: (row) => row.ops, show: (row) => count(row.ops) },
      { title: 'Matched', numeric: true, value: (row) => row.matched, show: (row) => count(row.matched) },
      { title: 'Waiting', hint: 'sum over ranks', numeric: true, unit: 'ns', value: (row) => row.waiting_ns, show: (row) => duration(row.waiting_ns) },
      { title: 'Moving', hint: 'sum over ranks', numeric: true, unit: 'ns', value: (row) => row.moving_ns, show: (row) => duration(row.moving_ns) },
      { title: 'Own lateness', numeric: true, unit: 'ns', value: (row) => row.blamed_ns, show: (row) => duration(row.blamed_ns) },
    ],
  });
}

/** As all other times of day. */
function isoText(text: string | null): string {
  return text === null ? UNKNOWN : clockTime(Date.parse(text) * 1e6);
}

function draw(view: View): Child[] {
  const { report } = view;
  if (isMissing(report.processes)) return [missing(report.processes.missing)];
  const page = report.processes;
  const asked = numberOf(view.state, 'host');
  const host = asked !== null && asked < report.hosts.length ? asked : null;
  const rows = rowsOf(report, page).filter((row) => host === null || row.host === host);
  const lost = known(report.verdict)?.lost_events ?? 0;
  const verdict = known(report.verdict);
  return [
    panel(page.losses.length === 0 ? 'Lost: nothing' : `Lost: ${plural(lost, 'event')}`,
      page.losses.length === 0 ? h('p', { class: 'quiet' }, 'No data loss detected.')
        : [verdict && verdict.losses.length > 0 ? h('ul', { class: 'notes' }, verdict.losses.map((loss) => h('li', {}, name(loss.text, 300)))) : null, lossRows(view, page.losses)]),
    report.who.rank.length === 0 ? null : [panel(host === null ? plural(report.who.rank.length, 'process').replace('processs', 'processes') : ['Processes of ', hostChip(report, host), ' ', h('button', { type: 'button', onclick: () => change(view, { host: null }) }, 'Show all')],
      processRows(view, rows)),
    panel('Hosts and their clocks', hostRows(view)),
    panel('Communicators', commRows(view, report))],
    panel('This report',
      facts([
        ['Run', name(report.run.title, 60)], ['Start', isoText(report.run.begin)], ['Length', runLength(report)], ['Report made', isoText(report.run.made)], ['By', `${name(report.tool.name)} ${name(report.tool.version)}`],
        ['Data', bytes(dataBytes())],
      ]),
      h('h3', {}, 'From'), notes(report.run.paths.map((path) => name(path, 300)))),
    notes(page.notes),
  ];
}

export const processes: Page = { id: 'processes', title: 'Processes & losses', details: ['host', 'rank'], draw };
