// SPDX-License-Identifier: Apache-2.0
// Hosts with their GPUs, and who sends to whom in a communicator; the pair that a finding calls slow is lit.
import { accused, isMissing, known, processText, type Edge, type Report, type TopologyComm, type TopologyPage } from '../data';
import { h, hideTip, s, showTip, facts as hintFacts, type Child } from '../dom';
import { bytes, count, duration, name, plural, rate } from '../format';
import { picture } from '../export';
import { numberOf } from '../state';
import { table } from '../table';
import { choices, commName, figure, hostOf, key, keys, link, missing, notes, panel, select, whoName, type Page, type View } from '../view';

interface Spot { x: number; y: number; host: number }

interface Plan { width: number; height: number; spots: Map<number, Spot>; boxes: { x: number; y: number; wide: number; tall: number; title: string }[]; size: number; roomy: boolean }

const WIDEST = 1040;
// Where all of a phone's width is the drawing's: what stands around it.
const AROUND = 46;
const PAD = 10;
// Of the label at a slow arc.
const WIDEST_LETTER = 8;
const TITLE = 20;
const FEW_HOSTS = 4;
// Of more hosts than these only those that matter are drawn at first.
const FOLDED_ABOVE = 16;

/** A host by its name, and the processes on it by rank. */
interface Box { name: string; who: number[] }

function boxesOf({ hosts, who }: Report): Box[] {
  const boxes = new Map<string, number[]>();
  for (const host of hosts) boxes.set(host.name, [...(boxes.get(host.name) ?? []), ...host.who]);
  return [...boxes].sort(([a], [b]) => (a < b ? -1 : 1)).map(([title, members]) => ({ name: title, who: members.sort((a, b) => (who.rank[a] ?? -1) - (who.rank[b] ?? -1)) }));
}

/** Hosts as boxes, and in each its GPUs in rows of up to eight. Few hosts stand one below the other, with room for the arcs between their GPUs. */
function plan(hosts: readonly Box[], width: number): Plan {
  const most = Math.max(1, ...hosts.map((host) => host.who.length));
  const all = hosts.length;
  const few = all <= FEW_HOSTS && most <= 8;
  const across = few ? most : all > 24 ? Math.min(most, 4) : Math.min(most, 8);
  const cell = few ? Math.min(150, (width - 2 * PAD) / across) : all <= 8 ? 46 : all <= 32 ? 32 : 24;
  const rise = few ? 128 : cell;
  const wide = across * cell + 2 * PAD;
  const [gapX, gapY] = few ? [0, 40] : all <= 8 ? [48, 56] : [14, 18];
  const columns = few ? 1 : Math.max(1, Math.min(all, Math.floor((width + gapX) / (wide + gapX))));
  const boxes: Plan['boxes'] = [];
  const spots = new Map<number, Spot>();
  let y = 8;
  for (let start = 0; start < all; start += columns) {
    const line = hosts.slice(start, start + columns);
    const rows = Math.max(1, ...line.map((host) => Math.ceil(host.who.length / across)));
    const tall = TITLE + rows * rise + PAD;
    line.forEach((host, index) => {
      const x = (width - (Math.min(columns, all) * (wide + gapX) - gapX)) / 2 + index * (wide + gapX);
      boxes.push({ x, y, wide, tall, title: host.name });
      host.who.forEach((who, at) => {
        spots.set(who, { x: x + PAD + (at % across) * cell + cell / 2, y: y + TITLE + Math.floor(at / across) * rise + rise / 2, host: start + index });
      });
    });
    y += tall + gapY;
  }
  return { width, height: y - gapY + 8, spots, boxes, size: few ? Math.min(46, cell * 0.8) : cell, roomy: few };
}

/** Whether an edge is one of a communicator, as far as the data shows. */
function isOf(edge: Edge, comm: TopologyComm | undefined): boolean {
  return comm === undefined || edge.comm === comm.comm || (edge.comm === null && comm.members.includes(edge.from) && comm.members.includes(edge.to));
}

interface Line { from: number; to: number; edge: Edge | null }

