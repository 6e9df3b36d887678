// SPDX-License-Identifier: Apache-2.0
// Tables that sort by a column, filter by a word, and draw only the rows in view.
import { append, clear, h, textOf, type Child } from './dom';
import { csvAddress, save } from './export';
import { count, plural, UNKNOWN } from './format';

export interface Column<Row> {
  title: string;
  /** What the heading says when pointed at. */
  hint?: string;
  /** Sorts numbers as numbers; null goes last. */
  value: (row: Row) => number | string | null;
  /** What the cell shows; without it the value. */
  show?: (row: Row) => Child;
  numeric?: boolean;
  /** What `value` counts, for those who take the numbers elsewhere. */
  unit?: string;
  /** Long texts are cut early; they are whole when pointed at. */
  narrow?: boolean;
  /** Long texts break into lines, in tables so short that all rows are drawn at once: more rows have to be of one height. */
  wraps?: boolean;
}

export interface TableOptions<Row> {
  label: string;
  columns: readonly Column<Row>[];
  rows: readonly Row[];
  /** Column sorted by at first; "-" before the index means descending. */
  sort?: { column: number; down: boolean };
  filter?: boolean;
  onPick?: (row: Row) => void;
  isPicked?: (row: Row) => boolean;
  /** The row that is picked comes into view. */
  reveal?: boolean;
  height?: number;
  printing?: boolean;
}

const ROW_HEIGHT = 27;
const DRAWN_AT_ONCE = 120;
const PRINTED = 100;
const SAYS_NOTHING: ReadonlySet<number | string | null> = new Set([null, '', UNKNOWN]);

