// SPDX-License-Identifier: Apache-2.0
// Who waits for what between which two: a matrix of source by target.
import { canvas, fit, type Frame } from '../canvas';
import { isMissing, type NetworkPage, type Pair, type Report } from '../data';
import { announce, facts as hintFacts, h, hideTip, showTip, type Child } from '../dom';
import { bytes, count, duration, name, plural, rate } from '../format';
import { numberOf } from '../state';
import { table } from '../table';
import { colour, css, heat } from '../theme';
import { change, choices, commName, facts, figure, key, keys, link, missing, notes, panel, select, type Page, type View } from '../view';

const LEFT = 108;
const HEAD = 74;
const EDGE = 5;
// Any pair can be told from no pair.
const FAINTEST = 0.2;

interface Measure { key: string; title: string; read: (pair: Pair) => number | null; show: (value: number | null) => string; lowIsBad?: boolean }

const MEASURES: readonly Measure[] = [
  { key: 'rate', title: 'Rate', read: (pair) => pair.rate_gbps, show: rate, lowIsBad: true },
  { key: 'gpu', title: 'Wait for GPU', read: (pair) => pair.gpu_wait_ns, show: duration },
  { key: 'peer', title: 'Wait for peer', read: (pair) => pair.peer_wait_ns, show: duration },
  { key: 'send', title: 'Sending', read: (pair) => pair.send_wait_ns, show: duration },
  { key: 'receive', title: 'Receiving', read: (pair) => pair.receive_wait_ns, show: duration },
  { key: 'flush', title: 'Flush', read: (pair) => pair.flush_wait_ns, show: duration },
  { key: 'bytes', title: 'Bytes', read: (pair) => pair.bytes, show: bytes },
];

function add(a: number | null, b: number | null): number | null {
  return a === null ? b : b === null ? a : a + b;
}

/** One pair for each source and target: waits and bytes are added; of rates the one of the most bytes stands. */
function merged(pairs: readonly Pair[]): Pair[] {
  const found = new Map<string, Pair>();
  for (const pair of pairs) {
    const key = `${pair.source}>${pair.target}`;
    const sum = found.get(key);
    if (!sum) {
      found.set(key, { ...pair });
      continue;
    }
    if (pair.bytes > sum.bytes && pair.rate_gbps !== null) {
      sum.rate_gbps = pair.rate_gbps;
      sum.sending_p50_ns = pair.sending_p50_ns;
      sum.sending_p99_ns = pair.sending_p99_ns;
    }
    sum.comm = sum.comm === pair.comm ? sum.comm : null;
    sum.transfers += pair.transfers;
    sum.bytes += pair.bytes;
    sum.gpu_wait_ns = add(sum.gpu_wait_ns, pair.gpu_wait_ns);
    sum.peer_wait_ns = add(sum.peer_wait_ns, pair.peer_wait_ns);
    sum.send_wait_ns = add(sum.send_wait_ns, pair.send_wait_ns);
    sum.receive_wait_ns = add(sum.receive_wait_ns, pair.receive_wait_ns);
    sum.flush_wait_ns = add(sum.flush_wait_ns, pair.flush_wait_ns);
    sum.finding = sum.finding ?? pair.finding;
  }
  return [...found.values()];
}

function labelOf(page: NetworkPage, position: number): string {
  return name(page.axis[position]?.label, 24);
}

function pairFacts(report: Report, pair: Pair): (readonly [string, string])[] {
  return [
    ['rate', rate(pair.rate_gbps)], ['moved', bytes(pair.bytes)], ['transfers', count(pair.transfers)], ['wait for GPU', duration(pair.gpu_wait_ns)], ['wait for peer', duration(pair.peer_wait_ns)],
    ['sending', duration(pair.send_wait_ns)], ['one transfer', `${duration(pair.sending_p50_ns)} (p99 ${duration(pair.sending_p99_ns)})`], ['receiving', duration(pair.receive_wait_ns)],
    ['flush', duration(pair.flush_wait_ns)], ['transport', name(pair.transport)], ['communicator', pair.comm === null ? 'several' : commName(report, pair.comm)],
  ];
}

