// SPDX-License-Identifier: Apache-2.0
// Counters of links and GPUs below the heat map, in its columns: errors as bars, clocks and traffic as areas.
import { canvas, fit, timeAxis, type Frame } from '../canvas';
import type { LatenessPage, LinkRow } from '../data';
import { facts as hintFacts, h, hideTip, showTip, type Child } from '../dom';
import { bytes, count, duration, name, plural, quantity, range, UNKNOWN } from '../format';
import { table } from '../table';
import { colour } from '../theme';
import { change, figure, prose, type View } from '../view';

/** Where the heat map's columns are drawn. */
export interface Placement {
  left: number;
  /** Where they end in a drawing of some width. */
  rightOf: (width: number) => number;
  /** Columns from the first to before the second. */
  from: number;
  to: number;
}

const HEAD = 26;
const SIGNS = { critical: '■', warning: '▲', note: '●' } as const;
const ROW = 36;
/** The lowest row of which the label can be read. */
const LOWEST_ROW = 20;
const PAPER = 500;
/** Below this width labels need the room of the heat map's labels. */
const NARROW = 520;

const title = (row: LinkRow): string => `${name(row.host)} ${name(row.device)} ${name(row.counter)}${row.aligned ? '' : ' *'}`;

function valueText(row: LinkRow, value: number | null | undefined): string {
  if (value === null || value === undefined) return UNKNOWN;
  if (row.kind === 'fault') return count(value);
  return quantity(value, row.kind === 'traffic' ? 'bytes/s' : row.unit);
}

function known(row: LinkRow): number[] {
  return row.values.filter((value): value is number => value !== null);
}

const lowest = (row: LinkRow): number => Math.min(...known(row));
const highest = (row: LinkRow): number => Math.max(...known(row));

function totalText(row: LinkRow): string {
  if (row.total === null) return UNKNOWN;
  if (row.kind === 'traffic') return bytes(row.total);
  return `${row.at_least ? '≥ ' : ''}+${count(row.total)}`;
}

/** Errors before the first column or after the last one, as while ranks hang. */
function outside(row: LinkRow): number {
  return row.kind === 'fault' ? (row.total ?? 0) - known(row).reduce((sum, value) => sum + value, 0) : 0;
}

/** What stands above a row: which counter, and what it did. */
function says(row: LinkRow): string {
  if (row.kind === 'fault') {
    const parts = [row.says === null ? '' : name(row.says, 80), outside(row) > 0 ? `${count(outside(row))} before or after this time` : ''].filter((text) => text !== '');
    return parts.length === 0 ? title(row) : `${title(row)}: ${parts.join('; ')}`;
  }
  if (row.kind === 'traffic') return `${title(row)}: up to ${valueText(row, highest(row))}`;
  if (row.unit === 'ratio') return `${title(row)}: ${name(row.says, 80)}`;
  return `${title(row)}: ${range(valueText(row, lowest(row)), valueText(row, highest(row)))}`;
}

function inkOf(row: LinkRow): string {
  if (row.severity !== null) return colour(row.severity);
  return row.kind === 'fault' ? colour('quiet') : colour('moving');
}

function hint(page: LatenessPage, row: LinkRow, column: number): [string, (readonly [string, string])[]] {
  const from = page.columns.begin_ns + column * page.columns.width_ns;
  const value = row.values[column] ?? null;
  const meaning = row.kind === 'fault' ? 'errors' : row.kind === 'traffic' ? 'rate' : row.unit === 'ratio' ? 'slowed' : 'lowest';
  const pairs: (readonly [string, string])[] = [
    ['time', `${duration(from)} – ${duration(from + page.columns.width_ns)}`],
    [meaning, value === null ? 'not sampled' : valueText(row, value)],
  ];
  if (row.total !== null) pairs.push(['while sampled', totalText(row)]);
  if (outside(row) > 0) pairs.push(['before or after this time', count(outside(row))]);
  if (row.says !== null) pairs.push(['means', name(row.says, 80)]);
  if (row.kind === 'fault' && row.severity === null) pairs.push(['', 'no more than healthy links have']);
  if (!row.aligned) pairs.push(['clock', 'not aligned']);
  return [title(row), pairs];
}

