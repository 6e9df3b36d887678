// SPDX-License-Identifier: Apache-2.0
// A canvas that scrolls over rows too many to draw at once, and what drawings on it share: axes of time, patterns, ramps.
import { h, hideTip } from './dom';
import { duration, name } from './format';
import { colour } from './theme';

export interface Frame {
  g: CanvasRenderingContext2D;
  width: number;
  height: number;
  /** How far the content has been scrolled up. */
  top: number;
}

export interface CanvasOptions {
  /** What is seen, for those who do not see it. */
  label: string;
  contentHeight: number;
  maxHeight: number;
  printing: boolean;
  draw: (frame: Frame) => void;
  /** Places are in the content: y counts from its top, as does a click on what is scrolled. */
  onMove?: (x: number, y: number, event: PointerEvent) => void;
  onPick?: (x: number, y: number) => void;
  /** Horizontal drag of some length. */
  onDrag?: (fromX: number, toX: number) => void;
  /** Returns whether the key meant something. */
  onKey?: (event: KeyboardEvent) => boolean;
  focusKey?: string;
}

export interface CanvasHandle {
  element: HTMLElement;
  redraw: () => void;
  /** Scrolls until the content between the two is in view. */
  reveal: (from: number, to: number) => void;
  width: () => number;
  /** All of it as a picture, scrolled or not: the address of a PNG. */
  image: () => string | null;
}

const SMALLEST_DRAG = 6;
/** What fits on a sheet beside headings and words. */
export const PAPER_HEIGHT = 540;
// What browsers draw without complaint, in pixels of a side.
const HIGHEST_IMAGE = 8000;

export function canvas(options: CanvasOptions): CanvasHandle {
  const surface = h('canvas', {
    tabindex: options.printing || !options.onKey ? null : 0,
    role: options.onKey ? 'application' : 'img',
    'aria-label': options.label,
    'data-focus': options.focusKey,
  });
  const inner = h('div', { class: 'canvas-inner' }, surface);
  const element = h('div', { class: 'canvas-scroll' }, inner);
  const height = Math.ceil(options.printing ? Math.min(options.contentHeight, PAPER_HEIGHT) : Math.min(options.contentHeight, options.maxHeight));
  element.style.height = `${height}px`;
  inner.style.height = `${Math.ceil(options.contentHeight)}px`;
  let width = 0;
  let dragFrom: number | null = null;

  function redraw(): void {
    width = inner.clientWidth;
    if (width === 0) return;
    const scale = options.printing ? 2 : Math.min(3, window.devicePixelRatio || 1);
    surface.width = Math.round(width * scale);
    surface.height = Math.round(height * scale);
    surface.style.width = `${width}px`;
    surface.style.height = `${height}px`;
    const g = surface.getContext('2d');
    if (!g) return;
    g.setTransform(scale, 0, 0, scale, 0, 0);
    g.clearRect(0, 0, width, height);
    g.font = '12px system-ui, sans-serif';
    g.textBaseline = 'middle';
    options.draw({ g, width, height, top: element.scrollTop });
  }

  let queued = false;
  function later(): void {
    if (queued) return;
    queued = true;
    requestAnimationFrame(() => {
      queued = false;
      redraw();
    });
  }

  const place = (event: PointerEvent): [number, number] => {
    const box = surface.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  };
  if (!options.printing) {
    surface.addEventListener('pointermove', (event) => options.onMove?.(...place(event), event));
    surface.addEventListener('pointerleave', hideTip);
    surface.addEventListener('blur', hideTip);
    surface.addEventListener('pointerdown', (event) => {
      dragFrom = place(event)[0];
      if (options.onDrag) surface.setPointerCapture(event.pointerId);
    });
    surface.addEventListener('pointerup', (event) => {
      const [x, y] = place(event);
      const from = dragFrom;
      dragFrom = null;
      if (from === null) return;
      if (options.onDrag && Math.abs(x - from) >= SMALLEST_DRAG) options.onDrag(Math.min(from, x), Math.max(from, x));
      else options.onPick?.(x, y);
    });
    surface.addEventListener('keydown', (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey || !options.onKey?.(event)) return;
      event.preventDefault();
      event.stopPropagation();
    });
    element.addEventListener('scroll', later, { passive: true });
    new ResizeObserver(() => {
      if (inner.clientWidth !== width) redraw();
    }).observe(element);
  }
  return {
    element,
    redraw,
    reveal: (from, to) => {
      if (from < element.scrollTop) element.scrollTop = from;
      else if (to > element.scrollTop + height) element.scrollTop = to - height;
    },
    width: () => width,
    image: () => {
      const whole = Math.min(Math.ceil(options.contentHeight), HIGHEST_IMAGE / 2);
      const copy = h('canvas', { width: width * 2, height: whole * 2 });
      const g = copy.getContext('2d');
      if (!g || width === 0) return null;
      g.scale(2, 2);
      g.font = '12px system-ui, sans-serif';
      g.textBaseline = 'middle';
      options.draw({ g, width, height: whole, top: 0 });
      // The drawing clears parts of itself: its ground goes behind it, at last.
      g.globalCompositeOperation = 'destination-over';
      g.fillStyle = colour('panel');
      g.fillRect(0, 0, width, whole);
      return copy.toDataURL('image/png');
    },
  };
}

