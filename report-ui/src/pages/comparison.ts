// SPDX-License-Identifier: Apache-2.0
// Two runs beside each other: what the verdict is, and each ratio with its interval.
import type { ComparedRow, ComparedRun, ComparisonPage, Maybe } from '../data';
import { h, s, type Child } from '../dom';
import { count, digits, duration, name, plural, rate } from '../format';
import { table } from '../table';
import { facts, notes, panel, type Page, type View } from '../view';

const WIDTH = 56;
const HEIGHT = 16;
const MARKS: Record<ComparedRow['change'], string> = { worse: '▲ worse', better: '▽ better', none: 'no change', 'cannot tell': '? cannot tell' };
const STATES: Record<string, readonly [level: string, sign: string, text: string]> = {
  slower: ['critical', '▲', 'Slower'], faster: ['healthy', '✓', 'Faster'], same: ['healthy', '✓', 'Not slower'],
};

function percentText(ratio: number): string {
  const part = (ratio - 1) * 100;
  const size = Math.abs(part) < 100 ? Math.abs(part).toFixed(1) : digits(Math.abs(part));
  return size === '0.0' ? size : `${part >= 0 ? '+' : '−'}${size}`;
}

function percent(ratio: Maybe): string {
  return ratio === null ? '–' : `${percentText(ratio)} %`;
}

function interval(row: ComparedRow): string {
  return row.low === null || row.high === null ? '–' : `${percentText(row.low)} to ${percent(row.high)}`;
}

/** From how far below 1 to how far above it drawings reach: of the rows that can be told, as a logarithm. */
function reachOf(rows: readonly ComparedRow[]): number {
  const far = rows.flatMap((row) => (row.low !== null && row.high !== null && row.low > 0 ? [Math.abs(Math.log(row.low)), Math.abs(Math.log(row.high))] : []));
  return Math.min(Math.max(0.02, ...far), Math.log(4));
}

function drawing(row: ComparedRow, reach: number): Child {
  if (row.ratio === null || row.low === null || row.high === null || row.low <= 0) return '–';
  const place = (ratio: number) => Math.max(1, Math.min(WIDTH - 1, (WIDTH / 2) * (1 + Math.log(ratio) / reach)));
  const [low, middle, high] = [place(row.low), place(row.ratio), place(row.high)];
  return s('svg', { class: `interval ${row.change === 'cannot tell' ? 'none' : row.change}`, viewBox: `0 0 ${WIDTH} ${HEIGHT}`, width: WIDTH, height: HEIGHT, role: 'img', 'aria-label': interval(row) },
    s('line', { class: 'one', x1: WIDTH / 2, x2: WIDTH / 2, y1: 0, y2: HEIGHT }),
    s('line', { class: 'range', x1: low, x2: high, y1: HEIGHT / 2, y2: HEIGHT / 2 }),
    s('circle', { cx: middle, cy: HEIGHT / 2, r: 3.5 }));
}

function typical(row: ComparedRow, gbps: Maybe, ns: Maybe): string {
  return row.metric === 'busbw' ? rate(gbps) : duration(ns);
}

/** What steps are counted in, of B. */
function unitOf(page: ComparisonPage): string {
  return page.b.steps_by === 'operations' ? 'operation' : 'step';
}

/** Breaks into lines before "until" alone. */
function sinceText(row: ComparedRow, unit: string): string {
  if (row.since === null) return '';
  const { from_begin, step, until_step } = row.since;
  const from = from_begin ? 'the\u00a0start' : `${unit}\u00a0${count(step)}`;
  return until_step === null ? from : `${from} until\u00a0${from_begin ? `${unit}\u00a0` : ''}${count(until_step)}`;
}

