// SPDX-License-Identifier: Apache-2.0
// What readers do with a page: see a hang, zoom, find a rank, copy, save, read on a phone.
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test, { after, before } from 'node:test';
import { format, openData, openFile, PAGE, scratch, start, stop } from './browser.mjs';
import { fill, sample } from './sample.mjs';

const PAGES = ['verdict', 'lateness', 'operations', 'bandwidth', 'topology', 'network', 'steps', 'processes'];

before(start);
after(stop);

/** Rank 3 never calls an operation that all others wait in, for 60 s after everything else. */
function hang() {
  const data = sample({ columns: 60 });
  const operation = data.operations.list[3];
  Object.assign(operation, { open: true, begin_ns: 12e9, last_arrival_ns: null, lost_ns: null, busbw_gbps: null, called: 15 });
  const { ranks } = operation;
  ranks.state = ranks.state.map((_, rank) => (rank === 3 ? 'not called' : 'called'));
  for (const key of ['gpu_start_ns', 'gpu_end_ns', 'arrival_ns', 'late_ns', 'waiting_ns', 'moving_ns']) ranks[key] = ranks[key].map(() => null);
  for (const key of ['called_ns', 'enqueued_ns', 'launched_ns']) ranks[key][3] = null;
  data.run.length_ns = 72e9;
  Object.assign(data.diagnosis.findings[0], { id: 'never-joined', class: 'never-joined', operation: 'operation 41 of mesh_dp:1 (its 41st AllReduce)', effect: { value: 60e9, unit: 'ns', low: 60e9, high: 60e9 } });
  // Rank 5 is no member of that operation's communicator: it waits for one that is.
  Object.assign(data.verdict.cards[0], { who: [3], waiting: [...Array(16).keys()].filter((rank) => rank !== 3) });
  return data;
}

const address = (report) => report.page.evaluate(() => location.hash);

/** A place on the first drawing, from its left upper corner; from its right edge where x is negative. */
async function placeOn(report, x, y) {
  const box = await report.page.locator('main canvas').first().boundingBox();
  return [x < 0 ? box.x + box.width + x : box.x + x, box.y + y];
}

/** How many colours a part of the first drawing has. */
function colours(report, x, y, wide, tall) {
  return report.page.evaluate(([left, top, w, h]) => {
    const surface = document.querySelector('main canvas');
    const scale = surface.width / surface.clientWidth;
    const from = left < 0 ? surface.clientWidth + left : left;
    const pixels = surface.getContext('2d').getImageData(from * scale, top * scale, w * scale, h * scale).data;
    const found = new Set();
    for (let at = 0; at < pixels.length; at += 4) if (pixels[at + 3] > 0) found.add(pixels.slice(at, at + 3).join());
    return found.size;
  }, [x, y, wide, tall]);
}

test('a hang is seen: who waits until the record ends, and who has not come', async () => {
  const report = await openData(hang(), { address: '#lateness' });
  assert.match(await report.text('figcaption'), /15 ranks waiting until the record ends, the longest 60\.0 s in operation 41 of mesh_dp:1/);
  // Rows are 24 high below a head of 32: rank 0 is hatched, rank 3 is not.
  assert.ok(await colours(report, -60, 36, 40, 14) > 3);
  await report.page.mouse.click(...await placeOn(report, -40, 40));
  await report.becomes(() => address(report), '#operations?op=3');
  assert.match(await report.text('main'), /still waiting/);
  await report.close();

  const healthy = await openData(sample({ columns: 60 }), { address: '#lateness' });
  assert.doesNotMatch(await healthy.text('figcaption'), /until the record ends/);
  await healthy.close();
});

/** What the page writes on its drawings from now on. */
async function written(report) {
  await report.page.evaluate(() => {
    const { fillText } = CanvasRenderingContext2D.prototype;
    globalThis.__written = [];
    CanvasRenderingContext2D.prototype.fillText = function draw(text, x, y) {
      globalThis.__written.push(text);
      fillText.call(this, text, x, y);
    };
  });
  return () => report.page.evaluate(() => globalThis.__written);
}

