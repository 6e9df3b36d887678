// SPDX-License-Identifier: Apache-2.0
// Bus bandwidth against size, of what moved once all had arrived; the links' ceiling, and the operations at the slow end.
import { axis, chart, legend, tooltip, type Chart } from '../charts';
import { isMissing, type BandwidthPage, type Rate, type Report } from '../data';
import { facts as hintFacts, h, type Child } from '../dom';
import { bytes, count, digits, duration, name, percent, plural, range, rate } from '../format';
import { addressOf, go } from '../state';
import { table } from '../table';
import { colour, seriesColours } from '../theme';
import { commName, figure, link, missing, notes, operationText, panel, select, type Page, type View } from '../view';

const MOST_SERIES = 8;
const SYMBOLS = ['circle', 'rect', 'triangle', 'diamond', 'roundRect', 'pin', 'arrow', 'circle'];

interface Series { key: string; title: string; rates: Rate[] }

function functionText(row: Rate): string {
  return `${name(row.func, 24)}${row.pairs ? ' (pairs)' : ''}`;
}

function title(report: Report, row: Rate): string {
  return `${functionText(row)} · ${commName(report, row.comm)}`;
}

/** What is drawn as one line: a function on a communicator, over its sizes. */
function seriesOf(report: Report, rates: readonly Rate[]): Series[] {
  const found = new Map<string, Series>();
  for (const row of rates) {
    const key = `${row.func}/${row.comm}/${row.pairs ? 1 : 0}`;
    const series = found.get(key) ?? { key, title: title(report, row), rates: [] };
    series.rates.push(row);
    found.set(key, series);
  }
  // Where all are of one communicator, its name tells nothing apart.
  if (new Set(rates.map((row) => row.comm)).size === 1) for (const series of found.values()) series.title = functionText(series.rates[0] as Rate);
  for (const series of found.values()) series.rates.sort((a, b) => a.size_from_bytes - b.size_from_bytes);
  return [...found.values()];
}

function hint(report: Report, row: Rate): HTMLElement {
  return h('div', { class: 'chart-tip' }, hintFacts(title(report, row), [
    ['size', sizeText(row)],
    ['bus bandwidth', rate(row.busbw_gbps)],
    ['middle half', range(rate(row.busbw_low_gbps), rate(row.busbw_high_gbps))],
    ['of the run’s best', percent(row.of_best)],
    ...(row.ceiling_gbps === null ? [] : [['of the ceiling', percent(row.busbw_gbps === null ? null : row.busbw_gbps / row.ceiling_gbps)] as const]),
    ['operations', count(row.ops)],
    ['algorithm', [row.algo, row.proto].filter((part) => part !== null).map((part) => name(part)).join(' ') || '–'],
  ]));
}

function sizeText(row: Rate): string {
  return row.size_to_bytes > row.size_from_bytes + 1 ? range(bytes(row.size_from_bytes), bytes(row.size_to_bytes)) : bytes(row.size_from_bytes);
}

/** Where a range of sizes stands on the axis. */
function middle(row: Rate): number {
  return Math.max(1, Math.sqrt(Math.max(1, row.size_from_bytes) * Math.max(1, row.size_to_bytes)));
}

// Sizes further apart than this are no neighbours: nothing was measured between them, so no line joins them.
const WIDEST_STEP = 2;

/** The rates of a line, with null where it has a gap. */
function withGaps(rates: readonly Rate[]): (Rate | null)[] {
  return rates.flatMap((row, at) => {
    const before = rates[at - 1];
    return before !== undefined && row.size_from_bytes > before.size_to_bytes * WIDEST_STEP ? [null, row] : [row];
  });
}

