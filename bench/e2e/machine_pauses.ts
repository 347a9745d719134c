/** Pauses of a machine on which nothing else happens, as a virtual one may have them. */
export interface MachinePauses {
  readonly cores: number;
  /** Seconds for which each of these was watched. */
  readonly seconds: number;
  /** Pauses of more than a millisecond, on all cores. */
  readonly count: number;
  /** Milliseconds of the longest one; 0 if there was none. */
  readonly longestMs: number;
}

/** Pauses that a thread has seen that only reads the clock. */
export type SeenPauses = Pick<MachinePauses, "count" | "longestMs">;

const PAUSE_MS = 1;
const WATCH_SECONDS = 2;

/** Watches all cores for two seconds. Each has a thread that only reads the clock. */
export async function watchPauses(): Promise<MachinePauses> {
  const cores = navigator.hardwareConcurrency;
  const seen = await Promise.all(
    Array.from({ length: cores }, () => inWorker(WATCH_SECONDS * 1000)),
  );
  return {
    cores,
    seconds: WATCH_SECONDS,
    count: seen.reduce((sum, { count }) => sum + count, 0),
    longestMs: Math.max(...seen.map(({ longestMs }) => longestMs)),
  };
}

/** Reads the clock, in milliseconds, again and again for so long. */
export function seePauses(clock: () => number, forMs: number): SeenPauses {
  let [count, longestMs] = [0, 0];
  const startMs = clock();
  for (let lastMs = startMs, nowMs = startMs; nowMs - startMs < forMs; lastMs = nowMs) {
    nowMs = clock();
    if (nowMs - lastMs <= PAUSE_MS) continue;
    count++;
    longestMs = Math.max(longestMs, nowMs - lastMs);
  }
  return { count, longestMs };
}

/** Says it in a line for people. */
export function pausesLine({ cores, seconds, count, longestMs }: MachinePauses): string {
  const longest = count === 0 ? "" : `, the longest of ${longestMs.toFixed(1)} ms`;
  return `${cores} idle cores watched for ${seconds} s before: ${count} ${
    count === 1 ? "pause" : "pauses"
  } of more than ` +
    `${PAUSE_MS} ms${longest}`;
}

async function inWorker(forMs: number): Promise<SeenPauses> {
  const worker = new Worker(new URL("./pause_worker.ts", import.meta.url), { type: "module" });
  const { promise, resolve, reject } = Promise.withResolvers<SeenPauses>();
  worker.onmessage = ({ data }: MessageEvent<SeenPauses>) => resolve(data);
  worker.onerror = (event) => {
    event.preventDefault();
    reject(new Error(event.message));
  };
  worker.postMessage(forMs);
  try {
    return await promise;
  } finally {
    worker.terminate();
  }
}