test('what the culprit did not do is said whole, also on a phone', async () => {
  const report = await openData(hang());
  const texts = await written(report);
  await report.go('#lateness');
  assert.ok((await texts()).includes('has not called it'), (await texts()).join());
  assert.ok((await texts()).includes('// 60.0 s to the end'));
  await report.page.setViewportSize({ width: 390, height: 844 });
  await report.page.evaluate(() => { globalThis.__written.length = 0; });
  await report.go('#verdict');
  await report.go('#lateness');
  assert.ok((await texts()).includes('not called'), (await texts()).join());
  assert.ok((await texts()).includes('// 60.0 s'), (await texts()).join());
  await report.close();
});

test('nobody waits where no finding says so: a run that broke off is not drawn as a hang', async () => {
  const data = hang();
  data.verdict.cards[0].waiting = [];
  const report = await openData(data, { address: '#lateness' });
  assert.doesNotMatch(await report.text('figcaption'), /until the record ends/);
  await report.close();
});

test('what a finding calls stuck has not ended, however many have joined', async () => {
  const data = sample({ columns: 60 });
  const operation = data.operations.list[3];
  operation.length_ns = null;
  operation.ranks.state = operation.ranks.state.map(() => 'running');
  operation.ranks.gpu_end_ns = operation.ranks.gpu_end_ns.map(() => null);
  const report = await openData(data, { address: '#operations?op=3' });
  assert.match(await report.text('main'), /Length\s+has not ended/);
  const row = (await report.rows('Operations')).find((read) => read('Operation') === operation.title);
  assert.equal(row('Length'), 'has not ended');
  await report.close();
});

test('a cell lists what its rank was late in, and where waiting is shown what it waited in', async () => {
  const data = sample({ columns: 20 });
  data.comms[1].show = `lockstep show ${'shared/team/'.repeat(6)}run --comm mesh_dp:1 --op `;
  data.lateness.drill = { row: [0, 0], column: [4, 4], comm: [1, 1], op_index: [7, 8], who: [0, 0], late_ns: [3e6, -65800], waiting_ns: [0, 9e6], at_ns: [1e9, 1e9], operation: [null, null] };
  const report = await openData(data, { address: '#lateness?cell=0.4' });
  const listed = async () => (await report.rows('Worst operations in this cell')).map((read) => read('Operation'));
  assert.deepEqual(await listed(), ['operation 7 of mesh_dp:1']);
  // What is too long for a cell is left out of it whole, command and button.
  const [end, edge] = await report.page.evaluate(() => {
    const button = document.querySelector('[aria-label="Cell"] button.copy');
    return [button.getBoundingClientRect().right, button.closest('td').getBoundingClientRect().right];
  });
  assert.ok(end <= edge, `${end} of ${edge}`);
  await report.page.locator('[data-focus="measure=waiting"]').click();
  await report.becomes(listed, ['operation 8 of mesh_dp:1']);
  await report.close();
});

test('no line is drawn over sizes that were not measured', async () => {
  const data = sample({ columns: 20 });
  const [rate] = data.bandwidth.rates;
  const at = (size) => ({ ...rate, size_from_bytes: size, size_to_bytes: 2 * size, busbw_low_gbps: null, busbw_high_gbps: null, slowest: null, ceiling_gbps: null });
  const inked = async (sizes) => {
    data.bandwidth.rates = sizes.map(at);
    const report = await openData(data, { address: '#bandwidth' });
    await report.page.waitForTimeout(100);
    // Between the first and the last point, in the middle of the drawing's width.
    const found = await report.page.evaluate(() => {
      const surface = document.querySelector('.chart canvas');
      const pixels = surface.getContext('2d').getImageData(surface.width * 0.3, surface.height * 0.15, surface.width * 0.4, surface.height * 0.7).data;
      const [r, g, b] = [0x00, 0x63, 0xa6];
      let count = 0;
      for (let i = 0; i < pixels.length; i += 4) count += Number(Math.abs(pixels[i] - r) + Math.abs(pixels[i + 1] - g) + Math.abs(pixels[i + 2] - b) < 30);
      return count;
    });
    await report.close();
    return found;
  };
  assert.ok(await inked([1 << 20, 1 << 21, 1 << 22, 1 << 23]) > 100);
  assert.equal(await inked([1 << 10, 1 << 28]), 0);
});