/** The edges of the choice: of a ring or tree its neighbours, else all that moved something. */
function lines(page: TopologyPage, comm: TopologyComm | undefined, way: string, finding: number | null): Line[] {
  const edges = page.edges.filter((edge) => isOf(edge, comm) || (finding !== null && edge.slow === finding));
  const between = new Map(edges.map((edge) => [`${edge.from}>${edge.to}`, edge]));
  const [kind, number] = way.split(':');
  const member = (rank: number | undefined | null): number | null => (rank === undefined || rank === null ? null : comm?.members[rank] ?? null);
  const out: Line[] = [];
  const add = (from: number | null, to: number | null): void => {
    if (from !== null && to !== null) out.push({ from, to, edge: between.get(`${from}>${to}`) ?? null });
  };
  if (comm && kind === 'ring') {
    const order = comm.rings[Number(number)]?.order ?? [];
    order.forEach((rank, at) => add(member(rank), member(order[(at + 1) % order.length])));
  } else if (comm && kind === 'tree') {
    comm.trees[Number(number)]?.up.forEach((up, rank) => add(member(rank), member(up)));
  } else {
    // Of a pair that several edges tell of, the one of the communicator is drawn.
    const drawn = new Set<string>();
    for (const edge of [...edges].sort((a, b) => Number(b.comm === comm?.comm) - Number(a.comm === comm?.comm))) {
      const key = `${edge.from}>${edge.to}`;
      if (!drawn.has(key)) out.push({ from: edge.from, to: edge.to, edge });
      drawn.add(key);
    }
    return out;
  }
  for (const edge of edges) if (edge.slow !== null && !out.some((line) => line.from === edge.from && line.to === edge.to && line.edge?.slow != null)) out.push({ from: edge.from, to: edge.to, edge });
  return out;
}

const TRANSPORTS: Record<string, string> = { P2P: 'p2p', SHM: 'shm', NET: 'net' };

/** From rim to rim, bent to one side, so that both ways between two can be told apart; and the middle of it. */
function path(a: Spot, b: Spot, size: number): { d: string; x: number; y: number } {
  const [dx, dy] = [b.x - a.x, b.y - a.y];
  const length = Math.max(1, Math.hypot(dx, dy));
  const [ux, uy] = [dx / length, dy / length];
  const near = length < size * 2.6;
  const bend = a.y === b.y ? (near ? size * 0.3 : size * 0.75 + Math.min(size, length * 0.05)) : Math.min(size, length * 0.1);
  const [cx, cy] = [(a.x + b.x) / 2 + uy * bend, (a.y + b.y) / 2 - ux * bend];
  const rim = (spot: Spot): [number, number] => {
    const [vx, vy] = [cx - spot.x, cy - spot.y];
    const far = Math.max(Math.abs(vx), Math.abs(vy), 1);
    return [spot.x + (vx / far) * size * 0.42, spot.y + (vy / far) * size * 0.42];
  };
  const [[x1, y1], [x2, y2]] = [rim(a), rim(b)];
  return { d: `M${x1.toFixed(1)} ${y1.toFixed(1)}Q${cx.toFixed(1)} ${cy.toFixed(1)} ${x2.toFixed(1)} ${y2.toFixed(1)}`, x: (x1 + 2 * cx + x2) / 4, y: (y1 + 2 * cy + y2) / 4 };
}

function edgeFacts(report: Report, edge: Edge): (readonly [string, string])[] {
  const pairs: (readonly [string, string])[] = [['communicator', commName(report, edge.comm)], ['transport', name(edge.transport)]];
  if (edge.via !== null) pairs.push(['via', name(edge.via)]);
  if (edge.gdr !== null) pairs.push(['GPUDirect RDMA', edge.gdr ? 'yes' : 'no']);
  if (edge.channels !== null) pairs.push(['channels', count(edge.channels)]);
  if (edge.bytes !== null) pairs.push(['moved', bytes(edge.bytes)]);
  if (edge.rate_gbps !== null) pairs.push(['rate', rate(edge.rate_gbps)]);
  if (edge.wait_ns !== null) pairs.push(['waits', duration(edge.wait_ns)]);
  if (edge.slow !== null) pairs.push(['slow', name(report.diagnosis.findings[edge.slow]?.statement ?? 'named by a finding', 160)]);
  return pairs;
}