function rowsOf(view: View, page: ComparisonPage): HTMLElement {
  const rows = page.rows.filter((row) => !row.repeats);
  const reach = reachOf(rows);
  const unit = unitOf(page);
  const since = (row: ComparedRow) => sinceText(row, unit);
  return table<ComparedRow>({
    label: 'Ratios', printing: view.printing, filter: true, rows, height: 560,
    columns: [
      { title: 'What', wraps: true, value: (row) => row.label, show: (row) => name(row.label, 80) },
      { title: 'Figure', value: (row) => row.metric },
      { title: 'Change', value: (row) => row.change, show: (row) => (row.change === 'worse' ? h('strong', { class: 'severity critical' }, MARKS.worse) : MARKS[row.change]) },
      { title: 'Since', wraps: true, hint: `the first ${unit} of B with this change`, value: since },
      { title: 'B / A', hint: 'the typical value of B divided by that of A', numeric: true, value: (row) => row.ratio, show: (row) => percent(row.ratio) },
      { title: '95 %', hint: 'the true ratio lies in it in 95 of 100 cases', value: (row) => row.low, show: interval },
      { title: 'Drawn', hint: `the interval against no change (the line); the edges are ${percent(Math.exp(-reach))} and ${percent(Math.exp(reach))}`, value: (row) => row.ratio, show: (row) => drawing(row, reach) },
      { title: 'A', numeric: true, value: (row) => row.a_gbps ?? row.a_ns, show: (row) => typical(row, row.a_gbps, row.a_ns) },
      { title: 'B', numeric: true, value: (row) => row.b_gbps ?? row.b_ns, show: (row) => typical(row, row.b_gbps, row.b_ns) },
      { title: 'Adds', hint: 'to a step of a rank; negative: saved', numeric: true, unit: 'ns', value: (row) => row.cost_ns, show: (row) => duration(row.cost_ns) },
      { title: 'Steps', hint: 'of A and of B', numeric: true, value: (row) => Math.min(row.steps_a, row.steps_b), show: (row) => `${count(row.steps_a)}/${count(row.steps_b)}` },
      ...(rows.some((row) => row.reason !== null) ? [{ title: 'Notes', value: (row: ComparedRow) => row.reason, show: (row: ComparedRow) => name(row.reason, 160) }] : []),
    ],
  });
}

function runPanel(title: string, run: ComparedRun): HTMLElement {
  return panel(title,
    facts([['Run', name(run.path, 120)], ['Compared', name(run.evidence, 80)], ['Processes', count(run.processes)], ['Steps from', run.steps_by], ['Events lost', count(run.lost_events)]]),
    notes(run.losses.map((text) => name(text, 300))));
}

/** Steps that take no longer do not make it good that something else got worse: `lockstep compare` exits with 1. */
function banner(page: ComparisonPage): HTMLElement {
  const worse = page.rows.filter((row) => !row.repeats && row.change === 'worse').length;
  const [state, sign, text] = STATES[page.verdict.state] ?? ['unsure', '?', 'Cannot tell'];
  const but = worse > 0 && state !== 'critical';
  return h('section', { class: `verdict ${but ? 'unsure' : state}`, 'aria-label': 'Verdict of the comparison' },
    h('p', { class: 'verdict-state' }, h('span', { 'aria-hidden': 'true' }, `${but ? '▲' : sign} `),
      but ? `${text}, but ${plural(worse, 'ratio')} ${worse === 1 ? 'is' : 'are'} worse` : text),
    h('h1', { class: 'long' }, name(page.verdict.headline, 2000)));
}

function draw(view: View): Child[] {
  const page = view.report.comparison;
  if (page === undefined) return [];
  return [
    banner(page),
    // Before the ratios: what they do not cover may be why they are what they are.
    page.notes.length > 0 ? panel('What does not compare', notes(page.notes.map((text) => name(text, 400)))) : null,
    panel('Ratios, worst first', rowsOf(view, page),
      h('p', { class: 'quiet' }, `B is this run. A row counts as changed if chance alone would not explain it among ${plural(page.tested, 'ratio')} and it is at least ${digits(page.least_change * 100)} %; `
        + `fewer than ${count(page.least_steps)} steps are too few to tell.${page.omitted > 0 ? ` ${plural(page.omitted, 'row')} more: lockstep compare --all.` : ''}`)),
    runPanel('A: the run to compare with', page.a),
    runPanel('B: this run', page.b),
  ];
}

export const comparison: Page = { id: 'comparison', title: 'Comparison', details: [], draw };