test('the heat map zooms by dragging and by keys, and back', async () => {
  const report = await openData(sample({ columns: 100 }), { address: '#lateness' });
  const [x, y] = await placeOn(report, 300, 100);
  await report.page.mouse.move(x, y);
  await report.page.mouse.down();
  await report.page.mouse.move(x + 200, y);
  await report.page.mouse.up();
  await report.page.waitForFunction(() => /span=\d+~\d+/.test(decodeURIComponent(location.hash)));
  const [from, to] = decodeURIComponent(await address(report)).match(/span=(\d+)~(\d+)/).slice(1).map(Number);
  assert.ok(from > 5 && to > from && to < 60, `${from} to ${to} of 100`);
  await report.page.getByRole('button', { name: 'Whole run' }).click();
  await report.becomes(() => address(report), '#lateness');
  await report.page.locator('main canvas').first().focus();
  await report.page.keyboard.press('+');
  await report.becomes(() => address(report).then(decodeURIComponent), '#lateness?span=25~75');
  await report.page.keyboard.press('Escape');
  await report.becomes(() => address(report), '#lateness');
  await report.close();
});

test('counters of links and GPUs stand below the heat map, in its columns', async () => {
  const data = sample({ columns: 100, links: true });
  const report = await openData(data, { address: '#lateness' });
  const surface = report.page.locator('main canvas').nth(1);
  const heat = await report.page.locator('main canvas').first().boundingBox();
  await surface.scrollIntoViewIfNeeded();
  const box = await surface.boundingBox();
  assert.deepEqual([box.x, box.width], [heat.x, heat.width], 'one axis');
  // The first row, of errors from half of the time on, is the first 36 below a head of 26.
  const red = await report.page.evaluate(() => {
    const drawn = document.querySelectorAll('main canvas')[1];
    const scale = drawn.width / drawn.clientWidth;
    const { data: pixels } = drawn.getContext('2d').getImageData(90 * scale, 54 * scale, drawn.width - 96 * scale, 1);
    const found = [...Array(pixels.length / 4).keys()].filter((at) => pixels[at * 4] > pixels[at * 4 + 1] + 60);
    return [found[0], found.at(-1)].map((at) => at / (pixels.length / 4));
  });
  assert.ok(red[0] > 0.5 && red[0] < 0.53 && red[1] > 0.67 && red[1] < 0.7, `from ${red[0]} to ${red[1]}`);
  await report.page.mouse.move(box.x + 90 + (box.width - 96) * 0.605, box.y + 26 + 20);
  const tip = await report.text('.tip');
  for (const text of ['node-000 mlx5_3/1 symbol_error', 'errors', '40', '≥ +9,000', 'before or after this time', '8,240', 'symbols arrive damaged']) assert.ok(tip.includes(text), `${text} in ${tip}`);
  await report.page.mouse.move(box.x + 90 + (box.width - 96) * 0.95, box.y + 26 + 20);
  assert.match(await report.text('.tip'), /not sampled/);
  await report.page.mouse.move(box.x + 90 + (box.width - 96) * 0.95, box.y + 26 + 36 + 20);
  assert.match(await report.text('.tip'), /no more than healthy links have[\s\S]*not aligned/);
  assert.match(await report.page.locator('figcaption').nth(1).innerText(), /17 more counters left out: timelines and trace\.db have all\. \* clock not aligned/);

  await report.page.locator('[data-focus="table:links"]').click();
  await report.page.waitForSelector('table[aria-label="Counters of links and GPUs"]');
  const rows = await report.rows('Counters of links and GPUs');
  assert.deepEqual(rows.map((read) => read('Counter')), data.lateness.links.rows.map((row) => row.counter));
  assert.deepEqual(['Host', 'Device', 'Trouble', 'Total', 'Means'].map(rows[0]), ['node-000', 'mlx5_3/1', '■ critical', '≥ +9,000', 'symbols arrive damaged']);
  assert.deepEqual(['Lowest', 'Highest'].map(rows[3]), ['1,100 MHz', '1,980 MHz']);
  assert.deepEqual([rows[1]('Host'), rows[2]('Highest'), rows[4]('Total')], ['node-001 *', '75.0 %', format.bytes(4e11)]);
  await report.page.locator('[data-focus="table:links"]').click();

  await surface.scrollIntoViewIfNeeded();
  const below = await surface.boundingBox();
  await report.page.mouse.move(below.x + 400, below.y + 60);
  await report.page.mouse.down();
  await report.page.mouse.move(below.x + 600, below.y + 60);
  await report.page.mouse.up();
  await report.page.waitForFunction(() => /span=\d+~\d+/.test(decodeURIComponent(location.hash)));
  await report.close();
});

