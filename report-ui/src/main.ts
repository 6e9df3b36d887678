// SPDX-License-Identifier: Apache-2.0
// The frame around the pages: heading, list of pages, keys, theme, printing, and looking again while a job runs.
import { closeCharts } from './charts';
import { fetchReport, hostCount, isMissing, known, load, type Report } from './data';
import { announce, append, clear, h, hideTip, type Child } from './dom';
import { clockTime, count, name, plural } from './format';
import { bandwidth } from './pages/bandwidth';
import { comparison } from './pages/comparison';
import { lateness } from './pages/lateness';
import { network } from './pages/network';
import { operations } from './pages/operations';
import { processes } from './pages/processes';
import { steps } from './pages/steps';
import { topology } from './pages/topology';
import { verdict, verdictTitle } from './pages/verdict';
import { copyButton } from './export';
import { search } from './search';
import { addressOf, go, keepLinksInside, numberOf, readState } from './state';
import './style.css';
import { apply, choice, choose, onSystemChange, type Choice } from './theme';
import { runLength, type Page, type View } from './view';

const app = document.getElementById('app') as HTMLElement;

let report: Report;
let shownPage = '';
let shownAddress = '';
let stale = '';

function pages(): Page[] {
  const all = [verdict, lateness, operations, bandwidth, topology, network, steps, processes];
  return report.comparison === undefined ? all : [...all, comparison];
}

/** A launcher is a process without a rank; where nobody has a rank, each process counts as one. */
function ranks(): number {
  return report.who.rank.filter((rank) => rank !== null).length || report.who.rank.length;
}

/** Whether there is anything to see on a page. */
function isEmpty(page: Page): boolean {
  const data = (report as unknown as Record<string, unknown>)[page.id];
  return typeof data === 'object' && data !== null && isMissing(data);
}

/** What the list of pages says beside a name. */
function badge(page: Page): Child {
  if (isEmpty(page)) return h('span', { class: 'badge', title: 'not in this recording' }, '–');
  if (page.id === 'verdict') {
    const problems = report.diagnosis.findings.filter((finding) => finding.severity !== 'note').length;
    return problems > 0 ? h('span', { class: 'badge alert' }, count(problems)) : null;
  }
  if (page.id === 'processes') {
    const lost = known(report.verdict)?.lost_events ?? 0;
    return lost > 0 ? h('span', { class: 'badge', title: `${plural(lost, 'event')} lost`, 'aria-label': `${plural(lost, 'event')} lost` }, '▲') : null;
  }
  return null;
}

function heading(): HTMLElement {
  const { run } = report;
  const wanted = choice();
  const theme = h('select', { 'aria-label': 'Colours', 'data-focus': 'theme', onchange: (event) => {
    choose((event.target as HTMLSelectElement).value as Choice);
    draw();
  } }, (['auto', 'light', 'dark'] as const).map((value) => h('option', { value, selected: value === wanted }, { auto: 'Colours: system', light: 'Light', dark: 'Dark' }[value])));
  return h('header', { class: 'top' },
    h('div', { class: 'brand' }, h('strong', {}, 'Lockstep'), h('span', { class: 'run', title: name(run.paths[0], 300) }, name(run.title, 60))),
    h('div', { class: 'run-facts' },
      ranks() > 0 ? h('span', {}, plural(ranks(), 'rank')) : null, hostCount(report) > 0 ? h('span', {}, plural(hostCount(report), 'host')) : null,
      run.least_length_ns === null ? null : h('span', { title: run.length_ns === null && run.least_length_ns !== null ? 'The hosts’ clocks are not aligned: the longest recording of one host' : null }, runLength(report)), h('span', { class: 'quiet' }, run.begin_ns === null ? 'no record' : clockTime(Number(run.begin_ns)))),
    h('div', { class: 'top-tools' },
      report.live ? h('span', { class: `live ${stale ? 'stale' : ''}`, title: stale || 'This page refreshes itself' }, stale ? '○ no answer' : '● live') : null,
      h('button', { type: 'button', onclick: () => search(report), 'data-focus': 'search', 'aria-haspopup': 'dialog', title: 'A rank, host or communicator: /' }, 'Find'),
      location.protocol === 'about:' ? null : copyButton('Copy link', 'Copy the address of what is shown', () => location.href),
      h('button', { type: 'button', onclick: () => window.print(), 'data-focus': 'print' }, 'Print'),
      h('button', { type: 'button', onclick: help, 'data-focus': 'help', 'aria-haspopup': 'dialog' }, 'Keys'),
      theme));
}

