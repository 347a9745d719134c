/** State of something, as a colour and a shape: either can be understood without the other. */
export type Health = "good" | "info" | "warning" | "bad" | "paused" | "own" | "unknown";

const GLYPHS: Readonly<Record<Health, string>> = {
  good: "✓",
  info: "i",
  warning: "!",
  bad: "✕",
  paused: "Ⅱ",
  own: "★",
  unknown: "?",
};

const HEALTH_OF: Readonly<Record<string, Health>> = {
  own: "own",
  linked: "good",
  open: "good",
  enabled: "good",
  up: "good",
  good: "good",
  degraded: "warning",
  draining: "warning",
  connecting: "warning",
  waiting: "warning",
  warning: "warning",
  paused: "paused",
  idle: "paused",
  disabled: "paused",
  info: "info",
  unknown: "unknown",
};

/** Returns the health that a state of the API stands for. A state that is not known here is bad. */
export function healthOf(state: string): Health {
  return HEALTH_OF[state] ?? "bad";
}

export function glyphOf(health: Health): string {
  return GLYPHS[health];
}

/** A state in words with its mark before it. */
export function StatusMark({ state, text = state }: { state: string; text?: string }) {
  const health = healthOf(state);
  return (
    <span class={`mark mark-${health}`}>
      <span class="glyph" aria-hidden="true">{GLYPHS[health]}</span>
      {text}
    </span>
  );
}