test('counters that say nothing are not drawn, and where none were sampled it is said how to', async () => {
  const data = sample({ columns: 20 });
  const quiet = await openData(data, { address: '#lateness' });
  assert.deepEqual([await quiet.page.locator('main canvas').count(), await quiet.page.locator('.no-counters').count()], [1, 0]);
  await quiet.close();
  data.lateness.links.hint = 'No counters were sampled: `lockstep counters RUN` samples them.';
  const none = await openData(data, { address: '#lateness' });
  assert.equal(await none.text('.no-counters'), 'No counters were sampled: lockstep counters RUN samples them.');
  assert.equal(await none.page.locator('main canvas').count(), 1);
  await none.close();
});

test('a rank, a host and a communicator are found by number and name', async () => {
  const report = await openData(sample({ ranks: 32, columns: 20 }));
  const find = async (text) => {
    await report.page.keyboard.press('/');
    await report.page.getByLabel('Rank, host or communicator').fill(text);
    await report.page.keyboard.press('Enter');
  };
  await find('2');
  await report.becomes(() => address(report), '#lateness?rank=2');
  // Process ids hold most digits somewhere.
  await report.page.keyboard.press('/');
  await report.page.getByLabel('Rank, host or communicator').fill('17');
  assert.deepEqual((await report.page.locator('.found li').allTextContents()).filter((text) => !/(?<!\d)17/.test(text)), []);
  await report.page.keyboard.press('Escape');
  await report.page.locator('dialog').waitFor({ state: 'detached' });
  await find('node-003');
  await report.becomes(() => address(report), '#processes?host=3');
  await find('mesh_tp');
  await report.becomes(() => address(report), '#topology?comm=2');
  await report.page.keyboard.press('/');
  await report.page.getByLabel('Rank, host or communicator').fill('rank');
  await report.becomes(() => report.page.locator('.found li').last().innerText(), '… and 20 more: type on.');
  await report.page.keyboard.press('Escape');
  await report.page.locator('dialog').waitFor({ state: 'detached' });
  await find('nobody of this name');
  assert.match(await report.text('dialog'), /No match/);
  await report.page.keyboard.press('Escape');
  await report.becomes(() => report.page.locator('dialog').count(), 0);
  await report.close();
});

test('commands and the address of what is shown are copied', async () => {
  const report = await openData(sample({ columns: 20 }), { address: '#operations?op=3' });
  await report.page.evaluate(() => Object.defineProperty(navigator, 'clipboard', { value: { writeText: async (text) => { globalThis.copied = text; } } }));
  const copied = () => report.page.evaluate(() => globalThis.copied);
  const shown = await report.text('code.command');
  assert.match(shown, /^lockstep show /);
  await report.page.getByRole('button', { name: `Copy: ${shown}` }).click();
  await report.becomes(copied, shown);
  await report.page.getByRole('button', { name: 'Copy the address of what is shown' }).click();
  await report.becomes(copied, await report.page.evaluate(() => location.href));
  await report.close();
});

async function saved(report, button) {
  const [file] = await Promise.all([report.page.waitForEvent('download'), button.click()]);
  return { name: file.suggestedFilename(), bytes: readFileSync(await file.path()) };
}

