// SPDX-License-Identifier: Apache-2.0
// Ranks by time: how late each arrives, how long each waits, what each costs the others; from a cell to its worst operations.
import { canvas, fit, hatch, labelWidth, markedLabel, timeAxis, type Frame } from '../canvas';
import { accused, isMissing, type Drill, type LatenessPage, type LatenessRow, type Report } from '../data';
import { announce, facts as hintFacts, h, hideTip, showTip, type Child } from '../dom';
import { count, duration, name, percent, plural } from '../format';
import { addressOf, go, numberOf } from '../state';
import { table, type Column } from '../table';
import { colour, css, heat } from '../theme';
import { linksFigure } from './links';
import { stallOf, type Stall } from './stall';
import { change, choices, command, facts, figure, hostOf, key, keys, link, missing, notes, operationText, panel, showCommand, whoName, type Page, type View } from '../view';

type Measure = 'late' | 'waiting' | 'blamed';

const MEASURES: readonly (readonly [Measure, string])[] = [['late', 'Late'], ['waiting', 'Waiting'], ['blamed', 'Own lateness']];
const SAYS: Record<Measure, string> = {
  late: 'how far a rank’s latest arrival was behind the median one',
  waiting: 'how long a rank waited for the last one to arrive',
  blamed: 'own lateness: the part of its lateness that a rank’s own time explains',
};
const HEAD = 26;
// Room for a label that is higher than its row.
const EDGE = 6;
const WIDEST_LABEL = 150;
const RIGHT = 6;
// Where ranks hang: how wide what comes after the last arrival is, on a scale of its own, and the break before it.
const WIDEST_STALL = 120;
const BREAK = 8;
// Above 0.5, so that noise stays pale beside a fault; below 1, so that a small fault is seen beside a large one.
export const CURVE = 0.65;
// A run whose lateness stays below this is pale throughout: noise should not look like a fault.
const SMALLEST_FULL_NS = 1e6;

/** Whether a finding points at this row. */
function isNamed(row: LatenessRow, named: ReadonlySet<number>): boolean {
  return row.who === null ? row.named && named.size > 0 : named.has(row.who);
}

/** The list that a cell is drawn from. Of a group it is its worst member, as one late rank among hundreds is what is looked for. */
export function valuesOf(row: LatenessRow, measure: Measure): (number | null)[] {
  if (measure === 'late') return row.late_max_ns ?? row.late_ns;
  if (measure === 'waiting') return row.waiting_max_ns ?? row.waiting_ns;
  return row.blamed_ns;
}

export function largest(page: LatenessPage, measure: Measure): number {
  let most = 0;
  for (const row of page.rows) for (const value of valuesOf(row, measure)) if (value !== null && value > most) most = value;
  return most;
}

function legend(full: number, stall: Stall | null): HTMLElement {
  return keys(
    key('swatch none', 'nothing compared'),
    [0, 0.25, 0.5, 0.75, 1].map((part) => key('swatch', part === 0 ? '0' : duration(full * part ** (1 / CURVE)), css(heat(part)))),
    stall ? key('swatch waiting', 'still waiting') : null);
}

interface Cell { row: number; column: number }

function cellOf(view: View, page: LatenessPage): Cell | null {
  const match = /^(\d{1,5})\.(\d{1,5})$/.exec(view.state.values['cell'] ?? '');
  const cell = match ? { row: Number(match[1]), column: Number(match[2]) } : null;
  return cell && cell.row < page.rows.length && cell.column < page.columns.count ? cell : null;
}

/** The rows in the order in which they are drawn. */
function ordered(page: LatenessPage, order: string, measure: Measure): number[] {
  const positions = page.rows.map((_, position) => position);
  if (order !== 'worst') return positions;
  const by = ({ late: 'late_p99_ns', waiting: 'waiting_ns', blamed: 'blamed_ns' } as const)[measure];
  const total = (row: LatenessRow): number => (row.who === null ? row.total?.[by] : page.totals[by][row.who]) ?? 0;
  const keys = page.rows.map(total);
  return positions.sort((a, b) => (keys[b] ?? 0) - (keys[a] ?? 0));
}