function drawMatrix(page: NetworkPage, pairs: readonly Pair[], measure: Measure, full: number, cell: number, selected: Pair | null, frame: Frame): void {
  const { g, top, height } = frame;
  const size = page.axis.length;
  g.save();
  g.beginPath();
  // The first label is higher than a small cell.
  g.rect(0, HEAD - EDGE, frame.width, height - HEAD + EDGE);
  g.clip();
  g.strokeStyle = colour('line');
  g.lineWidth = 1;
  g.strokeRect(LEFT - 0.5, HEAD - top + 0.5, size * cell + 1, size * cell);
  for (const pair of pairs) {
    const value = measure.read(pair);
    const [x, y] = [LEFT + pair.target * cell, HEAD + pair.source * cell - top];
    if (value !== null) {
      g.fillStyle = css(heat(FAINTEST + (1 - FAINTEST) * (measure.lowIsBad ? Math.max(0, 1 - value / full) : Math.sqrt(value / full))));
      g.fillRect(x, y, Math.max(1, cell - (cell > 6 ? 1 : 0)), Math.max(1, cell - (cell > 6 ? 1 : 0)));
    }
    if (pair.finding !== null || pair === selected) {
      g.strokeStyle = pair === selected ? colour('accent') : colour('critical');
      g.lineWidth = 2.5;
      g.strokeRect(x - 1, y - 1, cell + 1, cell + 1);
    }
  }
  const each = Math.max(1, Math.ceil(13 / cell));
  g.font = '11px system-ui, sans-serif';
  g.fillStyle = colour('ink');
  g.textAlign = 'right';
  for (let at = 0; at < size; at += each) g.fillText(fit(g, labelOf(page, at), LEFT - 10), LEFT - 6, HEAD + (at + 0.5) * cell - top);
  g.restore();
  g.clearRect(0, 0, frame.width, HEAD - EDGE);
  g.textAlign = 'left';
  g.fillStyle = colour('ink');
  for (let at = 0; at < size; at += each) {
    g.save();
    g.translate(LEFT + (at + 0.5) * cell, HEAD - 5);
    g.rotate(-Math.PI / 3.2);
    g.fillText(fit(g, labelOf(page, at), HEAD - 12), 0, 0);
    g.restore();
  }
  g.fillStyle = colour('quiet');
  g.textAlign = 'right';
  g.fillText('from ↓   to →', LEFT - 14, HEAD - 8);
}

function legend(measure: Measure, full: number): HTMLElement {
  return keys(
    key('swatch', 'nothing sent'),
    [0, 0.25, 0.5, 0.75, 1].map((part) => key('swatch', measure.show(measure.lowIsBad ? full * (1 - part) : full * part * part), css(heat(FAINTEST + (1 - FAINTEST) * part)))),
    key('swatch slow-pair', 'named by a finding'));
}

/** The pairs that stand out, beside the matrix. */
function worst(page: NetworkPage, pairs: readonly Pair[], measure: Measure): HTMLElement {
  const known = pairs.filter((pair) => measure.read(pair) !== null);
  const sign = measure.lowIsBad ? 1 : -1;
  known.sort((a, b) => sign * ((measure.read(a) ?? 0) - (measure.read(b) ?? 0)));
  const middle = known[Math.floor(known.length / 2)];
  return h('section', { class: 'side', 'aria-label': 'Pairs that stand out' },
    h('h3', {}, `${measure.lowIsBad ? 'Slowest' : 'Most'}${known.length > 10 ? `, 10 of ${count(known.length)}` : ''}`),
    h('ol', { class: 'notes' }, known.slice(0, 10).map((pair) => h('li', {},
      link(`${labelOf(page, pair.source)} → ${labelOf(page, pair.target)}`, 'network', { pair: page.pairs.findIndex((entry) => entry.source === pair.source && entry.target === pair.target), measure: measure.key }),
      ' ', h('strong', {}, measure.show(measure.read(pair))), pair.finding === null ? null : h('span', { class: 'severity critical' }, ' ▸ named')))),
    middle ? h('p', { class: 'quiet' }, `The median pair: ${measure.show(measure.read(middle))}`) : null);
}

