/**
 * Counts the single-character insertions, removals, replacements and swaps of neighbours that turn
 * `a` into `b`.
 */
export function editDistance(a: string, b: string): number {
  let beforePrevious: number[] = [];
  let previous = Array.from({ length: b.length + 1 }, (_, column) => column);
  for (let row = 1; row <= a.length; row++) {
    const current = [row];
    for (let column = 1; column <= b.length; column++) {
      const cost = a[row - 1] === b[column - 1] ? 0 : 1;
      let best = Math.min(
        previous[column]! + 1,
        current[column - 1]! + 1,
        previous[column - 1]! + cost,
      );
      const isSwap = row > 1 && column > 1 && a[row - 1] === b[column - 2] &&
        a[row - 2] === b[column - 1];
      if (isSwap) best = Math.min(best, beforePrevious[column - 2]! + 1);
      current.push(best);
    }
    beforePrevious = previous;
    previous = current;
  }
  return previous[b.length]!;
}

/**
 * Returns the allowed key that `key` probably stands for, or undefined when none is near. A key is
 * near when at most a third of the letters differ, or one is the beginning of the other.
 */
export function nearestKey(key: string, allowed: readonly string[]): string | undefined {
  const written = key.toLowerCase().replaceAll("-", "_");
  let nearest: string | undefined;
  let nearestDistance = Infinity;
  for (const candidate of allowed) {
    const isExtension = written.length >= 3 &&
      (candidate.startsWith(written) || written.startsWith(candidate));
    const distance = isExtension ? 0.5 : editDistance(written, candidate);
    const farthest = Math.max(1, Math.floor(Math.max(written.length, candidate.length) / 3));
    if (distance <= farthest && distance < nearestDistance) {
      nearest = candidate;
      nearestDistance = distance;
    }
  }
  return nearest;
}