test('tables are saved as numbers, drawings as pictures', async () => {
  const data = sample({ columns: 20, named: (kind, i) => (kind === 'rank' ? `=cmd(${i}),"x"` : `${kind} ${i}`) });
  const report = await openData(data, { address: '#lateness' });
  const csv = await saved(report, report.page.getByRole('button', { name: 'Save Lateness by rank as CSV' }));
  assert.equal(csv.name, 'lateness-by-rank.csv');
  const lines = csv.bytes.toString().split('\r\n');
  assert.match(lines[0], /^Rank,Host,Operations,Own lateness \(ns\),of run,Late p50 \(ns\),/);
  assert.ok(lines[1].startsWith(`"'=cmd(3),""x""",host 0,4000,${data.lateness.totals.blamed_ns[3]},`), lines[1]);
  assert.equal(lines.length, data.who.rank.length + 2);
  for (const page of ['lateness', 'operations', 'network', 'bandwidth', 'steps', 'topology']) {
    await report.go(`#${page}`);
    const picture = await saved(report, report.page.getByRole('button', { name: 'PNG' }).first());
    assert.match(picture.name, /\.png$/);
    assert.deepEqual([...picture.bytes.subarray(1, 4)], [...Buffer.from('PNG')]);
    assert.ok(picture.bytes.length > 4000, `${page}: ${picture.bytes.length} bytes`);
  }
  await report.close();
});

test('the first page says how the run went', async () => {
  const data = sample({ columns: 20 });
  data.verdict = { ...data.verdict, state: 'healthy', headline: 'No problem found', finding: null, cards: [] };
  data.diagnosis = { ...data.diagnosis, verdict: null, findings: [] };
  const report = await openData(data);
  const text = (await report.text('main')).replace(/\s+/g, ' ');
  assert.ok(text.includes('Step, median 301 ms Step, p99 325 ms'), text);
  const { average } = data.steps.split;
  const all = (key) => average.reduce((sum, row) => sum + row[key] * row.steps, 0);
  assert.ok(text.includes(`Exposed communication ${format.percent(all('exposed_ns') / all('length_ns'))}`), text);
  assert.match(text, /AllReduce, \S+ \S+B\+ \S+ GB\/s/);
  await report.page.locator('.small-map').click();
  await report.becomes(() => address(report), '#lateness');
  await report.close();

  // Equal parts of a run are no steps; without kernels only a bound of the exposed part is known.
  data.steps.split = { missing: 'no kernels were recorded' };
  const bound = await openData(data);
  assert.match(await bound.text('main'), /Exposed communication\s+at most 120 ms of a step/);
  await bound.close();
  Object.assign(data.steps.figures, { p50_ns: null, p99_ns: null, exposed_at_most_p50_ns: null });
  const parts = await openData(data);
  assert.doesNotMatch(await parts.text('main'), /Step, median|Exposed communication/);
  await parts.close();
});

test('a link that a finding names is in view, and of many hosts those that matter', async () => {
  const data = sample({ ranks: 136, columns: 20 });
  data.topology.edges.push({ ...data.topology.edges[0], from: 100, to: 108, slow: 1, rate_gbps: 5.88 });
  const report = await openData(data, { address: '#topology?finding=1' });
  const [top, bottom] = await report.page.evaluate(() => {
    const box = document.querySelector('[data-reveal]').getBoundingClientRect();
    return [box.top, box.bottom];
  });
  assert.ok(top >= 0 && bottom <= 800, `from ${top} to ${bottom} of 800`);
  const boxes = () => report.page.locator('.host-box').count();
  assert.ok(await boxes() < 17);
  await report.page.getByRole('button', { name: 'All', exact: true }).click();
  await report.becomes(boxes, 17);
  await report.close();
});

test('the host of a communicator that was looked for is drawn, and its ranks are those that it has', async () => {
  const data = sample({ ranks: 4096, columns: 10 });
  data.topology.comms.push({ comm: 1, name: 'mesh_dp:1', nodes: 1, members: [2000, 2001], rings: [], trees: [] });
  data.comms[1].ranks = 2;
  const report = await openData(data, { address: '#topology?comm=0' });
  assert.match(await report.text('figcaption'), /world: 4,096 ranks on 512 hosts/);
  const drawn = () => report.page.locator('.host-name').filter({ hasText: 'node-250' }).count();
  assert.equal(await drawn(), 0);
  await report.go('#topology?comm=1');
  assert.equal(await drawn(), 1);
  await report.page.getByRole('button', { name: 'All', exact: true }).click();
  await report.becomes(() => report.page.locator('.gpu').count(), 4096);
  data.topology.comms.pop();
  await report.close();
  const without = await openData(data, { address: '#topology?comm=1' });
  assert.match(await without.text('figcaption'), /mesh_dp:1 is not among the communicators listed here\./);
  await without.close();
});

