// SPDX-License-Identifier: Apache-2.0
// ECharts with only the parts that the pages use, and with hints made of elements, never of HTML.
import { BarChart, CustomChart, LineChart, ScatterChart } from 'echarts/charts';
import { GridComponent, LegendScrollComponent, MarkLineComponent, TooltipComponent } from 'echarts/components';
import * as echarts from 'echarts/core';
import type { EChartsCoreOption } from 'echarts/core';
import { CanvasRenderer } from 'echarts/renderers';
import { h } from './dom';
import { colour, seriesColours } from './theme';

echarts.use([BarChart, CustomChart, LineChart, ScatterChart, GridComponent, LegendScrollComponent, MarkLineComponent, TooltipComponent, CanvasRenderer]);

const open = new Set<echarts.ECharts>();

/** Ends all charts of the page that goes. */
export function closeCharts(): void {
  for (const instance of open) instance.dispose();
  open.clear();
}

export interface ChartOptions {
  label: string;
  height: number;
  printing: boolean;
  option: EChartsCoreOption;
  onPick?: (seriesIndex: number, dataIndex: number, seriesId: string) => void;
}

export interface Chart {
  element: HTMLElement;
  draw: () => void;
  /** The address of a PNG, once it is drawn. */
  image: () => string | null;
}

/** A chart; it is drawn as soon as the element stands in the page: see draw(). */
export function chart(options: ChartOptions): Chart {
  const element = h('div', { class: 'chart', role: 'img', 'aria-label': options.label });
  element.style.height = `${options.height}px`;
  let drawn: echarts.ECharts | null = null;
  const draw = (): void => {
    const instance = echarts.init(element, null, { renderer: 'canvas', devicePixelRatio: options.printing ? 2 : window.devicePixelRatio || 1 });
    instance.setOption({ animation: false, textStyle: { fontFamily: 'system-ui, sans-serif', color: colour('ink') }, color: seriesColours(), ...options.option });
    instance.getZr().flush();
    open.add(instance);
    drawn = instance;
    if (options.printing) return;
    instance.on('click', (event) => {
      if (typeof event.dataIndex === 'number' && typeof event.seriesIndex === 'number') options.onPick?.(event.seriesIndex, event.dataIndex, String(event.seriesId ?? ''));
    });
    new ResizeObserver(() => {
      if (!instance.isDisposed()) instance.resize();
    }).observe(element);
  };
  return { element, draw, image: () => drawn?.getDataURL({ type: 'png', pixelRatio: 2, backgroundColor: colour('panel') }) ?? null };
}

/** How axes look. */
export function axis(extra: Record<string, unknown>): Record<string, unknown> {
  return {
    axisLine: { show: true, lineStyle: { color: colour('line') } },
    axisTick: { lineStyle: { color: colour('line') } },
    axisLabel: { color: colour('quiet'), hideOverlap: true },
    nameTextStyle: { color: colour('quiet') },
    splitLine: { show: true, lineStyle: { color: colour('grid') } },
    ...extra,
  };
}

/** How hints look. `formatter` has to return an element. */
export function tooltip(formatter: (params: unknown) => HTMLElement, extra: Record<string, unknown> = {}): Record<string, unknown> {
  return {
    confine: true,
    transitionDuration: 0,
    backgroundColor: colour('raised'),
    borderColor: colour('line'),
    textStyle: { color: colour('ink'), fontSize: 12 },
    formatter,
    ...extra,
  };
}

export function legend(extra: Record<string, unknown>): Record<string, unknown> {
  return {
    type: 'scroll', textStyle: { color: colour('ink') }, pageTextStyle: { color: colour('quiet') }, pageIconColor: colour('ink'),
    pageIconInactiveColor: colour('line'), itemGap: 16, ...extra,
  };
}
