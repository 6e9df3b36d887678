// SPDX-License-Identifier: Apache-2.0
// What leaves the page: texts into the clipboard, tables and drawings as files. Files are data: addresses, so nothing is asked of a network.
import { announce, h } from './dom';
import { name } from './format';
import { colour } from './theme';

const SAID_MS = 1500;
// What browsers draw without complaint, in pixels of a side.
const HIGHEST = 8000;

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

const PAINTED = ['fill', 'stroke', 'stroke-width', 'stroke-dasharray', 'opacity', 'font', 'text-anchor', 'dominant-baseline', 'paint-order'] as const;

/** An SVG of the page as a picture: it takes its colours along, as a file has no style sheet. The address of a PNG. */
export async function picture(drawing: SVGSVGElement): Promise<string | null> {
  const copy = drawing.cloneNode(true) as SVGSVGElement;
  const from = drawing.querySelectorAll('*');
  copy.querySelectorAll('*').forEach((element, at) => {
    const style = getComputedStyle(from[at] as Element);
    element.setAttribute('style', PAINTED.map((what) => `${what}:${style.getPropertyValue(what)}`).join(';'));
  });
  const { width, height } = drawing.viewBox.baseVal;
  copy.setAttribute('width', String(width));
  copy.setAttribute('height', String(height));
  const image = new Image();
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(new XMLSerializer().serializeToString(copy))}`;
  await image.decode();
  const scale = Math.min(2, HIGHEST / height);
  const surface = h('canvas', { width: Math.round(width * scale), height: Math.round(height * scale) });
  const g = surface.getContext('2d');
  if (!g) return null;
  g.fillStyle = colour('panel');
  g.fillRect(0, 0, surface.width, surface.height);
  g.drawImage(image, 0, 0, surface.width, surface.height);
  return surface.toDataURL('image/png');
}
