// SPDX-License-Identifier: Apache-2.0
// Reports of recorded and simulated jobs, as `lockstep report` writes them: every page shows the numbers of the data, and the data
// those of `lockstep diagnose --json`.
import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { after, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { BUILD, format, openFile, scratch, start, stop } from './browser.mjs';

const SOURCE = fileURLToPath(new URL('../..', import.meta.url));
const LOCKSTEP = join(BUILD, 'bin/lockstep');
const { bytes, clean, count, duration, name, percent, rate } = format;

before(start);
after(stop);

/** Recorded ranks at their recorded times: on few cores a replay's own delays would hide a late rank. */
function recorded(title, folder) {
  const out = join(scratch, title);
  const tapes = readdirSync(join(SOURCE, folder)).filter((file) => /^rank\d+\.jsonl\.gz$/.test(file)).sort();
  execFileSync(join(BUILD, 'tests/lockstep-write-recorded'), [out, ...tapes.map((file) => join(SOURCE, folder, file))], { stdio: 'pipe' });
  return [out];
}

/** Replays recorded ranks under `lockstep trace`, at their own pace. */
function replay(title, folder) {
  const out = join(scratch, `${title}.db`);
  execFileSync(LOCKSTEP, ['trace', '-m', 'deep', '-o', out, 'tools/replay', '--pace', 'recorded', '--host', join(BUILD, 'bin/lockstep-nccl-host'), folder], { cwd: SOURCE, stdio: 'pipe', env: { ...process.env, TMPDIR: scratch } });
  return [out];
}

function simulate(title, ...options) {
  const out = join(scratch, title);
  execFileSync(join(BUILD, 'bin/lockstep-sim-job'), [...options, '-o', out], { stdio: 'pipe' });
  return [out];
}

/** Writes the report of a run; what it holds, and what `diagnose` says by itself. */
function report(paths) {
  const file = `${paths[0].startsWith(scratch) ? paths[0] : join(scratch, 'files')}.html`;
  // Paths as people type them: the page shows commands that name them.
  const cwd = paths[0].startsWith(scratch) ? scratch : SOURCE;
  const typed = paths.map((path) => relative(cwd, path));
  execFileSync(LOCKSTEP, ['report', ...typed, '-o', file], { cwd, stdio: 'pipe' });
  const text = readFileSync(file, 'utf8');
  const data = JSON.parse(/<script type="application\/json" id="lockstep-data">(.*?)<\/script>/s.exec(text)[1]);
  const diagnose = spawnSync(LOCKSTEP, ['diagnose', '--json', ...typed], { cwd, encoding: 'utf8', maxBuffer: 1 << 28 });
  return { file, data, diagnosis: JSON.parse(diagnose.stdout) };
}

/** Where the clocks of hosts are not aligned, the length is the least that it can be, and a share the most. */
function shareOfRun({ length_ns, least_length_ns }, ns) {
  if (ns === null || !least_length_ns) return percent(null);
  const share = percent(ns / least_length_ns);
  return (length_ns === null && ns > 0 && !share.startsWith('<') ? '≤ ' : '') + share;
}

const all = (page, selector) => page.locator(selector).allTextContents();
const named = (cell) => cell.replace(/^▸ /, '').replace(/ \*$/, '');

/** Every page shows what the data hold. */
async function walk(title, shown, { file, data, diagnosis }) {
  const { page } = shown;
  const commOf = (position) => (position === null ? '–' : name(data.comms[position].name, 40));
  assert.deepEqual(data.diagnosis.verdict, diagnosis.verdict);
  assert.deepEqual(data.diagnosis.findings, diagnosis.findings);

  assert.equal(await page.locator('#headline').textContent(), clean(data.verdict.headline));
  if (diagnosis.verdict) assert.equal(data.verdict.headline, diagnosis.verdict.statement);
  assert.equal(await page.locator('article').count(), diagnosis.findings.length);
  for (const [position, finding] of diagnosis.findings.entries()) {
    const card = `[data-finding="${position}"]`;
    if (position !== data.verdict.finding) assert.equal(await page.locator(`${card} .statement`).textContent(), name(finding.statement, 2000));
    assert.deepEqual(await all(page, `${card} .evidence li`), finding.evidence.filter((text) => !finding.statement.includes(text)).map((text) => clean(text, 2000)));
    assert.equal(await page.locator(position === data.verdict.finding && data.verdict.state === 'problem' ? '.verdict-state .severity' : `${card} header .severity`).first().textContent(), `${{ critical: '■', warning: '▲', note: '●' }[finding.severity]} ${finding.severity}`);
    if (finding.advice) assert.ok((await page.locator(`${card} .advice`).textContent()).startsWith(name(finding.advice, 2000).replaceAll('`', '')));
    assert.deepEqual(await all(page, `${card} code.command`), finding.next.filter((text) => !text.startsWith('lockstep report ')));
    if (finding.effect?.unit === 'ns/step') {
      // What the statement has told in the same words is not told again.
      const [size, shownAs] = [`${duration(finding.effect.value)} per step`, await all(page, `${card} .effect`)];
      assert.ok(shownAs.length > 0 ? shownAs[0].startsWith(size) : finding.statement.includes(size), finding.statement);
    }
  }
  assert.equal(await page.locator('.losses').count(), data.verdict.losses.length > 0 ? 1 : 0);
  await shown.shot(`${title}-verdict`);

  const pages = {
    lateness: async ({ totals }) => {
      const cells = new Map((await shown.rows('Lateness by rank')).map((read) => [named(read('Rank')), read]));
      for (const who of data.who.rank.map((_, position) => position).sort((a, b) => totals.blamed_ns[b] - totals.blamed_ns[a]).slice(0, 30)) {
        assert.deepEqual(['Host', 'Operations', 'Own lateness', 'of run', 'Late p50', 'Late p99', 'Waiting', 'Moving'].map(cells.get(name(data.who.name[who]))), [name(data.hosts[data.who.host[who]].name, 40), count(totals.ops[who]), duration(totals.blamed_ns[who]), shareOfRun(data.run, totals.blamed_ns[who]),
          ...['late_p50_ns', 'late_p99_ns', 'waiting_ns', 'moving_ns'].map((key) => duration(totals[key][who]))]);
      }
    },
    operations: async ({ list }) => {
      assert.equal((await shown.cells('Operations')).length, list.length);
      for (const at of [0, Math.floor(list.length / 2), list.length - 1]) {
        await shown.go(`#operations?op=${at}&table=lanes`);
        await page.waitForFunction((text) => document.querySelector('#operation-title').textContent === text, name(list[at].title, 120));
        const { ranks } = list[at];
        const cells = await shown.rows('Ranks of the operation');
        assert.equal(cells.length, Math.min(120, ranks.comm_rank.length));
        for (const [row, read] of cells.slice(0, 12).entries()) {
          assert.deepEqual(['State', 'Called', 'Enqueued', 'Launched', 'GPU start', 'GPU end', 'Late', 'Waiting', 'Moving', 'Clock ±'].map(read), [ranks.state[row], ...['called_ns', 'enqueued_ns', 'launched_ns', 'gpu_start_ns', 'gpu_end_ns', 'late_ns', 'waiting_ns', 'moving_ns', 'clock_error_ns'].map((key) => duration(ranks[key][row]))]);
        }
      }
      await shown.go('#operations');
    },
    bandwidth: async ({ rates }) => {
      const cells = await shown.rows('Bandwidth');
      assert.equal(cells.length, Math.min(120, rates.length));
      for (const [row, read] of cells.slice(0, 20).entries()) {
        const { func, pairs, comm, ops, algbw_gbps, busbw_gbps, of_best } = rates[row];
        assert.deepEqual([named(read('Operation')), ...['Communicator', 'Ops', 'algbw', 'busbw', 'of best'].map(read)], [name(func) + (pairs ? ' (pairs)' : ''), commOf(comm), count(ops), rate(algbw_gbps), rate(busbw_gbps), percent(of_best)]);
      }
    },
    topology: async () => {
      await shown.go('#topology?hosts=all');
      assert.equal(await page.locator('.host-box').count(), new Set(data.hosts.map((host) => host.name)).size);
      assert.equal(await page.locator('.gpu').count(), data.who.rank.length);
    },
    network: async ({ pairs }) => {
      const cells = await shown.rows('Pairs');
      assert.equal(cells.length, Math.min(120, pairs.length));
      const most = Math.max(...pairs.map((pair) => pair.bytes));
      const slowest = pairs.filter((pair) => pair.rate_gbps !== null && pair.bytes >= most / 1000).sort((a, b) => a.rate_gbps - b.rate_gbps)[0];
      if (slowest) assert.deepEqual(['Transfers', 'Moved', 'Rate', 'Wait for GPU', 'Wait for peer', 'Sending', 'p50', 'p99', 'Receiving'].map(cells[0]), [count(slowest.transfers), bytes(slowest.bytes), rate(slowest.rate_gbps), ...['gpu_wait_ns', 'peer_wait_ns', 'send_wait_ns', 'sending_p50_ns', 'sending_p99_ns', 'receive_wait_ns'].map((key) => duration(slowest[key]))]);
    },
    steps: async ({ list, split }) => {
      const cells = await shown.rows('Steps');
      assert.equal(cells.length, Math.min(120, list.number.length));
      for (const [row, read] of cells.slice(0, 20).entries()) assert.deepEqual(['Start', 'Length', 'Waiting for the slowest rank'].map(read), [list.begin_ns, list.length_ns, list.lost_ns].map((values) => duration(values[row])));
      if (split.missing) assert.ok((await shown.text('main')).includes(split.missing.replaceAll('`', '')));
      else {
        await shown.go('#steps?table=average');
        await page.waitForSelector('table[aria-label="Average step of each rank"]');
        for (const [row, read] of (await shown.rows('Average step of each rank')).entries()) assert.deepEqual(['Length', 'Computing', 'Hidden', 'Exposed', 'Copying', 'Idle'].map(read), ['length_ns', 'computing_ns', 'hidden_ns', 'exposed_ns', 'copying_ns', 'idle_ns'].map((key) => duration(split.average[row][key])));
        await shown.go('#steps');
      }
    },
    processes: async ({ captured, list, texts }) => {
      const { pid } = data.who;
      // As the table begins: by rank.
      const rows = pid.map((_, who) => who).sort((a, b) => (data.who.rank[a] ?? a) - (data.who.rank[b] ?? b));
      const cells = await shown.rows('Processes');
      assert.equal(cells.length, Math.min(120, rows.length));
      for (const [who, read] of cells.slice(0, 20).map((read, row) => [rows[row], read])) assert.deepEqual(['Pid', 'File', 'Process', 'Operations', 'Lost'].map((title) => read(title).replace('■ ', '')), [pid[who] < 0 ? '–' : String(pid[who]), !captured ? '–' : list.closed[who] === 1 ? 'closed' : 'not closed', texts[list.liveness[who]], count(list.ops[who]), count(list.lost[who])]);
    },
  };
  for (const [id, look] of Object.entries(pages)) {
    await shown.go(`#${id}`);
    if (data[id].missing) assert.ok((await shown.text('main')).includes(name(data[id].missing, 4000).replaceAll('`', '')), id);
    else await look(data[id]);
    await page.waitForTimeout(50);
    await page.evaluate(() => window.scrollTo(0, 0));
    await shown.shot(`${title}-${id}`);
  }
  assert.equal(shown.file, file);
}

/** From the verdict over the row and a cell to the operation, and to the rank in it, by clicks alone. */
async function clickThrough(title, shown, { data }) {
  const { page } = shown;
  const card = data.verdict.cards[data.verdict.finding];
  await shown.go('#verdict');
  await page.locator('article').first().getByText('Show in time').click();
  await page.waitForFunction(() => document.querySelector('main').dataset.page === 'lateness');
  await page.waitForURL(new RegExp(`row=${card.rows[0]}(&|$)`));

  // Below it may be counters that were sampled.
  const canvas = page.locator('main canvas').first();
  const box = await canvas.boundingBox();
  await canvas.click({ position: { x: box.width * 0.6, y: box.height * 0.5 } });
  await page.waitForURL(/cell=/);
  const [, row, column] = /cell=(\d+)\.(\d+)/.exec(page.url()).map(Number);
  const facts = await shown.text('[aria-label="Cell"]');
  assert.ok(facts.includes(name(data.lateness.rows[row].label)));
  const late = data.lateness.rows[row].late_ns[column];
  if (data.lateness.rows[row].who !== null) assert.ok(facts.includes(late === null ? 'nothing' : duration(late)), facts);

  const { drill } = data.lateness;
  const worst = drill.operation.map((operation, at) => [drill.late_ns[at] ?? 0, at, operation]).filter(([, , operation]) => operation !== null).filter(([late]) => late > 0).sort((a, b) => b[0] - a[0])[0];
  if (worst) {
    const [, at, operation] = worst;
    await shown.go(`#lateness?cell=${drill.row[at]}.${drill.column[at]}`);
    await page.waitForSelector('table[aria-label="Worst operations in this cell"]');
    const cells = await shown.rows('Worst operations in this cell');
    assert.ok(cells.some((read) => read('Late') === duration(drill.late_ns[at]) && read('Waited') === duration(drill.waiting_ns[at])));
    await page.evaluate(() => document.querySelector('[aria-label="Cell"]').scrollIntoView({ block: 'end' }));
    await shown.shot(`${title}-cell`);
    await page.locator(`[aria-label="Cell"] a[href*="op=${operation}&"], [aria-label="Cell"] a[href$="op=${operation}"]`).first().click();
    await page.waitForFunction(() => document.querySelector('main').dataset.page === 'operations');
    assert.equal(await page.locator('#operation-title').textContent(), name(data.operations.list[operation].title, 120));
  }
  if (card.operation !== null) {
    await shown.go('#verdict');
    await page.locator('article').first().getByText('Show the operation').click();
    await page.waitForFunction(() => document.querySelector('main').dataset.page === 'operations');
    assert.equal(await page.locator('#operation-title').textContent(), name(data.operations.list[card.operation].title, 120));
    const waterfall = page.locator('main canvas');
    await waterfall.click({ position: { x: 40, y: 52 } });
    const first = data.operations.list[card.operation].ranks.who[0];
    await page.waitForURL(new RegExp(`rank=${first}(&|$)`));
    await page.keyboard.press('Escape');
    await page.waitForURL((address) => !/rank=/.test(address.hash));
  }
}

async function look(context, title, made, options = {}) {
  const shown = await openFile(made.file);
  context.diagnostic(`${title}: ${count(made.data.who.rank.length)} ranks, ${bytes(readFileSync(made.file).length)}, on the screen after ${Math.round(await shown.opened())} ms`);
  await walk(title, shown, made);
  if (made.data.verdict.finding !== null && !made.data.lateness.missing && made.data.verdict.cards[made.data.verdict.finding].rows.length > 0) await clickThrough(title, shown, made);
  else assert.ok(!options.click, `${title} has nothing to click through`);
  await shown.close();
  const dark = await openFile(made.file, { dark: true });
  for (const page of ['lateness', 'operations', 'topology', 'steps']) {
    await dark.go(`#${page}`);
    if (!made.data[page].missing) await dark.shot(`${title}-${page}-dark`);
  }
  await dark.close();
}

test('a rank that is slow to launch, simulated: 16 ranks', async (context) => {
  const made = report(simulate('late', '--ranks', '16', '--mode', 'deep', '--marks', '--steps', '20', '--fault', 'host-late', '--seed', '4'));
  assert.equal(made.diagnosis.verdict.class, 'host-late');
  await look(context, 'late', made, { click: true });
});

test('a slow link, simulated: it is lit, and its waits are shown', async (context) => {
  const made = report(simulate('link', '--ranks', '32', '--mode', 'deep', '--steps', '12', '--fault', 'slow-link', '--seed', '2'));
  assert.equal(made.diagnosis.verdict.class, 'slow-link');
  await look(context, 'link', made);
  const shown = await openFile(made.file);
  await shown.page.locator('article').first().getByText('Show the link').click();
  await shown.page.waitForSelector('.edge.slow');
  assert.ok((await shown.text('.slow-ones')).includes('slow:'));
  await shown.shot('link-lit');
  await shown.page.goBack();
  await shown.page.locator('article').first().getByText('Show its waits').click();
  await shown.page.waitForSelector('[aria-label="Pair"]');
  const pair = made.data.network.pairs.find((entry) => entry.finding === made.data.verdict.finding);
  assert.ok((await shown.text('[aria-label="Pair"]')).includes(rate(pair.rate_gbps)));
  await shown.close();
});

/** A log for each host of a run: each card is busy, and one of them has errors halfway. */
function writeCounters(run, guilty) {
  const hosts = new Map();
  for (const process of JSON.parse(execFileSync(LOCKSTEP, ['info', '--json', run])).process_list) hosts.set(process.host, [...(hosts.get(process.host) ?? []), process]);
  for (const [host, processes] of hosts) {
    const first = Math.min(...processes.map((process) => process.first_ns));
    const middle = 1000 + Math.round((Math.max(...processes.map((process) => process.last_ns)) - first) / 2e6);
    const ports = processes.map((process, i) => ({ name: `mlx5_${i}`, isGuilty: process.rank === guilty }));
    const lines = ['lockstep link samples 2', `host ${host}`, 'boot b', 'pid 1', `start ${BigInt(first) - 1000000000n}`];
    ports.forEach(({ name: card }, i) => lines.push(`counter ${2 * i} port ${card}/1 symbol_error`, `counter ${2 * i + 1} port ${card}/1 port_xmit_data`));
    const values = (of) => ports.map((port, i) => ` ${2 * i}=${of(port) ? 5003 : 3} ${2 * i + 1}=`);
    lines.push(`at 0${values(() => false).map((text) => `${text}0`).join('')}`, `at ${middle}${values((port) => port.isGuilty).map((text) => `${text}900000000`).join('')}`, `at ${2 * middle}`, 'end', '');
    writeFileSync(join(run, `links.${host}.1.log`), lines.join('\n'));
  }
}

test('a slow card, simulated: its port’s errors stand below the ranks, at their time', async () => {
  const [run] = simulate('card', '--ranks', '24', '--mode', 'deep', '--steps', '20', '--fault', 'slow-nic', '--seed', '3');
  const guilty = JSON.parse(readFileSync(join(run, 'truth.json'))).fault.ranks[0];
  writeCounters(run, guilty);
  const made = report([run]);
  assert.equal(made.diagnosis.verdict.class, 'slow-nic');
  const { rows } = made.data.lateness.links;
  const card = guilty % 8;
  assert.deepEqual([rows[0].counter, rows[0].device, rows[0].severity, rows[0].total], ['symbol_error', `mlx5_${card}/1`, 'warning', 5000]);
  assert.equal(rows.filter((row) => row.kind === 'fault').length, 1);
  const at = rows[0].values.findIndex((value) => value > 0) / rows[0].values.length;
  assert.ok(at > 0.4 && at < 0.6, `at ${at}`);
  assert.deepEqual([rows[1].kind, rows[1].device], ['traffic', `mlx5_${card}/1`]);
  const shown = await openFile(made.file, { address: '#lateness?table=links' });
  const cells = await shown.rows('Counters of links and GPUs');
  assert.deepEqual(['Host', 'Device', 'Counter', 'Trouble', 'Total'].map(cells[0]), [made.data.hosts[Math.floor(guilty / 8)].name, `mlx5_${card}/1`, 'symbol_error', '▲ warning', '+5,000']);
  await shown.go('#lateness');
  assert.equal(await shown.page.locator('main canvas').count(), 2);
  await shown.page.evaluate(() => document.querySelectorAll('main canvas')[1].scrollIntoView({ block: 'end' }));
  await shown.shot('card-lateness');
  await shown.close();
});

test('the recorded straggler', async (context) => {
  const made = report(recorded('straggler', 'tests/data/straggler'));
  assert.deepEqual([made.diagnosis.verdict.class, made.diagnosis.verdict.ranks], ['host-late', [3]]);
  await look(context, 'straggler', made, { click: true });
});

test('the recorded hang', async (context) => {
  const made = report(replay('hang', 'tests/data/runs/hang'));
  assert.deepEqual([made.diagnosis.verdict.class, made.diagnosis.verdict.ranks], ['never-joined', [5]]);
  await look(context, 'hang', made, { click: true });
  const { operation } = made.data.verdict.cards[made.data.verdict.finding];
  const shown = await openFile(made.file, { address: `#operations?op=${operation}&table=lanes` });
  const lane = (await shown.cells('Ranks of the operation')).find((cells) => named(cells[0]) === 'rank 5');
  assert.ok(lane.includes('not called'));
  await shown.close();
});

test('the recorded training on two hosts', async (context) => {
  await look(context, 'train2h', report(replay('train2h', 'examples/recordings/train2h')));
});

test('traces of PyTorch’s profiler, which know all kernels', async (context) => {
  const folder = join(SOURCE, 'tests/data/kineto');
  const made = report(readdirSync(folder).filter((file) => /^rank\d+\.json\.gz$/.test(file)).map((file) => join(folder, file)));
  assert.ok(!made.data.steps.split.missing);
  await look(context, 'kineto', made);
});

test('1,024 ranks', async (context) => {
  const made = report(simulate('large', '--ranks', '1024', '--layout', 'tp=8', '--steps', '10', '--ops-per-step', '20', '--fault', 'host-late', '--seed', '7'));
  assert.equal(made.data.who.rank.length, 1024);
  await look(context, 'large', made);
  // Its hosts' clocks are seconds apart, and nothing aligns them: nobody is drawn late for that, and what is not known is marked.
  const { run, operations } = made.data;
  assert.equal(run.length_ns, null);
  assert.ok(run.least_length_ns < 1e9, duration(run.least_length_ns));
  const apart = operations.list.findIndex((operation) => operation.title.includes(' of mesh_dp:'));
  const ranks = operations.list[apart].ranks;
  assert.ok(ranks.called_ns.every((ns) => ns < 1e8), 'ranks are spread by their clocks');
  const shown = await openFile(made.file, { address: `#operations?op=${apart}` });
  assert.ok((await shown.text('.run-facts')).includes(`at least ${duration(run.least_length_ns)}`));
  assert.match(await shown.text('main'), /Length\s+clocks not aligned/);
  assert.match(await shown.text('main'), /\* clock not aligned: times count from that host’s own first call/);
  await shown.shot('large-apart');
  await shown.page.evaluate(() => {
    const { fillText } = CanvasRenderingContext2D.prototype;
    globalThis.__texts = [];
    CanvasRenderingContext2D.prototype.fillText = function draw(text, x, y) {
      if (text.startsWith('called')) globalThis.__texts.push({ text, fits: x + this.measureText(text).width < this.canvas.clientWidth });
      fillText.call(this, text, x, y);
    };
  });
  await shown.go('#verdict');
  await shown.go(`#operations?op=${apart}`);
  await shown.page.waitForFunction(() => globalThis.__texts.length > 0);
  for (const text of await shown.page.evaluate(() => globalThis.__texts)) assert.deepEqual(text, { text: 'called; nothing else known', fits: true });
  await shown.go(`#operations?op=${apart}&table=lanes`);
  const marked = (await shown.cells('Ranks of the operation')).map(([cell]) => cell.endsWith(' *'));
  assert.deepEqual(marked, ranks.aligned.slice(0, marked.length).map((aligned) => aligned === 0));
  assert.ok(marked.includes(true) && marked.includes(false));
  await shown.go('#lateness');
  await shown.shot('large-heat');
  await shown.close();
});