/** Round places between two times, about `wanted` of them. */
export function ticks(from: number, to: number, wanted: number): number[] {
  const span = to - from;
  if (!(span > 0) || !(wanted > 0)) return [];
  const raw = span / wanted;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = ([1, 2, 5, 10].find((factor) => factor * power >= raw) ?? 10) * power;
  const places: number[] = [];
  for (let at = Math.ceil(from / step) * step; at <= to + step * 1e-9 && places.length < 100; at += step) places.push(Math.abs(at) < step / 2 ? 0 : at);
  return places;
}

/** Texts for round places: one unit for all, and no digit more than tells them apart. */
export function tickLabels(places: readonly number[]): string[] {
  const largest = Math.max(...places.map(Math.abs), 0);
  const [unit, size] = largest >= 1e9 ? ['s', 1e9] : largest >= 1e6 ? ['ms', 1e6] : largest >= 1e3 ? ['µs', 1e3] : ['ns', 1];
  const step = places.length > 1 ? Math.abs((places[1] ?? 0) - (places[0] ?? 0)) / (size as number) : 1;
  const decimals = Math.min(6, Math.max(0, -Math.floor(Math.log10(step) + 1e-9)));
  return places.map((place) => (place === 0 ? '0' : `${(place / (size as number)).toLocaleString('en-US', { minimumFractionDigits: decimals, maximumFractionDigits: decimals })} ${unit}`));
}

/** An axis of time along the top: lines down to `bottom`, texts above. */
export function timeAxis(g: CanvasRenderingContext2D, from: number, to: number, left: number, right: number, top: number, bottom: number): void {
  const places = ticks(from, to, Math.max(2, (right - left) / 110));
  const labels = tickLabels(places);
  g.lineWidth = 1;
  g.textAlign = 'center';
  places.forEach((place, index) => {
    const x = Math.round(left + ((place - from) / (to - from)) * (right - left)) + 0.5;
    g.strokeStyle = colour('grid');
    g.beginPath();
    g.moveTo(x, top);
    g.lineTo(x, bottom);
    g.stroke();
    g.fillStyle = colour('quiet');
    const text = labels[index] ?? '';
    const half = g.measureText(text).width / 2;
    g.fillText(text, Math.min(Math.max(x, left - 20 + half), right - half), top - 9);
  });
}

/** Diagonal lines, so that a kind of time can be told without its colour. */
export function hatch(g: CanvasRenderingContext2D, ink: string, ground: string, gap = 6): CanvasPattern | string {
  const tile = document.createElement('canvas');
  tile.width = tile.height = gap * 2;
  const t = tile.getContext('2d');
  if (!t) return ground;
  t.fillStyle = ground;
  t.fillRect(0, 0, gap * 2, gap * 2);
  t.strokeStyle = ink;
  t.lineWidth = 1.1;
  t.beginPath();
  for (const offset of [-gap, 0, gap, gap * 2]) {
    t.moveTo(offset - gap, gap * 2 + gap);
    t.lineTo(offset + gap * 2, -gap + gap);
  }
  for (let at = -2 * gap; at <= 2 * gap; at += gap) {
    t.moveTo(at, gap * 2);
    t.lineTo(at + gap * 2, 0);
  }
  t.stroke();
  return g.createPattern(tile, 'repeat') ?? ground;
}

/** Writes a name into a width; what does not fit ends in "…". */
export function fit(g: CanvasRenderingContext2D, text: string, width: number, longest = 40): string {
  let left = name(text, longest);
  if (g.measureText(left).width <= width) return left;
  while (left.length > 1 && g.measureText(`${left}…`).width > width) left = left.slice(0, -1);
  return `${left}…`;
}

export function span(from: number, to: number): string {
  return `${duration(from)} – ${duration(to)}`;
}

const scratch = document.createElement('canvas').getContext('2d');

/** A label as it is drawn: marked where a finding names it, and where its clock is not aligned. */
export function markedLabel(label: string, named: boolean, aligned: boolean): string {
  return `${named ? '▸ ' : ''}${name(label, 40)}${aligned ? '' : ' *'}`;
}

/** How wide the longest of some labels is, with their marks; at most `widest`. */
export function labelWidth(labels: readonly string[], widest: number): number {
  if (!scratch) return widest;
  scratch.font = '600 12px system-ui, sans-serif';
  let most = 0;
  for (const label of labels) most = Math.max(most, scratch.measureText(label).width);
  return Math.ceil(Math.min(widest, Math.max(40, most + 30)));
}
