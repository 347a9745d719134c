import type { Envelope, StanzaTracer } from "../../mod.ts";

/** Follows every stanza. `steps` has each step behind its recipient. */
export class TestTracer implements StanzaTracer {
  isOn = true;
  followed = 0;
  readonly steps: string[] = [];

  follow({ stanza: { to } }: Envelope) {
    this.followed++;
    const note = (step: string, details: object = {}) => {
      this.steps.push(`${to.text}: ${[step, ...Object.values(details)].join(" ").trimEnd()}`);
    };
    return { note, settled: () => queueMicrotask(() => note("settled")) };
  }

  take(): string[] {
    return this.steps.splice(0);
  }
}