function navigation(current: Page): HTMLElement {
  return h('nav', { 'aria-label': 'Pages' }, h('ol', {}, pages().map((page, index) => h('li', {},
    h('a', { href: addressOf(page.id), 'aria-current': page === current ? 'page' : null, class: isEmpty(page) ? 'empty' : '', 'data-focus': `page:${page.id}` },
      h('kbd', { 'aria-hidden': 'true' }, String(index + 1)), h('span', {}, page.title), badge(page))))));
}

const KEYS: readonly (readonly [string, string])[] = [
  ['1 – 9', 'page'], ['/', 'find a rank, host or communicator'], ['← →', 'previous, next page'], ['Tab', 'next control, link or drawing'], ['Arrows', 'in the focused drawing: another cell, rank or pair; in a table: scroll'],
  ['+ −', 'in the heat map and the waterfall: zoom'], ['Escape', 'close the details'], ['t', 'light or dark'], ['?', 'these keys'],
];

function help(): void {
  const dialog = h('dialog', { class: 'help', 'aria-label': 'Keys' },
    h('h2', {}, 'Keys'), h('dl', {}, KEYS.map(([key, text]) => [h('dt', {}, h('kbd', {}, key)), h('dd', {}, text)])),
    h('form', { method: 'dialog' }, h('button', { type: 'submit' }, 'Close')));
  dialog.addEventListener('close', () => dialog.remove());
  document.body.appendChild(dialog);
  dialog.showModal();
}

function makeView(page: Page, printing: boolean, turned: boolean, waiting: (() => void)[]): View {
  const state = printing ? { page: page.id, values: {} } : readState();
  return { report, state: { page: page.id, values: state.values }, printing, turned, later: (run) => waiting.push(run) };
}

function draw(): void {
  const started = performance.now();
  const state = readState();
  const page = pages().find((entry) => entry.id === state.page) ?? verdict;
  const focused = document.activeElement?.getAttribute('data-focus') ?? null;
  const moved = page.id !== shownPage;
  const turned = location.hash !== shownAddress;
  const scroll = window.scrollY;
  const inner = [...document.querySelectorAll<HTMLElement>('main .canvas-scroll, main .table-scroll')].map((element) => [element.scrollTop, element.scrollLeft] as const);
  shownPage = page.id;
  shownAddress = location.hash;
  document.title = `${verdictTitle(report)} · ${name(report.run.title, 60)} · Lockstep`;
  hideTip();
  closeCharts();
  clear(app);
  const waiting: (() => void)[] = [];
  const main = h('main', { id: 'main', tabindex: -1, 'aria-label': page.title, 'data-page': page.id });
  append(main, page.draw(makeView(page, false, turned, waiting)));
  append(app, [h('a', { class: 'skip', href: '#main', onclick: (event) => {
    event.preventDefault();
    main.focus();
  } }, 'Skip to the page'), heading(), h('div', { class: 'frame' }, navigation(page), main)]);
  if (!moved) {
    // What was scrolled stays where it was, so that a choice does not lose the reader's place.
    document.querySelectorAll<HTMLElement>('main .canvas-scroll, main .table-scroll').forEach((element, index) => {
      [element.scrollTop, element.scrollLeft] = inner[index] ?? [0, 0];
    });
  }
  for (const run of waiting) run();
  if (focused !== null) {
    const again = [...app.querySelectorAll<HTMLElement>('[data-focus]')].find((element) => element.getAttribute('data-focus') === focused);
    again?.focus({ preventScroll: true });
  }
  document.querySelector('nav [aria-current]')?.scrollIntoView({ block: 'nearest', inline: 'nearest' });
  if (moved) {
    window.scrollTo(0, 0);
    announce(page.title);
  } else {
    window.scrollTo(0, scroll);
  }
  performance.measure('lockstep-draw', { start: started });
  if (!moved) return;
  const target = page.id === 'verdict' ? numberOf(state, 'finding') : null;
  if (target !== null) document.getElementById(`finding-${target}`)?.scrollIntoView();
  // What a link led here for is seen, wherever it is on the page.
  else document.querySelector('main [data-reveal]')?.scrollIntoView({ block: 'center' });
}