test('a filter finds what is seen, and a column that says nothing is not there', async () => {
  const data = sample({ columns: 20 });
  data.processes.list.pci.fill(null);
  data.processes.list.last_ns.fill(4242e9);
  const report = await openData(data, { address: '#processes' });
  const titles = await report.page.evaluate(() => [...document.querySelectorAll('table[aria-label="Processes"] th')].map((heading) => heading.innerText.trim()));
  for (const absent of ['PCI', 'Model']) assert.ok(!titles.includes(absent), titles.join());
  assert.match(await report.text('main'), /Model\s+NVIDIA H200/);
  await report.page.getByLabel('Filter Processes').fill('4242');
  await report.becomes(() => report.cells('Processes').then((rows) => rows.length), 1);
  assert.deepEqual(await report.cells('Processes'), [['No rows.']], 'shown as 71 min');
  await report.close();
});

test('of logs alone, nothing is said of ranks, hosts and processes', async () => {
  const data = sample({ columns: 20 });
  for (const key of Object.keys(data.who)) data.who[key] = [];
  Object.assign(data, { hosts: [], comms: [] });
  Object.assign(data.run, { begin: null, begin_ns: null, length_ns: null, least_length_ns: null });
  for (const id of PAGES.slice(1, 7)) data[id] = { missing: 'Nothing that was given holds operations.' };
  Object.assign(data.processes, { captured: false, list: null, texts: [] });
  data.verdict.cards.forEach((card) => Object.assign(card, { who: [], rows: [], operation: null, comm: null }));
  const report = await openData(data, { address: '#processes' });
  assert.equal(await report.text('.run-facts'), 'no record');
  assert.doesNotMatch(await report.text('main'), /No rows|0 processes/);
  await report.go('#verdict');
  assert.doesNotMatch(await report.text('main'), /\b0\b/);
  await report.close();
});

test('all pages fit a phone, with little above them', async () => {
  const report = await openData(sample({ columns: 60, links: true }));
  await report.page.setViewportSize({ width: 390, height: 844 });
  for (const page of PAGES) {
    await report.go(`#${page}`);
    const [wide, top] = await report.page.evaluate(() => [document.documentElement.scrollWidth, document.querySelector('main').getBoundingClientRect().top + scrollY]);
    assert.ok(wide <= 390, `${page} is ${wide} wide`);
    assert.ok(top <= 120, `${page} begins at ${top}`);
  }
  await report.close();
});

test('a phone shows the rate at a slow link and the matrix of many hosts whole', async () => {
  const few = await openData(sample({ columns: 10 }));
  await few.page.setViewportSize({ width: 390, height: 844 });
  await few.go('#topology');
  const [left, right, edge] = await few.page.evaluate(() => {
    const box = document.querySelector('.slow-label').getBoundingClientRect();
    return [box.left, box.right, document.querySelector('svg.topology').getBoundingClientRect().right];
  });
  assert.ok(left >= 0 && right <= edge, `from ${left} to ${right} of ${edge}`);
  await few.close();

  const many = await openData(sample({ ranks: 1024, columns: 10 }));
  await many.page.setViewportSize({ width: 390, height: 844 });
  await many.page.evaluate(() => {
    const { strokeRect } = CanvasRenderingContext2D.prototype;
    globalThis.__right = 0;
    CanvasRenderingContext2D.prototype.strokeRect = function draw(x, y, width, height) {
      globalThis.__right = Math.max(globalThis.__right, x + width);
      strokeRect.call(this, x, y, width, height);
    };
  });
  await many.go('#network');
  await many.page.waitForFunction(() => globalThis.__right > 0);
  const [drawn, wide] = await many.page.evaluate(() => [globalThis.__right, document.querySelector('main canvas').clientWidth]);
  assert.ok(drawn <= wide, `${drawn} of ${wide}`);
  await many.close();
});