function hint(page: LatenessPage, row: LatenessRow, column: number): [string, (readonly [string, string])[]] {
  const at = (list: (number | null)[] | undefined): number | null => list?.[column] ?? null;
  const from = page.columns.begin_ns + column * page.columns.width_ns;
  const pairs: (readonly [string, string])[] = [['time', `${duration(from)} – ${duration(from + page.columns.width_ns)}`]];
  if (at(row.ops) === null) pairs.push(['compared', 'nothing']);
  else {
    const group = row.who === null;
    pairs.push([group ? 'late (median rank)' : 'late', duration(at(row.late_ns))]);
    if (group && row.late_max_ns) pairs.push(['late (worst rank)', duration(at(row.late_max_ns))]);
    pairs.push([group ? 'waiting (median rank)' : 'waiting', duration(at(row.waiting_ns))]);
    pairs.push(['own lateness', duration(at(row.blamed_ns))]);
    pairs.push(['operations', count(at(row.ops))]);
  }
  if (!row.aligned) pairs.push(['clock', 'not aligned']);
  return [name(row.label), pairs];
}

/** The lines that have room for their label: those that matter first. */
function labelledLines(page: LatenessPage, rows: readonly number[], rowHeight: number, marked: ReadonlySet<number>, named: ReadonlySet<number>): Set<number> {
  const apart = Math.max(1, Math.ceil(13 / rowHeight));
  const chosen = new Set<number>();
  const free = (line: number): boolean => {
    for (let near = line - apart + 1; near < line + apart; near += 1) if (chosen.has(near)) return false;
    return true;
  };
  rows.forEach((position, line) => {
    const row = page.rows[position];
    if (((row && isNamed(row, named)) || marked.has(position)) && free(line)) chosen.add(line);
  });
  rows.forEach((_, line) => {
    if (line % apart === 0 && free(line)) chosen.add(line);
  });
  return chosen;
}

/** Columns from the first to before the second. */
interface Window { from: number; to: number }

function windowOf(view: View, page: LatenessPage): Window {
  const match = /^(\d{1,5})~(\d{1,5})$/.exec(view.state.values['span'] ?? '');
  const window = match ? { from: Number(match[1]), to: Math.min(page.columns.count, Number(match[2])) } : null;
  return window && window.from < window.to ? window : { from: 0, to: page.columns.count };
}

/** What is drawn of the heat map. */
interface HeatMap {
  report: Report;
  page: LatenessPage;
  rows: readonly number[];
  measure: Measure;
  full: number;
  rowHeight: number;
  selected: Cell | null;
  marked: ReadonlySet<number>;
  named: ReadonlySet<number>;
  left: number;
  window: Window;
  /** Shown where the end of the run is. */
  stall: Stall | null;
}

/** How wide the part is that the wait has. */
function stallWidth(width: number): number {
  return Math.min(WIDEST_STALL, Math.round(width * 0.28));
}

/** Where the columns end. */
function rightOf(width: number, stall: Stall | null): number {
  return width - RIGHT - (stall ? stallWidth(width) + BREAK : 0);
}

/** Whether a row, of a rank or of a host, has one of these. */
function holds(report: Report, row: LatenessRow, who: ReadonlySet<number>): boolean {
  if (row.who !== null) return who.has(row.who);
  return [...who].some((one) => isOfHost(row.label, report.hosts[report.who.host[one] ?? -1]?.name ?? ''));
}

