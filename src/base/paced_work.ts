import { setImmediate } from "node:timers";
import type { CancelTimer } from "./clock.ts";
import { SystemClock } from "./clock.ts";

/** Bounds of `PacedWork`, and its sources of time. */
export interface PacedWorkOptions {
  /** Milliseconds of work in one turn of the event loop, without the last piece. @default 0.3 */
  readonly sliceMs?: number;
  /**
   * Milliseconds of everything else in a turn, past which pieces wait for a turn with less to do.
   * @default 0.1
   */
  readonly maxTurnMs?: number;
  /** Most milliseconds for which they wait so. @default 10 */
  readonly maxPauseMs?: number;
  /** Least milliseconds of work in the turn after such a pause. @default 0.5 */
  readonly lateSliceMs?: number;
  /** Most milliseconds of work in that turn. @default 10 */
  readonly maxLateSliceMs?: number;
  /** Returns a time in milliseconds that does not stand still during a turn. @default the machine's */
  readonly nowMs?: () => number;
  /** Calls back in the next turn of the event loop. @default `setImmediate` */
  readonly nextTurn?: (callback: () => void) => void;
  /** Calls back after a time in milliseconds. @default the machine's clock */
  readonly after?: (delayMs: number, callback: () => void) => CancelTimer;
}

/**
 * The one for whom a piece of work is done: somebody who is still to prove who they are, or a session
 * of somebody who has.
 */
export type PacedFor = "stranger" | "session";

/** Work in several pieces, one after another. */
export interface PacedTask {
  /** Does the next piece. See `PacedWork.run`. */
  run<T>(piece: () => T | Promise<T>): Promise<T>;
}

/** Pieces of older tasks that go before each single piece for a session, while both wait. */
const TASKS_FIRST = 4;
/** Pieces for sessions that go before each piece for a stranger, while both wait. */
const SESSIONS_FIRST = 4;
/** As `SESSIONS_FIRST`, before a piece that has waited for `STRANGER_WAITS_MS`: a login has a timeout. */
const SESSIONS_BEFORE_LATE = 1;
const STRANGER_WAITS_MS = 1_000;
/** Asynchronous pieces under way at once: at least, which is also the number at first, and at most. */
const [MIN_UNDER_WAY, MAX_UNDER_WAY] = [2, 256];
/** Milliseconds for which a piece counts as under way. Past them it waits for some other machine. */
const COUNTED_MS = 50;

/** One more piece may be under way for each `LATE_PLACE_MS` past this time that the oldest waits. */
const LATE_AFTER_MS = 500;
const LATE_PLACE_MS = 50;

/** Turns so many times `maxTurnMs` long have too many pieces under way. */
const LONG_TURN = 2;
/** Milliseconds after which a waiting piece adds to the share of the time as much as it was at first. */
const AGE_MS = 150;
/** Milliseconds of work in one turn while `PacedWork` hurries. */
const HURRIED_SLICE_MS = 50;

/** A piece of work that has begun and waits for something. */
interface UnderWay {
  readonly sinceMs: number;
}

/**
 * Pieces of work that may wait, such as the steps of logins. Conversations come first: a piece waits
 * while the event loop has much else to do, and while as many others are under way as leave the loop
 * time. So many logins at once delay conversations only a little.
 *
 * - The loop does pieces for `sliceMs` in a turn. It does none in the turn after one that took longer
 *   than `maxTurnMs` for everything else. While all turns take so long, pieces have a share of the
 *   time, as a login would take too long otherwise: `lateSliceMs` in `maxPauseMs` at first, and more
 *   the longer the oldest piece waits, so that no load keeps pieces waiting ever longer. The loop does
 *   them as soon as their share is `lateSliceMs`: many small slices delay a conversation less than a
 *   large one.
 * - An asynchronous piece is under way until its promise settles, or for `COUNTED_MS`. What it waits
 *   for causes work when it comes, outside of any slice. Fewer pieces may be under way after a turn
 *   that took very long, and more while turns are short, or once the oldest piece has waited long.
 * - Pieces for sessions go first, in the order in which they came. After `SESSIONS_FIRST` of them, a
 *   piece for a stranger has its turn. One that has waited for long goes after a single piece for a
 *   session, so that sessions do not make a login pass its timeout.
 * - The pieces of a task (`task`) are pieces for a session that go in the order in which the tasks
 *   began: what comes later does not hold them up, piece by piece. After `TASKS_FIRST` of them, a
 *   single piece for a session has its turn, so that many long tasks hold up nobody for ever.
 *
 * A piece must not wait for another one that it has given to `run`. The callers bound how many pieces
 * wait.
 */
