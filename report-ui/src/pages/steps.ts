// SPDX-License-Identifier: Apache-2.0
// Where the time of a step goes: computing, communication that hides beside it, communication that does not, idle.
import { tickLabels, ticks } from '../canvas';
import { axis, chart, legend, tooltip } from '../charts';
import { isMissing, type Report, type SplitAverage, type SplitEntries, type StepsPage } from '../data';
import { facts as hintFacts, h, type Child } from '../dom';
import { count, duration, name, plural } from '../format';
import { addressOf, go, numberOf } from '../state';
import { table } from '../table';
import { colour } from '../theme';
import { change, figure, missing, notes, panel, select, whoChip, whoName, type Page, type View } from '../view';

interface Parts { length: number | null; computing: number | null; hidden: number | null; exposed: number | null; copying: number | null; idle: number | null }

/** The parts that add up to a step, from the top of what matters: each has a colour and a pattern. */
const STACK: readonly { key: string; title: string; read: (parts: Parts) => number | null; colour: string; pattern?: boolean }[] = [
  { key: 'computing', title: 'computing', read: (parts) => (parts.computing === null ? null : parts.computing - (parts.hidden ?? 0)), colour: 'computing' },
  { key: 'hidden', title: 'computing, communication hidden beside it', read: (parts) => parts.hidden, colour: 'hidden' },
  { key: 'exposed', title: 'exposed communication', read: (parts) => parts.exposed, colour: 'exposed', pattern: true },
  { key: 'copying', title: 'copying', read: (parts) => parts.copying, colour: 'copying' },
  { key: 'idle', title: 'idle', read: (parts) => parts.idle, colour: 'idle' },
];

function partsOf(entries: SplitEntries, at: number): Parts {
  const read = (list: (number | null)[]): number | null => list[at] ?? null;
  return { length: read(entries.length_ns), computing: read(entries.computing_ns), hidden: read(entries.hidden_ns), exposed: read(entries.exposed_ns), copying: read(entries.copying_ns), idle: read(entries.idle_ns) };
}

function partsOfAverage(row: SplitAverage): Parts {
  return { length: row.length_ns, computing: row.computing_ns, hidden: row.hidden_ns, exposed: row.exposed_ns, copying: row.copying_ns, idle: row.idle_ns };
}

const DECAL = { symbol: 'rect', dashArrayX: [1, 0], dashArrayY: [2, 4], rotation: -Math.PI / 4, color: 'rgba(0,0,0,0.35)' };

/** Where the axis ends: one length far above all others would hide them, so it is cut off. */
function topOf(lengths: readonly number[]): { top: number; cut: number[] } {
  const largest = Math.max(1, ...lengths);
  const sorted = [...lengths].sort((a, b) => a - b);
  const usual = (sorted[Math.floor(sorted.length * 0.8)] ?? largest) * 1.4;
  if (lengths.length < 5 || largest < 2 * usual) return { top: largest, cut: [] };
  const step = ticks(0, usual, 5)[1] ?? usual;
  return { top: Math.ceil(usual / step) * step, cut: lengths.flatMap((length, at) => (length > usual ? [at] : [])) };
}

function timeAxisOption(largest: number, cut: boolean): Record<string, unknown> {
  return axis({ type: 'value', ...(cut ? { max: largest } : {}), axisLabel: { color: colour('quiet'), formatter: (value: number) => (value === 0 ? '0' : tickLabels([value, value + Math.max(1, largest / 5)])[0] ?? '') } });
}

function stacked(view: View, label: string, categories: readonly string[], bars: readonly Parts[], titleOf: (at: number) => string, axisName: string, height: number, onPick?: (at: number) => void) {
  const { top, cut } = topOf(bars.map((parts) => parts.length ?? 0));
  return chart({
    label, height, printing: view.printing,
    option: {
      grid: { left: 72, right: 16, top: 40, bottom: 46 },
      legend: legend({ top: 2, data: STACK.map((part) => part.title) }),
      tooltip: tooltip((params) => {
        const at = (params as { dataIndex: number }[])[0]?.dataIndex ?? 0;
        const parts = bars[at];
        return h('div', { class: 'chart-tip' }, parts ? hintFacts(titleOf(at), [['length', duration(parts.length)], ...STACK.map((part) => [part.title, duration(part.read(parts))] as const)]) : null);
      }, { trigger: 'axis', axisPointer: { type: 'shadow' } }),
      xAxis: axis({ type: 'category', data: categories, name: axisName, nameLocation: 'middle', nameGap: 28, splitLine: { show: false } }),
      yAxis: timeAxisOption(top, cut.length > 0),
      series: STACK.map((part) => ({
        type: 'bar', id: part.key, name: part.title, stack: 'all', barCategoryGap: bars.length > 60 ? '0%' : '20%', large: false, color: colour(part.colour),
        itemStyle: part.pattern ? { decal: DECAL } : {},
        data: bars.map((parts) => part.read(parts)),
      })),
    },
    onPick: (_series, at) => onPick?.(at),
  });
}