/** A column with errors is seen however narrow it is, and few errors beside many. */
function drawErrors(row: LinkRow, frame: Frame, place: Placement, top: number, height: number): void {
  const { g, width } = frame;
  const step = (place.rightOf(width) - place.left) / (place.to - place.from);
  const most = highest(row);
  g.fillStyle = inkOf(row);
  for (let column = place.from; column < place.to; column += 1) {
    const value = row.values[column];
    if (value === null || value === undefined || value <= 0) continue;
    const tall = Math.max(4, height * Math.sqrt(value / most));
    g.fillRect(place.left + (column - place.from) * step, top + height - tall, Math.max(2, step - (step > 4 ? 1 : 0)), tall);
  }
}

function drawArea(row: LinkRow, frame: Frame, place: Placement, top: number, height: number): void {
  const { g, width } = frame;
  const step = (place.rightOf(width) - place.left) / (place.to - place.from);
  const full = row.unit === 'ratio' ? 1 : Math.max(highest(row), 1e-9);
  const x = (column: number): number => place.left + (column - place.from) * step;
  const y = (value: number): number => top + height - Math.min(1, Math.max(0, value) / full) * (height - 1);
  g.fillStyle = g.strokeStyle = inkOf(row);
  g.lineWidth = 1.25;
  // One path for columns that follow each other: parts that touch would leave seams.
  for (let begin = place.from; begin < place.to; begin += 1) {
    let end = begin;
    g.beginPath();
    for (; end < place.to; end += 1) {
      const value = row.values[end];
      if (value === null || value === undefined) break;
      if (end === begin) g.moveTo(x(end), y(value));
      else g.lineTo(x(end), y(value));
      g.lineTo(x(end + 1), y(value));
    }
    if (end === begin) continue;
    g.stroke();
    g.lineTo(x(end), top + height);
    g.lineTo(x(begin), top + height);
    g.globalAlpha = 0.3;
    g.fill();
    g.globalAlpha = 1;
    begin = end;
  }
}

function drawRow(row: LinkRow, frame: Frame, place: Placement, top: number, rowHeight: number): void {
  const { g, width } = frame;
  const right = place.rightOf(width);
  const label = Math.min(15, rowHeight * 0.45);
  const [strip, height] = [top + label, rowHeight - label - 4];
  const step = (right - place.left) / (place.to - place.from);
  g.font = `${row.severity === null ? '' : '600 '}${rowHeight < 30 ? 9 : 11}px system-ui, sans-serif`;
  g.textAlign = 'left';
  g.fillStyle = colour('ink');
  const start = width < NARROW ? 4 : place.left;
  g.fillText(fit(g, says(row), width - start - 8, 200), start, top + label / 2);
  g.fillStyle = colour('grid');
  for (let column = place.from; column < place.to; column += 1) {
    if (row.values[column] === null || row.values[column] === undefined) continue;
    g.fillRect(place.left + (column - place.from) * step, strip, step + 0.5, height);
  }
  if (row.kind === 'fault') drawErrors(row, frame, place, strip, height);
  else drawArea(row, frame, place, strip, height);
  const sign = row.severity === null ? '' : `${SIGNS[row.severity]} `;
  const marks = row.kind === 'fault' ? [`${sign}${totalText(row)}`, sign] : [sign];
  g.textAlign = 'right';
  g.fillStyle = inkOf(row);
  g.fillText(marks.find((text) => g.measureText(text).width <= place.left - 12) ?? '', place.left - 8, strip + height / 2);
}

