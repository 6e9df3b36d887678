// SPDX-License-Identifier: Apache-2.0
// What leaves the page: texts into the clipboard, tables and drawings as files. Files are data: addresses, so nothing is asked of a network.
import { announce, h } from './dom';
import { name } from './format';

const SAID_MS = 1500;

/** False where the browser forbids it. */
async function copyText(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    // Pages of plain http have no clipboard; what is selected can be copied all the same.
    const field = h('textarea', { class: 'unseen', 'aria-hidden': 'true' });
    field.value = text;
    document.body.appendChild(field);
    field.select();
    const done = document.execCommand('copy');
    field.remove();
    return done;
  }
}

/** A button that copies a text and says so. */
export function copyButton(title: string, what: string, text: () => string, kind = ''): HTMLElement {
  const button: HTMLElement = h('button', {
    type: 'button', class: kind, title: what, 'aria-label': what, 'data-focus': `copy:${what}`,
    onclick: (event) => {
      event.stopPropagation();
      void copyText(text()).then((done) => {
        const said = done ? 'Copied' : 'Not allowed';
        button.textContent = said;
        announce(said);
        setTimeout(() => {
          button.textContent = title;
        }, SAID_MS);
      });
    },
  }, title);
  return button;
}

/** "Lateness by rank" becomes "lateness-by-rank.csv". */
function fileName(title: string, end: string): string {
  return `${name(title, 60).toLowerCase().replace(/[^a-z0-9]+/g, '-').replace(/^-|-$/g, '') || 'lockstep'}.${end}`;
}

export function save(title: string, end: string, address: string): void {
  const link = document.createElement('a');
  link.download = fileName(title, end);
  link.href = address;
  link.click();
}

/** One cell: quoted where it has to be, and never a formula where a spreadsheet opens it. */
function cell(value: number | string | null): string {
  if (value === null) return '';
  if (typeof value === 'number') return String(value);
  const text = /^[=+\-@\t]/.test(value) ? `'${value}` : value;
  return /[",\n\r]/.test(text) ? `"${text.replace(/"/g, '""')}"` : text;
}

function csvOf(rows: readonly (readonly (number | string | null)[])[]): string {
  return rows.map((row) => `${row.map(cell).join(',')}\r\n`).join('');
}

export function csvAddress(rows: readonly (readonly (number | string | null)[])[]): string {
  return `data:text/csv;charset=utf-8,${encodeURIComponent(csvOf(rows))}`;
}
