/** Bytes after which an insertion takes no more rows. MariaDB takes 16 MB at once. */
const FULL_INSERTION_BYTES = 1_000_000;

/**
 * Cuts rows into insertions. One of them has at most `most` rows, and none more once the rows that it
 * has are large.
 *
 * @param bytesOf returns the bytes of the large part of a row
 */
export function* insertionPortions<T>(
  rows: readonly T[],
  most: number,
  bytesOf: (row: T) => number,
): Generator<readonly T[]> {
  for (let from = 0; from < rows.length;) {
    let to = from;
    let bytes = 0;
    while (to < rows.length && to - from < most && bytes < FULL_INSERTION_BYTES) {
      bytes += bytesOf(rows[to++]!);
    }
    yield rows.slice(from, to);
    from = to;
  }
}
