// SPDX-License-Identifier: Apache-2.0
// Opens reports in Debian's Chromium and watches them: no error, no warning, no request, nothing that a name has run.
import assert from 'node:assert/strict';
import { mkdtempSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { isDeepStrictEqual } from 'node:util';
import { fill } from './sample.mjs';

function setting(name) {
  const value = process.env[name];
  if (!value) throw new Error(`${name} is not set; tests/browser/run sets it`);
  return value;
}

export const BUILD = setting('LOCKSTEP_BUILD');
export const PAGE = readFileSync(setting('LOCKSTEP_PAGE'), 'utf8');
const require = createRequire(resolve(setting('LOCKSTEP_PAGE_MODULES'), 'here.js'));
const { chromium } = require('playwright-core');

/** The page's own way to write numbers, so that what it shows can be compared with data. */
export const format = await (async () => {
  const { transformSync } = require('esbuild');
  const { code } = transformSync(readFileSync(new URL('../../report-ui/src/format.ts', import.meta.url), 'utf8'), { loader: 'ts', format: 'esm' });
  return import(`data:text/javascript,${encodeURIComponent(code)}`);
})();

export const scratch = mkdtempSync(join(tmpdir(), 'lockstep-browser-'));
const shots = process.env.LOCKSTEP_SHOTS;
if (shots) mkdirSync(shots, { recursive: true });

let browser;

export async function start() {
  browser = await chromium.launch({ executablePath: setting('LOCKSTEP_CHROMIUM'), args: ['--no-sandbox', '--disable-dev-shm-usage', '--force-color-profile=srgb'] });
}

export async function stop() {
  await browser?.close();
  rmSync(scratch, { recursive: true, force: true });
}

export class Report {
  constructor(page, file, faults) {
    this.page = page;
    this.file = file;
    this.faults = faults;
  }

  /** Shows what is under an address such as "#lateness?rank=3". The page draws in its own listener, which was there first. */
  async go(address) {
    await this.page.evaluate((hash) => new Promise((shown) => {
      const before = location.hash;
      location.hash = hash;
      if (location.hash === before) shown();
      else addEventListener('hashchange', shown, { once: true });
    }), address);
    await this.page.waitForFunction((id) => document.querySelector('main')?.dataset.page === id, address.replace(/^#/, '').split('?')[0] || 'verdict');
  }

  text(selector) {
    return this.page.locator(selector).first().innerText();
  }

  /** The cells of a table by its label, as texts. */
  cells(label) {
    return this.page.evaluate((wanted) => [...document.querySelectorAll(`table[aria-label="${wanted}"] tbody tr:not(.spacer)`)].map((row) => [...row.querySelectorAll('td')].map((cell) => cell.innerText.trim())), label);
  }

  /** The same as texts by their headings; a column in which nothing stands is not shown, and reads as "–". */
  async rows(label) {
    const titles = await this.page.evaluate((wanted) => [...document.querySelectorAll(`table[aria-label="${wanted}"] th`)].map((heading) => heading.innerText.replace(/[▾▴]/g, '').trim()), label);
    return (await this.cells(label)).map((cells) => (title) => cells[titles.indexOf(title)] ?? '–');
  }

  async shot(name, options = {}) {
    if (shots) await this.page.screenshot({ path: join(shots, `${name}.png`), ...options });
  }

  /** Milliseconds from the begin of loading until the first page stood on the screen. */
  opened() {
    return this.page.evaluate(() => performance.getEntriesByName('lockstep-shown')[0].startTime);
  }

  /** Waits until what the page says is what is expected: it answers keys and clicks in its own time. */
  async becomes(read, expected) {
    const end = Date.now() + 30000;
    let found = await read();
    while (!isDeepStrictEqual(found, expected) && Date.now() < end) {
      await this.page.waitForTimeout(20);
      found = await read();
    }
    assert.deepEqual(found, expected);
  }

  async close() {
    const owned = await this.page.evaluate(() => globalThis.__owned);
    await this.page.context().close();
    assert.deepEqual(this.faults, []);
    assert.equal(owned, undefined, 'a name in the data has run as a script');
  }
}

/** Opens a file that `lockstep report` wrote. */
export async function openFile(file, { dark = false, address = '', allow = [] } = {}) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, colorScheme: dark ? 'dark' : 'light' });
  const page = await context.newPage();
  page.setDefaultTimeout(30000);
  const url = file.startsWith('http') ? file : pathToFileURL(file).href;
  const faults = [];
  page.on('console', (message) => {
    if (['error', 'warning'].includes(message.type())) faults.push(`${message.type()}: ${message.text()}`);
  });
  page.on('pageerror', (error) => faults.push(`uncaught: ${error.stack}`));
  page.on('request', (request) => {
    const to = request.url();
    if (to !== url && !to.startsWith(`${url}#`) && !to.startsWith('data:') && !allow.includes(to)) faults.push(`request: ${to}`);
  });
  page.on('dialog', (dialog) => {
    faults.push(`dialog: ${dialog.message()}`);
    dialog.dismiss();
  });
  await page.goto(url + address);
  await page.waitForFunction(() => performance.getEntriesByName('lockstep-shown').length > 0 || document.querySelector('main.failed'));
  return new Report(page, file, faults);
}

let files = 0;

/** Opens the built page with some data in it. */
export function openData(data, options) {
  files += 1;
  const file = join(scratch, `made-${files}.html`);
  writeFileSync(file, fill(PAGE, data));
  return openFile(file, options);
}