export class PacedWork {
  readonly #sliceMs: number;
  readonly #maxTurnMs: number;
  readonly #maxPauseMs: number;
  readonly #lateSliceMs: number;
  readonly #maxLateSliceMs: number;
  readonly #nowMs: () => number;
  readonly #nextTurn: (callback: () => void) => void;
  readonly #after: (delayMs: number, callback: () => void) => CancelTimer;
  readonly #queues: Readonly<Record<PacedFor | "task", PieceQueue>> = {
    session: new PieceQueue(),
    stranger: new PieceQueue(),
    task: new PieceQueue(),
  };
  /** Pieces of tasks since the last other one for a session. */
  #tasksInRow = 0;
  /** Pieces for sessions since the last one for a stranger. */
  #sessionsInRow = 0;
  /** Pieces that have begun and count, oldest first. */
  readonly #underWay = new Set<UnderWay>();
  #maxUnderWay = MIN_UNDER_WAY;
  #cancelExpiry: CancelTimer | undefined;
  /** Milliseconds of work in this turn. */
  #usedMs = 0;
  /** True when a slice of work has begun in this turn. */
  #hasSlice = false;
  /** Most milliseconds of work in this turn, if the one before took too long. */
  #lateMs = 0;
  #lastWorkMs = -Infinity;
  /** True when the last turn that was measured took too long. */
  #isBehind = false;
  #isWorking = false;
  #isTurnExpected = false;
  #isHurried = false;

  constructor(options: PacedWorkOptions = {}) {
    const { sliceMs = 0.3, maxTurnMs = 0.1, maxPauseMs = 10, lateSliceMs = 0.5 } = options;
    this.#sliceMs = sliceMs;
    this.#maxTurnMs = maxTurnMs;
    this.#maxPauseMs = maxPauseMs;
    this.#lateSliceMs = lateSliceMs;
    this.#maxLateSliceMs = options.maxLateSliceMs ?? 10;
    this.#nowMs = options.nowMs ?? (() => performance.now());
    this.#nextTurn = options.nextTurn ?? setImmediate;
    const clock = new SystemClock();
    this.#after = options.after ?? ((delayMs, callback) => clock.after(delayMs, callback));
  }

  /** Pieces that wait, for all or for one kind. */
  waiting(kind?: PacedFor): number {
    const { session, stranger, task } = this.#queues;
    const [forSessions, forStrangers] = [session.length + task.length, stranger.length];
    if (kind === undefined) return forSessions + forStrangers;
    return kind === "session" ? forSessions : forStrangers;
  }

  /** Pieces that have begun and count as under way. */
  get underWay(): number {
    return this.#underWay.size;
  }

  /**
   * Does one piece: at once if no other waits and the loop has time.
   *
   * @returns the result of the piece, or what it has thrown
   */
  run<T>(piece: () => T | Promise<T>, kind: PacedFor = "session"): Promise<T> {
    const nowMs = this.#nowMs();
    return this.#add(this.#queues[kind], piece, { sinceMs: nowMs, orderMs: nowMs });
  }

  /** Begins a task for a session. Its pieces have the place in the order that it has now. */
  task(): PacedTask {
    const orderMs = this.#nowMs();
    return {
      run: (piece) => this.#add(this.#queues.task, piece, { sinceMs: this.#nowMs(), orderMs }),
    };
  }

  #add<T>(queue: PieceQueue, piece: () => T | Promise<T>, times: PieceTimes): Promise<T> {
    const { promise, resolve, reject } = Promise.withResolvers<T>();
    queue.insert(times, () => {
      try {
        const result = piece();
        if (result instanceof Promise) this.#watch(result);
        resolve(result);
      } catch (thrown) {
        reject(thrown);
      }
    });
    this.#work();
    return promise;
  }

  /**
   * Does all pieces without pauses and side by side from now on, as many as the machine can do: what
   * is not done soon would never be, as the process is about to end.
   */
  hurry(): void {
    this.#isHurried = true;
    this.#work();
  }

  /** Counts an asynchronous piece as under way until it settles. */
  #watch(result: Promise<unknown>): void {
    const piece: UnderWay = { sinceMs: this.#nowMs() };
    this.#underWay.add(piece);
    const ended = () => {
      const wasFull = this.#isFull;
      if (!this.#underWay.delete(piece) || this.waiting() === 0) return;
      if (wasFull) this.#grow(1 / this.#maxUnderWay);
      this.#work();
    };
    result.then(ended, ended);
  }

  #work(): void {
    if (this.#isWorking) return;
    this.#isWorking = true;
    while (this.waiting() > 0 && this.#mayWork()) {
      const startMs = this.#nowMs();
      this.#hasSlice = true;
      this.#take()();
      this.#lastWorkMs = this.#nowMs();
      this.#usedMs += this.#lastWorkMs - startMs;
      this.#expectTurn();
    }
    this.#isWorking = false;
    if (this.waiting() === 0) {
      this.#cancelExpiry?.();
      this.#cancelExpiry = undefined;
    } else if (!this.#isFull) this.#expectTurn();
    else this.#expectExpiry();
  }

  #mayWork(): boolean {
    if (this.#isHurried) return this.#usedMs < HURRIED_SLICE_MS;
    if (this.#isFull) return false;
    if (!this.#isBehind) return this.#usedMs < this.#sliceMs;
    if (!this.#hasSlice) this.#lateMs = this.#lateSlice();
    return this.#usedMs < this.#lateMs;
  }

  /** Returns the milliseconds of work in this turn, although turns are long. Some piece waits. */
  #lateSlice(): number {
    const [firstMs, mostMs] = [this.#lateSliceMs, this.#maxLateSliceMs];
    const waitedMs = this.#waitedMs();
    const perPauseMs = Math.min(Math.max(1, waitedMs / AGE_MS) * firstMs, mostMs);
    const share = perPauseMs / this.#maxPauseMs;
    const pausedMs = this.#nowMs() - this.#lastWorkMs;
    if (share * pausedMs < firstMs) return 0;
    // Only what has waited all the time has a share of all of it.
    return Math.min(Math.max(firstMs, share * Math.min(pausedMs, waitedMs)), mostMs);
  }

  get #isFull(): boolean {
    if (this.#isHurried) return false;
    // Logins have timeouts, however slow the database is.
    const late = Math.max(0, (this.#waitedMs() - LATE_AFTER_MS) / LATE_PLACE_MS);
    return this.#underWay.size >= Math.floor(this.#maxUnderWay + late);
  }

  /** Returns the milliseconds for which the oldest piece has waited; less than 0 without one. */
  #waitedMs(): number {
    const { session, stranger, task } = this.#queues;
    return this.#nowMs() - Math.min(session.sinceMs, stranger.sinceMs, task.sinceMs);
  }

  /** Removes the next piece from its queue. Some piece waits. */
  #take(): () => void {
    const { session, stranger, task } = this.#queues;
    const isLate = this.#nowMs() - stranger.sinceMs >= STRANGER_WAITS_MS;
    const sessionsFirst = isLate ? SESSIONS_BEFORE_LATE : SESSIONS_FIRST;
    const isForSession = stranger.length === 0 ||
      (session.length + task.length > 0 && this.#sessionsInRow < sessionsFirst);
    this.#sessionsInRow = isForSession ? this.#sessionsInRow + 1 : 0;
    if (!isForSession) return stranger.shift();
    const isOfTask = session.length === 0 ||
      (task.length > 0 && task.orderMs <= session.orderMs && this.#tasksInRow < TASKS_FIRST);
    this.#tasksInRow = isOfTask ? this.#tasksInRow + 1 : 0;
    return (isOfTask ? task : session).shift();
  }

  #grow(by: number): void {
    if (!this.#isBehind) this.#maxUnderWay = Math.min(MAX_UNDER_WAY, this.#maxUnderWay + by);
  }

  /** Measures the turn that begins now, and goes on in the next one. */
  #expectTurn(): void {
    if (this.#isTurnExpected) return;
    this.#isTurnExpected = true;
    const [sinceMs, usedBeforeMs] = [this.#nowMs(), this.#usedMs];
    this.#nextTurn(() => {
      this.#isTurnExpected = false;
      const otherMs = this.#nowMs() - sinceMs - (this.#usedMs - usedBeforeMs);
      this.#usedMs = 0;
      this.#hasSlice = false;
      this.#isBehind = otherMs > this.#maxTurnMs;
      if (otherMs > this.#maxTurnMs * LONG_TURN) {
        this.#maxUnderWay = Math.max(MIN_UNDER_WAY, this.#maxUnderWay / 2);
      }
      this.#work();
    });
  }

  /** Goes on when the oldest piece under way no longer counts. All places are taken. */
  #expectExpiry(): void {
    if (this.#cancelExpiry !== undefined) return;
    const [oldest] = this.#underWay;
    const leftMs = oldest!.sinceMs + COUNTED_MS - this.#nowMs();
    this.#cancelExpiry = this.#after(Math.max(0, leftMs), () => {
      this.#cancelExpiry = undefined;
      const latestMs = this.#nowMs() - COUNTED_MS;
      for (const piece of this.#underWay) {
        if (piece.sinceMs > latestMs) break;
        this.#underWay.delete(piece);
        this.#grow(1);
      }
      this.#work();
    });
  }
}

/** Times of a piece of work that waits. */
interface PieceTimes {
  readonly sinceMs: number;
  /** The time by which it has its place: when its task began. */
  readonly orderMs: number;
}

interface Piece extends PieceTimes {
  readonly begin: () => void;
}

/** Pieces that wait, in their order. */
class PieceQueue {
  #pieces: Piece[] = [];
  /** Index of the first piece that waits. */
  #next = 0;

  get length(): number {
    return this.#pieces.length - this.#next;
  }

  /** The time at which the first piece came; infinite without one. */
  get sinceMs(): number {
    return this.#pieces[this.#next]?.sinceMs ?? Infinity;
  }

  /** The time by which the first piece has its place; infinite without one. */
  get orderMs(): number {
    return this.#pieces[this.#next]?.orderMs ?? Infinity;
  }

  /** Adds a piece behind those whose place is the same or an earlier one. Most go to the end. */
  insert(times: PieceTimes, begin: () => void): void {
    const pieces = this.#pieces;
    let at = pieces.length;
    while (at > this.#next && pieces[at - 1]!.orderMs > times.orderMs) at--;
    if (at === pieces.length) pieces.push({ ...times, begin });
    else pieces.splice(at, 0, { ...times, begin });
  }

  /** Removes the first piece, of one or more. */
  shift(): () => void {
    const { begin } = this.#pieces[this.#next++]!;
    // Each piece is moved once at most, on the average.
    if (this.#next * 2 >= this.#pieces.length) {
      this.#pieces = this.#pieces.slice(this.#next);
      this.#next = 0;
    }
    return begin;
  }
}