test('in a frame of a notebook links and choices stay in the page', async () => {
  const page = fill(PAGE, sample({ columns: 10 })).replaceAll('&', '&amp;').replaceAll('"', '&quot;');
  const file = join(scratch, 'notebook.html');
  // As Report._repr_html_ of the Python module writes it.
  writeFileSync(file, `<!doctype html><script>performance.mark('lockstep-shown')</script>
<iframe sandbox="allow-scripts allow-downloads allow-modals allow-forms" style="width:100%;height:700px" srcdoc="${page}"></iframe>`);
  const report = await openFile(file);
  const frame = report.page.frameLocator('iframe');
  const shown = async () => frame.locator('main').getAttribute('data-page');
  await frame.locator('nav a', { hasText: 'Ranks × time' }).click();
  await report.becomes(shown, 'lateness');
  await frame.locator('[data-focus="measure=waiting"]').click();
  await report.becomes(() => frame.locator('[data-focus="measure=waiting"]').getAttribute('aria-pressed'), 'true');
  await frame.locator('body').press('8');
  await report.becomes(shown, 'processes');
  await frame.locator('main a', { hasText: 'rank 3' }).first().click();
  await report.becomes(shown, 'lateness');
  await frame.locator('button', { hasText: 'Keys' }).click();
  await frame.locator('dialog button', { hasText: 'Close' }).click();
  await report.becomes(() => frame.locator('dialog').count(), 0);
  assert.equal(report.page.url(), `file://${file}`);
  await report.close();
});

test('every process of 4,096 is found, sorted and linked to', async (context) => {
  const data = sample({ ranks: 4096, columns: 10 });
  data.processes.list.ops[3000] = 3999;
  const report = await openData(data);
  const first = async () => (await report.rows('Processes')).map((read) => read('Rank'))[0];
  /** The row that is marked, if it is in view. */
  const picked = () => report.page.evaluate(() => {
    const row = document.querySelector('table[aria-label="Processes"] tr[aria-current]');
    if (!row) return null;
    const [box, around] = [row.getBoundingClientRect(), row.closest('.table-scroll').getBoundingClientRect()];
    return box.top >= around.top && box.bottom <= around.bottom && box.top >= 0 && box.bottom <= innerHeight ? row.querySelector('td').innerText.trim() : null;
  });
  await report.page.keyboard.press('/');
  await report.page.getByLabel('Rank, host or communicator').fill('3333');
  await report.page.locator('.found').getByRole('button', { name: 'its process' }).first().click();
  await report.becomes(() => address(report), '#processes?rank=3333');
  await report.becomes(picked, 'rank 3333');
  // Another one of the page that is shown.
  await report.go('#processes?rank=12');
  await report.becomes(picked, 'rank 12');
  await report.go('#processes');
  assert.equal(await first(), 'rank 0');
  const heading = report.page.locator('table[aria-label="Processes"] th').filter({ hasText: 'Operations' }).getByRole('button');
  await heading.click();
  await heading.click();
  await report.becomes(first, 'rank 3000');
  const begun = Date.now();
  await report.page.getByLabel('Filter Processes').fill('rank 409');
  await report.becomes(() => report.cells('Processes').then((rows) => rows.length), 7);
  context.diagnostic(`4,096 processes were filtered after ${Date.now() - begun} ms`);
  await report.close();
});

test('a live page is drawn anew where the reader is, not where the address leads', async () => {
  const report = await openData(sample({ ranks: 512, columns: 10 }), { address: '#processes?rank=400' });
  const top = () => report.page.evaluate(() => document.querySelector('table[aria-label="Processes"]').closest('.table-scroll').scrollTop);
  await report.page.waitForFunction(() => document.querySelector('table[aria-label="Processes"]').closest('.table-scroll').scrollTop > 9000);
  await report.page.evaluate(() => { document.querySelector('table[aria-label="Processes"]').closest('.table-scroll').scrollTop = 540; });
  await report.page.keyboard.press('t');
  await report.page.waitForTimeout(200);
  assert.equal(await top(), 540);
  await report.close();
});