// Of what moved less than this part of what the busiest pair moved, the rate tells of latency.
const LITTLE = 1e-3;

/** The slowest first; below them those that moved too little for their rate to say anything. */
function bySlowness(pairs: readonly Pair[]): Pair[] {
  const most = Math.max(0, ...pairs.map((pair) => pair.bytes));
  const key_of = (pair: Pair): readonly [boolean, number] => [pair.bytes < most * LITTLE, pair.rate_gbps ?? Infinity];
  return [...pairs].sort((a, b) => {
    const [[few_a, rate_a], [few_b, rate_b]] = [key_of(a), key_of(b)];
    return Number(few_a) - Number(few_b) || (rate_a === rate_b ? 0 : rate_a - rate_b);
  });
}

function pairsTable(view: View, page: NetworkPage, pairs: readonly Pair[]): HTMLElement {
  const { report } = view;
  const time = (title: string, read: (pair: Pair) => number | null) => ({ title, numeric: true, unit: 'ns', value: read, show: (pair: Pair) => duration(read(pair)) });
  return table<Pair>({
    label: 'Pairs', printing: view.printing, filter: true, rows: bySlowness(pairs),
    columns: [
      { title: 'From', value: (row) => labelOf(page, row.source), show: (row) => [row.finding === null ? null : h('span', { class: 'severity critical', title: 'named by a finding' }, '▸ '), labelOf(page, row.source)] },
      { title: 'To', value: (row) => labelOf(page, row.target) },
      { title: 'Communicator', value: (row) => (row.comm === null ? 'several' : commName(report, row.comm)) },
      { title: 'Transfers', numeric: true, value: (row) => row.transfers, show: (row) => count(row.transfers) },
      { title: 'Moved', numeric: true, unit: 'B', value: (row) => row.bytes, show: (row) => bytes(row.bytes) },
      { title: 'Rate', hint: 'of all transfers, while they were under way, per channel', numeric: true, unit: 'GB/s', value: (row) => row.rate_gbps, show: (row) => h('strong', {}, rate(row.rate_gbps)) },
      time('Wait for GPU', (row) => row.gpu_wait_ns), time('Wait for peer', (row) => row.peer_wait_ns), time('Sending', (row) => row.send_wait_ns), time('p50', (row) => row.sending_p50_ns),
      time('p99', (row) => row.sending_p99_ns), time('Receiving', (row) => row.receive_wait_ns), time('Flush', (row) => row.flush_wait_ns),
      { title: 'Transport', value: (row) => row.transport, show: (row) => name(row.transport) },
    ],
  });
}

