// SPDX-License-Identifier: Apache-2.0
// The page with data that are made up: what no recording has in one piece.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { format, openData, openFile, PAGE, start, stop } from './browser.mjs';
import { hostile, PAGES, sample, withoutPages } from './sample.mjs';

before(start);
after(stop);

test('the types of the page hold', () => {
  const modules = process.env.LOCKSTEP_PAGE_MODULES;
  const checked = spawnSync(join(modules, '.bin/tsc'), ['--noEmit', '--project', join(modules, '..')], { encoding: 'utf8' });
  assert.deepEqual([checked.stdout, checked.status], ['', 0]);
});

test('numbers have units, three digits, and separators', () => {
  const { duration, bytes, rate, percent, digits, count, ranges, quantity } = format;
  assert.deepEqual([0, 850, 999.6, 1234, 20512340, 1.5e9, 599.4e9, 1.2e12, 9e12].map(duration), ['0 s', '850 ns', '1.00 µs', '1.23 µs', '20.5 ms', '1.50 s', '599 s', '20 min', '2 h 30 min']);
  assert.deepEqual([null, -20512340].map(duration), ['–', '-20.5 ms']);
  assert.deepEqual([0, 8, 1024, 26214400, 2 ** 50].map(bytes), ['0 B', '8 B', '1.00 KiB', '25.0 MiB', '1.00 PiB']);
  assert.deepEqual([0.174, 69.23, 1234.5, 2.06e-5].map(rate), ['174 MB/s', '69.2 GB/s', '1,230 GB/s', '20.6 kB/s']);
  assert.deepEqual([0.5, 1.2345, 0].map(percent), ['50.0 %', '123 %', '0 %']);
  assert.deepEqual([0.00001234, 9994, 999.6].map(digits), ['1.23e-5', '9,990', '1,000']);
  assert.equal(count(1234567), '1,234,567');
  assert.equal(ranges([3, 1, 2, 9, 7, 8, 20]), '1–3, 7–9, 20');
  assert.equal(quantity(7262429, 'ns/step'), '7.26 ms per step');
});

test('ranges have one unit where both ends have it, and small shares no digits that say nothing', () => {
  const { percent, range } = format;
  assert.deepEqual([range('4.00 MiB', '8.00 MiB'), range('512 KiB', '1.00 MiB'), range('3 GB/s', '3 GB/s')], ['4.00 – 8.00 MiB', '512 KiB – 1.00 MiB', '3 GB/s']);
  assert.deepEqual([0, 0.00005, 0.0001, 0.5].map(percent), ['0 %', '< 0.01 %', '0.0100 %', '50.0 %']);
});

test('names cannot turn, hide or break a line', () => {
  const { name, clean } = format;
  assert.equal(name('a\u202Eb\u2066c\u200Bd\u0000e\nf'), 'a⟨U+202E⟩b⟨U+2066⟩c⟨U+200B⟩d␀e f');
  assert.equal(name('\ud800x'), '⟨U+D800⟩x');
  assert.equal(name('名前 😀 é'), '名前 😀 é');
  assert.equal(name('x'.repeat(1 << 20)).length, 48);
  assert.equal(clean('x'.repeat(1 << 20)).length, 4000);
});

test('hostile names are text on every page, and run nothing', async () => {
  const data = hostile();
  const report = await openData(data);
  assert.equal(await report.text('#headline'), format.name(data.verdict.headline, 2000));
  for (const page of PAGES) {
    await report.go(`#${page}`);
    const found = await report.page.evaluate(() => ({
      scripts: document.querySelectorAll('main script, main img, main iframe, header script, header img').length,
      longest: Math.max(...[...document.querySelectorAll('*:not(script):not(style)')].flatMap((element) => [...element.attributes].map((attribute) => attribute.value.length).concat([...element.childNodes].filter((node) => node.nodeType === 3).map((node) => node.data.length)))),
      turning: /[\u202a-\u202e\u2066-\u2069]/.test(document.body.innerText),
    }));
    assert.deepEqual([found.scripts, found.turning], [0, false], page);
    assert.ok(found.longest <= 4000, `${page}: a text of ${found.longest} characters`);
    if (page === 'processes') assert.match(await report.page.locator('main').innerText(), /<script>window\.__owned=1<\/scri/);
  }
  // Hints are made of names, too.
  for (const [page, drawing] of [['lateness', 'canvas'], ['lateness', 'canvas >> nth=1'], ['operations', 'canvas'], ['network', 'canvas'], ['bandwidth', '.chart'], ['topology', '.gpu >> nth=1']]) {
    await report.go(`#${page}`);
    const place = report.page.locator(`main ${drawing}`).first();
    await place.scrollIntoViewIfNeeded();
    const box = await place.boundingBox();
    for (const part of [0.3, 0.5, 0.7]) await report.page.mouse.move(box.x + box.width * part, box.y + box.height * part);
  }
  await report.close();
});