function plot(view: View, all: readonly Series[]): Chart {
  const { report } = view;
  const colours = seriesColours();
  const drawable = (row: Rate): boolean => row.busbw_gbps !== null && row.busbw_gbps > 0;
  const series = all.filter((entry) => entry.rates.some(drawable));
  const lines = series.map((entry) => withGaps(entry.rates.filter(drawable)));
  const points = lines.map((line) => line.filter((row) => row !== null));
  const ceilings = [...new Map(points.flat().filter((row) => row.ceiling_gbps !== null).map((row) => [row.ceiling_gbps, row])).values()];
  const flat = points.flat();
  const lowest = Math.min(...flat.map((row) => row.busbw_gbps ?? 1));
  const sizes = flat.map(middle);
  const power = (value: number, round: (exponent: number) => number): number => 2 ** round(Math.log2(Math.max(1, value)));
  const outliers = points.flat().filter((row) => row.slowest !== null && row.slowest.busbw_gbps > 0 && row.slowest.busbw_gbps < 0.7 * (row.busbw_gbps ?? 0));
  const whisker = (params: unknown, api: { value: (at: number) => unknown; coord: (at: number[]) => number[]; style: (extra: object) => object; visual: (what: string) => unknown }): object => {
    const [size, low, high] = [0, 1, 2].map((at) => Number(api.value(at)));
    const [a, b] = [api.coord([size ?? 1, low ?? 1]), api.coord([size ?? 1, high ?? 1])];
    const style = { stroke: api.visual('color'), lineWidth: 1.5, opacity: 0.75 };
    const line = (x1: number, y1: number, x2: number, y2: number): object => ({ type: 'line', shape: { x1, y1, x2, y2 }, style });
    const [x, y1, y2] = [a[0] ?? 0, a[1] ?? 0, b[1] ?? 0];
    void params;
    return { type: 'group', children: [line(x, y1, x, y2), line(x - 4, y1, x + 4, y1), line(x - 4, y2, x + 4, y2)] };
  };
  const drawn = series.flatMap((entry, index) => [
    {
      type: 'line', id: `line:${index}`, name: entry.title, symbol: SYMBOLS[index % SYMBOLS.length], symbolSize: 8, color: colours[index % colours.length], z: 3,
      data: lines[index]?.map((row) => (row === null ? '-' : { value: [middle(row), row.busbw_gbps], itemStyle: row.uncertain > row.ops / 2 ? { color: colour('panel'), borderColor: colours[index % colours.length], borderWidth: 2 } : {} })),
      markLine: index > 0 || ceilings.length === 0 ? undefined : {
        symbol: 'none', silent: true, lineStyle: { color: colour('quiet'), type: 'dashed', width: 1.5 },
        data: ceilings.map((row) => ({ yAxis: row.ceiling_gbps, label: { position: 'insideStartTop', color: colour('quiet'), formatter: `ceiling of the links: ${rate(row.ceiling_gbps)}` } })),
      },
    },
    {
      type: 'custom', id: `range:${index}`, name: entry.title, color: colours[index % colours.length], renderItem: whisker, silent: true, clip: true, z: 2, tooltip: { show: false },
      data: points[index]?.filter((row) => row.busbw_low_gbps !== null && row.busbw_high_gbps !== null && row.busbw_low_gbps > 0).map((row) => [middle(row), row.busbw_low_gbps, row.busbw_high_gbps]),
      encode: { x: 0, y: [1, 2] },
    },
  ]);
  return chart({
    label: `Bus bandwidth by size of ${plural(series.length, 'series')}; the same numbers are in the table`,
    height: 430,
    printing: view.printing,
    option: {
      grid: { left: 64, right: 24, top: 44, bottom: 48 },
      legend: legend({ top: 4, data: series.map((entry) => entry.title) }),
      tooltip: tooltip((params) => {
        const { seriesId, dataIndex } = params as { seriesId: string; dataIndex: number };
        const [kind, index] = seriesId.split(':');
        const row = kind === 'slow' ? outliers[dataIndex] : lines[Number(index)]?.[dataIndex];
        if (!row) return h('div');
        if (kind === 'slow') return h('div', { class: 'chart-tip' }, hintFacts(`Slowest ${name(row.func)} of ${commName(report, row.comm)}`, [['bus bandwidth', rate(row.slowest?.busbw_gbps)], ['operation', operationText(report, row.comm, row.slowest?.op_index ?? null)], ['size', sizeText(row)]]));
        return hint(report, row);
      }, { trigger: 'item' }),
      xAxis: axis({ type: 'log', logBase: 2, name: 'size', nameLocation: 'middle', nameGap: 28, axisLabel: { color: colour('quiet'), hideOverlap: true, formatter: (value: number) => bytes(value).replace('.00 ', ' ').replace('.0 ', ' ') }, min: power(Math.min(...sizes) / 1.5, Math.floor), max: power(Math.max(...sizes) * 1.5, Math.ceil), splitNumber: 8 }),
      yAxis: axis({ type: 'log', name: 'bus bandwidth, GB/s', nameLocation: 'middle', nameGap: 46, min: 10 ** Math.floor(Math.log10(Math.max(1e-6, lowest))), axisLabel: { color: colour('quiet'), formatter: (value: number) => (value >= 1000 ? digits(value) : String(Number(value.toPrecision(3)))) } }),
      series: [
        ...drawn,
        { type: 'scatter', id: 'slow:0', name: 'slowest operations', symbol: 'triangle', symbolRotate: 180, symbolSize: 10, color: colour('critical'), z: 4, data: outliers.map((row) => [middle(row), row.slowest?.busbw_gbps ?? 1]) },
      ],
    },
    onPick: (_series, dataIndex, id) => {
      const operation = id.startsWith('slow') ? outliers[dataIndex]?.slowest?.operation : null;
      if (operation !== null && operation !== undefined) go(addressOf('operations', { op: operation }));
    },
  });
}

