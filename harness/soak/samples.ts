/** What one node occupied at one moment. */
export interface Sample {
  readonly rssBytes: number;
  /** Open files and sockets. */
  readonly handles: number;
  /** Stanzas in lanes and in the bounce queue. */
  readonly held: number;
}

/** How much a node's memory may differ between the second third of a run and the last. */
export const MAX_DRIFT = 0.1;
/** Handles more than at the beginning that a node may have in the end: links that were made anew. */
export const MAX_MORE_HANDLES = 16;

/** Medians of the resident memory in each third of `samples`. */
export function rssByThird(samples: readonly Sample[]): readonly [number, number, number] {
  const third = (index: number) => {
    const from = Math.floor(index * samples.length / 3);
    const to = Math.floor((index + 1) * samples.length / 3);
    return median(samples.slice(from, to).map(({ rssBytes }) => rssBytes));
  };
  return [third(0), third(1), third(2)];
}

/** What speaks against a node that ran through the whole soak; `calm` is what it was like before. */
export function leaks(
  calm: Sample,
  samples: readonly Sample[],
  end: Sample,
): readonly string[] {
  const found: string[] = [];
  const [, second, last] = rssByThird(samples);
  const drift = last / second - 1;
  if (drift > MAX_DRIFT) {
    found.push(`memory grew by ${(100 * drift).toFixed(1)} % in the last third`);
  }
  if (end.held > 0) found.push(`${end.held} stanzas are still held`);
  if (end.handles > calm.handles + MAX_MORE_HANDLES) {
    found.push(`${end.handles} handles are open, ${calm.handles} at the beginning`);
  }
  return found;
}

function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN;
}