test('a page without data says why and what would change it', async () => {
  const why = 'No kernels were recorded. LOCKSTEP_CUDA=kernels records them.';
  const report = await openData(withoutPages(why));
  for (const page of PAGES.slice(1)) {
    await report.go(`#${page}`);
    assert.ok((await report.text('main')).includes(why), page);
  }
  await report.close();
});

test('a healthy run, and one that cannot be judged, are told apart by words', async () => {
  const data = sample({ columns: 20 });
  data.diagnosis = { ...data.diagnosis, verdict: null, findings: [] };
  data.verdict = { state: 'healthy', headline: 'No problem found: 16 ranks on 2 hosts.', finding: null, cards: [], losses: [], lost_events: 0 };
  let report = await openData(data);
  assert.match(await report.text('.verdict'), /No problem\n+No problem found: 16 ranks on 2 hosts\./);
  assert.equal(await report.page.locator('.losses').count(), 0);
  assert.equal(await report.page.locator('nav .alert').count(), 0);
  await report.close();
  report = await openData({ ...data, verdict: { ...data.verdict, losses: [{ text: '90,000 x records were lost', count: 90000, stage: 'capture', kind: 'x', source: 'capture files', who: [] }], lost_events: 90000 } });
  assert.match(await report.text('.verdict'), /No problem in what was recorded/);
  await report.close();
  data.verdict = { ...data.verdict, state: 'cannot tell', headline: 'Rank 2 left no file.' };
  report = await openData(data);
  assert.match(await report.text('.verdict'), /Cannot tell\n+Rank 2 left no file\./);
  await report.close();
});

test('what was lost stands above the verdict', async () => {
  const report = await openData(sample({ columns: 20 }));
  const [losses, verdict] = await Promise.all(['.losses', '.verdict'].map((selector) => report.page.locator(selector).boundingBox()));
  assert.ok(losses.y < verdict.y);
  assert.match(await report.text('.losses'), /1,204 x records were dropped/);
  assert.match(await report.text('.losses h2'), /Much was lost/, '1,216 of 64,000');
  await report.close();

  // A small part of what all processes did is not much.
  const large = sample({ ranks: 1024, columns: 20 });
  large.verdict.lost_events = 20000;
  const little = await openData(large);
  assert.equal(await little.text('.losses h2'), 'Lost');
  await little.close();
});

test('1,024 ranks open at once', async (context) => {
  const data = sample({ ranks: 1024 });
  const report = await openData(data);
  context.diagnostic(`1,024 ranks: the page stood after ${Math.round(await report.opened())} ms`);
  for (const page of PAGES) {
    const begun = Date.now();
    await report.go(`#${page}`);
    context.diagnostic(`${page}: ${Date.now() - begun} ms`);
    await report.shot(`made-1024-${page}`);
  }
  await report.go('#lateness');
  assert.equal(await report.page.locator('main canvas').count(), 1);
  await report.close();
});

