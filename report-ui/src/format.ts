// SPDX-License-Identifier: Apache-2.0
// Numbers and names as the page shows them: always with units, three significant digits, and nothing in a name that could harm.

/** What stands where a value is unknown. */
export const UNKNOWN = '–';

const whole = new Intl.NumberFormat('en-US', { maximumFractionDigits: 0 });

/** Three significant digits, thousands separated: 0.0123, 1.23, 12.3, 123, 1,230. */
export function digits(value: number): string {
  const size = Math.abs(value);
  if (!Number.isFinite(value)) return UNKNOWN;
  if (size === 0) return '0';
  if (size >= 999.5) return whole.format(Number(value.toPrecision(3)));
  if (size < 1e-4) return value.toExponential(2);
  return value.toPrecision(3);
}

export function count(value: number | null | undefined): string {
  return value === null || value === undefined || !Number.isFinite(value) ? UNKNOWN : whole.format(value);
}

/** "1 rank", "3 ranks". */
export function plural(value: number, word: string): string {
  return `${count(value)} ${word}${value === 1 ? '' : 's'}`;
}

export function duration(ns: number | null | undefined): string {
  if (ns === null || ns === undefined || !Number.isFinite(ns)) return UNKNOWN;
  const size = Math.abs(ns);
  if (size === 0) return '0 s';
  if (size < 999.5) return `${digits(ns)} ns`;
  if (size < 999.5e3) return `${digits(ns / 1e3)} µs`;
  if (size < 999.5e6) return `${digits(ns / 1e6)} ms`;
  if (size < 600e9) return `${digits(ns / 1e9)} s`;
  const minutes = Math.round(size / 60e9);
  const sign = ns < 0 ? '-' : '';
  return minutes < 120 ? `${sign}${minutes} min` : `${sign}${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

const BYTE_UNITS = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'];

export function bytes(value: number | null | undefined): string {
  if (value === null || value === undefined || !Number.isFinite(value)) return UNKNOWN;
  let unit = 0;
  let left = value;
  while (Math.abs(left) >= 1023.5 && unit + 1 < BYTE_UNITS.length) {
    left /= 1024;
    unit += 1;
  }
  return `${unit === 0 ? count(left) : digits(left)} ${BYTE_UNITS[unit]}`;
}

/** Of a bandwidth in 1e9 bytes a second. */
export function rate(gbps: number | null | undefined): string {
  if (gbps === null || gbps === undefined || !Number.isFinite(gbps)) return UNKNOWN;
  const size = Math.abs(gbps);
  if (size === 0 || size >= 0.9995) return `${digits(gbps)} GB/s`;
  return size >= 0.9995e-3 ? `${digits(gbps * 1e3)} MB/s` : `${digits(gbps * 1e6)} kB/s`;
}

/** Two amounts as a range, with one unit where both have it: "130 – 139 GB/s". */
export function range(low: string, high: string): string {
  if (low === high) return low;
  const [number, unit] = low.split(' ');
  return unit !== undefined && high.endsWith(` ${unit}`) ? `${number} – ${high}` : `${low} – ${high}`;
}

/** A part of one as a percentage; digits below the second decimal tell nobody anything. */
export function percent(part: number | null | undefined): string {
  if (part === null || part === undefined || !Number.isFinite(part)) return UNKNOWN;
  return part > 0 && part < 1e-4 ? '< 0.01 %' : `${digits(part * 100)} %`;
}

/** A value with the unit as `diagnose` names it. */
export function quantity(value: number | null | undefined, unit: string): string {
  if (value === null || value === undefined) return UNKNOWN;
  const [base, ...per] = unit.split('/');
  const rest = per.map((what) => ` per ${what}`).join('');
  if (base === 'ns') return duration(value) + rest;
  if (unit === 'bytes/s' || unit === 'B/s') return rate(value / 1e9);
  if (unit === 'GB/s') return rate(value);
  if (unit === 'bytes' || unit === 'B') return bytes(value);
  if (unit === 'ratio') return percent(value);
  return `${digits(value)} ${unit}`.trim();
}

/** Times of day, UTC, of ns since the Unix epoch (milliseconds are kept). */
export function clockTime(epochNs: number | null | undefined): string {
  if (epochNs === null || epochNs === undefined || !Number.isFinite(epochNs)) return UNKNOWN;
  const date = new Date(epochNs / 1e6);
  return Number.isNaN(date.getTime()) ? UNKNOWN : `${date.toISOString().replace('T', ' ').replace('Z', '')} UTC`;
}

/** Rank numbers as ranges: 0-3, 5, 8-15; at most `most` ranges. */
export function ranges(numbers: readonly number[], most = 12): string {
  const sorted = [...new Set(numbers)].sort((a, b) => a - b);
  const parts: string[] = [];
  for (let from = 0; from < sorted.length; ) {
    let to = from;
    while (to + 1 < sorted.length && sorted[to + 1] === (sorted[to] ?? 0) + 1) to += 1;
    parts.push(to === from ? `${sorted[from]}` : to === from + 1 ? `${sorted[from]}, ${sorted[to]}` : `${sorted[from]}–${sorted[to]}`);
    from = to + 1;
  }
  const more = parts.length - most;
  return more > 0 ? `${parts.slice(0, most).join(', ')} and ${more} more` : parts.join(', ');
}

// Controls, marks that turn the writing direction, and characters without width: shown by their number, so that a name cannot
// hide or reorder what stands beside it.
const HARMFUL = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff9-\ufffb]|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g;

function shown(character: string): string {
  const code = character.charCodeAt(0);
  if (code < 0x20) return String.fromCharCode(0x2400 + code);
  return `⟨U+${code.toString(16).toUpperCase().padStart(4, '0')}⟩`;
}

/** A text from a file, without what could harm, and no longer than `longest`. */
export function clean(text: string, longest = 4000): string {
  const cut = text.length > longest ? `${text.slice(0, longest - 1)}…` : text;
  return cut.replace(HARMFUL, shown);
}

/** A name from a file: one line, short. */
export function name(text: string | null | undefined, longest = 48): string {
  if (text === null || text === undefined) return UNKNOWN;
  return clean(text.slice(0, longest + 1).replace(/[\t\n]/g, ' '), longest) || UNKNOWN;
}
