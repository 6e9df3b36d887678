// SPDX-License-Identifier: Apache-2.0
// Data of a report as docs/report-data.md describes them, made up: any number of ranks, any names. One rank is late, one link slow.

/** Small and repeatable. */
function random(seed) {
  let state = seed >>> 0;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
}

const range = (n) => Array.from({ length: n }, (_, i) => i);

/** Counters of two hosts: errors of a port, a GPU that was slowed down, its clock, and what a port sent. */
function links(named, columns, other) {
  const values = (of) => range(columns).map((column) => of(column / columns));
  const row = (host, device, counter, kind, unit, more) => ({ host: named('host', host), device: other ?? device, counter: other ?? counter, unit, kind, severity: null, says: null, aligned: host === 0, total: null, at_least: false, ...more });
  return {
    rows: [
      row(0, 'mlx5_3/1', 'symbol_error', 'fault', 'count', { severity: 'critical', says: 'symbols arrive damaged', total: 9000, at_least: true, values: values((part) => (part > 0.9 ? null : part > 0.5 && part < 0.7 ? 40 : 0)) }),
      row(1, 'mlx5_0/1', 'link_error_recovery', 'fault', 'count', { says: 'the link had to retrain', total: 1, values: values((part) => (part === 0.5 ? 1 : 0)) }),
      row(0, '0000:1b:00.0', 'throttle', 'gauge', 'ratio', { severity: 'warning', says: 'hardware thermal limit', values: values((part) => (part > 0.3 && part < 0.6 ? 0.75 : 0)) }),
      row(0, '0000:1b:00.0', 'sm_clock', 'gauge', 'MHz', { values: values((part) => (part > 0.3 && part < 0.6 ? 1100 : 1980)) }),
      row(0, 'mlx5_3/1', 'sent', 'traffic', 'bytes', { total: 4e11, values: values((part) => (part < 0.1 ? null : 4e10 * part)) }),
    ],
    omitted: 17, hint: null,
  };
}

/**
 * @param {{links?: boolean, ranks?: number, perHost?: number, columns?: number, steps?: number, late?: number, named?: (kind: string, i: number) => string, seed?: number}} options
 */