function asTable(view: View, rows: readonly LinkRow[]): HTMLElement {
  return table<LinkRow>({
    label: 'Counters of links and GPUs', printing: view.printing, rows,
    columns: [
      { title: 'Host', value: (row) => row.host, show: (row) => `${name(row.host)}${row.aligned ? '' : ' *'}` },
      { title: 'Device', value: (row) => row.device, show: (row) => name(row.device) },
      { title: 'Counter', value: (row) => row.counter, show: (row) => name(row.counter) },
      { title: 'Trouble', value: (row) => row.severity ?? '', show: (row) => row.severity === null ? '' : h('span', { class: `severity ${row.severity}` }, `${SIGNS[row.severity]} ${row.severity}`) },
      { title: 'Total', numeric: true, value: (row) => row.total, show: totalText },
      { title: 'Lowest', numeric: true, value: lowest, show: (row) => valueText(row, lowest(row)) },
      { title: 'Highest', numeric: true, value: highest, show: (row) => valueText(row, highest(row)) },
      { title: 'Means', wraps: true, value: (row) => row.says ?? '', show: (row) => name(row.says ?? '', 80) },
    ],
  });
}

/** Nothing where no counter has anything to say; how to get them where none were sampled. */
export function linksFigure(view: View, page: LatenessPage, place: Placement): Child {
  const { rows, omitted, hint: none } = page.links;
  if (rows.length === 0) return none === null ? null : h('p', { class: 'quiet no-counters' }, prose(none));
  const rowHeight = view.printing ? Math.max(LOWEST_ROW, Math.min(ROW, (PAPER - HEAD) / rows.length)) : ROW;
  const columnAt = (x: number): number => place.from + Math.floor(((x - place.left) / (place.rightOf(surface.width()) - place.left)) * (place.to - place.from));
  const surface = canvas({
    label: `${plural(rows.length, 'counter')} of links and GPUs over the same time as the heat map; the same numbers are in the table.`,
    contentHeight: HEAD + rows.length * rowHeight + 4,
    maxHeight: Infinity,
    printing: view.printing,
    draw: (frame) => {
      const { g, width, height, top } = frame;
      g.save();
      g.beginPath();
      g.rect(0, HEAD, width, height - HEAD);
      g.clip();
      rows.forEach((row, line) => {
        const y = HEAD + line * rowHeight - top;
        if (y + rowHeight >= HEAD && y <= height) drawRow(row, frame, place, y, rowHeight);
      });
      g.restore();
      const begin = page.columns.begin_ns + place.from * page.columns.width_ns;
      g.font = '11px system-ui, sans-serif';
      timeAxis(g, begin, begin + (place.to - place.from) * page.columns.width_ns, place.left, place.rightOf(width), HEAD - 4, HEAD);
    },
    onMove: (x, y, event) => {
      const row = y < HEAD ? undefined : rows[Math.floor((y - HEAD + surface.element.scrollTop) / rowHeight)];
      const column = columnAt(x);
      if (!row || column < place.from || column >= place.to) hideTip();
      else showTip(event.clientX, event.clientY, hintFacts(...hint(page, row, column)));
    },
    onDrag: (fromX, toX) => {
      const [from, to] = [Math.max(place.from, columnAt(fromX)), Math.min(place.to, columnAt(toX) + 1)];
      if (from < to) change(view, { span: `${from}~${to}` });
    },
  });
  view.later(surface.redraw);
  return figure(view, 'links', 'Links and GPUs × time', null, surface.element, surface.image, () => asTable(view, rows), [
    'Errors that were counted, then slowed GPUs and clocks, then traffic of ports on hosts that findings name or whose links had trouble. A sign marks what is more than healthy links and GPUs have. Blank: not sampled.',
    omitted > 0 ? [` ${plural(omitted, 'more counter')} left out: timelines and `, h('code', {}, 'trace.db'), ' have all.'] : null,
    rows.some((row) => !row.aligned) ? ' * clock not aligned with the run’s.' : null,
  ]);
}
