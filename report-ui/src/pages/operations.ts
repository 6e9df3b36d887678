// SPDX-License-Identifier: Apache-2.0
// One operation on all its ranks: called, enqueued, launched, on the GPU; waiting for the last one, and moving.
import { canvas, fit, hatch, labelWidth, markedLabel, PAPER_HEIGHT, timeAxis, type Frame } from '../canvas';
import { accused, isMissing, known, type Operation, type OperationRanks, type Report } from '../data';
import { facts as hintFacts, h, hideTip, showTip, type Child } from '../dom';
import { bytes, count, duration, name, plural, rate } from '../format';
import { numberOf } from '../state';
import { table } from '../table';
import { colour } from '../theme';
import { stallOf } from './stall';
import { change, choices, command, facts, figure, key, keys, link, missing, notes, panel, showCommand, whoChip, whoName, whoText, type Page, type View } from '../view';

const HEAD = 40;
const FOOT = 10;
const WIDEST_LABEL = 150;
const RIGHT = 14;
const ROW = 20;

const WHY: Record<string, string> = { finding: 'named by a finding', lost: 'much time lost', sample: 'sample' };
const STATE_TEXT: Record<string, string> = {
  'not called': 'has not called it', forgotten: 'no longer in its file', 'no file': 'left no file', 'not comparable': 'unknown which of its operations this is', called: 'called; nothing else known', running: 'on the GPU when its record ends',
};

interface Window { from: number; to: number }

/** What is known of one rank in the operation. */
function of(ranks: OperationRanks, index: number, accusedOnes: ReadonlySet<number> = new Set()) {
  const at = (list: (number | null)[]): number | null => list[index] ?? null;
  return {
    who: at(ranks.who), commRank: ranks.comm_rank[index] ?? index, state: ranks.state[index] ?? 'called', called: at(ranks.called_ns), enqueued: at(ranks.enqueued_ns),
    launched: at(ranks.launched_ns), start: at(ranks.gpu_start_ns), end: at(ranks.gpu_end_ns), arrival: at(ranks.arrival_ns), late: at(ranks.late_ns), waiting: at(ranks.waiting_ns),
    moving: at(ranks.moving_ns), clockError: at(ranks.clock_error_ns), gpuError: at(ranks.gpu_error_ns), gpuSource: ranks.gpu_source[index] ?? null, aligned: ranks.aligned[index] !== 0, named: accusedOnes.has(ranks.who[index] ?? -1) || (ranks.named[index] === 1 && ranks.who[index] === null),
  };
}

type Lane = ReturnType<typeof of>;

function label(report: Report, lane: Lane): string {
  return lane.who === null ? `member ${lane.commRank}` : whoName(report, lane.who);
}

/** Nobody can say how long it is. */
function isOn(operation: Operation): boolean {
  return operation.open || operation.ranks.state.includes('running');
}

/** Ranks that findings name are shown first: where any other is shown, none of them is left out. */
function mayLeaveOutNamed(operation: Operation): boolean {
  return operation.ranks.named.every((named) => named === 1);
}

/** The rank that the others waited for, as a position in `ranks`. */
function latest(operation: Operation): number | null {
  if (operation.last_arrival_ns === null) return null;
  let best: number | null = null;
  operation.ranks.arrival_ns.forEach((arrival, index) => {
    if (arrival !== null && (best === null || arrival > (operation.ranks.arrival_ns[best] ?? -Infinity))) best = index;
  });
  return operation.ranks.arrival_ns.filter((arrival) => arrival !== null).length > 1 ? best : null;
}

function orderOf(operation: Operation, wanted: string): number[] {
  const order = operation.ranks.comm_rank.map((_, index) => index);
  if (wanted !== 'late') return order;
  const key = (index: number): number => {
    const lane = of(operation.ranks, index);
    if (lane.state === 'not called' || lane.state === 'no file') return Infinity;
    return lane.arrival ?? lane.called ?? -Infinity;
  };
  return order.sort((a, b) => {
    const [x, y] = [key(a), key(b)];
    return x === y ? a - b : x < y ? 1 : -1;
  });
}

/** Everything between the first and the last known time, with a little air, and room for what is said after a bar. */
function whole(end: number, says: boolean): Window {
  const wide = Math.max(end, 1000);
  return { from: -wide * 0.015, to: wide * (says ? 1.25 : 1.015) };
}