function ratesTable(view: View, rates: readonly Rate[]): HTMLElement {
  const { report } = view;
  return table<Rate>({
    label: 'Bandwidth', printing: view.printing, filter: true, rows: rates,
    columns: [
      { title: 'Operation', value: (row) => row.func, show: (row) => [row.finding === null ? null : h('span', { class: 'severity critical', title: 'slow, named by a finding' }, '▸ '), `${name(row.func)}${row.pairs ? ' (pairs)' : ''}`] },
      { title: 'Communicator', value: (row) => commName(report, row.comm) },
      { title: 'Ranks', numeric: true, value: (row) => row.ranks, show: (row) => count(row.ranks) },
      { title: 'Hosts', numeric: true, value: (row) => row.hosts, show: (row) => count(row.hosts) },
      { title: 'Size', numeric: true, unit: 'B', value: (row) => row.size_from_bytes, show: (row) => sizeText(row) },
      { title: 'Algorithm', value: (row) => [row.algo, row.proto].filter((part) => part !== null).map((part) => name(part)).join(' ') || '–' },
      { title: 'Ops', hint: 'operations', numeric: true, value: (row) => row.ops, show: (row) => count(row.ops) },
      { title: 'algbw', numeric: true, unit: 'GB/s', value: (row) => row.algbw_gbps, show: (row) => rate(row.algbw_gbps) },
      { title: 'busbw', numeric: true, unit: 'GB/s', value: (row) => row.busbw_gbps, show: (row) => h('strong', {}, rate(row.busbw_gbps)) },
      { title: 'Middle half', numeric: true, unit: 'GB/s', value: (row) => row.busbw_low_gbps, show: (row) => row.busbw_low_gbps === null ? '–' : range(rate(row.busbw_low_gbps), rate(row.busbw_high_gbps)) },
      { title: 'of best', numeric: true, value: (row) => row.of_best, show: (row) => percent(row.of_best) },
      { title: 'of ceiling', numeric: true, value: (row) => row.ceiling_gbps === null || row.busbw_gbps === null ? null : row.busbw_gbps / row.ceiling_gbps, show: (row) => percent(row.ceiling_gbps === null || row.busbw_gbps === null ? null : row.busbw_gbps / row.ceiling_gbps) },
      ...(rates.some((row) => row.uncertain > 0) ? [{ title: 'Uncertain', hint: 'operations whose time is not above its uncertainty', numeric: true, value: (row: Rate) => row.uncertain, show: (row: Rate) => count(row.uncertain) }] : []),
      { title: 'Slowest', numeric: true, unit: 'GB/s', value: (row) => row.slowest?.busbw_gbps ?? null, show: (row) => row.slowest === null ? '–' : row.slowest.operation === null ? rate(row.slowest.busbw_gbps) : link(rate(row.slowest.busbw_gbps), 'operations', { op: row.slowest.operation }) },
    ],
  });
}