/** After the last arrival: who has waited since then, and who has not come. */
function drawStall(map: HeatMap, stall: Stall, frame: Frame, bottom: number): void {
  const { g, width, top } = frame;
  const [from, to] = [width - RIGHT - stallWidth(width), width - RIGHT];
  const waiting = hatch(g, colour('waiting-ink'), colour('waiting'), 5);
  g.font = '600 11px system-ui, sans-serif';
  const says = stall.says.find((text) => g.measureText(text).width <= to - from) ?? '';
  const labels: number[] = [];
  map.rows.forEach((position, line) => {
    const y = HEAD + EDGE + line * map.rowHeight - top;
    const row = map.page.rows[position];
    if (!row || y + map.rowHeight < HEAD || y > bottom) return;
    // Of a host most may wait for one of it.
    const waits = holds(map.report, row, stall.waiting);
    const absent = !waits && holds(map.report, row, stall.absent);
    if (!absent && !waits) return;
    g.fillStyle = absent ? colour('named') : waiting;
    g.fillRect(from, y, to - from, map.rowHeight - (map.rowHeight >= 10 ? 1 : 0));
    const middle = y + map.rowHeight / 2;
    if (absent && middle - (labels.at(-1) ?? -Infinity) >= 12) labels.push(middle);
  });
  g.textAlign = 'center';
  for (const y of labels) {
    // A label may be higher than its row.
    g.fillStyle = colour('named');
    g.fillRect(from, y - 6, to - from, 12);
    g.fillStyle = colour('critical');
    g.fillText(says, (from + to) / 2, y);
  }
}

function drawHeat(map: HeatMap, frame: Frame): void {
  const { page, rows, measure, full, rowHeight, selected, marked, named, left, window, stall } = map;
  const { g, width, height, top } = frame;
  const columns = window.to - window.from;
  const right = rightOf(width, stall);
  const span = right - left;
  const begin = page.columns.begin_ns + window.from * page.columns.width_ns;
  const length = columns * page.columns.width_ns;
  const bottom = Math.min(height, HEAD + 2 * EDGE + rows.length * rowHeight - top);
  g.strokeStyle = colour('line');
  g.lineWidth = 1;
  g.strokeRect(left - 0.5, HEAD + EDGE - top - 0.5, span + 1, rows.length * rowHeight + 1);
  g.save();
  g.beginPath();
  g.rect(0, HEAD, width, bottom - HEAD);
  g.clip();
  const labelled = labelledLines(page, rows, rowHeight, marked, named);
  rows.forEach((position, line) => {
    const y = HEAD + EDGE + line * rowHeight - top;
    if (y + rowHeight < HEAD || y > bottom) return;
    const row = page.rows[position];
    if (!row) return;
    const values = valuesOf(row, measure);
    const gap = rowHeight >= 10 ? 1 : 0;
    for (let column = 0; column < columns; column += 1) {
      const value = values[window.from + column];
      if (value === null || value === undefined) continue;
      g.fillStyle = css(heat((Math.max(0, value) / full) ** CURVE));
      const x = left + (column / columns) * span;
      g.fillRect(x, y, Math.ceil((span / columns) * 2) / 2 + (gap ? 0 : 0.5), rowHeight - gap);
    }
    const accusedRow = isNamed(row, named);
    const emphasised = accusedRow || marked.has(position);
    if (labelled.has(line)) {
      g.textAlign = 'right';
      g.font = `${emphasised ? '600 ' : ''}${rowHeight >= 12 || emphasised ? 12 : 10}px system-ui, sans-serif`;
      g.fillStyle = accusedRow ? colour('critical') : colour('ink');
      g.fillText(fit(g, markedLabel(row.label, accusedRow, row.aligned), left - 14, 48), left - 8, y + rowHeight / 2);
    }
    if (marked.has(position)) {
      g.strokeStyle = colour('accent');
      g.lineWidth = 2;
      g.strokeRect(left - 2, y - 1, span + 3, rowHeight + 1);
    }
    if (selected?.row === position && selected.column >= window.from && selected.column < window.to) {
      const x = left + ((selected.column - window.from) / columns) * span;
      g.strokeStyle = colour('ink');
      g.lineWidth = 2;
      g.strokeRect(x - 2, y - 2, Math.max(3, span / columns) + 4, rowHeight + 3);
    }
  });
  if (stall) drawStall(map, stall, frame, bottom);
  g.restore();
  g.clearRect(0, 0, width, HEAD);
  g.font = '11px system-ui, sans-serif';
  timeAxis(g, begin, begin + length, left, right, HEAD - 4, HEAD);
  if (stall) {
    g.font = '600 11px system-ui, sans-serif';
    g.textAlign = 'right';
    const length = `// ${duration(stall.length_ns)}`;
    const whole = `${length} ${map.report.live ? 'until now' : 'to the end'}`;
    // No wider than its part, where it would stand on the axis beside it.
    const text = g.measureText(whole).width <= stallWidth(width) + BREAK ? whole : length;
    g.fillStyle = colour('critical');
    g.fillText(text, width - RIGHT, HEAD - 13);
  }
  if (page.marks.length > 1 && page.marks.length * 5 < span) {
    g.strokeStyle = colour('ink');
    g.globalAlpha = 0.55;
    g.lineWidth = 1;
    for (const mark of page.marks) {
      if (mark.at_ns < begin || mark.at_ns > begin + length) continue;
      const x = Math.round(left + ((mark.at_ns - begin) / length) * span) + 0.5;
      g.beginPath();
      g.moveTo(x, HEAD - 5);
      g.lineTo(x, HEAD + 1);
      g.stroke();
    }
    g.globalAlpha = 1;
  }
}

