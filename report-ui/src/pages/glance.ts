// SPDX-License-Identifier: Apache-2.0
// How the run went, at a glance: steps, communication that is not hidden, bandwidth, the latest rank; each leads to its page.
import { canvas } from '../canvas';
import { known, type LatenessPage, type Report, type SplitAverage } from '../data';
import { h, type Child } from '../dom';
import { bytes, count, duration, name, percent, rate } from '../format';
import { css, heat } from '../theme';
import { facts, link, panel, type View } from '../view';
import { CURVE, largest, valuesOf } from './lateness';
import { stallOf } from './stall';

const MAP_HEIGHT = 96;
const FULL_AT_LEAST_NS = 1e6;

/** By the nearest rank; null of nothing. */
function quantile(values: readonly number[], share: number): number | null {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.ceil(share * sorted.length) - 1)] ?? null;
}

function sum(rows: readonly SplitAverage[], read: (row: SplitAverage) => number | null): number {
  return rows.reduce((all, row) => all + (read(row) ?? 0) * row.steps, 0);
}

function stepFacts(report: Report): (readonly [string, Child])[] {
  const page = known(report.steps);
  if (!page) return [];
  // Of a list of several steps an entry, each counts as often as it has steps.
  const lengths = page.list.length_ns.flatMap((length, at) => (length === null ? [] : [length / Math.max(1, page.list.steps[at] ?? 1)]));
  if (lengths.length === 0) return [];
  const out: [string, Child][] = [['Step, median', link(duration(quantile(lengths, 0.5)), 'steps')]];
  if (lengths.length >= 10) out.push(['Step, p99', link(duration(quantile(lengths, 0.99)), 'steps')]);
  const split = known(page.split);
  const measured = split?.average.filter((row) => row.exposed_ns !== null) ?? [];
  const length = sum(measured, (row) => row.length_ns);
  if (length > 0) out.push(['Exposed communication', link(percent(sum(measured, (row) => row.exposed_ns) / length), 'steps')]);
  return out;
}

function bandwidthFacts(report: Report): (readonly [string, Child])[] {
  const rates = (known(report.bandwidth)?.rates ?? []).filter((row) => row.busbw_gbps !== null && row.busbw_gbps > 0 && !row.pairs);
  const moved = (row: (typeof rates)[number]): number => row.ops * row.size_from_bytes;
  const most = [...rates].sort((a, b) => moved(b) - moved(a))[0];
  if (!most || most.busbw_gbps === null) return [];
  const share = most.ceiling_gbps ? `, ${percent(most.busbw_gbps / most.ceiling_gbps)} of the ceiling` : '';
  return [[`${name(most.func, 24)}, ${bytes(most.size_from_bytes)}+`, link(`${rate(most.busbw_gbps)}${share}`, 'bandwidth', { comm: most.comm })]];
}

function latest(page: LatenessPage | null): (readonly [string, Child])[] {
  const rows = page?.rows.filter((row) => row.total.late_p99_ns !== null) ?? [];
  const worst = rows.reduce((best, row) => ((row.total.late_p99_ns ?? 0) > (best.total.late_p99_ns ?? 0) ? row : best), rows[0] as (typeof rows)[number]);
  if (!page || !worst) return [];
  return [['Latest rank, p99', link(`${name(worst.label, 40)}: ${duration(worst.total.late_p99_ns)}`, 'lateness', { row: page.rows.indexOf(worst), rank: worst.who })]];
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
  return h('a', { class: 'small-map', href: '#lateness', 'aria-label': 'Ranks × time', title: `Ranks × time: dark is ${duration(full)} late` }, surface.element);
}

export function glance(view: View): Child {
  const { report } = view;
  const lateness = known(report.lateness);
  const pairs = [...stepFacts(report), ...bandwidthFacts(report), ...latest(lateness), ...(lateness ? [['Operations compared, each counted once', count(lateness.compared)] as const] : [])];
  if (pairs.length === 0) return null;
  return panel('At a glance', facts(pairs), lateness && lateness.rows.length > 0 && lateness.columns.count > 1 && stallOf(report) === null ? map(view, lateness) : null);
}
