// SPDX-License-Identifier: Apache-2.0
// Elements made from text. Every string becomes a text node or an attribute after clean(); nothing here parses HTML.
import { clean } from './format';

export type Child = Node | string | number | null | undefined | false | readonly Child[];

type Value = string | number | boolean | null | undefined | ((event: Event) => void);

const LONGEST_ATTRIBUTE = 400;

/** An element: `h('button', { class: 'chip', onclick: run }, 'text')`. A key that begins with "on" is a listener. */
export function h<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Record<string, Value> = {},
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  set(element, attributes);
  append(element, children);
  return element;
}

const SVG = 'http://www.w3.org/2000/svg';

/** The same for drawings. */
export function s<K extends keyof SVGElementTagNameMap>(
  tag: K,
  attributes: Record<string, Value> = {},
  ...children: Child[]
): SVGElementTagNameMap[K] {
  const element = document.createElementNS(SVG, tag);
  set(element, attributes);
  append(element, children);
  return element;
}

function set(element: Element, attributes: Record<string, Value>): void {
  for (const [key, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === 'function') {
      if (!key.startsWith('on')) throw new Error(`${key} is no listener`);
      element.addEventListener(key.slice(2), value);
    } else {
      element.setAttribute(key, value === true ? '' : clean(String(value), LONGEST_ATTRIBUTE));
    }
  }
}

export function append(parent: Node, children: readonly Child[]): void {
  for (const child of children) {
    if (child === null || child === undefined || child === false) continue;
    if (child instanceof Node) parent.appendChild(child);
    else if (typeof child === 'string') parent.appendChild(document.createTextNode(clean(child)));
    else if (typeof child === 'number') parent.appendChild(document.createTextNode(String(child)));
    else append(parent, child as readonly Child[]);
  }
}

/** What a reader sees of it. */
export function textOf(child: Child): string {
  if (child === null || child === undefined || child === false) return '';
  if (child instanceof Node) return child.textContent ?? '';
  return Array.isArray(child) ? child.map(textOf).join('') : String(child);
}

export function clear(element: Element): void {
  while (element.firstChild) element.removeChild(element.firstChild);
}

let tip: HTMLElement | null = null;

/** Shows the page's one hint beside the pointer. */
export function showTip(x: number, y: number, ...content: Child[]): void {
  if (!tip) {
    tip = h('div', { class: 'tip', role: 'tooltip' });
    document.body.appendChild(tip);
  }
  clear(tip);
  append(tip, content);
  tip.hidden = false;
  const box = tip.getBoundingClientRect();
  const right = x + 14 + box.width > window.innerWidth;
  const below = y + 14 + box.height > window.innerHeight;
  tip.style.left = `${Math.max(4, right ? x - 10 - box.width : x + 14)}px`;
  tip.style.top = `${Math.max(4, below ? y - 10 - box.height : y + 14)}px`;
}

export function hideTip(): void {
  if (tip) tip.hidden = true;
}

/** Lines of "what  value" for a hint. */
export function facts(title: string, pairs: readonly (readonly [string, string])[]): Node[] {
  return [
    h('strong', {}, title),
    h('dl', {}, pairs.map(([key, value]) => [h('dt', {}, key), h('dd', {}, value)])),
  ];
}

let announcer: HTMLElement | null = null;

/** Says something to those who hear the page. */
export function announce(text: string): void {
  if (!announcer) {
    announcer = h('div', { class: 'unseen', 'aria-live': 'polite' });
    document.body.appendChild(announcer);
  }
  announcer.textContent = clean(text, LONGEST_ATTRIBUTE);
}
