// SPDX-License-Identifier: Apache-2.0
// How the run went, at a glance: steps, communication that is not hidden, bandwidth, the latest rank; each leads to its page.
import { canvas } from '../canvas';
import { known, type LatenessPage, type Report, type SplitAverage, type StepsPage } from '../data';
import { h, type Child } from '../dom';
import { bytes, count, duration, name, percent, rate } from '../format';
import { css, heat } from '../theme';
import { facts, link, panel, whoName, type View } from '../view';
import { CURVE, largest, valuesOf } from './lateness';
import { stallOf } from './stall';

const MAP_HEIGHT = 96;
const FULL_AT_LEAST_NS = 1e6;

function sum(rows: readonly SplitAverage[], read: (row: SplitAverage) => number | null): number {
  return rows.reduce((all, row) => all + (read(row) ?? 0) * row.steps, 0);
}

/** Without all kernels, communication beside which nothing may compute is only known to be no more than all of it. */
function exposedText(page: StepsPage): string | null {
  const measured = known(page.split)?.average.filter((row) => row.exposed_ns !== null) ?? [];
  const length = sum(measured, (row) => row.length_ns);
  if (length > 0) return percent(sum(measured, (row) => row.exposed_ns) / length);
  const bound = page.figures.exposed_at_most_p50_ns;
  return bound === null ? null : `at most ${duration(bound)} of a step (median)`;
}

function stepFacts(report: Report): (readonly [string, Child])[] {
  const page = known(report.steps);
  if (!page) return [];
  const exposed = exposedText(page);
  const times: readonly (readonly [string, string | null])[] = [
    ['Step, median', page.figures.p50_ns === null ? null : duration(page.figures.p50_ns)], ['Step, p99', page.figures.p99_ns === null ? null : duration(page.figures.p99_ns)],
    ['Exposed communication', exposed],
  ];
  return times.flatMap(([title, text]) => (text === null ? [] : [[title, link(text, 'steps')] as const]));
}

function bandwidthFacts(report: Report): (readonly [string, Child])[] {
  const rates = (known(report.bandwidth)?.rates ?? []).filter((row) => row.busbw_gbps !== null && row.busbw_gbps > 0 && !row.pairs);
  const moved = (row: (typeof rates)[number]): number => row.ops * row.size_from_bytes;
  const most = [...rates].sort((a, b) => moved(b) - moved(a))[0];
  if (!most || most.busbw_gbps === null) return [];
  const share = most.ceiling_gbps ? `, ${percent(most.busbw_gbps / most.ceiling_gbps)} of the ceiling` : '';
  return [[`${name(most.func, 24)}, ${bytes(most.size_from_bytes)}+`, link(`${rate(most.busbw_gbps)}${share}`, 'bandwidth', { comm: most.comm })]];
}

function latest(report: Report, page: LatenessPage | null): (readonly [string, Child])[] {
  const late = page?.totals.late_p99_ns ?? [];
  const worst = late.reduce<number>((best, ns, who) => ((ns ?? -1) > (late[best] ?? -1) ? who : best), 0);
  if (late[worst] == null) return [];
  return [['Latest rank, p99', link(`${whoName(report, worst)}: ${duration(late[worst])}`, 'lateness', { rank: worst })]];
}

function map(view: View, page: LatenessPage): HTMLElement {
  const full = Math.max(largest(page, 'late'), FULL_AT_LEAST_NS);
  const surface = canvas({
    label: 'Small heat map of ranks by time: how late each arrived; the page Ranks × time has it large', contentHeight: MAP_HEIGHT, maxHeight: MAP_HEIGHT, printing: view.printing,
    draw: ({ g, width, height }) => {
      const [wide, tall] = [width / page.columns.count, height / page.rows.length];
      page.rows.forEach((row, line) => valuesOf(row, 'late').forEach((value, column) => {
        if (value === null) return;
        g.fillStyle = css(heat((Math.max(0, value) / full) ** CURVE));
        g.fillRect(column * wide, line * tall, wide + 0.5, tall + 0.5);
      }));
    },
  });
  view.later(() => surface.redraw());
  return h('a', { class: 'small-map', href: '#lateness', 'aria-label': 'Ranks × time', title: 'Ranks × time' }, surface.element,
    h('span', { class: 'quiet' }, `Ranks by time: the strongest colour is ${duration(full)} late`));
}

export function glance(view: View): Child {
  const { report } = view;
  const lateness = known(report.lateness);
  const pairs = [...stepFacts(report), ...bandwidthFacts(report), ...latest(report, lateness), ...(lateness ? [['Operations compared, each counted once', count(lateness.compared)] as const] : [])];
  if (pairs.length === 0) return null;
  return panel('At a glance', facts(pairs), lateness && lateness.rows.length > 0 && lateness.columns.count > 1 && stallOf(report) === null ? map(view, lateness) : null);
}
