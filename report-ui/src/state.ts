// SPDX-License-Identifier: Apache-2.0
// What the page shows, kept in the address after "#", so that a link shows the same: #operations?op=12&rank=3

export interface State {
  page: string;
  values: Record<string, string>;
}

const LONGEST = 200;

export function readState(): State {
  const [page = '', query = ''] = location.hash.replace(/^#/, '').split('?', 2);
  const values: Record<string, string> = Object.create(null) as Record<string, string>;
  for (const [key, value] of new URLSearchParams(query)) values[key] = value.slice(0, LONGEST);
  return { page, values };
}

/** The address of a page with what it shows. */
export function addressOf(page: string, values: Record<string, string | number | null | undefined> = {}): string {
  const query = new URLSearchParams();
  for (const [key, value] of Object.entries(values)) {
    if (value !== null && value !== undefined && value !== '') query.set(key, String(value).slice(0, LONGEST));
  }
  const text = query.toString();
  return `#${page}${text ? `?${text}` : ''}`;
}

/** Goes there; `quietly` leaves no step in the browser's history. */
export function go(address: string, quietly = false): void {
  if (address === location.hash) return;
  if (quietly) {
    // Whole, as a part would be one of a notebook's address inside its frame.
    history.replaceState(null, '', location.href.replace(/#.*|$/s, address));
    window.dispatchEvent(new HashChangeEvent('hashchange'));
  } else {
    location.hash = address;
  }
}

/** The whole number under a key, or null. */
export function numberOf(state: State, key: string): number | null {
  const text = state.values[key];
  return text !== undefined && /^\d{1,12}$/.test(text) ? Number(text) : null;
}

/** Inside a notebook's frame the base of addresses is the notebook's own: links would lead out of the page. */
export function keepLinksInside(): void {
  if (location.protocol !== 'about:') return;
  document.addEventListener('click', (event) => {
    const to = event.target instanceof Element ? event.target.closest('a')?.getAttribute('href') : null;
    if (event.defaultPrevented || !to?.startsWith('#')) return;
    event.preventDefault();
    go(to);
  });
}