/** Positions in the drill-down of a cell's worst operations. */
function drillOf(drill: Drill, cell: Cell): number[] {
  const found: number[] = [];
  for (let at = 0; at < drill.row.length; at += 1) if (drill.row[at] === cell.row && drill.column[at] === cell.column) found.push(at);
  return found;
}

/** Of a cell's operations those that the measure is about, the worst first: who waits for another is not late. */
function worstOf(drill: Drill, cell: Cell, measure: Measure): number[] {
  const by = measure === 'waiting' ? drill.waiting_ns : drill.late_ns;
  const size = (at: number): number => by[at] ?? 0;
  return drillOf(drill, cell).filter((at) => size(at) > 0).sort((a, b) => size(b) - size(a));
}

function operationRows(view: View, drill: Drill, entries: readonly number[]): HTMLElement {
  const { report } = view;
  const read = (list: (number | null)[], at: number): number | null => list[at] ?? null;
  return table<number>({
    label: 'Worst operations in this cell', printing: view.printing, rows: entries, height: 220,
    columns: [
      { title: 'Operation', value: (at) => read(drill.op_index, at), show: (at) => operationText(report, read(drill.comm, at), read(drill.op_index, at)) },
      { title: 'Rank', value: (at) => read(drill.who, at), show: (at) => whoName(report, read(drill.who, at)) },
      { title: 'Late', numeric: true, unit: 'ns', value: (at) => read(drill.late_ns, at), show: (at) => duration(read(drill.late_ns, at)) },
      { title: 'Waited', numeric: true, unit: 'ns', value: (at) => read(drill.waiting_ns, at), show: (at) => duration(read(drill.waiting_ns, at)) },
      { title: 'Arrived at', numeric: true, unit: 'ns', value: (at) => read(drill.at_ns, at), show: (at) => duration(read(drill.at_ns, at)) },
      { title: '', wraps: true, value: (at) => read(drill.operation, at) ?? 'not in this report', show: (at) => {
        const operation = read(drill.operation, at);
        const shown = showCommand(report, read(drill.comm, at), read(drill.op_index, at));
        return operation === null
          ? h('span', { class: 'quiet', title: 'The report holds a selection of operations with all their ranks' }, 'not in this report', shown === null ? null : [': ', command(shown)])
          : link('Open its waterfall', 'operations', { op: operation, rank: read(drill.who, at) }, 'button small');
      } },
    ],
  });
}

