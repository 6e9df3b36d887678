// SPDX-License-Identifier: Apache-2.0
// What every page is given, and the small parts that pages share.
import type { Report } from './data';
import { announce, h, type Child } from './dom';
import { copyButton, save } from './export';
import { duration, name, UNKNOWN } from './format';
import { addressOf, go, type State } from './state';

export interface View {
  report: Report;
  state: State;
  printing: boolean;
  /** The address has changed since it was drawn: what it asks for comes into view. A live run is drawn anew where the reader is. */
  turned: boolean;
  /** Runs when the page stands in the document: what needs a width is drawn then. */
  later: (run: () => void) => void;
}

export interface Page {
  id: string;
  title: string;
  /** Keys of the state that Escape takes away. */
  details: readonly string[];
  draw: (view: View) => Child[];
}

/** A link to a page. */
export function link(text: Child, page: string, values: Record<string, string | number | null | undefined> = {}, kind = 'link'): HTMLElement {
  return h('a', { href: addressOf(page, values), class: kind }, text);
}

/** Changes what the page shows; null takes a key away. */
export function change(view: View, values: Record<string, string | number | null>): void {
  go(addressOf(view.state.page, { ...view.state.values, ...values }), true);
}

export function whoName(report: Report, who: number | null): string {
  return who === null ? 'no file' : name(report.who.name[who] ?? UNKNOWN, 32);
}

export function hostOf(report: Report, who: number | null): string {
  const host = who === null ? undefined : report.who.host[who];
  return host === undefined ? UNKNOWN : name(report.hosts[host]?.name ?? UNKNOWN, 40);
}

/** Where the hosts' clocks are not aligned, only what one of them recorded is known. */
export function runLength(report: Report): string {
  const { length_ns, least_length_ns } = report.run;
  return length_ns === null && least_length_ns !== null ? `at least ${duration(least_length_ns)}` : duration(length_ns);
}

/** "rank 5 (GPU 5 of node0, pid 4259)". */
export function whoText(report: Report, who: number | null): string {
  return who === null ? '' : name(report.who.text[who] ?? UNKNOWN, 120);
}

/** "operation 1329 of mesh_dp:1", by the number that `lockstep show --op` takes. */
export function operationText(report: Report, comm: number | null, index: number | null): string {
  return `operation ${index ?? UNKNOWN} of ${comm === null ? UNKNOWN : name(report.comms[comm]?.text ?? UNKNOWN, 64)}`;
}

/** What shows an operation with all its events; null where no command line can name it. */
export function showCommand(report: Report, comm: number | null, index: number | null): string | null {
  const show = comm === null ? null : report.comms[comm]?.show ?? null;
  return show === null || index === null ? null : show + String(index);
}

/** A command to run, and a button that copies it. */
export function command(text: string): HTMLElement {
  const shown = name(text, 2000);
  return h('span', { class: 'to-run' }, h('code', { class: 'command' }, shown), copyButton('Copy', `Copy: ${name(text, 120)}`, () => shown, 'copy'));
}

export function commName(report: Report, comm: number | null): string {
  return comm === null ? UNKNOWN : name(report.comms[comm]?.name ?? UNKNOWN, 40);
}

/** Links a process to its row in time. */
export function whoChip(report: Report, who: number): HTMLElement {
  return h('a', { class: 'chip', href: addressOf('lateness', { rank: who }), title: `${whoText(report, who)} – show it in time` }, whoName(report, who));
}

export function hostChip(report: Report, host: number): HTMLElement {
  const text = name(report.hosts[host]?.name ?? UNKNOWN);
  return h('a', { class: 'chip host', href: addressOf('processes', { host }), title: `Processes of ${text}` }, text);
}

/** Buttons of which one is chosen. */
export function choices(view: View, key: string, label: string, options: readonly (readonly [string, string])[], chosen: string): HTMLElement {
  return h('span', { class: 'choices', role: 'group', 'aria-label': label },
    h('span', { class: 'quiet' }, label),
    options.map(([value, text]) => h('button', {
      type: 'button', 'aria-pressed': value === chosen ? 'true' : 'false', 'data-focus': `${key}=${value}`,
      onclick: () => change(view, { [key]: value }),
    }, text)));
}

export function select(view: View, key: string, label: string, options: readonly (readonly [string, string])[], chosen: string): HTMLElement {
  const element = h('select', {
    'data-focus': key,
    onchange: (event) => change(view, { [key]: (event.target as HTMLSelectElement).value }),
  }, options.map(([value, text]) => h('option', { value, selected: value === chosen }, text)));
  return h('label', { class: 'choices' }, h('span', { class: 'quiet' }, label), element);
}

/** A chart or a drawing with its heading, what it says in words, and the same numbers as a table. */
export function figure(view: View, key: string, title: string, tools: Child, drawing: Child, image: (() => string | null | Promise<string | null>) | null, asTable: () => HTMLElement, caption?: Child): HTMLElement {
  const shown = view.state.values['table'] === key;
  const toggle = view.printing ? null : h('button', {
    type: 'button', 'aria-pressed': shown ? 'true' : 'false', 'data-focus': `table:${key}`,
    onclick: () => {
      change(view, { table: shown ? null : key });
      announce(shown ? 'Shown as a drawing' : 'Shown as a table');
    },
  }, shown ? 'Show as chart' : 'Show as table');
  const picture = image === null || shown ? null : h('button', {
    type: 'button', title: 'Save the picture', 'data-focus': `png:${key}`,
    onclick: async () => {
      const address = await image();
      if (address !== null) save(title, 'png', address);
    },
  }, 'PNG');
  return h('figure', { class: 'panel' },
    h('div', { class: 'panel-head' }, h('h2', {}, title), view.printing ? null : h('div', { class: 'tools' }, tools, toggle, picture)),
    shown && !view.printing ? asTable() : drawing,
    caption ? h('figcaption', {}, caption) : null);
}

export function panel(title: Child, ...content: Child[]): HTMLElement {
  return h('section', { class: 'panel' }, h('div', { class: 'panel-head' }, h('h2', {}, title)), content);
}

/** A sentence; what stands between backticks is code. */
export function prose(text: string): Child {
  const parts = text.split('`');
  return parts.length % 2 === 0 ? text : parts.map((part, at) => (at % 2 === 1 ? h('code', {}, part) : part));
}

export function notes(texts: readonly string[]): Child {
  return texts.length === 0 ? null : h('ul', { class: 'notes' }, texts.map((text) => h('li', {}, prose(text))));
}

/** A page, or a part of one, about which nothing is known: why, and what would change it. */
export function missing(text: string): HTMLElement {
  return h('div', { class: 'panel missing', role: 'note' },
    h('strong', {}, 'Not in this recording'),
    h('p', {}, prose(text)));
}

/** What a colour or a line of a drawing means: the sign and its text stay beside each other. */
export function key(sign: string, text: string, background: string | null = null): HTMLElement {
  const drawn = h('span', { class: sign });
  if (background !== null) drawn.style.background = background;
  return h('span', { class: 'key' }, drawn, text);
}

export function keys(...items: Child[]): HTMLElement {
  return h('div', { class: 'ramp', 'aria-hidden': 'true' }, items);
}

/** Facts in a row: what, and how much. */
export function facts(pairs: readonly (readonly [string, Child])[]): HTMLElement {
  return h('dl', { class: 'facts' }, pairs.map(([key, value]) => h('div', {}, h('dt', {}, key), h('dd', {}, value))));
}