function drawing(view: View, hosts: readonly Box[], shown: readonly Line[], members: ReadonlySet<number> | null, finding: number | null): SVGSVGElement {
  const { report } = view;
  const layout = plan(hosts, view.printing ? WIDEST : Math.min(WIDEST, window.innerWidth - AROUND));
  const busy = shown.length > 300;
  const root = s('svg', { viewBox: `0 0 ${layout.width} ${layout.height}`, class: 'topology', role: 'img', 'aria-label': `${plural(hosts.length, 'host')} and ${plural(shown.length, 'connection')}; the same is in the table below` });
  root.appendChild(s('defs', {}, ['p2p', 'shm', 'net', 'other', 'slow'].map((kind) => s('marker', { id: `arrow-${kind}`, viewBox: '0 0 8 8', refX: 7, refY: 4, markerWidth: kind === 'slow' ? 14 : 8, markerHeight: kind === 'slow' ? 14 : 8, markerUnits: 'userSpaceOnUse', orient: 'auto' },
    s('path', { d: 'M0 0L8 4L0 8z', class: `arrow ${kind}` })))));
  for (const box of layout.boxes) {
    root.appendChild(s('rect', { x: box.x, y: box.y, width: box.wide, height: box.tall, rx: 5, class: 'host-box' }));
  }
  const tipOf = (edge: Edge) => (event: Event): void => {
    const { clientX, clientY } = event as PointerEvent;
    showTip(clientX, clientY, hintFacts(`${whoName(report, edge.from)} → ${whoName(report, edge.to)}`, edgeFacts(report, edge)));
  };
  const ordered = [...shown].sort((a, b) => Number(a.edge?.slow != null) - Number(b.edge?.slow != null));
  for (const line of ordered) {
    const [a, b] = [layout.spots.get(line.from), layout.spots.get(line.to)];
    if (!a || !b) continue;
    const slow = line.edge?.slow != null;
    const kind = TRANSPORTS[line.edge?.transport ?? ''] ?? 'other';
    const { d, x, y } = path(a, b, layout.size);
    root.appendChild(s('path', { d, class: `edge ${kind} ${slow ? 'slow' : ''} ${busy && !slow ? 'faint' : ''}`, 'marker-end': busy && !slow ? null : `url(#arrow-${slow ? 'slow' : kind})`, 'data-reveal': line.edge !== null && line.edge.slow !== null && line.edge.slow === finding ? '' : null, 'stroke-width': slow ? 4 : Math.min(3, 1 + Math.log2(line.edge?.channels ?? 1) / 3) }));
    if (line.edge && !view.printing) root.appendChild(s('path', { d, class: 'edge-hit', onpointermove: tipOf(line.edge), onpointerleave: hideTip }));
    if (slow && layout.roomy && line.edge?.rate_gbps != null) {
      const text = `slow: ${rate(line.edge.rate_gbps)}`;
      const wide = text.length * WIDEST_LETTER;
      const right = x + 10 + wide <= layout.width && (x >= (a.x + b.x) / 2 || x - 10 - wide < 0);
      root.appendChild(s('text', { x: x + (right ? 10 : -10), y: y + 4, 'text-anchor': right ? 'start' : 'end', class: 'slow-label' }, text));
    }
  }
  // Above the arcs, which would strike them through.
  for (const box of layout.boxes) {
    root.appendChild(s('text', { x: box.x + PAD, y: box.y + 14, class: 'host-name' }, name(box.title, Math.max(6, Math.floor(box.wide / 8))), s('title', {}, name(box.title, 200))));
  }
  const { size } = layout;
  const named = accused(report);
  for (const [who, spot] of layout.spots) {
    const outside = members !== null && !members.has(who);
    const radius = size * 0.43;
    const text = String(report.who.rank[who] ?? '?');
    root.appendChild(s('a', { href: view.printing ? null : `#lateness?rank=${who}`, class: `gpu ${named.has(who) ? 'named' : ''} ${outside ? 'outside' : ''}`, 'aria-label': `${whoName(report, who)}${named.has(who) ? ', named by a finding' : ''}`,
      onpointermove: (event) => showTip((event as PointerEvent).clientX, (event as PointerEvent).clientY, hintFacts(whoName(report, who), gpuFacts(report, who))), onpointerleave: hideTip },
      s('rect', { x: spot.x - radius, y: spot.y - size * 0.34, width: 2 * radius, height: size * 0.68, rx: size / 10 }),
      s('text', { x: spot.x, y: spot.y + 0.5, 'font-size': Math.min(size / 2.8, (2 * radius) / (text.length * 0.66), 15).toFixed(1) }, text)));
  }
  return root;
}