function cellPanel(view: View, page: LatenessPage, cell: Cell, measure: Measure): HTMLElement {
  const row = page.rows[cell.row] as LatenessRow;
  const [title, pairs] = hint(page, row, cell.column);
  const entries = worstOf(page.drill, cell, measure);
  return h('section', { class: 'panel detail', 'aria-label': 'Cell' },
    h('div', { class: 'panel-head' }, h('h2', {}, title), view.printing ? null
      : h('button', { type: 'button', title: 'Escape', onclick: () => change(view, { cell: null }) }, 'Close')),
    facts(pairs),
    entries.length > 0 ? operationRows(view, page.drill, entries)
      : row.ops[cell.column] === null ? null : h('p', { class: 'quiet' }, `No operation that it ${measure === 'waiting' ? 'waited' : 'was late'} in is listed: the report lists the worst of the cells that stand out.`));
}

/** Of a run of which only the least length is known, the most that it can be. */
function shareOfRun(report: Report, ns: number | null): string {
  const { length_ns, least_length_ns } = report.run;
  const length = length_ns ?? least_length_ns;
  if (ns === null || length === null || length === 0) return percent(null);
  const share = percent(ns / length);
  return `${length_ns === null && ns > 0 && !share.startsWith('<') ? '≤ ' : ''}${share}`;
}

/** Every rank, also those without a row in the map. */
function totals(view: View, page: LatenessPage): HTMLElement {
  const { report } = view;
  const named = accused(report);
  const of = page.totals;
  const asked = numberOf(view.state, 'rank');
  const numbers = (title: string, list: readonly (number | null)[], show: (value: number | null) => string, more: Partial<Column<number>> = {}): Column<number> =>
    ({ title, numeric: true, ...more, value: (who) => list[who] ?? null, show: (who) => show(list[who] ?? null) });
  return table<number>({
    label: 'Lateness by rank', printing: view.printing, filter: true, rows: report.who.name.map((_, who) => who), sort: { column: 3, down: true }, isPicked: (who) => who === asked,
    onPick: (who) => go(addressOf('lateness', { ...view.state.values, row: null, rank: who, cell: null })),
    columns: [
      { title: 'Rank', value: (who) => whoName(report, who), show: (who) => [named.has(who) ? h('span', { class: 'severity critical', title: 'named by a finding' }, '▸ ') : null, whoName(report, who)] },
      { title: 'Host', value: (who) => hostOf(report, who) },
      numbers('Operations', of.ops, count),
      numbers('Own lateness', of.blamed_ns, duration, { unit: 'ns', hint: 'The part of its lateness that its own time explains' }),
      numbers('of run', of.blamed_ns, (ns) => shareOfRun(report, ns)),
      numbers('Late p50', of.late_p50_ns, duration, { unit: 'ns' }),
      numbers('Late p99', of.late_p99_ns, duration, { unit: 'ns' }),
      numbers('Waiting', of.waiting_ns, duration, { unit: 'ns' }),
      numbers('Moving', of.moving_ns, duration, { unit: 'ns' }),
    ],
  });
}

/** A group has the name of its host; of several hosts that of the first, and how many others. */
function isOfHost(label: string, host: string): boolean {
  return label.startsWith(host) && /^( and [\d,]+ other hosts?)?$/.test(label.slice(host.length));
}

/** Rows that the address asks for: a row, or the row of a process. */
function markedRows(report: Report, view: View, page: LatenessPage): Set<number> {
  const row = numberOf(view.state, 'row');
  if (row !== null && row < page.rows.length) return new Set([row]);
  const rank = numberOf(view.state, 'rank');
  if (rank === null) return new Set();
  const own = page.rows.findIndex((entry) => entry.who === rank);
  if (own >= 0) return new Set([own]);
  const host = report.who.host[rank];
  const members = host === undefined ? undefined : report.hosts[host]?.name;
  const group = page.rows.findIndex((entry) => entry.who === null && members !== undefined && isOfHost(entry.label, members));
  return group >= 0 ? new Set([group]) : new Set();
}

