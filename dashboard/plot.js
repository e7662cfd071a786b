// A plot of numbers over time: uPlot with the page's colours.
import { brief, clock, day, moment } from './format.js';
import { html, useEffect, useRef, useState } from './lib.js';
import uPlot from './lib/uplot.mjs';

const kHeight = 200;
// Between lines of the grid: whole ones, so that what is written at them is exact.
export const steps = Array.from({ length: 10 }, (_, n) => [1, 2, 5].map((step) => step * 10 ** n)).flat();
const color = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

// Colours are read from the style sheet, so a plot is made anew when the theme changes.
function useTheme() {
  const [theme, set] = useState(0);
  useEffect(() => {
    const again = () => set((n) => n + 1);
    const dark = matchMedia('(prefers-color-scheme: dark)');
    dark.addEventListener('change', again);
    const watch = new MutationObserver(again);
    watch.observe(document.documentElement, { attributeFilter: ['data-theme'] });
    return () => {
      dark.removeEventListener('change', again);
      watch.disconnect();
    };
  }, []);
  return theme;
}

const axis = (more) => ({
  stroke: color('--muted'),
  font: '11px system-ui, sans-serif',
  grid: { stroke: color('--grid'), width: 1 },
  ticks: { show: false },
  gap: 6,
  ...more,
});

// A time on the axis, as exact as its plot is short.
function tickOf(ms, seconds) {
  if (seconds > 2 * 86_400) return day(ms).slice(5);
  return clock(ms).slice(0, seconds <= 300 ? 8 : 5);
}

function optionsOf(series, seconds, moved) {
  return {
    width: 400,
    height: kHeight,
    padding: [10, 24, 0, 0],
    legend: { show: false },
    cursor: { y: false, drag: { x: false, y: false }, points: { size: 6 } },
    select: { show: false },
    scales: {
      // It grows with what is known, from a minute up.
      x: { time: true, range: (_, least, most) => [Math.max(most - seconds, Math.min(least, most - 60)), most] },
      y: { range: (_, __, most) => [0, Math.max(1, most * 1.12)] },
    },
    axes: [
      axis({ size: 26, space: 70, values: (_, ticks) => ticks.map((t) => tickOf(t * 1000, seconds)) }),
      axis({ size: 50, space: 34, incrs: steps, values: (_, ticks) => ticks.map(brief) }),
    ],
    series: [
      {},
      ...series.map((s) => ({
        label: s.label,
        stroke: color(s.color),
        width: 1.75,
        fill: s.fill ? `color-mix(in srgb, ${color(s.color)} 12%, transparent)` : undefined,
        points: { show: false },
      })),
    ],
    hooks: { setCursor: [(plot) => moved(plot.cursor.idx)] },
  };
}

// `data`: columns, the first of seconds. `series`: [{label, color: "--done"}]. The legend tells the value below the cursor, or
// the last.
export function Plot({ data, series, format, seconds = 300, label, version }) {
  const at = useRef(null);
  const plot = useRef(null);
  const theme = useTheme();
  const [index, setIndex] = useState(null);
  useEffect(() => {
    const made = new uPlot(optionsOf(series, seconds, setIndex), data, at.current);
    const fit = new ResizeObserver(([entry]) =>
      made.setSize({ width: Math.max(120, entry.contentRect.width), height: kHeight }),
    );
    fit.observe(at.current);
    plot.current = made;
    return () => {
      fit.disconnect();
      made.destroy();
      plot.current = null;
    };
  }, [theme, seconds, series.map((s) => s.label).join()]);
  useEffect(() => plot.current?.setData(data), [version]);
  const shown = index == null || index >= data[0].length ? data[0].length - 1 : index;
  return html`<figure class="plot">
    <figcaption><span class="plot-label">${label}</span>
      ${series.map((s, i) => html`<span class="legend" key=${s.label}><i data-color=${s.color}></i>${s.label} <b>
          ${shown < 0 ? '–' : format(data[i + 1][shown])}</b></span>`)}
      ${index != null && shown >= 0 && html`<span class="muted legend-at">${(seconds > 86_000 ? moment : clock)(data[0][shown] * 1000)}</span>`}</figcaption>
    <div class="plot-canvas" ref=${at} aria-hidden="true"></div>
  </figure>`;
}
