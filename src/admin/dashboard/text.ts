/** Formats a rate of stanzas: `0/s`, `0.4/s`, `12/s`, `1.2k/s`. */
export function formatRate(perSec: number): string {
  if (perSec === 0) return "0/s";
  if (perSec < 0.1) return "<0.1/s";
  if (perSec < 10) return `${perSec.toFixed(1).replace(/\.0$/, "")}/s`;
  return `${formatCount(Math.round(perSec))}/s`;
}

/** Formats a count: `980`, `1.2k`, `3.4M`. */
export function formatCount(count: number): string {
  if (count < 1000) return String(count);
  if (count < 999_950) return `${(count / 1000).toFixed(1).replace(/\.0$/, "")}k`;
  return `${(count / 1_000_000).toFixed(1).replace(/\.0$/, "")}M`;
}

/** Formats bytes: `512 B`, `1.5 KiB`, `20 MiB`. */
export function formatBytes(bytes: number): string {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let [value, unit] = [bytes, 0];
  while (value >= 1024 && unit < units.length - 1) [value, unit] = [value / 1024, unit + 1];
  return `${value < 10 && unit > 0 ? value.toFixed(1) : Math.round(value)} ${units[unit]}`;
}

/** Formats a round trip: `0.4 ms`, `12 ms`, `1.2 s`. */
export function formatRoundTrip(ms: number | undefined): string {
  if (ms === undefined) return "–";
  if (ms >= 1000) return `${(ms / 1000).toFixed(1)} s`;
  return ms < 10 ? `${ms.toFixed(1)} ms` : `${Math.round(ms)} ms`;
}

/** Formats a duration by its two largest units: `12 s`, `3 min 20 s`, `2 h 5 min`, `4 d 3 h`. */
export function formatDuration(ms: number): string {
  const seconds = Math.max(0, Math.round(ms / 1000));
  const units = [["d", 86_400], ["h", 3600], ["min", 60], ["s", 1]] as const;
  const first = units.findIndex(([, size]) => seconds >= size);
  if (first === -1) return "0 s";
  let rest = seconds;
  const parts: string[] = [];
  for (const [name, size] of units.slice(first, first + 2)) {
    const count = Math.floor(rest / size);
    rest -= count * size;
    if (count > 0) parts.push(`${count} ${name}`);
  }
  return parts.join(" ");
}

/** Formats a count with its noun: `1 link`, `3 links`. */
export function countOf(count: number, one: string, many = `${one}s`): string {
  return `${formatCount(count)} ${count === 1 ? one : many}`;
}

/** Formats the time of day of an event. */
export function formatTime(time: string): string {
  return new Date(time).toLocaleTimeString([], { hour12: false });
}

/** Formats the time of an event: with its date, unless that is today. */
export function formatMoment(time: string): string {
  const [date, today] = [new Date(time), new Date()];
  const isToday = date.toDateString() === today.toDateString();
  const two = (part: number) => String(part).padStart(2, "0");
  const day = `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
  return isToday ? formatTime(time) : `${day} ${formatTime(time)}`;
}