function draw(view: View): Child[] {
  const { report } = view;
  if (isMissing(report.lateness)) return [missing(report.lateness.missing)];
  const page = report.lateness;
  const wanted = view.state.values['measure'];
  const measure = MEASURES.find(([key]) => key === wanted)?.[0] ?? 'late';
  const order = view.state.values['order'] === 'worst' ? 'worst' : 'rank';
  const many = page.rows.length > 32;
  const readable = !many || (view.state.values['fit'] === 'rows' && !view.printing);
  const rowHeight = readable ? (page.rows.length <= 16 ? 24 : 16) : Math.max(1.6, (view.printing ? 480 : 520) / page.rows.length);
  const rows = ordered(page, order, measure);
  const full = Math.max(largest(page, measure), SMALLEST_FULL_NS);
  const selected = cellOf(view, page);
  const marked = markedRows(report, view, page);
  const columns = page.columns.count;
  const window = windowOf(view, page);
  const zoomed = window.to - window.from < columns;
  const stall = window.to === columns ? stallOf(report) : null;
  const groups = page.rows.some((row) => row.who === null);
  const asked = numberOf(view.state, 'rank');
  const shared = asked !== null && page.rows[[...marked][0] ?? -1]?.who === null ? asked : null;

  const named = accused(report);
  const left = labelWidth(page.rows.map((row) => markedLabel(row.label, true, row.aligned)), WIDEST_LABEL);
  const at = (x: number, y: number): Cell | null => {
    const line = Math.floor((y - HEAD - EDGE + surface.element.scrollTop) / rowHeight);
    const column = columnAt(x);
    const row = rows[line];
    return y < HEAD || row === undefined || column < window.from || column >= window.to ? null : { row, column };
  };
  const columnAt = (x: number): number => window.from + Math.floor(((x - left) / (rightOf(surface.width(), stall) - left)) * (window.to - window.from));
  const isStalled = (x: number): boolean => stall !== null && x >= surface.width() - RIGHT - stallWidth(surface.width());
  const pick = (cell: Cell): void => change(view, { cell: `${cell.row}.${cell.column}` });
  const surface = canvas({
    label: `Heat map of ${plural(page.rows.length, 'row')} over ${plural(columns, 'column')} of time: ${SAYS[measure]}. Arrow keys move over cells, plus and minus zoom; the same numbers are in the table.`,
    contentHeight: HEAD + 2 * EDGE + rows.length * rowHeight,
    maxHeight: 580,
    printing: view.printing,
    focusKey: 'heat',
    draw: (frame) => drawHeat({ report, page, rows, measure, full, rowHeight, selected, marked, named, left, window, stall }, frame),
    onMove: (x, y, event) => {
      const cell = at(x, y);
      const row = cell ? page.rows[cell.row] : undefined;
      if (stall && isStalled(x)) showTip(event.clientX, event.clientY, h('strong', {}, stall.title), h('em', {}, `waited for ${duration(stall.length_ns)}, until the record ends${stall.operation === null ? '' : '; click for its waterfall'}`));
      else if (!cell || !row) hideTip();
      else showTip(event.clientX, event.clientY, hintFacts(...hint(page, row, cell.column)), h('em', {}, 'Click for its worst operations'));
    },
    onPick: (x, y) => {
      const cell = at(x, y);
      if (stall && isStalled(x)) {
        if (stall.operation !== null) go(addressOf('operations', { op: stall.operation }));
      }
      else if (cell) pick(cell);
    },
    onDrag: (fromX, toX) => {
      const [from, to] = [Math.max(window.from, columnAt(fromX)), Math.min(window.to, columnAt(toX) + 1)];
      if (from < to) change(view, { span: `${from}~${to}` });
    },
    onKey: (event) => {
      const factor = event.key === '+' || event.key === '=' ? 0.5 : event.key === '-' ? 2 : 0;
      if (factor > 0) {
        const middle = selected ? selected.column + 0.5 : (window.from + window.to) / 2;
        const half = Math.max(1, ((window.to - window.from) / 2) * factor);
        const [from, to] = [Math.max(0, Math.floor(middle - half)), Math.min(columns, Math.ceil(middle + half))];
        change(view, { span: to - from < columns ? `${from}~${to}` : null });
        return true;
      }
      const step: Record<string, [number, number]> = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] };
      const by = step[event.key];
      if (!by) return false;
      const line = selected ? rows.indexOf(selected.row) : 0;
      const next = selected ? Math.min(rows.length - 1, Math.max(0, line + by[0])) : 0;
      const column = selected ? Math.min(window.to - 1, Math.max(window.from, selected.column + by[1])) : window.from;
      const row = rows[next];
      if (row === undefined) return false;
      pick({ row, column });
      const [title, pairs] = hint(page, page.rows[row] as LatenessRow, column);
      announce(`${title}: ${pairs.map(([key, value]) => `${key} ${value}`).join(', ')}`);
      return true;
    },
  });
  view.later(() => {
    surface.redraw();
    const shown = selected?.row ?? [...marked][0];
    if (shown !== undefined && readable) {
      const line = rows.indexOf(shown);
      surface.reveal(line * rowHeight, HEAD + 2 * EDGE + (line + 1) * rowHeight);
    }
    // What the table below has picked; after the page stands where it stood.
    if (view.turned && marked.size > 0) requestAnimationFrame(() => surface.element.scrollIntoView({ block: 'nearest' }));
  });

  const times = page.times === 'gpu' ? 'Arrivals from GPU times' : page.times === 'host' ? 'Arrivals from host launches: a host runs ahead of its GPU' : 'Arrivals from GPU times where there are any, else from host launches';
  return [
    figure(view, 'heat', `Ranks × time: ${SAYS[measure]}`,
      [
        choices(view, 'measure', 'Show', MEASURES, measure),
        choices(view, 'order', 'Order', [['rank', 'By rank'], ['worst', 'Worst first']], order),
        zoomed ? h('button', { type: 'button', 'data-focus': 'span', onclick: () => change(view, { span: null }) }, 'Whole run') : null,
        many ? choices(view, 'fit', 'Rows', [['all', 'All in view'], ['rows', 'Readable']], readable ? 'rows' : 'all') : null,
      ],
      [surface.element, legend(full, stall)],
      surface.image,
      () => totals(view, page),
      [
        `${count(page.compared)} operations compared, each counted once. ${times}. A column is ${duration(page.columns.width_ns)}.`,
        view.printing ? null : ' Drag over the map to zoom, + and − too.',
        stall ? ` Right of the break, on a scale of its own: ${plural(stall.waiting.size, 'rank')} waiting until the record ends, the longest ${duration(stall.length_ns)} in ${stall.title}.` : null,
        page.marks.length > 1 ? ` Ticks on the upper edge mark the start of ${count(page.marks.length)} steps.` : null,
        shared === null ? null : ` ${whoName(report, shared)} has no row of its own: it is in that of ${name(page.rows[[...marked][0] as number]?.label)}.`,
        groups ? ' A row of many ranks shows its worst rank; for own lateness, its median one.' : null,
        page.rows.some((row) => isNamed(row, named)) ? ' ▸ marks ranks named by a finding.' : null,
        page.rows.some((row) => !row.aligned) ? ' * clock not aligned: drawn from its own first record.' : null,
      ]),
    selected ? cellPanel(view, page, selected, measure) : null,
    linksFigure(view, page, { left, rightOf: (width) => rightOf(width, stall), ...window }),
    panel('By rank, over the whole run', totals(view, page)),
    notes(page.notes),
  ];
}

export const lateness: Page = { id: 'lateness', title: 'Ranks × time', details: ['cell', 'row', 'rank', 'span'], draw };
