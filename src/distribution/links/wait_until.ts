import type { Clock } from "../../base/mod.ts";

/** Milliseconds between two checks. */
const CHECK_MS = 10;

/** Resolves once `isMet` holds, which it checks every few milliseconds, the first time at once. */
export async function waitUntil(clock: Clock, isMet: () => boolean): Promise<void> {
  // The clock's timers do not keep a process alive that has nothing else to do; this one does.
  const keepAlive = setInterval(() => {}, 60_000);
  try {
    while (!isMet()) await new Promise<void>((resolve) => clock.after(CHECK_MS, resolve));
  } finally {
    clearInterval(keepAlive);
  }
}
