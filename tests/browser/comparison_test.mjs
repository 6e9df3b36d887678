// SPDX-License-Identifier: Apache-2.0
// The page of `lockstep report --against`, of two simulated runs: what `lockstep compare` says, without anything out of sight.
import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { BUILD, format, openFile, scratch, start, stop } from './browser.mjs';

const LOCKSTEP = join(BUILD, 'bin/lockstep');
const { duration, name, rate } = format;
const MARKS = { worse: '▲ worse', better: '▽ better', none: 'no change', 'cannot tell': '? cannot tell' };

before(start);
after(stop);

function simulate(title, ...options) {
  const out = join(scratch, title);
  execFileSync(join(BUILD, 'bin/lockstep-sim-job'), ['--ranks', '8', '--layout', 'tp=2', '--mode', 'deep', '--marks', '--steps', '60', ...options, '-o', out], { stdio: 'pipe' });
  return out;
}

/** Headings of the ratios that are not in sight as a whole, of those that have to be. */
const hidden = (page) => page.evaluate(() => {
  const region = document.querySelector('main .table-scroll');
  const right = region.getBoundingClientRect().left + region.clientLeft + region.clientWidth;
  const headings = [...region.querySelectorAll('th')];
  const last = headings.findIndex((heading) => heading.innerText.startsWith('Adds'));
  return headings.slice(0, last + 1).filter((heading) => heading.getBoundingClientRect().right > right + 0.5).map((heading) => heading.innerText);
});

test('what got worse is seen at once, and from when on', async () => {
  const [a, b] = [simulate('good'), simulate('new', '--again', '1', '--slow', 'AllReduce=1.1@20')];
  const compare = spawnSync(LOCKSTEP, ['compare', '--json', a, b], { encoding: 'utf8' });
  const { comparison } = JSON.parse(compare.stdout);
  assert.deepEqual([compare.status, comparison.verdict.state], [1, 'same'], 'steps take as long as before, and yet something is worse');
  const file = join(scratch, 'comparison.html');
  execFileSync(LOCKSTEP, ['report', '--against', a, b, '-o', file], { stdio: 'pipe' });

  const report = await openFile(file, { address: '#comparison' });
  assert.equal(await report.page.textContent('main h1'), name(comparison.verdict.headline, 2000));
  const worse = comparison.rows.filter((row) => !row.repeats && row.change === 'worse');
  assert.ok(worse.length > 4);
  assert.equal(await report.page.getAttribute('main .verdict', 'class'), 'verdict unsure');
  assert.match(await report.text('main .verdict-state'), new RegExp(`${worse.length} ratios are worse`));

  const rows = comparison.rows.filter((row) => !row.repeats);
  const cells = await report.cells('Ratios');
  assert.equal(cells.length, rows.length);
  assert.ok(rows.some((row) => row.since?.step === 20));
  for (const [at, row] of rows.entries()) {
    const since = row.since === null ? '' : row.since.from_begin ? 'the\u00a0start' : `step\u00a0${row.since.step}`;
    const typical = row.metric === 'busbw' ? [rate(row.a_gbps), rate(row.b_gbps)] : [duration(row.a_ns), duration(row.b_ns)];
    assert.deepEqual([...cells[at].slice(0, 4), ...cells[at].slice(7, 10)], [row.label, row.metric, MARKS[row.change], since, ...typical, duration(row.cost_ns)]);
  }
  for (const width of [1280, 1440]) {
    await report.page.setViewportSize({ width, height: 800 });
    assert.deepEqual(await hidden(report.page), [], `in a window of ${width}`);
  }
  await report.page.setViewportSize({ width: 1280, height: 908 });
  await report.page.getByLabel('Filter Ratios').fill('worse');
  await report.becomes(async () => (await report.cells('Ratios')).length, worse.length);
  await report.shot('comparison');

  // Simulated H200s: what their links carry is known.
  await report.page.setViewportSize({ width: 1280, height: 800 });
  await report.go('#bandwidth?comm=mesh_dp:5');
  const ceilings = (await report.cells('Bandwidth')).map((row) => row[11]);
  assert.deepEqual([ceilings.length, ceilings.filter((text) => !text.endsWith(' %'))], [2, []]);
  await report.shot('comparison-bandwidth');
  await report.close();
});
