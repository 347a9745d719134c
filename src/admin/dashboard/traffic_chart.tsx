/// <reference lib="dom" />
import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import { formatRate } from "./text.ts";
import type { TrafficHistory } from "./traffic.ts";

const HEIGHT = 190;

/** Rates over all datacenters since the page was opened, ten minutes at most. */
export function TrafficChart({ history }: { readonly history: TrafficHistory }) {
  const box = useRef<HTMLDivElement>(null);
  const chart = useRef<uPlot>(undefined);
  useEffect(() => {
    const colors = matchMedia("(prefers-color-scheme: dark)");
    const draw = () => {
      const data = chart.current?.data ?? [[], [], []];
      chart.current?.destroy();
      chart.current = new uPlot(chartOptions(box.current!), data, box.current!);
    };
    draw();
    const observer = new ResizeObserver(([entry]) => {
      chart.current?.setSize({ width: entry!.contentRect.width, height: HEIGHT });
    });
    observer.observe(box.current!);
    colors.addEventListener("change", draw);
    return () => {
      observer.disconnect();
      colors.removeEventListener("change", draw);
      chart.current?.destroy();
    };
  }, []);
  const { times, sent, received } = history;
  useEffect(() => {
    chart.current?.setData([[...times], [...sent], [...received]]);
  }, [history]);
  const summary = `Stanzas between datacenters: out ${formatRate(sent.at(-1) ?? 0)}, ` +
    `in ${formatRate(received.at(-1) ?? 0)}`;
  return <div class="chart" ref={box} role="img" aria-label={summary} />;
}

/** Seconds between two labels: whole ones, as a label shows no parts of them. */
const TIME_STEPS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1_800, 3_600, 7_200, 21_600];
/** Stanzas a second between two labels: 1, 2, 5, 10 … */
const RATE_STEPS = Array.from({ length: 8 }, (_, power) => [1, 2, 5].map((n) => n * 10 ** power))
  .flat();

function chartOptions(box: HTMLElement): uPlot.Options {
  const style = getComputedStyle(box);
  const color = (name: string) => style.getPropertyValue(name).trim();
  const axis: uPlot.Axis = {
    stroke: color("--muted"),
    grid: { stroke: color("--line"), width: 1 },
    ticks: { show: false },
    font: "12px system-ui, sans-serif",
  };
  return {
    width: box.clientWidth,
    height: HEIGHT,
    legend: { show: false },
    cursor: { show: false },
    scales: { y: { range: (_, __, max) => [0, Math.max(1, max * 1.1)] } },
    axes: [
      {
        ...axis,
        incrs: TIME_STEPS,
        space: 80,
        size: 30,
        values: (_, times) => times.map((time) => clockTime(time)),
      },
      {
        ...axis,
        incrs: RATE_STEPS,
        size: 56,
        values: (_, rates) => rates.map((rate) => formatRate(rate)),
      },
    ],
    series: [
      {},
      { label: "out", stroke: color("--out"), width: 2 },
      { label: "in", stroke: color("--in"), width: 2, dash: [6, 4] },
    ],
  };
}

function clockTime(seconds: number): string {
  return new Date(seconds * 1000).toLocaleTimeString([], { hour12: false });
}