export function sample(options = {}) {
  const ranks = options.ranks ?? 16;
  const perHost = options.perHost ?? 8;
  const columns = options.columns ?? 300;
  const late = options.late ?? 3;
  const named = options.named ?? ((kind, i) => ({ host: `node-${String(i).padStart(3, '0')}`, comm: ['world', 'mesh_dp:1', 'mesh_tp:2'][i] ?? `comm:${i}`, rank: `rank ${i}` })[kind] ?? kind);
  const rnd = random(options.seed ?? 1);
  const hosts = Math.ceil(ranks / perHost);
  const length = 12e9;
  const noise = (scale) => Math.round(rnd() * scale);
  const lateIn = `operation 41 of ${named('comm', 1)} (its 40th AllReduce)`;
  const whoText = (r) => `${named('rank', r)} (GPU ${r % perHost} of ${named('host', Math.floor(r / perHost))}, pid ${4000 + r})`;
  const blamed = (ranks) => ranks.map((r) => ({ rank: r, host: named('host', Math.floor(r / perHost)), pid: 4000 + r, device: r % perHost, pci: null, text: whoText(r) }));
  const statement = `${whoText(late)} has been slow to launch since step 2, costing the other ranks about 20.5 ms per step; first in ${lateIn}`;
  const finding = {
    id: 'host-late', class: 'host-late', severity: 'warning', statement, ranks: [late], hosts: [named('host', Math.floor(late / perHost))], who: blamed([late]), comm: named('comm', 1), func: 'AllReduce', op_index: 41, operation: lateIn, since: 1760000002169837041,
    effect: { value: 20512340, unit: 'ns/step', low: 20104500, high: 20911800 },
    evidence: [`rank ${late}: 20.5 ms a step (median), 164 ms in all, in 100 % of the steps from step 2 to step 9; 100 % of it before the call reached the GPU's queue`, 'arrivals from GPU times; the next latest rank costs 676 us in the same steps', 'steps as the program marks them'],
    advice: 'See what this rank’s host does between its operations: data loading, logging, garbage collection, a busy or throttled CPU, another process on its cores.', next: [`ssh node-000 py-spy record --duration 10 --output rank-${late}.svg --pid ${4000 + late}`, 'lockstep show run --comm mesh_dp:1 --op 41'], needed_evidence: '', sources: ['capture files'],
  };
  const slow = {
    id: 'slow-link', class: 'slow-link', severity: 'warning', statement: 'the path from rank 5 to rank 13 carries 5.88 GB/s per channel, while 7 similar pairs carry 69.2 GB/s', ranks: [5, 13 % ranks], hosts: [named('host', 0)], who: blamed([5, 13 % ranks]), comm: named('comm', 0), func: null, op_index: null, operation: null, since: null,
    effect: { value: 5.88, unit: 'GB/s', low: 5.71, high: 6.06 }, evidence: ['rank 5 to rank 13: 5.88 GB/s while sending, over 1,490 transfers and 740 MiB'], advice: 'Look at the cable, port and counters of this link.', next: [], needed_evidence: 'A run with other ranks on these hosts', sources: ['capture files'],
  };
  const findings = ranks >= 16 ? [finding, slow] : [finding];
  const hostOf = (rank) => Math.floor(rank / perHost);
  const single = ranks <= 256 ? range(ranks) : [late, ...range(63).map((i) => i * 16 + 5).filter((r) => r < ranks && r !== late)];
  const lists = (rank, group) => {
    const late_ns = range(columns).map((c) => (c % 97 === 96 ? null : c > columns / 5 && rank === late ? 20e6 + noise(1e6) : noise(9e5) - 2e5));
    const waiting_ns = late_ns.map((v, c) => (v === null ? null : c > columns / 5 && rank !== late ? 20e6 + noise(1e6) : noise(4e5)));
    const blamed_ns = late_ns.map((v, c) => (v === null ? null : c > columns / 5 && rank === late ? 5e6 : 0));
    const ops = late_ns.map((v) => (v === null ? null : 12 * group));
    return { late_ns, waiting_ns, blamed_ns, ops };
  };
  const total = (row) => ({ ops: 4000, timed: 3900, waiting_ns: row.waiting_ns.reduce((a, b) => a + (b ?? 0), 0), moving_ns: 310e6, blamed_ns: row.blamed_ns.reduce((a, b) => a + (b ?? 0), 0), late_p50_ns: 45056, late_p99_ns: Math.max(...row.late_ns.map((v) => v ?? 0)) });
  const rows = single.map((rank) => {
    const row = { label: named('rank', rank), who: rank, ranks: String(rank), of: 1, named: rank === late, aligned: true, ...lists(rank, 1) };
    return row;
  });
  const byRank = range(ranks).map((rank) => {
    const row = rows.find((one) => one.who === rank);
    return row ? total(row) : { ops: 4000, timed: 3900, waiting_ns: 9e7, moving_ns: 310e6, blamed_ns: 1000 + rank, late_p50_ns: 45056, late_p99_ns: 7e5 };
  });
  const totals = Object.fromEntries(Object.keys(byRank[0]).map((key) => [key, byRank.map((one) => one[key])]));
  if (ranks > 256) {
    for (const host of range(hosts)) {
      const values = lists(-1, perHost);
      const holds = hostOf(late) === host;
      const row = {
        label: named('host', host), who: null, ranks: `${host * perHost}-${host * perHost + perHost - 1}`, of: perHost, named: false, aligned: true, ...values,
        late_min_ns: values.late_ns.map((v) => (v === null ? null : v - 1e5)), late_max_ns: values.late_ns.map((v, c) => (v === null ? null : holds && c > columns / 5 ? 20e6 : v + 2e5)),
        waiting_min_ns: values.waiting_ns.map((v) => (v === null ? null : v * 0.5)), waiting_max_ns: values.waiting_ns.map((v) => (v === null ? null : v * 1.2)), worst: values.late_ns.map((v) => (v === null ? null : host * perHost)),
      };
      rows.push({ ...row, total: total(row) });
    }
  }
  const shown = Math.min(ranks, 256);
  const operation = (index, i) => {
    const begin_ns = 1e8 + i * 6e8;
    const arrival = range(shown).map((r) => (r === late ? 20.4e6 : noise(9e5) + 1e5));
    const last = Math.max(...arrival);
    return {
      comm: 1, op_index: index, func: 'AllReduce', kind: 'collective', title: `Operation ${index} of ${named('comm', 1)} (its ${index}th AllReduce), 25 MiB`, open: false, datatype: 'ncclBfloat16', count: 13107200, size_bytes: 26214400, algo: 'RING', proto: 'SIMPLE', channels: 16, root: null,
      why: i === 3 ? ['finding', 'lost'] : i % 2 ? ['sample'] : ['lost'], findings: i === 3 ? [0] : [], begin_ns, length_ns: last + 6e5, last_arrival_ns: last, lost_ns: arrival.reduce((a, b) => a + last - b, 0), busbw_gbps: 312.4, called: ranks,
      ranks: {
        who: range(shown), comm_rank: range(shown), state: range(shown).map(() => 'done'), called_ns: arrival.map((a) => Math.max(0, a - 4e5)), enqueued_ns: arrival.map((a) => Math.max(1000, a - 3.6e5)), launched_ns: arrival.map((a) => Math.max(2000, a - 3e5)),
        gpu_start_ns: arrival, gpu_end_ns: arrival.map(() => last + 5e5 + noise(1e5)), arrival_ns: arrival, late_ns: arrival.map((a) => a - 5e5), waiting_ns: arrival.map((a) => last - a), moving_ns: arrival.map(() => 5.4e5),
        clock_error_ns: range(shown).map((r) => (hostOf(r) === 0 ? 0 : 2.5e5)), gpu_error_ns: range(shown).map(() => 3000), gpu_source: range(shown).map(() => 'kernel channels'), aligned: range(shown).map(() => 1), named: range(shown).map((r) => Number(r === late)),
      },
      omitted: ranks - shown, rest: ranks > shown ? { waiting_ns: [0, 19e6, 20.4e6], late_ns: [-4e5, 0, 20e6], moving_ns: [5e5, 5.4e5, 6e5] } : null,
    };
  };
  const list = range(20).map((i) => operation(20 + i * 7, i));
  const drill = { row: [], column: [], comm: [], op_index: [], who: [], late_ns: [], waiting_ns: [], at_ns: [], operation: [] };
  const lateRow = rows.findIndex((row) => row.who === late);
  for (let column = Math.ceil(columns / 5) + 1; column < columns; column += 1) {
    const i = column % 20;
    for (const [key, value] of Object.entries({ row: lateRow, column, comm: 1, op_index: 20 + i * 7, who: late, late_ns: 20e6, waiting_ns: 0, at_ns: Math.round((column + 0.5) * (length / columns)), operation: i })) drill[key].push(value);
  }
  const sizes = range(11).map((i) => 4096 * 4 ** i);
  const rate = (func, comm, peak, i) => {
    const busbw = peak * (sizes[i] / (sizes[i] + 3e6));
    return {
      comm, func, algo: 'RING', proto: i < 4 ? 'LL' : 'SIMPLE', ranks, hosts, pairs: false, size_from_bytes: sizes[i], size_to_bytes: sizes[i] * 2, ops: 240, uncertain: i < 1 ? 200 : 0, algbw_gbps: busbw / 1.9, busbw_gbps: busbw, busbw_low_gbps: busbw * 0.86, busbw_high_gbps: busbw * 1.09,
      of_best: busbw / peak, ceiling_gbps: hosts === 1 ? 450 : null, link: hosts === 1 ? 'NVLink 4' : null, error: 0.02, finding: null, slowest: i === 7 ? { op_index: 41, busbw_gbps: busbw * 0.2, at_ns: 2e9, operation: 3 } : null,
    };
  };
  const pairs = [];
  const axisHosts = ranks > 128;
  const axisCount = axisHosts ? hosts : ranks;
  for (const a of range(axisCount)) {
    for (const b of [(a + perHost) % axisCount, (a + 1) % axisCount]) {
      if (a === b) continue;
      const bad = !axisHosts && a === 5 && b === 13;
      pairs.push({ source: a, target: b, comm: 0, transfers: 1490, bytes: 775946240, gpu_wait_ns: 1.3e9 + noise(1e8), peer_wait_ns: 2e6 + noise(4e6), send_wait_ns: bad ? 2.1e8 : 1.3e7 + noise(1e6), receive_wait_ns: 1.39e9, flush_wait_ns: 2.2e6, rate_gbps: bad ? 5.88 : 66 + rnd() * 6, sending_p50_ns: 9216, sending_p99_ns: 18432, transport: 'NET', finding: bad ? 1 : null });
    }
  }
  const edges = [];
  for (const r of range(Math.min(ranks, 4095))) {
    const to = (r + 1) % ranks;
    const inside = hostOf(r) === hostOf(to);
    edges.push({ from: r, to, comm: 0, transport: inside ? 'P2P' : 'NET', via: inside ? 'P2P/CUMEM' : 'NET/IB/0', gdr: inside ? null : true, channels: 16, bytes: inside ? null : 775946240, rate_gbps: inside ? null : 69.2, wait_ns: inside ? null : 1.3e7, slow: null, source: inside ? 'logs' : 'logs and transfers' });
  }
  if (ranks >= 16) edges.push({ from: 5, to: 13, comm: 0, transport: 'NET', via: 'NET/IB/0', gdr: true, channels: 2, bytes: 775946240, rate_gbps: 5.88, wait_ns: 2.1e8, slow: 1, source: 'transfers' });
  const steps = options.steps ?? 40;
  const part = (share, spread) => range(steps).map(() => Math.round(300e6 * (share + rnd() * spread)));
  const splitEntries = () => {
    const [computing_ns, hidden_ns, exposed_ns, copying_ns, idle_ns] = [part(0.6, 0.05), part(0.2, 0.03), part(0.15, 0.04), part(0.02, 0.01), part(0.06, 0.02)];
    return { number: range(steps), steps: range(steps).map(() => 1), begin_ns: range(steps).map((i) => i * 3e8), length_ns: computing_ns.map((c, i) => c + exposed_ns[i] + copying_ns[i] + idle_ns[i]), computing_ns, hidden_ns, exposed_ns, copying_ns, idle_ns };
  };
  const losses = [{ text: '1,204 x records were dropped as the ring was full', count: 1204, stage: 'capture', kind: 'ring-full', source: 'capture files', who: [2] }, { text: '12 x operations had no GPU time', count: 12, stage: 'assemble', kind: 'no-gpu-time', source: 'capture files', who: [1] }];
  return {
    schema: 'lockstep.report.v3', version: 3, tool: { name: 'lockstep', version: '0.1.0' }, live: false, refresh_ns: null,
    run: {
      title: named('run', 0) === 'run' ? 'train-7b' : named('run', 0), paths: ['runs/train-7b'], begin: '2025-10-09T08:53:22.000387430Z', begin_ns: '1760000002000387430', length_ns: length, least_length_ns: length, made: '2026-11-22T14:00:00Z',
      evidence: [{ source: 'capture files', sentence: `${ranks} processes, 4,000 operations each`, processes: ranks, ops: ranks * 4000, first_ns: 0, last_ns: length }], main: 0,
      seen: [`${ranks} ranks on ${hosts} hosts, ${ranks * 4000} operations matched across ranks, clocks within +-1.55 ms.`], not_seen: ['Which kernels computed: set LOCKSTEP_CUDA=kernels.'], alive: '',
    },
    diagnosis: { verdict: finding, findings, losses: [], inputs: [], clock: [], links: [], match: [] },
    who: { rank: range(ranks), host: range(ranks).map(hostOf), pid: range(ranks).map((r) => 4000 + r), device: range(ranks).map((r) => r % perHost), name: range(ranks).map((r) => named('rank', r)), text: range(ranks).map(whoText) },
    hosts: range(hosts).map((i) => ({ name: named('host', i), boot_id: `boot-${i}`, who: range(ranks).filter((r) => hostOf(r) === i), reference: i === 0, aligned: true, offset_ns: i === 0 ? 0 : 2986e6 + i, half_width_ns: i === 0 ? 0 : 61700, contradictions: 0 })),
    comms: range(3).map((i) => ({ name: named('comm', i), text: named('comm', i), show: `lockstep show run --comm 0x${i} --op `, id: `0x618c3abe7b658b${i}`, ranks, nodes: hosts, present: ranks, matched: 4000, unmatched: {}, ops: ranks * 4000, declared: false, waiting_ns: 9.9e8, moving_ns: 2.5e8, blamed_ns: 5.2e7 })),
    verdict: {
      state: 'problem', headline: statement, finding: 0, losses, lost_events: 1216,
      cards: findings.map((f, i) => ({ title: ['Late on the host', 'Slow link'][i], what: ['A rank launches its operations late, step after step.', 'What one rank sends to another moves slowly.'][i], class: f.class, effect: null, comm: i === 0 ? 1 : 0, operation: i === 0 ? 3 : null, who: f.ranks.filter((r) => r < ranks), waiting: [], rows: [lateRow], at_ns: 169e6 })),
    },
    lateness: { columns: { count: columns, begin_ns: 0, width_ns: length / columns }, times: 'gpu', compared: ranks * 3900, rows, totals, drill, marks: range(steps).map((i) => ({ number: i, at_ns: i * 3e8 })), links: options.links ? links(named, columns, options.named ? named('device', 0) : null) : { rows: [], omitted: 0, hint: null }, notes: [] },
    operations: { total: 4000, list, notes: [] },
    bandwidth: { rates: [...range(11).map((i) => rate('AllReduce', 1, 380, i)), ...range(11).map((i) => rate('AllGather', 0, 330, i)), ...range(8).map((i) => rate('ReduceScatter', 0, 300, i + 2))], fits: [{ comm: 1, func: 'AllReduce', sizes: 11, alpha_ns: 21400, alpha_error_ns: 900, beta_gbps: 381, beta_low_gbps: 372, beta_high_gbps: null }], matched: 4000, untimed: 100, omitted: 0, notes: [] },
    topology: {
      comms: [{ comm: 0, name: named('comm', 0), nodes: hosts, members: range(ranks), rings: [{ channels: range(16), order: range(ranks) }], trees: [{ channels: [0, 1], up: range(ranks).map((r) => (r === 0 ? null : Math.floor((r - 1) / 2))) }] }, { comm: 2, name: named('comm', 2), nodes: 1, members: range(Math.min(ranks, perHost)), rings: [], trees: [] }],
      edges, rings_missing: null, omitted: 0, notes: [],
    },
    network: { axis: range(axisCount).map((i) => (axisHosts ? { label: named('host', i), who: null, of: perHost } : { label: named('rank', i), who: i, of: 1 })), pairs, by: axisHosts ? 'host' : 'rank', omitted: 0, notes: [] },
    steps: {
      source: 'marks', figures: { p50_ns: 301e6, p99_ns: 325e6, exposed_p50_ns: 6e7, exposed_p99_ns: 7e7, exposed_at_most_p50_ns: 1.2e8, exposed_at_most_p99_ns: 1.3e8 }, period_ops: null, list: { number: range(steps), steps: range(steps).map(() => 1), begin_ns: range(steps).map((i) => i * 3e8), length_ns: range(steps).map((i) => 280e6 + (i > 7 ? 20e6 : 0) + noise(5e6)), lost_ns: range(steps).map((i) => (i > 7 ? 20.5e6 : 4e5)), worst: range(steps).map((i) => (i > 7 ? late : null)) },
      split: { rows: range(Math.min(ranks, 32)).map((r) => ({ label: named('rank', r), who: r, ranks: String(r), of: 1, entries: splitEntries() })), average: range(shown).map((r) => ({ who: r, steps, whole: true, length_ns: 300e6, computing_ns: 190e6 - (r % 5) * 2e6, hidden_ns: 60e6, exposed_ns: 60e6 + (r % 5) * 2e6, copying_ns: 8e6, idle_ns: 42e6 })), omitted: 0 }, notes: [],
    },
    processes: {
      captured: true, texts: ['NVIDIA H200', '0000:1b:00.0', '2.28.9', 'deep', 'python3 train.py', 'unknown', 'gone', `AllReduce on ${named('comm', 1)}`],
      list: {
        ...Object.fromEntries(['gpu_model', 'pci', 'nccl', 'mode', 'argv'].map((key, place) => [key, range(ranks).map(() => place)])),
        liveness: range(ranks).map((r) => (r === 2 ? 6 : 5)), closed: range(ranks).map((r) => Number(r !== 2)), first_ns: range(ranks).map(() => noise(1e6)), last_ns: range(ranks).map(() => length - noise(1e6)), heartbeat_ns: range(ranks).map(() => length),
        open: range(ranks).map((r) => (r === 2 ? 7 : null)), open_ns: range(ranks).map((r) => (r === 2 ? 12e9 : null)), ops: range(ranks).map(() => 4000), lost: range(ranks).map((r) => (r === 2 ? 1204 : 0)), comms: range(ranks).map(() => 3), named: range(ranks).map((r) => Number(r === late)),
      },
      losses: [{ who: 2, stage: 'capture', kind: 'ring-full', count: 1204, detail: 'older records were overwritten', source: 'capture files' }, { who: 1, stage: 'assemble', kind: 'no-gpu-time', count: 12, detail: '', source: 'capture files' }], notes: [],
    },
  };
}

