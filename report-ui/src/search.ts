// SPDX-License-Identifier: Apache-2.0
// Goes to a rank, host or communicator by its number or name.
import type { Report } from './data';
import { append, clear, h } from './dom';
import { count, name, plural } from './format';
import { addressOf, go } from './state';

interface Place { text: string; kind: string; address: string; rank: number | null; process: string | null }

const SHOWN = 12;

function placesOf(report: Report): Place[] {
  return [
    ...report.who.name.map((text, who) => ({ text: report.who.text[who] ?? text, kind: 'in time', address: addressOf('lateness', { rank: who }), rank: report.who.rank[who] ?? null, process: addressOf('processes', { rank: who }) })),
    ...report.hosts.map((host, at) => ({ text: host.name, kind: plural(host.who.length, 'rank'), address: addressOf('processes', { host: at }), rank: null, process: null })),
    ...report.comms.map((comm, at) => ({ text: comm.name, kind: `communicator of ${plural(comm.ranks, 'rank')}`, address: addressOf('topology', { comm: at }), rank: null, process: null })),
  ];
}

/** The rank of that number first, then names that begin with the text, then those that hold it: of a number, where a number begins with it. */
function matching(places: readonly Place[], wanted: string): { shown: Place[]; more: number } {
  const text = wanted.trim().toLowerCase();
  const number = /^(?:rank\s*)?(\d{1,9})$/.exec(text)?.[1];
  const weight = (place: Place): number => {
    if (number !== undefined && place.rank === Number(number)) return 0;
    const at = /^\d+$/.test(text) ? place.text.search(new RegExp(`(?<!\\d)${text}`)) : place.text.toLowerCase().indexOf(text);
    return at === 0 ? 1 : at > 0 ? 2 : 3;
  };
  const found = places.map((place, at) => ({ place, at, weight: weight(place) })).filter((entry) => entry.weight < 3)
    .sort((a, b) => a.weight - b.weight || a.at - b.at).map((entry) => entry.place);
  return { shown: found.slice(0, SHOWN), more: Math.max(0, found.length - SHOWN) };
}

export function search(report: Report): void {
  const places = placesOf(report);
  let found: Place[] = [];
  const list = h('ol', { class: 'found' });
  const choose = (address: string | undefined): void => {
    if (address === undefined) return;
    dialog.remove();
    go(address);
  };
  const way = (text: string, address: string): HTMLElement => h('button', { type: 'button', class: 'link', onclick: () => choose(address) }, text);
  const show = (): void => {
    const { shown, more } = matching(places, input.value);
    found = shown;
    clear(list);
    append(list, found.map((place) => h('li', {}, way(name(place.text, 100), place.address), h('span', { class: 'quiet' }, ` ${name(place.kind, 40)}`), place.process === null ? null : [h('span', { class: 'quiet' }, ', '), way('its process', place.process)])));
    if (more > 0) append(list, [h('li', { class: 'quiet' }, `… and ${count(more)} more: type on.`)]);
    if (found.length === 0) append(list, [h('li', { class: 'quiet' }, 'No match.')]);
  };
  const input: HTMLInputElement = h('input', { type: 'text', placeholder: 'rank 12, node-001, mesh_dp:1', 'aria-label': 'Rank, host or communicator', oninput: show });
  const dialog: HTMLDialogElement = h('dialog', { class: 'search', 'aria-label': 'Go to' },
    h('form', { method: 'dialog', onsubmit: (event) => {
      event.preventDefault();
      choose(found[0]?.address);
    } }, input, h('button', { type: 'button', onclick: () => dialog.remove() }, 'Close')), list);
  dialog.addEventListener('close', () => dialog.remove());
  document.body.appendChild(dialog);
  show();
  dialog.showModal();
  input.focus();
}