function gpuFacts(report: Report, who: number): (readonly [string, string])[] {
  const page = known(report.processes);
  const [model, pci] = page ? [processText(page, 'gpu_model', who), processText(page, 'pci', who)] : [null, null];
  return [['GPU', count(report.who.device[who])], ...(model === null ? [] : [['model', name(model)] as const]), ...(pci === null ? [] : [['PCI', name(pci)] as const])];
}

function edgesTable(view: View, edges: readonly Edge[]): HTMLElement {
  const { report } = view;
  return table<Edge>({
    label: 'Connections', printing: view.printing, filter: true, rows: edges,
    columns: [
      { title: 'From', value: (row) => row.from, show: (row) => [row.slow === null ? null : h('span', { class: 'severity critical', title: 'slow, named by a finding' }, '▸ '), whoName(report, row.from)] },
      { title: 'To', value: (row) => row.to, show: (row) => whoName(report, row.to) },
      { title: 'Hosts', value: (row) => `${hostOf(report, row.from)} → ${hostOf(report, row.to)}`, show: (row) => hostOf(report, row.from) === hostOf(report, row.to) ? hostOf(report, row.from) : `${hostOf(report, row.from)} → ${hostOf(report, row.to)}` },
      { title: 'Communicator', value: (row) => commName(report, row.comm) },
      { title: 'Transport', value: (row) => row.transport, show: (row) => name(row.transport) },
      { title: 'Via', value: (row) => row.via, show: (row) => [name(row.via), row.gdr === true ? ' GDR' : null] },
      { title: 'Channels', numeric: true, value: (row) => row.channels, show: (row) => count(row.channels) },
      { title: 'Moved', numeric: true, unit: 'B', value: (row) => row.bytes, show: (row) => bytes(row.bytes) },
      { title: 'Rate', numeric: true, unit: 'GB/s', value: (row) => row.rate_gbps, show: (row) => rate(row.rate_gbps) },
      { title: 'Waits', numeric: true, unit: 'ns', value: (row) => row.wait_ns, show: (row) => duration(row.wait_ns) },
      { title: 'Known from', value: (row) => row.source },
    ],
  });
}