export const PAGES = ['verdict', 'lateness', 'operations', 'bandwidth', 'topology', 'network', 'steps', 'processes'];

/** A run of which nothing is known on any page but the first. */
export function withoutPages(why) {
  const data = sample({ ranks: 2, perHost: 2, columns: 10 });
  for (const page of PAGES.slice(1)) data[page] = { missing: why };
  return data;
}

/** Names that try to run scripts, to end elements, to turn the writing direction and to be too long. */
export function hostile() {
  const attacks = ['<script>window.__owned=1</script>', '<img src=x onerror="window.__owned=1">', '</script><script>window.__owned=1</script>', '"><svg/onload=window.__owned=1>', '{{constructor.constructor("window.__owned=1")()}}', "'; DROP TABLE ops; --",
    '\u202Egnp.exe\u202C', 'zero\u200Bwidth\u2060', '<!--', 'javascript:window.__owned=1'];
  const long = `long-${'x'.repeat(1 << 20)}`;
  return sample({ ranks: 16, columns: 40, steps: 10, links: true, named: (kind, i) => (kind === 'run' ? attacks[2] : i === 9 && kind === 'rank' ? long : kind === 'comm' && i === 2 ? long : `${attacks[i % attacks.length]}${i >= attacks.length ? i : ''}`) });
}

/** The built page with data in it, as `lockstep report` writes it. */
export function fill(page, data) {
  const codes = { '<': '\\u003c', '>': '\\u003e', '&': '\\u0026', '\u2028': '\\u2028', '\u2029': '\\u2029' };
  const text = JSON.stringify(data).replace(/[<>&\u2028\u2029]/g, (character) => codes[character]);
  const place = '<script type="application/json" id="lockstep-data">null</script>';
  const parts = page.split(place);
  if (parts.length !== 2) throw new Error('the page has to have one place for data');
  return parts.join(place.replace('null', () => text));
}