/** Up to where there is something to draw: what still runs or waits does so until the record ends. */
function endOf(report: Report, operation: Operation): number {
  const { ranks } = operation;
  const known = [ranks.called_ns, ranks.enqueued_ns, ranks.launched_ns, ranks.gpu_start_ns, ranks.gpu_end_ns].flat().filter((value): value is number => value !== null);
  const end = operation.length_ns ?? known.reduce((most, value) => Math.max(most, value), 0);
  const length = report.run.length_ns ?? report.run.least_length_ns ?? 0;
  return isOn(operation) ? Math.max(end, length - operation.begin_ns) : end;
}

/** From shortly before the first arrival to the end: without the time in which hosts ran ahead. */
function arrivals(operation: Operation): Window | null {
  const known = operation.ranks.arrival_ns.filter((value): value is number => value !== null);
  const ends = operation.ranks.gpu_end_ns.filter((value): value is number => value !== null);
  if (known.length === 0) return null;
  const from = Math.min(...known);
  const to = Math.max(...known, ...ends);
  const air = Math.max(to - from, 1000) * 0.03;
  return { from: from - air, to: to + air };
}

function windowOf(view: View, operation: Operation): { view: Window; kind: string } {
  const match = /^(-?\d{1,15})~(-?\d{1,15})$/.exec(view.state.values['zoom'] ?? '');
  if (match) {
    const [from, to] = [Number(match[1]), Number(match[2])];
    if (to - from >= 10) return { view: { from, to }, kind: 'own' };
  }
  const close = arrivals(operation);
  if (view.state.values['zoom'] === 'arrivals' && close) return { view: close, kind: 'arrivals' };
  const says = !operation.open && operation.ranks.state.some((state, index) => state === 'called' && operation.ranks.arrival_ns[index] === null);
  return { view: whole(endOf(view.report, operation), says), kind: 'all' };
}

/** Where a text stands free beside a bar: after it, else before it; cut where neither side has the room. */
function placeBeside(g: CanvasRenderingContext2D, text: string, bar: readonly [number, number] | null, left: number, right: number): { text: string; at: number } {
  const GAP = 8;
  if (bar === null) return { text: fit(g, text, right - left - 2 * GAP, text.length), at: left + GAP };
  const [begin, end] = bar.map((edge) => Math.min(right, Math.max(left, edge))) as [number, number];
  const wide = g.measureText(text).width;
  const [before, after] = [begin - left - 2 * GAP, right - end - GAP];
  if (after >= wide || after >= before) return { text: fit(g, text, after, text.length), at: end + GAP };
  const cut = fit(g, text, before, text.length);
  return { text: cut, at: begin - GAP - g.measureText(cut).width };
}

