/** Compares texts by their code points, as other stores order them. */
export function byCodePoints(one: string, other: string): number {
  const [left, right] = [one[Symbol.iterator](), other[Symbol.iterator]()];
  for (;;) {
    const [a, b] = [left.next(), right.next()];
    if (a.done || b.done) return Number(b.done ?? false) - Number(a.done ?? false);
    if (a.value !== b.value) return a.value.codePointAt(0)! - b.value.codePointAt(0)!;
  }
}
