/**
 * The head of a bucket of archives. Pure.
 *
 * Messages of a bucket have positions, and the head says which of these count. A writer
 *
 * 1. reserves a range of positions: the head lists it as open,
 * 2. writes its messages with these positions,
 * 3. finishes its reservation: the head lists it no more.
 *
 * | position | state | readers |
 * | --- | --- | --- |
 * | of a void range | void: its writer gave up, or was given up | never see it |
 * | at or above an open range | pending | do not see it yet |
 * | any other, up to the last one | visible | see it |
 *
 * So what readers see only grows at its end. A writer that does not finish is given up by another one
 * that waits behind it: its range becomes void, and it has to begin anew with other positions. What it
 * writes late into the void range is garbage that nobody sees.
 */

/** Positions that a writer has for itself. */
export interface Reservation {
  /** Unique. */
  readonly token: string;
  readonly from: number;
  readonly to: number;
  /** Attempts of its writer before this one: so much longer do others wait for it. */
  readonly tries: number;
}

/** Positions that never count. */
export interface VoidRange {
  readonly from: number;
  readonly to: number;
  /** Wall-clock milliseconds when they became void. */
  readonly atMs: number;
}

/** A head. */
export interface ArchiveHead {
  /** Last position that was ever reserved. */
  readonly last: number;
  /** In ascending order. */
  readonly open: readonly Reservation[];
  /** In no order. */
  readonly voids: readonly VoidRange[];
  /** Changes with all preferences of the bucket; 0: none have ever been set. */
  readonly preferences: number;
}

/** Head of a bucket without a document. */
export const EMPTY_HEAD: ArchiveHead = { last: 0, open: [], voids: [], preferences: 0 };

/** State of a position. `open` has the reservation, `pending` is behind one that is open. */
export type PositionState =
  | { readonly kind: "visible" | "pending" | "void" }
  | { readonly kind: "open"; readonly reservation: Reservation };

/** Reserves `count` positions behind all others. */
export function reserve(
  head: ArchiveHead,
  { token, count, tries }: {
    readonly token: string;
    readonly count: number;
    readonly tries: number;
  },
): ArchiveHead {
  const to = head.last + count;
  const open = [...head.open, { token, from: head.last + 1, to, tries }];
  return { ...head, last: to, open };
}

/** Takes a reservation from the open ones. Undefined when it is not among them. */
export function finish(head: ArchiveHead, token: string): ArchiveHead | undefined {
  const open = head.open.filter((each) => each.token !== token);
  return open.length === head.open.length ? undefined : { ...head, open };
}

/**
 * Makes open reservations void. Undefined when none of them is open. Void ranges that touch become
 * one, so that a writer that fails again and again does not fill the head.
 */
export function giveUp(
  head: ArchiveHead,
  tokens: ReadonlySet<string>,
  nowMs: number,
): ArchiveHead | undefined {
  const given = head.open.filter(({ token }) => tokens.has(token));
  if (given.length === 0) return undefined;
  return {
    ...head,
    open: head.open.filter(({ token }) => !tokens.has(token)),
    voids: joined([...head.voids, ...given.map(({ from, to }) => ({ from, to, atMs: nowMs }))]),
  };
}

/** Joins ranges that touch. The newer one says since when both are void. */
function joined(ranges: readonly VoidRange[]): readonly VoidRange[] {
  const all: VoidRange[] = [];
  for (const range of ranges.toSorted((one, other) => one.from - other.from)) {
    const before = all.at(-1);
    if (before?.to !== range.from - 1) all.push(range);
    else {
      const atMs = Math.max(before.atMs, range.atMs);
      all[all.length - 1] = { from: before.from, to: range.to, atMs };
    }
  }
  return all;
}

/** Returns the last position that readers see. */
export function visibleUpTo({ last, open }: ArchiveHead): number {
  return open[0] === undefined ? last : open[0].from - 1;
}

/** Returns the state of a position that is reserved, or was. */
export function stateOf(head: ArchiveHead, position: number): PositionState {
  const isIn = ({ from, to }: { readonly from: number; readonly to: number }) =>
    position >= from && position <= to;
  if (head.voids.some(isIn)) return { kind: "void" };
  const reservation = head.open.find(isIn);
  if (reservation !== undefined) return { kind: "open", reservation };
  return { kind: position <= visibleUpTo(head) ? "visible" : "pending" };
}
