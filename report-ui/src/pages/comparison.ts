// SPDX-License-Identifier: Apache-2.0
// What `lockstep compare` says, whatever it holds: texts as sentences, lists of objects as tables, values with bounds as ranges.
import { h, type Child } from '../dom';
import { bytes, count, digits, duration, name, rate } from '../format';
import { table, type Column } from '../table';
import { facts, notes, panel, type Page, type View } from '../view';

type Fields = Record<string, unknown>;

const MOST_COLUMNS = 16;
const MOST_PARTS = 24;

function isFields(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function words(key: string): string {
  return name(key.replace(/_(ns|bytes|gbps)$/, '').replace(/_/g, ' '), 40);
}

function numberText(key: string, value: number): string {
  if (key.endsWith('_ns')) return duration(value);
  if (key.endsWith('_bytes')) return bytes(value);
  if (key.endsWith('_gbps')) return rate(value);
  return Number.isInteger(value) ? count(value) : digits(value);
}

/** A number, a text, or a value with its interval: {"value", "low", "high"}. */
function cellText(key: string, value: unknown): string {
  if (value === null || value === undefined) return '–';
  if (typeof value === 'number') return numberText(key, value);
  if (typeof value === 'string') return name(value, 200);
  if (typeof value === 'boolean') return value ? 'yes' : 'no';
  if (Array.isArray(value)) return value.slice(0, 8).map((entry) => cellText(key, entry)).join(', ');
  if (isFields(value)) {
    const middle = value['value'] ?? value['ratio'] ?? value['median'];
    const [low, high] = [value['low'], value['high']];
    if (typeof middle === 'number' && typeof low === 'number' && typeof high === 'number') return `${numberText(key, middle)} (${numberText(key, low)} – ${numberText(key, high)})`;
    return Object.entries(value).slice(0, 6).map(([inner, entry]) => `${words(inner)} ${cellText(inner, isFields(entry) ? '…' : entry)}`).join(', ');
  }
  return '–';
}

function sortKey(value: unknown): number | string | null {
  if (typeof value === 'number' || typeof value === 'string') return value;
  if (isFields(value)) {
    const middle = value['value'] ?? value['ratio'] ?? value['median'];
    if (typeof middle === 'number') return middle;
  }
  return value === null || value === undefined ? null : cellText('', value);
}

function tableOf(view: View, key: string, rows: readonly Fields[]): HTMLElement {
  const keys = [...new Set(rows.slice(0, 50).flatMap((row) => Object.keys(row)))].slice(0, MOST_COLUMNS);
  const columns = keys.map((column): Column<Fields> => ({
    title: words(column),
    numeric: rows.some((row) => typeof sortKey(row[column]) === 'number'),
    value: (row) => sortKey(row[column]),
    show: (row) => cellText(column, row[column]),
  }));
  return table<Fields>({ label: words(key), printing: view.printing, filter: true, rows, columns });
}

function parts(view: View, value: Fields): Child[] {
  const plain: (readonly [string, Child])[] = [];
  const out: Child[] = [];
  for (const [key, entry] of Object.entries(value).slice(0, MOST_PARTS)) {
    if (Array.isArray(entry) && entry.length > 0 && entry.every(isFields)) out.push(panel(words(key), tableOf(view, key, entry)));
    else if (Array.isArray(entry) && entry.length > 0 && entry.every((text) => typeof text === 'string')) out.push(panel(words(key), notes(entry as string[])));
    else if (isFields(entry) && Object.values(entry).some((inner) => Array.isArray(inner) && inner.some(isFields))) out.push(h('h2', { class: 'section' }, words(key)), ...parts(view, entry));
    else if (!Array.isArray(entry) || entry.length > 0) plain.push([words(key), cellText(key, entry)]);
  }
  if (plain.length > 0) out.unshift(panel('Comparison', facts(plain)));
  return out;
}

/** Whether there is anything of it that this page can show. */
export function hasComparison(value: unknown): value is Fields {
  return isFields(value) && Object.keys(value).length > 0;
}

export const comparison: Page = {
  id: 'comparison',
  title: 'Comparison',
  details: [],
  draw: (view) => (hasComparison(view.report.comparison) ? parts(view, view.report.comparison) : []),
};