function drawLanes(view: View, operation: Operation, order: readonly number[], window: Window, last: number | null, picked: number | null, left: number, frame: Frame): void {
  const { g, width, height, top } = frame;
  const right = width - RIGHT;
  const x = (at: number): number => left + ((at - window.from) / (window.to - window.from)) * (right - left);
  const bottom = Math.min(height - FOOT, HEAD + order.length * ROW - top);
  const ink = colour('ink');
  const arrived = operation.last_arrival_ns;
  const named = accused(view.report);
  const record_end = endOf(view.report, operation);
  const all_came = !operation.ranks.state.some((state) => state === 'not called' || state === 'no file');
  const stall = stallOf(view.report);
  const stuck = stall !== null && stall.operation !== null && known(view.report.operations)?.list[stall.operation] === operation;
  const quiet = colour('quiet');
  const moving = colour('moving');
  const waiting = hatch(g, colour('waiting-ink'), colour('waiting'), 5);
  timeAxis(g, window.from, window.to, left, right, HEAD - 6, bottom);
  const block = (from: number, to: number, y: number, tall: number, fill: string | CanvasPattern): void => {
    const [a, b] = [Math.max(left, x(from)), Math.min(right, x(to))];
    if (b < left || a > right || b < a) return;
    g.fillStyle = fill;
    g.fillRect(a, y - tall / 2, Math.max(1, b - a), tall);
  };
  g.save();
  g.beginPath();
  g.rect(0, HEAD - 4, width, bottom - HEAD + 8);
  g.clip();
  order.forEach((index, line) => {
    const y = HEAD + line * ROW - top + ROW / 2;
    if (y < HEAD - ROW || y > bottom + ROW) return;
    const lane = of(operation.ranks, index, named);
    const culprit = lane.named || index === last;
    if (index === picked || lane.named) {
      g.fillStyle = colour(index === picked ? 'picked' : 'named');
      g.fillRect(0, y - ROW / 2, width, ROW);
    }
    g.textAlign = 'right';
    g.font = `${culprit ? '600 ' : ''}12px system-ui, sans-serif`;
    g.fillStyle = lane.named ? colour('critical') : ink;
    g.fillText(fit(g, markedLabel(label(view.report, lane), lane.named, lane.aligned), left - 14, 48), left - 8, y);
    // The host's part: a thin bar from the call to what is known last of it.
    const hostEnd = Math.max(...[lane.called, lane.enqueued, lane.launched].filter((value): value is number => value !== null), -Infinity);
    if (lane.called !== null && hostEnd > -Infinity) block(lane.called, hostEnd, y, 5, colour('host'));
    const gpuFrom = lane.start;
    if (lane.launched !== null && gpuFrom !== null && gpuFrom > lane.launched) block(lane.launched, gpuFrom, y, 1.5, colour('host'));
    const still = operation.open && (lane.state === 'called' || lane.state === 'running');
    const from = gpuFrom ?? lane.arrival ?? (still ? lane.called : null);
    if (from !== null) {
      const end = lane.end ?? (still || lane.state === 'running' ? record_end : null);
      // Ranks of a clock of its own waited for the last one that it tells of.
      const came = arrived ?? (lane.arrival !== null && lane.waiting !== null ? lane.arrival + lane.waiting : null);
      const until = came === null ? null : Math.max(from, came);
      if (until !== null && (end === null || until < end)) {
        if (gpuFrom !== null || lane.waiting !== null) block(from, until, y, gpuFrom === null ? 5 : 11, waiting);
        // What a finding calls stuck moves nothing.
        if (end !== null) block(until, end, y, 11, stuck && lane.state === 'running' ? waiting : moving);
      } else if (end !== null) {
        // Where one has not come, nothing can move.
        block(from, end, y, 11, until === null && all_came ? moving : waiting);
      }
      if (still || lane.state === 'running') {
        g.textAlign = 'right';
        g.font = '11px system-ui, sans-serif';
        const text = still ? 'still waiting ▸' : 'still in it ▸';
        g.fillStyle = colour('panel');
        g.fillRect(right - g.measureText(text).width - 8, y - 7, g.measureText(text).width + 8, 14);
        g.fillStyle = ink;
        g.fillText(text, right - 2, y);
      }
      const error = Math.hypot(lane.clockError ?? 0, lane.gpuError ?? 0);
      const [a, b] = [x(from - error), x(from + error)];
      if (b - a > 3) {
        g.strokeStyle = ink;
        g.lineWidth = 1.2;
        g.beginPath();
        const [low, high] = [Math.max(left, a), Math.min(right, b)];
        g.moveTo(low, y);
        g.lineTo(high, y);
        for (const end of [a, b]) {
          if (end < left || end > right) continue;
          g.moveTo(end, y - 4);
          g.lineTo(end, y + 4);
        }
        g.stroke();
      }
    } else if (lane.state in STATE_TEXT) {
      g.font = `${lane.state === 'not called' ? '600 ' : ''}11px system-ui, sans-serif`;
      const ends = lane.called === null ? null : [x(lane.called), x(hostEnd)] as const;
      const place = placeBeside(g, STATE_TEXT[lane.state] ?? '', ends, left, right);
      g.textAlign = 'left';
      g.fillStyle = lane.state === 'called' || lane.state === 'not comparable' ? quiet : colour('critical');
      g.fillText(place.text, place.at, y);
    }
    if (lane.called !== null && x(lane.called) >= left && x(lane.called) <= right) {
      g.strokeStyle = ink;
      g.lineWidth = 1.5;
      g.beginPath();
      g.moveTo(x(lane.called), y - 6);
      g.lineTo(x(lane.called), y + 6);
      g.stroke();
    }
  });
  g.restore();
  if (arrived !== null && x(arrived) >= left && x(arrived) <= right) {
    g.strokeStyle = colour('critical');
    g.lineWidth = 1.5;
    g.setLineDash([5, 3]);
    g.beginPath();
    g.moveTo(x(arrived), 14);
    g.lineTo(x(arrived), bottom);
    g.stroke();
    g.setLineDash([]);
    const who = last === null ? '' : `: ${label(view.report, of(operation.ranks, last))}`;
    const text = `last arrival${who}`;
    g.font = '600 11px system-ui, sans-serif';
    const wide = g.measureText(text).width + 8;
    const from = Math.min(Math.max(left, x(arrived) - wide / 2), right - wide);
    g.fillStyle = colour('panel');
    g.fillRect(from, 0, wide, 14);
    g.fillStyle = colour('critical');
    g.textAlign = 'left';
    g.fillText(text, from + 4, 7);
  }
}

