// SPDX-License-Identifier: Apache-2.0
// Light and dark, and the colours that drawings take from the style sheet.

export type Choice = 'auto' | 'light' | 'dark';

const KEY = 'lockstep-theme';
const dark = window.matchMedia('(prefers-color-scheme: dark)');

/** Asked for by the reader; storage may be closed to a file. */
export function choice(): Choice {
  try {
    const stored = localStorage.getItem(KEY);
    return stored === 'light' || stored === 'dark' ? stored : 'auto';
  } catch {
    return 'auto';
  }
}

export function choose(wanted: Choice): void {
  try {
    localStorage.setItem(KEY, wanted);
  } catch {
    // It then lasts as long as the page is open.
  }
  apply(wanted);
}

export function apply(wanted: Choice): void {
  const theme = wanted === 'auto' ? (dark.matches ? 'dark' : 'light') : wanted;
  document.documentElement.dataset['theme'] = theme;
}

export function onSystemChange(run: () => void): void {
  dark.addEventListener('change', run);
}

export function isDark(): boolean {
  return document.documentElement.dataset['theme'] === 'dark';
}

/** A colour of the style sheet: colour('accent') is --accent. */
export function colour(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}

type Rgb = readonly [number, number, number];

// Lightness alone orders both ramps, so they can be read without telling colours apart, and printed without colour.
const LIGHT: readonly Rgb[] = [[240, 243, 246], [253, 212, 158], [252, 141, 89], [215, 48, 31], [110, 0, 16]];
const DARK: readonly Rgb[] = [[44, 52, 62], [81, 33, 112], [172, 51, 123], [247, 121, 93], [252, 253, 191]];

/** The colour of a part between 0 and 1 of the ramp for heat. */
export function heat(part: number): Rgb {
  const ramp = isDark() ? DARK : LIGHT;
  const at = Math.min(1, Math.max(0, part)) * (ramp.length - 1);
  const low = Math.min(ramp.length - 2, Math.floor(at));
  const a = ramp[low] as Rgb;
  const b = ramp[low + 1] as Rgb;
  const mix = (i: 0 | 1 | 2): number => Math.round(a[i] + (b[i] - a[i]) * (at - low));
  return [mix(0), mix(1), mix(2)];
}

export function css(rgb: Rgb): string {
  return `rgb(${rgb[0]},${rgb[1]},${rgb[2]})`;
}

/** Distinct for most kinds of colour blindness (Okabe and Ito), a little lighter in the dark; series also differ by symbol. */
export function seriesColours(): string[] {
  return isDark()
    ? ['#56b4e9', '#e69f00', '#2bc49a', '#f08fc0', '#f0e442', '#ff8a4c', '#9db4ff', '#c8c8c8']
    : ['#0063a6', '#b06f00', '#00795a', '#a8447d', '#6b6200', '#c04a00', '#4b5fc0', '#5a5a5a'];
}