function stepsTable(view: View, page: StepsPage): HTMLElement {
  const { report } = view;
  const { list } = page;
  return table<number>({
    label: 'Steps', printing: view.printing, rows: list.number.map((_, at) => at), filter: true,
    columns: [
      { title: 'Step', numeric: true, value: (at) => list.number[at] ?? null, show: (at) => stepText(list.number[at] ?? 0, list.steps[at] ?? 1) },
      { title: 'Start', numeric: true, unit: 'ns', value: (at) => list.begin_ns[at] ?? null, show: (at) => duration(list.begin_ns[at]) },
      { title: 'Length', numeric: true, unit: 'ns', value: (at) => list.length_ns[at] ?? null, show: (at) => duration(list.length_ns[at]) },
      { title: 'Waiting for the slowest rank', numeric: true, unit: 'ns', value: (at) => list.lost_ns[at] ?? null, show: (at) => duration(list.lost_ns[at]) },
      { title: 'Worst rank', value: (at) => list.worst[at] ?? null, show: (at) => worst(report, list.worst[at] ?? null) },
    ],
  });
}

function worst(report: Report, who: number | null): Child {
  return who === null ? 'nobody' : whoChip(report, who);
}

function stepText(first: number, steps: number): string {
  return steps > 1 ? `${count(first)}–${count(first + steps - 1)}` : count(first);
}

const NO_LENGTH = 'no length: its end is unknown';
const LABELLED_MOST = 60;

/** In the place of a bar: a step whose end nothing tells. */
function emptyBar(bars: number): Record<string, unknown> {
  const label = { show: bars <= LABELLED_MOST, formatter: NO_LENGTH, position: 'top', rotate: 90, align: 'left', verticalAlign: 'middle', color: colour('quiet'), fontSize: 11 };
  return { value: 0, label };
}

function lengths(view: View, page: StepsPage) {
  const { list } = page;
  const at = (values: (number | null)[], index: number): number => values[index] ?? 0;
  const { top, cut } = topOf(list.length_ns.map((value) => value ?? 0));
  return chart({
    label: `Lengths of ${plural(list.number.length, 'step')} and what lateness cost in each; the same numbers are in the table`,
    height: 260, printing: view.printing,
    option: {
      grid: { left: 72, right: 16, top: 40, bottom: 46 },
      legend: legend({ top: 2, data: ['step', 'waiting for the slowest rank'] }),
      tooltip: tooltip((params) => {
        const index = (params as { dataIndex: number }[])[0]?.dataIndex ?? 0;
        const who = list.worst[index] ?? null;
        return h('div', { class: 'chart-tip' }, hintFacts(`step ${stepText(at(list.number, index), at(list.steps, index))}`, [['length', list.length_ns[index] === null ? NO_LENGTH : duration(list.length_ns[index])], ['lost', duration(list.lost_ns[index])], ['worst rank', who === null ? 'nobody' : whoName(view.report, who)]]));
      }, { trigger: 'axis', axisPointer: { type: 'shadow' } }),
      xAxis: axis({ type: 'category', data: list.number.map((number, index) => stepText(number, at(list.steps, index))), name: 'step', nameLocation: 'middle', nameGap: 28, splitLine: { show: false } }),
      yAxis: timeAxisOption(top, cut.length > 0),
      series: [
        { type: 'bar', name: 'step', stack: 'all', color: colour('computing'), barCategoryGap: list.number.length > 60 ? '0%' : '20%', data: list.number.map((_, index) => (list.length_ns[index] === null ? emptyBar(list.number.length) : Math.max(0, at(list.length_ns, index) - at(list.lost_ns, index)))) },
        { type: 'bar', name: 'waiting for the slowest rank', stack: 'all', color: colour('exposed'), itemStyle: { decal: DECAL }, data: list.number.map((_, index) => Math.min(at(list.lost_ns, index), at(list.length_ns, index))) },
      ],
    },
    onPick: (_series, index) => {
      const who = list.worst[index];
      if (who !== null && who !== undefined) go(addressOf('lateness', { rank: who }));
    },
  });
}

function averages(view: View, rows: readonly SplitAverage[]): HTMLElement {
  const time = (title: string, read: (row: SplitAverage) => number | null) => ({ title, numeric: true, unit: 'ns', value: read, show: (row: SplitAverage) => duration(read(row)) });
  return table<SplitAverage>({
    label: 'Average step of each rank', printing: view.printing, filter: true, rows,
    columns: [
      { title: 'Rank', value: (row) => row.who, show: (row) => whoChip(view.report, row.who) },
      { title: 'Steps', numeric: true, value: (row) => row.steps, show: (row) => `${count(row.steps)}${row.whole ? '' : ' (incomplete)'}` },
      time('Length', (row) => row.length_ns), time('Computing', (row) => row.computing_ns), time('Hidden', (row) => row.hidden_ns), time('Exposed', (row) => row.exposed_ns),
      time('Copying', (row) => row.copying_ns), time('Idle', (row) => row.idle_ns),
    ],
  });
}

