// SPDX-License-Identifier: Apache-2.0
// What readers do with a page: see a hang, zoom, find a rank, copy, save, read on a phone.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import test, { after, before } from 'node:test';
import { format, openData, start, stop } from './browser.mjs';
import { sample } from './sample.mjs';

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
  assert.match(await report.text('figcaption'), /who waits in operation 41 of mesh_dp:1.*, for 60\.0 s until the record ends/);
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

test('a rank, a host and a communicator are found by number and name', async () => {
  const report = await openData(sample({ ranks: 32, columns: 20 }));
  const find = async (text) => {
    await report.page.keyboard.press('/');
    await report.page.getByLabel('Rank, host or communicator').fill(text);
    await report.page.keyboard.press('Enter');
  };
  await find('2');
  await report.becomes(() => address(report), '#lateness?rank=2');
  await find('node-003');
  await report.becomes(() => address(report), '#processes?host=3');
  await find('mesh_tp');
  await report.becomes(() => address(report), '#topology?comm=2');
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
  assert.match(lines[0], /^Rank,Operations,Own lateness \(ns\),of run,Late p50 \(ns\),/);
  const late = data.lateness.rows[3];
  assert.ok(lines[1].startsWith(`"'=cmd(3),""x""",4000,${late.total.blamed_ns},`), lines[1]);
  assert.equal(lines.length, data.lateness.rows.length + 2);
  for (const page of ['lateness', 'operations', 'network', 'bandwidth', 'steps']) {
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
  const lengths = [...data.steps.list.length_ns].sort((a, b) => a - b);
  assert.ok(text.includes(`Step, median ${format.duration(lengths[Math.ceil(lengths.length / 2) - 1])}`), text);
  const { average } = data.steps.split;
  const all = (key) => average.reduce((sum, row) => sum + row[key] * row.steps, 0);
  assert.ok(text.includes(`Exposed communication ${format.percent(all('exposed_ns') / all('length_ns'))}`), text);
  assert.match(text, /AllReduce, \S+ \S+B\+ \S+ GB\/s/);
  await report.page.locator('.small-map').click();
  await report.becomes(() => address(report), '#lateness');
  await report.close();
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

test('a filter finds what is seen, and a column that says nothing is not there', async () => {
  const data = sample({ columns: 20 });
  for (const row of data.processes.rows) Object.assign(row, { pci: null, last_ns: 4242e9 });
  const report = await openData(data, { address: '#processes' });
  const titles = await report.page.evaluate(() => [...document.querySelectorAll('table[aria-label="Processes"] th')].map((heading) => heading.innerText.trim()));
  for (const absent of ['PCI', 'Model']) assert.ok(!titles.includes(absent), titles.join());
  assert.match(await report.text('main'), /Model\s+NVIDIA H200/);
  await report.page.getByLabel('Filter Processes').fill('4242');
  await report.becomes(() => report.cells('Processes').then((rows) => rows.length), 1);
  assert.deepEqual(await report.cells('Processes'), [['No rows.']], 'shown as 71 min');
  await report.close();
});

test('all pages fit a phone, with little above them', async () => {
  const report = await openData(sample({ columns: 60 }));
  await report.page.setViewportSize({ width: 390, height: 844 });
  for (const page of PAGES) {
    await report.go(`#${page}`);
    const [wide, top] = await report.page.evaluate(() => [document.documentElement.scrollWidth, document.querySelector('main').getBoundingClientRect().top + scrollY]);
    assert.ok(wide <= 390, `${page} is ${wide} wide`);
    assert.ok(top <= 120, `${page} begins at ${top}`);
  }
  await report.close();
});