test('what is left out is not said to be less than it is', async () => {
  const data = sample({ ranks: 512, columns: 20 });
  let report = await openData(data, { address: '#operations?op=3' });
  assert.match(await report.text('main'), /20 operations of 4,000, chosen for what they show[\s\S]*lockstep show lists every operation\./);
  assert.match(await report.text('main'), /256 ranks not shown, none of which a finding names \(the command above with --all lists them\)/);
  await report.close();
  data.operations.list[3].ranks.named.fill(1);
  report = await openData(data, { address: '#operations?op=3' });
  assert.match(await report.text('main'), /256 ranks not shown \(the command/);
  await report.close();
});

test('a step whose end nothing tells says so', async () => {
  const data = sample({ columns: 20, steps: 12 });
  data.steps.list.length_ns[11] = null;
  const report = await openData(data);
  await report.page.evaluate(() => {
    const { fillText } = CanvasRenderingContext2D.prototype;
    globalThis.__texts = [];
    CanvasRenderingContext2D.prototype.fillText = function draw(text, ...place) {
      globalThis.__texts.push(text);
      fillText.call(this, text, ...place);
    };
  });
  await report.go('#steps');
  await report.page.waitForFunction(() => globalThis.__texts.includes('no length: its end is unknown'));
  assert.match(await report.text('main'), /The end of the last step is unknown, so it has no length\./);
  const chart = report.page.locator('main .chart').last();
  await chart.scrollIntoViewIfNeeded();
  await report.shot('made-last-step');
  const box = await chart.boundingBox();
  await report.page.mouse.move(box.x + box.width - 40, box.y + box.height * 0.5);
  await report.becomes(async () => (await report.page.locator('.chart-tip').allInnerTexts()).some((text) => text.includes('no length: its end is unknown')), true);
  await report.close();
});

test('a rank without a row of its own is found in the row of its host', async () => {
  const report = await openData(sample({ ranks: 512, perHost: 16, columns: 20, named: (kind, i) => (kind === 'host' ? `node${32 - i}` : `${kind} ${i}`) }));
  const labels = await report.page.evaluate(() => JSON.parse(document.getElementById('lockstep-data').textContent).lateness.rows.map((row) => row.label));
  const revealed = async (address) => {
    await report.go('#verdict');
    await report.go(address);
    await report.page.waitForFunction(() => document.querySelector('main .canvas-scroll').scrollTop > 0);
    return report.page.evaluate(() => document.querySelector('main .canvas-scroll').scrollTop);
  };
  // The last host, node1, after node19 to node10.
  const own = await revealed(`#lateness?fit=rows&row=${labels.indexOf('node1')}`);
  assert.equal(await revealed('#lateness?fit=rows&rank=496'), own);
  assert.match(await report.text('figcaption'), /rank 496 has no row of its own: it is in that of node1\./);
  // The table has it, and marks it in the map.
  assert.equal(await report.page.locator('table[aria-label="Lateness by rank"]').getAttribute('aria-rowcount'), '513');
  await report.go('#lateness');
  await report.page.getByLabel('Filter Lateness by rank').fill('rank 411');
  await report.page.locator('table[aria-label="Lateness by rank"]').getByRole('button', { name: 'rank 411' }).click();
  await report.page.waitForURL(/rank=411/);
  assert.match(await report.text('figcaption'), /rank 411 has no row of its own/);
  await report.page.waitForFunction(() => document.querySelector('main .canvas-scroll').getBoundingClientRect().top > -1);
  await report.close();
});

test('the pages turn by keys, and Escape closes what was opened', async () => {
  const report = await openData(sample({ columns: 60 }));
  const { keyboard } = report.page;
  const at = (address) => report.becomes(() => report.page.evaluate(() => location.hash), address);
  const shows = (selector, times) => report.becomes(() => report.page.locator(selector).count(), times);
  await keyboard.press('3');
  await at('#operations');
  await keyboard.press('ArrowRight');
  await at('#bandwidth');
  await keyboard.press('ArrowLeft');
  await at('#operations');
  await keyboard.press('ArrowLeft');
  await at('#lateness');
  await report.page.locator('main canvas').focus();
  for (const key of ['ArrowDown', 'ArrowDown', 'ArrowDown', 'ArrowDown', 'ArrowRight']) await keyboard.press(key);
  await at('#lateness?cell=3.1');
  await report.becomes(() => report.page.evaluate(() => document.activeElement.tagName), 'CANVAS');
  assert.match(await report.text('[aria-label="Cell"]'), /rank 3/);
  await keyboard.press('Escape');
  await at('#lateness');
  await shows('[aria-label="Cell"]', 0);
  await keyboard.press('?');
  await shows('dialog[open]', 1);
  await keyboard.press('Escape');
  await shows('dialog', 0);
  // Everything that can be done with the pointer is reached by Tab, and what has the focus is seen.
  await report.go('#operations');
  const reached = new Set();
  for (let i = 0; i < 80; i += 1) {
    await report.page.keyboard.press('Tab');
    reached.add(await report.page.evaluate(() => {
      const element = document.activeElement;
      const outline = getComputedStyle(element);
      return `${element.tagName}${outline.outlineStyle === 'none' || outline.outlineWidth === '0px' ? ' unseen' : ''}`;
    }));
  }
  for (const kind of ['A', 'BUTTON', 'CANVAS', 'SELECT']) assert.ok(reached.has(kind), `${kind} is not among ${[...reached]}`);
  assert.deepEqual([...reached].filter((kind) => kind.endsWith('unseen') && !kind.startsWith('BODY')), []);
  await report.close();
});

test('a wide table scrolls by keys, and no page turns', async () => {
  const data = sample({ columns: 20 });
  // So few rows that only the width is too much.
  data.bandwidth.rates = data.bandwidth.rates.slice(0, 3);
  const report = await openData(data, { address: '#bandwidth' });
  await report.page.setViewportSize({ width: 960, height: 800 });
  const { keyboard } = report.page;
  const left = () => report.page.evaluate(() => document.querySelector('main .table-scroll').scrollLeft);
  const stop = () => report.page.evaluate(() => document.querySelector('main .table-scroll').getAttribute('tabindex'));
  const address = () => report.page.evaluate(() => location.hash);
  const [inside, all] = await report.page.evaluate(() => [document.querySelector('main .table-scroll').clientWidth, document.querySelector('main .table-scroll').scrollWidth]);
  assert.ok(all > inside + 40, `${all} in ${inside}`);
  await report.becomes(stop, '0');
  await report.page.locator('main .table-scroll').first().focus();
  assert.equal(await report.page.evaluate(() => document.activeElement.className), 'table-scroll');
  for (let i = 0; i < 20; i += 1) await keyboard.press('ArrowRight');
  await report.becomes(left, all - inside);
  await keyboard.press('ArrowRight');
  assert.equal(await address(), '#bandwidth', 'at the end of the table, too');
  // What is drawn again keeps its place and its focus.
  await report.page.evaluate(() => dispatchEvent(new HashChangeEvent('hashchange')));
  assert.equal(await left(), all - inside);
  assert.equal(await report.page.evaluate(() => document.activeElement.className), 'table-scroll');
  for (let i = 0; i < 20; i += 1) await keyboard.press('ArrowLeft');
  await report.becomes(left, 0);
  // From a heading inside of it as well.
  await report.page.locator('main .table-scroll th button').first().focus();
  await keyboard.press('ArrowRight');
  await report.page.waitForFunction(() => document.querySelector('main .table-scroll').scrollLeft > 0);
  assert.equal(await address(), '#bandwidth');

  // With room enough there is nothing to stop at, and the keys turn pages again.
  await report.page.setViewportSize({ width: 1920, height: 800 });
  await report.becomes(stop, null);
  await report.page.locator('main .table-scroll th button').first().focus();
  await keyboard.press('ArrowRight');
  await report.becomes(address, '#topology');
  await report.close();
});

test('light and dark follow the system until the reader chooses', async () => {
  const data = sample({ columns: 20 });
  const ground = (report) => report.page.evaluate(() => getComputedStyle(document.documentElement).backgroundColor);
  const dark = await openData(data, { dark: true });
  const light = await openData(data);
  assert.notEqual(await ground(dark), await ground(light));
  const before = await ground(light);
  await light.page.keyboard.press('t');
  await light.becomes(() => ground(light), await ground(dark));
  await light.page.getByLabel('Colours').selectOption('light');
  await light.becomes(() => ground(light), before);
  await light.page.emulateMedia({ colorScheme: 'dark' });
  assert.equal(await ground(light), before);
  await dark.close();
  await light.close();
});

/** WCAG contrast of two colours written as rgb(r, g, b). */
function contrast(a, b) {
  const light = (colour) => {
    const [r, g, blue] = colour.match(/[\d.]+/g).slice(0, 3).map((part) => (part / 255 <= 0.03928 ? part / 255 / 12.92 : ((part / 255 + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * blue;
  };
  const [x, y] = [light(a), light(b)].sort((p, q) => q - p);
  return (x + 0.05) / (y + 0.05);
}

test('all text has the contrast of WCAG AA, in both themes, and controls have names', async () => {
  for (const dark of [false, true]) {
    const report = await openData(sample({ columns: 20, ranks: 16, links: true }), { dark });
    for (const page of PAGES) {
      await report.go(`#${page}`);
      const texts = await report.page.evaluate(() => {
        const behind = (element) => {
          for (let at = element; at; at = at.parentElement) {
            const colour = getComputedStyle(at).backgroundColor;
            if (!/, 0\)$|transparent/.test(colour)) return colour;
          }
          return getComputedStyle(document.documentElement).backgroundColor;
        };
        return [...document.querySelectorAll('body *')].filter((element) => !element.closest('svg, script, style, .chart, .unseen') && [...element.childNodes].some((node) => node.nodeType === 3 && node.data.trim()))
          .map((element) => ({ text: element.textContent.slice(0, 40), ink: getComputedStyle(element).color, ground: behind(element) }));
      });
      assert.ok(texts.length > 20, page);
      for (const { text, ink, ground } of texts) assert.ok(contrast(ink, ground) >= 4.5, `${page}: "${text}" has a contrast of ${contrast(ink, ground).toFixed(2)} (${ink} on ${ground})`);
      const nameless = await report.page.evaluate(() => [...document.querySelectorAll('button, a[href], select, input, canvas, [role=img], table')]
        .filter((element) => !(element.getAttribute('aria-label') || element.textContent.trim() || element.closest('label')) && !element.closest('[role=img]')).map((element) => element.outerHTML.slice(0, 80)));
      assert.deepEqual(nameless, [], page);
      assert.equal(await report.page.locator('main').count(), 1);
      assert.equal(await report.page.locator('nav [aria-current=page]').count(), 1);
    }
    await report.close();
  }
});

test('all pages print, one after the other', async () => {
  const report = await openData(sample({ columns: 60, links: true }));
  const paper = await report.page.pdf({ preferCSSPageSize: true });
  assert.equal(paper.subarray(0, 5).toString(), '%PDF-');
  const sheets = paper.toString('latin1').match(/\/Type\s*\/Page\b/g).length;
  assert.ok(sheets >= PAGES.length && sheets < 60, `${sheets} sheets`);
  // And what was on the screen is there again.
  await report.page.waitForFunction(() => document.querySelector('main')?.dataset.page === 'verdict');
  await report.close();

  const data = sample({ columns: 20 });
  data.bandwidth = data.network = { missing: 'no GPU times' };
  const partly = await openData(data);
  const titles = await partly.page.evaluate(() => {
    dispatchEvent(new Event('beforeprint'));
    return [...document.querySelectorAll('.sheet')].map((sheet) => sheet.getAttribute('aria-label'));
  });
  assert.deepEqual(titles, ['Verdict', 'Ranks × time', 'Operations', 'Topology', 'Steps', 'Processes & losses', 'Pages without data']);
  await partly.close();
});

test('a link opens what it was copied from', async () => {
  const report = await openData(sample({ columns: 60 }), { address: '#operations?op=5&rank=7&order=late' });
  assert.match(await report.text('#operation-title'), /Operation 55 of/);
  assert.match(await report.text('[aria-label="Rank"]'), /rank 7/);
  assert.equal(await report.page.getByRole('button', { name: 'Latest first' }).getAttribute('aria-pressed'), 'true');
  for (const bad of ['#nowhere', '#operations?op=99999999&rank=x&zoom=9~1', '#lateness?cell=99999.99999&row=77777&rank=88888', '#network?pair=999999&comm=77', '#topology?comm=9999&way=ring:77', '#steps?rank=99999&row=77', '#processes?host=9999', '#bandwidth?comm=__proto__&func=constructor', '#verdict?finding=900', '#%E0%A4%A']) {
    await report.page.evaluate((hash) => { location.hash = hash; }, bad);
    await report.page.waitForFunction(() => document.querySelector('main h2, main h1') !== null);
  }
  await report.close();
});

test('a comparison is shown where there is one', async () => {
  const data = sample({ columns: 20 });
  assert.equal(data.comparison, undefined);
  const run = (path) => ({ path, evidence: 'capture files', processes: 8, steps_by: 'marks', lost_events: 0, losses: [] });
  const row = (values) => ({ metric: 'duration', repeats: false, steps_a: 60, steps_b: 61, a_gbps: null, b_gbps: null, a_ns: 1000000, b_ns: 1080000, change: 'none', cost_ns: 80000, since: null, reason: null, ...values });
  data.comparison = {
    a: run('runs/a'), b: run('runs/<b>'), verdict: { state: 'slower', headline: 'B is 8 % slower.', cause: 0 }, step_ns: 1e7, tested: 3, false_share: 0.05, least_change: 0.01, least_steps: 16, omitted: 2, notes: ['run B has no kernels'],
    rows: [
      row({ label: 'AllReduce 16 MiB+', ratio: 1.08, low: 1.05, high: 1.11, change: 'worse', since: { from_begin: false, step: 210, at_ns: 5, until_step: null, until_ns: null } }),
      row({ label: '<b>x</b>', ratio: null, low: null, high: null, a_ns: null, b_ns: null, cost_ns: null, change: 'cannot tell', reason: 'too few steps' }),
      row({ label: 'the same again', repeats: true, ratio: 1.08, low: 1.05, high: 1.11 }),
    ],
  };
  const report = await openData(data);
  await report.page.keyboard.press('9');
  await report.becomes(() => report.page.textContent('main h1'), 'B is 8 % slower.');
  assert.deepEqual(await report.cells('Ratios'), [
    ['AllReduce 16 MiB+', 'duration', '▲ worse', 'step\u00a0210', '+8.0 %', '+5.0 to +11.0 %', '', '1.00 ms', '1.08 ms', '80.0 µs', '60/61', '–'],
    ['<b>x</b>', 'duration', '? cannot tell', '', '–', '–', '–', '–', '–', '–', '60/61', 'too few steps']]);
  assert.equal(await report.page.getAttribute('main .verdict', 'class'), 'verdict critical');
  await report.close();

  // Long names break into lines before anything is pushed out of sight.
  for (const of of data.comparison.rows) of.label = 'ReduceScatter 128 MiB+ in mesh_dp_cp:12';
  data.comparison.rows[0].since.until_step = 1300;
  const long = await openData(data, { address: '#comparison' });
  const [right, edge] = await long.page.evaluate(() => [[...document.querySelectorAll('main th')].find((heading) => heading.innerText === 'Adds'), document.querySelector('main .table-scroll')].map((element) => element.getBoundingClientRect().right));
  assert.ok(right <= edge, `Adds ends at ${right}, what is seen of the table at ${edge}`);
  await long.shot('made-comparison');
  await long.close();

  // Where nothing marks steps, it is operations that are counted.
  const since = async (of) => {
    data.comparison.b.steps_by = 'operations';
    data.comparison.rows[0].since = { at_ns: 5, until_ns: null, ...of };
    const shown = await openData(data, { address: '#comparison' });
    const [row] = await shown.cells('Ratios');
    await shown.close();
    return row[3];
  };
  assert.equal(await since({ from_begin: false, step: 1210, until_step: 1300 }), 'operation\u00a01,210 until\u00a01,300');
  assert.equal(await since({ from_begin: true, step: 2, until_step: 40 }), 'the\u00a0start until\u00a0operation\u00a040');
});

test('a served page asks again while the run lives, and keeps the reader’s place', async (context) => {
  let data = { ...sample({ columns: 20, ranks: 8 }), live: true, refresh_ns: 5e8 };
  let asked = 0;
  const server = createServer((request, response) => {
    if (request.url === '/data.json') {
      asked += 1;
      response.setHeader('content-type', 'application/json');
      response.end(JSON.stringify(data));
    } else {
      response.setHeader('content-type', 'text/html; charset=utf-8');
      response.end(request.url === '/' ? PAGE : '');
    }
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  context.after(() => {
    server.close();
    server.closeAllConnections?.();
  });
  const url = `http://127.0.0.1:${server.address().port}/`;
  const report = await openFile(url, { allow: [`${url}data.json`] });
  assert.match(await report.text('.live'), /live/);
  await report.go('#operations?op=2');
  data = structuredClone(data);
  data.operations.list[2].title = 'AllReduce 34, seen again';
  await report.page.waitForFunction(() => document.querySelector('#operation-title').textContent === 'AllReduce 34, seen again');
  assert.equal(await report.page.evaluate(() => location.hash), '#operations?op=2');
  await report.go('#processes');
  const size = format.bytes(Buffer.byteLength(JSON.stringify(data)));
  assert.ok((await report.text('main')).includes(`Data\n${size}`), 'the size of what was answered');
  data = { ...data, live: false };
  await report.page.waitForFunction(() => document.querySelector('.live') === null);
  const then = asked;
  await new Promise((resolve) => setTimeout(resolve, 1200));
  assert.equal(asked, then, 'a run that has ended is not asked for again');
  await report.close();
});

test('data of another version, or none, are refused with a sentence', async () => {
  const versions = [[{ ...sample({ ranks: 2, perHost: 2, columns: 4 }), version: 2 }, /version 2; this page reads version 3/], [{ version: 3 }, /lacks verdict, /], [[1], /version undefined/], [null, /lockstep report RUN -o report\.html/]];
  for (const [data, sentence] of versions) {
    const report = await openData(data);
    assert.match(await report.text('main'), sentence);
    await report.close();
  }
});