function split(view: View, page: StepsPage): Child[] {
  if (isMissing(page.split)) return [h('section', { class: 'panel missing', role: 'note' }, h('h2', {}, 'Computing, exposed and hidden'), h('p', {}, page.split.missing))];
  const { rows, average, omitted } = page.split;
  const asked = numberOf(view.state, 'rank');
  const rank = rows.findIndex((row) => row.who !== null && row.who === asked);
  const position = Math.max(0, rank >= 0 ? rank : Math.min(rows.length - 1, numberOf(view.state, 'row') ?? 0));
  const row = rows[position];
  const out: Child[] = [];
  if (row) {
    const { entries } = row;
    const all = entries.number.map((_, at) => at);
    const bars = all.map((at) => partsOf(entries, at));
    const text = (at: number): string => ((entries.number[at] ?? 0) < 0 ? 'all of its time' : stepText(entries.number[at] ?? 0, entries.steps[at] ?? 1));
    const drawn = stacked(view, `Parts of ${plural(bars.length, 'step')} of ${name(row.label)}; the same numbers are in the table`, all.map(text), bars, (at) => `${name(row.label)}, step ${text(at)}`, 'step', 320);
    if (bars.length > 0 && view.state.values['table'] !== 'split') view.later(drawn.draw);
    const time = (title: string, read: (parts: Parts) => number | null) => ({ title, numeric: true, unit: 'ns', value: (at: number) => read(bars[at] as Parts), show: (at: number) => duration(read(bars[at] as Parts)) });
    out.push(figure(view, 'split', `What the steps of ${name(row.label)} consist of`,
      rows.length > 1 ? select(view, 'row', 'Rank', rows.map((entry, at) => [String(at), name(entry.label)] as const), String(position)) : null,
      drawn.element, drawn.image,
      () => table<number>({
        label: 'Parts of steps', printing: view.printing, rows: all,
        columns: [{ title: 'Step', numeric: true, value: (at) => entries.number[at] ?? null, show: text }, time('Length', (parts) => parts.length), time('Computing', (parts) => parts.computing), time('Hidden', (parts) => parts.hidden),
          time('Exposed', (parts) => parts.exposed), time('Copying', (parts) => parts.copying), time('Idle', (parts) => parts.idle)],
      }),
      ['A communication kernel’s time includes its waiting for other ranks: the rank that all wait for has the least exposed.', cutNote(entries.length_ns, text)]));
  }
  if (average.length > 0) {
    const bars = average.map(partsOfAverage);
    const drawn = stacked(view, `Average step of ${plural(average.length, 'rank')}; the same numbers are in the table`, average.map((entry) => String(view.report.who.rank[entry.who] ?? entry.who)), bars,
      (at) => whoName(view.report, average[at]?.who ?? null), 'rank', 300, (at) => change(view, { rank: average[at]?.who ?? null, row: null }));
    if (view.state.values['table'] !== 'average') view.later(drawn.draw);
    out.push(figure(view, 'average', 'Average step of each rank', null, drawn.element, drawn.image, () => averages(view, average),
      ['Click a rank for its steps.', omitted > 0 ? ` ${plural(omitted, 'rank')} more: lockstep summary lists all.` : null]));
  }
  return out;
}

function cutNote(lengths: readonly (number | null)[], text: (at: number) => string): string | null {
  const { cut } = topOf(lengths.map((value) => value ?? 0));
  return cut.length === 0 ? null : ` Cut off above: ${cut.slice(0, 4).map((at) => `step ${text(at)} (${duration(lengths[at])})`).join(', ')}${cut.length > 4 ? ` and ${count(cut.length - 4)} more` : ''}.`;
}

const SOURCES: Record<string, string> = {
  marks: 'Steps marked by the program', period: 'Steps found from repeating operations', parts: 'Equal parts of the run, as nothing repeats',
};

function draw(view: View): Child[] {
  const { report } = view;
  if (isMissing(report.steps)) return [missing(report.steps.missing)];
  const page = report.steps;
  const drawn = lengths(view, page);
  if (view.state.values['table'] !== 'steps') view.later(drawn.draw);
  return [
    split(view, page),
    figure(view, 'steps', 'Steps', null, drawn.element, drawn.image, () => stepsTable(view, page),
      [`${SOURCES[page.source] ?? name(page.source)}${page.period_ops === null ? '' : ` (${plural(page.period_ops, 'operation')} of one rank)`}. Waiting: what the other ranks waited for the slowest rank of the step. Click a step to see that rank.`, page.list.length_ns.includes(null) ? ' The end of the last step is unknown, so it has no length.' : null, cutNote(page.list.length_ns, (at) => stepText(page.list.number[at] ?? 0, page.list.steps[at] ?? 1))]),
    panel('By step', stepsTable(view, page)),
    notes(page.notes),
  ];
}

export const steps: Page = { id: 'steps', title: 'Steps', details: ['rank', 'row'], draw };