/** All pages, one after the other, as paper wants them. */
function print(): void {
  closeCharts();
  clear(app);
  document.documentElement.dataset['theme'] = 'light';
  const waiting: (() => void)[] = [];
  const sheet = (title: string, content: Child): HTMLElement => h('section', { class: 'sheet', 'aria-label': title }, h('h1', { class: 'sheet-title' }, title), content);
  const drawn = (page: Page): Child[] => page.draw(makeView(page, true, false, waiting));
  const empty = pages().filter(isEmpty);
  const sheets = pages().filter((page) => !isEmpty(page)).map((page) => sheet(page.title, drawn(page)));
  // A sheet of paper for each would say nothing but that.
  if (empty.length > 0) sheets.push(sheet('Pages without data', empty.map((page) => [h('h2', { class: 'section' }, page.title), drawn(page)])));
  append(app, [h('div', { class: 'printed' }, heading(), sheets)]);
  for (const run of waiting) run();
}

function endPrint(): void {
  apply(choice());
  draw();
}

function typing(target: EventTarget | null): boolean {
  return target instanceof HTMLInputElement || target instanceof HTMLSelectElement || target instanceof HTMLTextAreaElement;
}

/** Whether the keys to the left and right scroll what has the focus: also at its end, so that a key held down does not turn the page. */
function scrollsSideways(target: EventTarget | null): boolean {
  const region = target instanceof Element ? target.closest('.table-scroll') : null;
  return region !== null && region.scrollWidth > region.clientWidth;
}

function onKey(event: KeyboardEvent): void {
  if (event.ctrlKey || event.metaKey || event.altKey || typing(event.target) || document.querySelector('dialog[open]')) return;
  const all = pages();
  const state = readState();
  const current = Math.max(0, all.findIndex((page) => page.id === state.page));
  if (/^[1-9]$/.test(event.key)) {
    const page = all[Number(event.key) - 1];
    if (page) go(addressOf(page.id));
  } else if (event.key === 'ArrowLeft' || event.key === 'ArrowRight') {
    if (scrollsSideways(event.target)) return;
    const page = all[current + (event.key === 'ArrowLeft' ? -1 : 1)];
    if (page) go(addressOf(page.id));
  } else if (event.key === 'Escape') {
    const page = all[current] ?? verdict;
    const left = Object.fromEntries(Object.entries(state.values).filter(([key]) => !page.details.includes(key)));
    go(addressOf(page.id, left), true);
  } else if (event.key === 't') {
    choose(document.documentElement.dataset['theme'] === 'dark' ? 'light' : 'dark');
    draw();
  } else if (event.key === '?') {
    help();
  } else if (event.key === '/') {
    search(report);
  } else {
    return;
  }
  event.preventDefault();
}

/** Asks again while the job runs; what did not change is not drawn again. */
function watch(): void {
  const textOf = (of: Report): string => JSON.stringify({ ...of, run: { ...of.run, made: '' } });
  let before = textOf(report);
  const again = (): void => {
    fetchReport().then((next) => {
      const text = textOf(next);
      const changed = text !== before || stale !== '';
      stale = '';
      report = next;
      before = text;
      if (changed) draw();
    }).catch((error: unknown) => {
      stale = `No answer: ${error instanceof Error ? error.message : String(error)}`;
      draw();
    }).finally(() => {
      if (report.live) setTimeout(again, Math.max(500, (report.refresh_ns ?? 2e9) / 1e6));
    });
  };
  setTimeout(again, Math.max(500, (report.refresh_ns ?? 2e9) / 1e6));
}

function fail(error: unknown): void {
  clear(app);
  append(app, [h('main', { class: 'failed' }, h('h1', {}, 'This report cannot be shown'), h('p', {}, error instanceof Error ? error.message : String(error)))]);
}

async function start(): Promise<void> {
  apply(choice());
  report = await load();
  draw();
  keepLinksInside();
  window.addEventListener('hashchange', draw);
  window.addEventListener('keydown', onKey);
  window.addEventListener('beforeprint', print);
  window.addEventListener('afterprint', endPrint);
  onSystemChange(() => {
    apply(choice());
    draw();
  });
  if (report.live) watch();
  // From the first byte to the first page on the screen; the tests read it.
  requestAnimationFrame(() => requestAnimationFrame(() => performance.mark('lockstep-shown')));
}

start().catch(fail);