/** A table of any number of rows; with more than fit, it scrolls inside itself. */
export function table<Row>(options: TableOptions<Row>): HTMLElement {
  const { rows } = options;
  // A column that says nothing of any row only pushes others out of sight.
  const columns = options.columns.filter((column, at) => at === 0 || rows.length === 0 || rows.some((row) => !SAYS_NOTHING.has(column.value(row))));
  const first_by = options.sort ? columns.indexOf(options.columns[options.sort.column] as Column<Row>) : -1;
  let sort = options.sort && first_by >= 0 ? { column: first_by, down: options.sort.down } : null;
  let wanted = '';
  let shown: Row[] = [];

  const body = h('tbody');
  const headings = columns.map((column, index) =>
    h('th', { scope: 'col', class: column.numeric ? 'num' : '', title: column.hint },
      options.printing
        ? column.title
        : h('button', { type: 'button', onclick: () => sortBy(index) }, column.title, h('span', { class: 'arrow', 'aria-hidden': 'true' }))),
  );
  const element = h('table', { 'aria-label': options.label, 'aria-rowcount': rows.length + 1 },
    h('thead', {}, h('tr', {}, headings)), body);
  const scroller = h('div', { class: 'table-scroll', tabindex: options.printing ? null : 0, role: 'region', 'aria-label': options.label, 'data-focus': `scroll:${options.label}` }, element);
  scroller.style.maxHeight = options.printing ? 'none' : `${options.height ?? 420}px`;
  const matches = h('span', { class: 'quiet' });

  const texts = new Map<Row, string>();
  /** What is seen of a row: a number that no cell shows is not found. */
  function seen(row: Row): string {
    let text = texts.get(row);
    if (text === undefined) {
      text = columns.map((column) => textOf(column.show ? column.show(row) : column.value(row) ?? '')).join(' ').slice(0, 2000).toLowerCase();
      texts.set(row, text);
    }
    return text;
  }

  function sortBy(index: number): void {
    sort = { column: index, down: sort?.column === index ? !sort.down : Boolean(columns[index]?.numeric) };
    arrange();
  }

  function arrange(): void {
    shown = wanted === '' ? [...rows] : rows.filter((row) => seen(row).includes(wanted));
    const by = sort;
    const column = by ? columns[by.column] : undefined;
    if (by && column) {
      const keyed = shown.map((row) => ({ row, key: column.value(row) }));
      keyed.sort((a, b) => {
        if (a.key === b.key) return 0;
        if (a.key === null) return 1;
        if (b.key === null) return -1;
        const order = typeof a.key === 'number' && typeof b.key === 'number' ? a.key - b.key
          : String(a.key).localeCompare(String(b.key), 'en', { numeric: true });
        return by.down ? -order : order;
      });
      shown = keyed.map(({ row }) => row);
    }
    headings.forEach((heading, index) => {
      const here = by?.column === index;
      if (here) heading.setAttribute('aria-sort', by.down ? 'descending' : 'ascending');
      else heading.removeAttribute('aria-sort');
      const arrow = heading.querySelector('.arrow');
      if (arrow) arrow.textContent = here ? (by.down ? ' ▾' : ' ▴') : '';
    });
    matches.textContent = wanted === '' ? '' : `${count(shown.length)} of ${plural(rows.length, 'row')}`;
    drawn = -1;
    draw();
  }

  function rowOf(row: Row, index: number): HTMLElement {
    const picked = options.isPicked?.(row) ?? false;
    const cells = columns.map((column, at) => {
      const content = column.show ? column.show(row) : column.value(row) ?? '–';
      const first = at === 0 && options.onPick && !options.printing;
      return h('td', { class: column.numeric ? 'num' : column.wraps && rows.length <= DRAWN_AT_ONCE ? 'wraps' : column.narrow ? 'narrow' : '', title: column.narrow ? textOf(content) : null },
        first ? h('button', { type: 'button', class: 'link', 'data-focus': `${options.label}:${index}` }, content) : content);
    });
    return h('tr', {
      'aria-rowindex': index + 2,
      'aria-current': picked ? 'true' : null,
      class: (picked ? 'picked ' : '') + (options.onPick ? 'pickable' : ''),
      onclick: options.onPick ? () => options.onPick?.(row) : null,
    }, cells);
  }

  let drawn = -1;
  function draw(): void {
    const few = options.printing || shown.length <= DRAWN_AT_ONCE;
    const first = few ? 0 : Math.max(0, Math.floor(scroller.scrollTop / ROW_HEIGHT) - 30);
    const from = few ? 0 : first - (first % 20);
    if (from === drawn) return;
    drawn = from;
    const to = Math.min(shown.length, options.printing ? PRINTED : from + DRAWN_AT_ONCE);
    clear(body);
    if (from > 0) body.appendChild(spacer(from));
    for (let index = from; index < to; index += 1) body.appendChild(rowOf(shown[index] as Row, index));
    if (!options.printing && to < shown.length) body.appendChild(spacer(shown.length - to));
    if (options.printing && to < shown.length) {
      append(body, [h('tr', {}, h('td', { colspan: columns.length }, `… and ${plural(shown.length - to, 'row')} more`))]);
    }
    if (shown.length === 0) append(body, [h('tr', {}, h('td', { colspan: columns.length, class: 'quiet' }, 'No rows.'))]);
  }

  function spacer(hidden: number): HTMLElement {
    const cell = h('td', { colspan: columns.length });
    cell.style.height = `${hidden * ROW_HEIGHT}px`;
    cell.style.padding = '0';
    return h('tr', { 'aria-hidden': 'true', class: 'spacer' }, cell);
  }

  // A shade at an edge says that there is more behind it.
  function shade(): void {
    if (scroller.scrollLeft + scroller.clientWidth < scroller.scrollWidth - 1) scroller.setAttribute('data-more', 'right');
    else scroller.removeAttribute('data-more');
  }

  scroller.addEventListener('scroll', () => {
    draw();
    shade();
  }, { passive: true });
  let unseen = options.reveal && !options.printing ? rows.find((row) => options.isPicked?.(row)) : undefined;
  /** Once it is known how high the table is. */
  function reveal(): void {
    if (unseen === undefined) return;
    scroller.scrollTop = Math.max(0, (shown.indexOf(unseen) + 1.5) * ROW_HEIGHT - scroller.clientHeight / 2);
    scroller.scrollIntoView({ block: 'nearest' });
    unseen = undefined;
  }

  if (!options.printing) {
    // Tab stops where there is something to scroll, and nowhere else.
    const watcher = new ResizeObserver(() => {
      if (scroller.scrollWidth > scroller.clientWidth || scroller.scrollHeight > scroller.clientHeight) scroller.setAttribute('tabindex', '0');
      else scroller.removeAttribute('tabindex');
      reveal();
      shade();
    });
    watcher.observe(scroller);
    watcher.observe(element);
  }
  arrange();
  if (options.printing || rows.length < 2) return scroller;
  const csv = h('button', {
    type: 'button', title: `Save ${plural(rows.length, 'row')}, with whole numbers`, 'aria-label': `Save ${options.label} as CSV`,
    onclick: () => save(options.label, 'csv', csvAddress([
      columns.map((column) => (column.unit ? `${column.title} (${column.unit})` : column.title)),
      ...shown.map((row) => columns.map((column) => column.value(row))),
    ])),
  }, 'CSV');
  if (!options.filter || rows.length < 8) return h('div', {}, scroller, h('div', { class: 'tools under' }, csv));
  const input = h('input', {
    type: 'search', placeholder: 'Filter…', 'aria-label': `Filter ${options.label}`,
    oninput: (event) => {
      wanted = (event.target as HTMLInputElement).value.trim().toLowerCase();
      scroller.scrollTop = 0;
      arrange();
    },
  });
  return h('div', {}, h('div', { class: 'tools' }, input, csv, matches), scroller);
}