function draw(view: View): Child[] {
  const { report } = view;
  if (isMissing(report.network)) return [missing(report.network.missing)];
  const page = report.network;
  const comms = [...new Set(page.pairs.map((pair) => pair.comm))].filter((comm): comm is number => comm !== null);
  const asked = numberOf(view.state, 'comm');
  const comm = asked !== null && comms.includes(asked) ? asked : null;
  const rows = page.pairs.filter((pair) => comm === null || pair.comm === comm);
  const pairs = merged(rows);
  const wanted = view.state.values['measure'];
  const measure = MEASURES.find((entry) => entry.key === wanted) ?? MEASURES.find((entry) => pairs.some((pair) => entry.read(pair) !== null)) ?? MEASURES[0] as Measure;
  let full = 0;
  for (const pair of pairs) full = Math.max(full, measure.read(pair) ?? 0);
  full = full || 1;
  const size = Math.max(1, page.axis.length);
  const seen = window.innerWidth - LEFT - 90;
  const room = view.printing ? 420 : Math.min(520, seen);
  const cell = Math.min(30, Math.max(view.printing ? 3 : Math.min(4, seen / size), Math.floor(room / size)));
  const pick = numberOf(view.state, 'pair');
  const chosen = pick === null ? undefined : page.pairs[pick];
  const selected = chosen ? pairs.find((pair) => pair.source === chosen.source && pair.target === chosen.target) ?? null : null;
  const places = new Map(pairs.map((pair) => [`${pair.source}>${pair.target}`, pair]));
  const at = (x: number, y: number): Pair | null => {
    const [target, source] = [Math.floor((x - LEFT) / cell), Math.floor((y - HEAD + surface.element.scrollTop) / cell)];
    return y < HEAD ? null : places.get(`${source}>${target}`) ?? null;
  };
  const positionOf = (pair: Pair): number => page.pairs.findIndex((entry) => entry.source === pair.source && entry.target === pair.target && (comm === null || entry.comm === comm));
  const surface = canvas({
    label: `Matrix of ${plural(pairs.length, 'pair')} between ${count(size)} ${page.by}s: ${measure.title}. Arrow keys move from pair to pair; the same numbers are in the table.`,
    contentHeight: HEAD + size * cell + 6,
    maxHeight: 620,
    printing: view.printing,
    focusKey: 'matrix',
    draw: (frame) => drawMatrix(page, pairs, measure, full, cell, selected, frame),
    onMove: (x, y, event) => {
      const pair = at(x, y);
      if (!pair) hideTip();
      else showTip(event.clientX, event.clientY, hintFacts(`${labelOf(page, pair.source)} → ${labelOf(page, pair.target)}`, pairFacts(report, pair)));
    },
    onPick: (x, y) => {
      const pair = at(x, y);
      if (pair) change(view, { pair: positionOf(pair) });
    },
    onKey: (event) => {
      const by = event.key === 'ArrowRight' || event.key === 'ArrowDown' ? 1 : event.key === 'ArrowLeft' || event.key === 'ArrowUp' ? -1 : 0;
      if (by === 0 || pairs.length === 0) return false;
      const next = pairs[((selected ? pairs.indexOf(selected) : -by) + by + pairs.length) % pairs.length] as Pair;
      change(view, { pair: positionOf(next) });
      announce(`${labelOf(page, next.source)} to ${labelOf(page, next.target)}: ${measure.title} ${measure.show(measure.read(next))}`);
      return true;
    },
  });
  surface.element.style.width = `${LEFT + size * cell + 60}px`;
  surface.element.style.maxWidth = '100%';
  view.later(() => surface.redraw());
  const detail = selected ? h('section', { class: 'panel detail', 'aria-label': 'Pair' },
    h('div', { class: 'panel-head' }, h('h2', {}, `${labelOf(page, selected.source)} → ${labelOf(page, selected.target)}`),
      view.printing ? null : h('button', { type: 'button', title: 'Escape', onclick: () => change(view, { pair: null }) }, 'Close')),
    facts(pairFacts(report, selected)),
    selected.finding === null ? null : h('p', {}, h('span', { class: 'severity critical' }, '▸ '), name(report.diagnosis.findings[selected.finding]?.statement, 500), ' ', link('Finding', 'verdict', { finding: selected.finding }))) : null;
  return [
    figure(view, 'matrix', `Network, ${page.by} by ${page.by}: ${measure.lowIsBad ? 'rate; the stronger the colour, the slower' : measure.title.toLowerCase()}`,
      [
        choices(view, 'measure', 'Show', MEASURES.map((entry) => [entry.key, entry.title] as const), measure.key),
        comms.length > 1 ? select(view, 'comm', 'Communicator', [['', 'all'], ...comms.map((position) => [String(position), commName(report, position)] as const)], comm === null ? '' : String(comm)) : null,
      ],
      [h('div', { class: 'beside' }, surface.element, worst(page, pairs, measure)), legend(measure, full)],
      surface.image,
      () => pairsTable(view, page, rows),
      'Waits are sums over transfers. The rate is bytes over the time in which the sender had transfers under way, per channel; waiting for the GPU or the peer is excluded.'),
    detail,
    panel('All pairs', pairsTable(view, page, rows)),
    notes([...page.notes, ...(page.omitted > 0 ? [`${plural(page.omitted, 'pair')} left out: \`lockstep summary --json\` has all.`] : [])]),
  ];
}

export const network: Page = { id: 'network', title: 'Network', details: ['pair'], draw };