function fitsPanel(view: View, page: BandwidthPage): Child {
  if (page.fits.length === 0) return null;
  const { report } = view;
  return panel('Latency and bandwidth separated: time = α + size / β', table({
    label: 'Fits', printing: view.printing, rows: page.fits, height: 260,
    columns: [
      { title: 'Operation', value: (row) => row.func, show: (row) => name(row.func) },
      { title: 'Communicator', value: (row) => commName(report, row.comm) },
      { title: 'Sizes', numeric: true, value: (row) => row.sizes, show: (row) => count(row.sizes) },
      { title: 'α (latency)', numeric: true, unit: 'ns', value: (row) => row.alpha_ns, show: (row) => `${duration(row.alpha_ns)}${row.alpha_error_ns === null ? '' : ` ± ${duration(row.alpha_error_ns)}`}` },
      { title: 'β (bandwidth)', numeric: true, unit: 'GB/s', value: (row) => row.beta_gbps, show: (row) => rate(row.beta_gbps) },
      { title: 'Range', numeric: true, unit: 'GB/s', value: (row) => row.beta_low_gbps, show: (row) => row.beta_high_gbps === null ? `${rate(row.beta_low_gbps)} – unbounded` : range(rate(row.beta_low_gbps), rate(row.beta_high_gbps)) },
    ],
  }));
}

function draw(view: View): Child[] {
  const { report } = view;
  if (isMissing(report.bandwidth)) return [missing(report.bandwidth.missing)];
  const page = report.bandwidth;
  const functions = [...new Set(page.rates.map((row) => row.func))];
  const comms = [...new Set(page.rates.map((row) => row.comm))];
  const fn = functions.includes(view.state.values['func'] ?? '') ? view.state.values['func'] : undefined;
  const asked = view.state.values['comm'];
  const comm = comms.find((position) => String(position) === asked || report.comms[position]?.name === asked);
  const rates = page.rates.filter((row) => (fn === undefined || row.func === fn) && (comm === undefined || row.comm === comm));
  const series = seriesOf(report, rates);
  const drawn = plot(view, series.slice(0, MOST_SERIES));
  const any = series.some((entry) => entry.rates.some((row) => (row.busbw_gbps ?? 0) > 0));
  if (any) view.later(drawn.draw);
  return [
    figure(view, 'rates', 'Bus bandwidth by size, once all ranks had arrived',
      [
        select(view, 'func', 'Operation', [['', 'all'], ...functions.map((text) => [text, name(text)] as const)], fn ?? ''),
        select(view, 'comm', 'Communicator', [['', 'all'], ...comms.map((position) => [String(position), commName(report, position)] as const)], comm === undefined ? '' : String(comm)),
      ],
      any ? drawn.element : h('p', { class: 'quiet' }, 'None of these has a bandwidth: their times are not above their uncertainty, or they move no bytes.'),
      any ? drawn.image : null,
      () => ratesTable(view, rates),
      [
        series.length > MOST_SERIES ? `The ${MOST_SERIES} series with the most moving time of ${count(series.length)}; choose an operation or communicator for others. ` : null,
        'Lines join neighbouring sizes. Whiskers: the middle half of the operations. Hollow: most are not above their uncertainty. ▼ the slowest operation, where it is below 0.7 of the median; click it to see why.',
      ]),
    panel('All sizes', ratesTable(view, rates)),
    fitsPanel(view, page),
    notes([...page.notes,
      ...(page.untimed > 0 ? [`${plural(page.untimed, 'operation')} of ${count(page.matched)} had no GPU times.`] : []),
      ...(page.omitted > 0 ? [`${plural(page.omitted, 'row')} left out: \`lockstep summary --json\` has all.`] : [])]),
  ];
}

export const bandwidth: Page = { id: 'bandwidth', title: 'Bandwidth', details: ['func', 'comm'], draw };