function draw(view: View): Child[] {
  const { report } = view;
  if (isMissing(report.topology)) return [missing(report.topology.missing)];
  const page = report.topology;
  const finding = numberOf(view.state, 'finding');
  const by_bytes = (a: Edge, b: Edge): number => (b.bytes ?? 0) - (a.bytes ?? 0);
  const lit = page.edges.filter((edge) => edge.slow !== null && (finding === null || edge.slow === finding)).sort(by_bytes)[0];
  const asked = numberOf(view.state, 'comm');
  const with_edges = new Set(page.edges.map((edge) => edge.comm));
  const comm = page.comms.find((entry) => entry.comm === asked) ?? page.comms.find((entry) => lit !== undefined && entry.comm === lit.comm)
    ?? page.comms.find((entry) => entry.rings.length > 0) ?? page.comms.find((entry) => with_edges.has(entry.comm)) ?? page.comms[0];
  const ways: (readonly [string, string])[] = [
    ...(comm?.rings.map((ring, index) => [`ring:${index}`, `Ring ${comm.rings.length > 1 ? index + 1 : ''} (${plural(ring.channels.length, 'channel')})`] as const) ?? []),
    ...(comm?.trees.map((tree, index) => [`tree:${index}`, `Tree ${comm.trees.length > 1 ? index + 1 : ''} (${plural(tree.channels.length, 'channel')})`] as const) ?? []),
    ['all', 'All connections'] as const,
  ];
  const wanted = view.state.values['way'];
  const way = ways.find(([key]) => key === wanted)?.[0] ?? ways[0]?.[0] ?? 'all';
  const shown = lines(page, comm, way, finding);
  const members = comm ? new Set(comm.members.filter((member): member is number => member !== null)) : null;
  const edges = page.edges.filter((edge) => isOf(edge, comm) || edge.slow !== null);
  // Logs and transfers may both tell of a pair; what knows the rate speaks.
  const slowOnes = page.edges.filter((edge) => edge.slow !== null && (edge.rate_gbps !== null || !page.edges.some((other) => other.slow !== null && other.rate_gbps !== null && other.from === edge.from && other.to === edge.to))).sort(by_bytes);
  const concerned = new Set([...accused(report), ...page.edges.filter((edge) => edge.slow !== null).flatMap((edge) => [edge.from, edge.to])]);
  const hosts = boxesOf(report);
  const is_asked = asked !== null && comm?.comm === asked;
  const own_hosts = new Set(is_asked ? hosts.filter((host) => host.who.some((who) => members?.has(who))) : []);
  const some_hosts = hosts.filter((host) => host.who.some((who) => concerned.has(who)) || (own_hosts.size <= FOLDED_ABOVE && own_hosts.has(host)));
  const can_fold = hosts.length > FOLDED_ABOVE && some_hosts.length > 0 && some_hosts.length < hosts.length;
  const folded = can_fold && view.state.values['hosts'] !== 'all';
  const drawn_hosts = folded ? some_hosts : hosts;
  const item = (kind: string, text: string): Child => key(`line-key ${kind}`, text);
  const drawn = drawing(view, drawn_hosts, shown, members, finding);
  return [
    figure(view, 'topology', 'Hosts, GPUs and connections',
      [
        page.comms.length > 1 ? select(view, 'comm', 'Communicator', page.comms.map((entry) => [String(entry.comm), `${name(entry.name, 40)} (${plural(report.comms[entry.comm]?.ranks ?? entry.members.length, 'rank')})`] as const), String(comm?.comm ?? '')) : null,
        ways.length > 1 ? (ways.length <= 4 ? choices(view, 'way', 'Show', ways, way) : select(view, 'way', 'Show', ways, way)) : null,
        can_fold ? choices(view, 'hosts', 'Hosts', [['named', 'Of findings'], ['all', 'All']], folded ? 'named' : 'all') : null,
      ],
      [
        slowOnes.length === 0 ? null : h('ul', { class: 'slow-ones' }, slowOnes.slice(0, 6).map((edge) => h('li', {}, h('span', { class: 'severity critical' }, '▸ slow: '), `${whoName(report, edge.from)} → ${whoName(report, edge.to)}`,
          edge.rate_gbps === null ? null : `, ${rate(edge.rate_gbps)}`, edge.comm === null ? ' ' : ` (${commName(report, edge.comm)}) `, edge.slow === null ? null : link('Finding', 'verdict', { finding: edge.slow }))),
          slowOnes.length > 6 ? h('li', {}, `${plural(slowOnes.length - 6, 'more slow connection')}: in the table below.`) : null),
        drawn,
        keys(item('p2p', 'P2P'), item('shm', 'shared memory'), item('net', 'network'), item('other', 'unknown transport'), item('slow', 'slow, named by a finding'),
          key('swatch named-gpu', 'rank named by a finding')),
      ],
      () => picture(drawn),
      () => edgesTable(view, edges),
      [folded ? `${plural(hosts.length - drawn_hosts.length, 'other host')} that no finding names ${hosts.length - drawn_hosts.length === 1 ? 'is' : 'are'} not drawn. ` : null, asked !== null && !is_asked && report.comms[asked] !== undefined ? `${commName(report, asked)} is not among the communicators listed here. ` : null, comm ? `${name(comm.name, 40)}: ${plural(report.comms[comm.comm]?.ranks ?? comm.members.length, 'rank')}${comm.nodes === null ? '' : ` on ${plural(comm.nodes, 'host')}`}. ` : null, page.rings_missing === null ? null : name(page.rings_missing, 500)]),
    panel(`Connections${comm ? ` of ${name(comm.name, 40)}` : ''}`, edges.length > 0 ? edgesTable(view, edges) : h('p', { class: 'quiet' }, 'No connections recorded.')),
    notes([...page.notes, ...(page.omitted > 0 ? [`${plural(page.omitted, 'connection')} left out: those that moved the least.`] : [])]),
  ];
}

export const topology: Page = { id: 'topology', title: 'Topology', details: ['finding'], draw };