function pairsOf(lane: Lane): (readonly [string, string])[] {
  const pairs: [string, string][] = [];
  const add = (key: string, value: number | null, error: number | null = null): void => {
    if (value !== null) pairs.push([key, duration(value) + (error ? ` ± ${duration(error)}` : '')]);
  };
  if (lane.state !== 'done') pairs.push(['state', STATE_TEXT[lane.state] ?? name(lane.state)]);
  if (!lane.aligned) pairs.push(['clock', 'not aligned: from its host’s first call']);
  add('called', lane.called, lane.clockError);
  add('enqueued', lane.enqueued);
  add('launched', lane.launched);
  add('GPU start', lane.start, lane.gpuError);
  add('GPU end', lane.end);
  add('late', lane.late);
  add('waiting', lane.waiting);
  add('moving', lane.moving);
  if (lane.gpuSource) pairs.push(['GPU times', name(lane.gpuSource)]);
  return pairs;
}

function lanesTable(view: View, operation: Operation, picked: number | null): HTMLElement {
  const named = accused(view.report);
  const lanes = operation.ranks.comm_rank.map((_, index) => of(operation.ranks, index, named));
  const column = (title: string, read: (lane: Lane) => number | null) => ({
    title, numeric: true, unit: 'ns', value: read, show: (lane: Lane) => duration(read(lane)),
  });
  return table<Lane>({
    label: 'Ranks of the operation', printing: view.printing, filter: true, rows: lanes, height: 460,
    isPicked: (lane) => picked !== null && lane.who === picked,
    onPick: (lane) => change(view, { rank: lane.who }),
    columns: [
      { title: 'Rank', value: (lane) => lane.commRank, show: (lane) => [lane.named ? '▸ ' : null, label(view.report, lane), lane.aligned ? null : ' *'] },
      { title: 'Process', value: (lane) => whoText(view.report, lane.who) },
      { title: 'State', value: (lane) => lane.state },
      column('Called', (lane) => lane.called), column('Enqueued', (lane) => lane.enqueued), column('Launched', (lane) => lane.launched),
      column('GPU start', (lane) => lane.start), column('GPU end', (lane) => lane.end), column('Late', (lane) => lane.late),
      column('Waiting', (lane) => lane.waiting), column('Moving', (lane) => lane.moving), column('Clock ±', (lane) => lane.clockError),
    ],
  });
}

function listTable(view: View, list: readonly Operation[], current: number): HTMLElement {
  return table<Operation>({
    label: 'Operations', printing: view.printing, filter: true, rows: [...list].sort((a, b) => weight(b) - weight(a)), height: 196,
    isPicked: (row) => row === list[current],
    onPick: (row) => change(view, { op: list.indexOf(row), rank: null, zoom: null }),
    columns: [
      { title: 'Operation', value: (row) => row.title, show: (row) => name(row.title, 70) },
      { title: 'Why shown', value: (row) => row.why.map((why) => WHY[why] ?? why).join(', ') },
      { title: 'Waiting, all ranks', numeric: true, unit: 'ns', value: (row) => row.lost_ns, show: (row) => duration(row.lost_ns) },
      { title: 'Length', numeric: true, unit: 'ns', value: (row) => row.length_ns, show: (row) => (isOn(row) ? 'has not ended' : duration(row.length_ns)) },
      { title: 'Size', numeric: true, unit: 'B', value: (row) => row.size_bytes, show: (row) => bytes(row.size_bytes) },
      { title: 'Called by', numeric: true, value: (row) => row.called, show: (row) => count(row.called) },
      { title: 'Start', hint: 'since the start of the run', numeric: true, unit: 'ns', value: (row) => row.begin_ns, show: (row) => duration(row.begin_ns) },
    ],
  });
}

function legend(): HTMLElement {
  const item = (kind: string, text: string): Child => key(`swatch ${kind}`, text);
  return keys(item('called', 'called'), item('host', 'on the host, then queued (thin)'), item('waiting', 'waiting'), item('moving', 'moving data'), item('error', 'clock error'));
}

/** What a finding names comes first, then what lost the most. */
function weight(operation: Operation): number {
  return (operation.findings.length > 0 ? 1e18 : 0) + (operation.lost_ns ?? 0);
}

/** The first look: what a finding names, else what lost the most. */
function firstOf(list: readonly Operation[]): number {
  let best = 0;
  list.forEach((operation, index) => {
    if (weight(operation) > weight(list[best] as Operation)) best = index;
  });
  return best;
}

function draw(view: View): Child[] {
  const { report } = view;
  if (isMissing(report.operations)) return [missing(report.operations.missing)];
  const { list, total, notes: told } = report.operations;
  const asked = numberOf(view.state, 'op');
  const current = asked !== null && asked < list.length ? asked : firstOf(list);
  const operation = list[current];
  const choice = panel(`${plural(list.length, 'operation')} of ${count(total)}, chosen for what they show`, listTable(view, list, current), notes(total > list.length ? ['`lockstep show` lists every operation.', ...told] : told));
  if (!operation) return [choice];
  const on_paper = Math.floor((PAPER_HEIGHT - HEAD - FOOT) / ROW);
  const cut = view.printing && operation.ranks.comm_rank.length > on_paper;
  const order = orderOf(operation, cut ? 'late' : view.state.values['order'] ?? 'rank');
  const { view: window, kind } = windowOf(view, operation);
  const last = latest(operation);
  const named = accused(report);
  const rank = numberOf(view.state, 'rank');
  const pickedIndex = rank === null ? -1 : operation.ranks.who.indexOf(rank);
  const picked = pickedIndex >= 0 ? pickedIndex : null;

  const left = labelWidth(order.map((index) => {
    const lane = of(operation.ranks, index);
    return markedLabel(label(report, lane), true, lane.aligned);
  }), WIDEST_LABEL);
  const laneAt = (y: number): number | null => {
    const line = Math.floor((y - HEAD + surface.element.scrollTop) / ROW);
    return y < HEAD ? null : order[line] ?? null;
  };
  const surface = canvas({
    label: `Waterfall of ${name(operation.title, 80)} over ${plural(order.length, 'rank')}. Up and down choose a rank, plus and minus zoom; the same times are in the table.`,
    contentHeight: HEAD + order.length * ROW + FOOT,
    maxHeight: 470,
    printing: view.printing,
    focusKey: 'waterfall',
    draw: (frame) => drawLanes(view, operation, order, window, last, picked, left, frame),
    onMove: (_x, y, event) => {
      const index = laneAt(y);
      if (index === null) return hideTip();
      const lane = of(operation.ranks, index);
      showTip(event.clientX, event.clientY, hintFacts(lane.who === null ? label(report, lane) : whoText(report, lane.who), pairsOf(lane)));
    },
    onPick: (_x, y) => {
      const index = laneAt(y);
      const who = index === null ? null : operation.ranks.who[index] ?? null;
      if (who !== null) change(view, { rank: who });
    },
    onDrag: (fromX, toX) => {
      const wide = surface.width() - RIGHT - left;
      const time = (x: number): number => Math.round(window.from + ((Math.max(left, x) - left) / wide) * (window.to - window.from));
      change(view, { zoom: `${time(fromX)}~${time(toX)}` });
    },
    onKey: (event) => {
      if (event.key === 'ArrowUp' || event.key === 'ArrowDown') {
        const line = picked === null ? -1 : order.indexOf(picked);
        const next = order[Math.min(order.length - 1, Math.max(0, line + (event.key === 'ArrowUp' ? -1 : 1)))];
        if (next !== undefined) change(view, { rank: operation.ranks.who[next] ?? null });
        return true;
      }
      const factor = event.key === '+' || event.key === '=' ? 0.5 : event.key === '-' ? 2 : 0;
      const shift = event.key === 'ArrowLeft' ? -0.25 : event.key === 'ArrowRight' ? 0.25 : 0;
      if (factor === 0 && shift === 0) return false;
      const [middle, half] = [(window.from + window.to) / 2 + shift * (window.to - window.from), ((window.to - window.from) / 2) * (factor || 1)];
      if (half > 5) change(view, { zoom: `${Math.round(middle - half)}~${Math.round(middle + half)}` });
      return true;
    },
  });
  view.later(() => {
    surface.redraw();
    const focus = picked ?? order.find((index) => named.has(operation.ranks.who[index] ?? -1));
    if (focus !== undefined) surface.reveal(order.indexOf(focus) * ROW, HEAD + (order.indexOf(focus) + 1) * ROW);
  });
  const arrived = last === null ? null : operation.ranks.who[last] ?? null;
  const lane = picked === null ? null : of(operation.ranks, picked);
  const shown = showCommand(report, operation.comm, operation.op_index);
  return [
    h('section', { class: 'panel' },
      h('div', { class: 'panel-head' }, h('h2', { id: 'operation-title' }, name(operation.title, 120)),
        operation.findings.map((finding) => link(['named by ', name(report.diagnosis.findings[finding]?.id ?? 'a finding')], 'verdict', { finding }, 'chip')),
        h('span', { class: 'quiet' }, name(operation.kind, 40))),
      facts([
        ['Size', bytes(operation.size_bytes)],
        ['Elements', operation.count === null ? '–' : `${count(operation.count)} ${name(operation.datatype)}`],
        ['Algorithm', [operation.algo, operation.proto].filter((part) => part !== null).map((part) => name(part)).join(' ') || '–'],
        ['Channels', count(operation.channels)],
        ...(operation.root === null ? [] : [['Root', count(operation.root)] as const]),
        ['Called by', `${count(operation.called)} of ${count(operation.ranks.comm_rank.length + operation.omitted)} ranks`],
        ['Length', isOn(operation) ? 'has not ended' : operation.length_ns === null && !operation.ranks.aligned.every((aligned) => aligned === 1) ? 'clocks not aligned' : duration(operation.length_ns)],
        ['Waiting, all ranks', operation.open ? 'still waiting' : duration(operation.lost_ns)],
        ['Bus bandwidth', rate(operation.busbw_gbps)],
        ['Last to arrive', operation.open ? 'not all have arrived' : arrived === null ? '–' : whoChip(report, arrived)],
      ]),
      shown === null ? null : h('p', { class: 'quiet' }, 'All its events: ', command(shown))),
    figure(view, 'lanes', 'Waterfall',
      [
        choices(view, 'order', 'Order', [['rank', 'By rank'], ['late', 'Latest first']], view.state.values['order'] === 'late' ? 'late' : 'rank'),
        choices(view, 'zoom', 'Time', [['all', 'Whole'], ...(arrivals(operation) ? [['arrivals', 'Arrivals'] as const] : [])], kind),
        kind === 'own' ? h('span', { class: 'quiet' }, `${duration(window.to - window.from)} shown`) : null,
      ],
      [surface.element, legend()],
      surface.image,
      () => lanesTable(view, operation, rank),
      [
        'Times count from the first call.', operation.ranks.aligned.includes(0) ? ' * clock not aligned: times count from that host’s own first call.' : null, view.printing ? null : ' Drag over the waterfall to zoom, + and − too; click a rank for its times.',
        cut ? ` In print: the ${count(on_paper)} latest of ${plural(order.length, 'rank')}.` : null,
        operation.omitted > 0 ? ` ${plural(operation.omitted, 'rank')} not shown${mayLeaveOutNamed(operation) ? '' : ', none of which a finding names'}${shown === null ? '' : ' (the command above with --all lists them)'}` : null,
        operation.omitted > 0 && operation.rest?.late_ns ? `; of all ranks: late ${['min', 'median', 'max'].map((word, index) => `${word} ${duration(operation.rest?.late_ns?.[index])}`).join(', ')}.` : null,
      ]),
    lane ? h('section', { class: 'panel detail', 'aria-label': 'Rank' },
      h('div', { class: 'panel-head' }, h('h2', {}, `${label(report, lane)} in this operation`), h('span', { class: 'quiet' }, whoText(report, lane.who)),
        view.printing ? null : h('button', { type: 'button', title: 'Escape', onclick: () => change(view, { rank: null }) }, 'Close')),
      facts(pairsOf(lane)),
      view.printing || lane.who === null ? null : h('div', { class: 'ways' }, link('Show this rank in time', 'lateness', { rank: lane.who }, 'button'))) : null,
    choice,
  ];
}

export const operations: Page = { id: 'operations', title: 'Operations', details: ['rank', 'zoom'], draw };
