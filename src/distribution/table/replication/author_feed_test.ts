import assert from "node:assert/strict";
import type { OpenLink } from "../../mod.ts";
import type { ChangesFields, SnapshotFields, TableRecord } from "../../wire/mod.ts";
import { decodeChanges, decodeSnapshot, FRAME_TYPE } from "../../wire/mod.ts";
import { AuthorFeed } from "./author_feed.ts";
import { ChangeLog } from "./change_log.ts";

const PROCESS = 7;
const AHEAD = 4_096;
const CHUNK = 32;
const LEASE = Uint8Array.of(0, 0, 0, 1, FRAME_TYPE.lease);

class Link implements OpenLink {
  readonly host = "dc2.example.com";
  readonly nodeName = "node1@dc2.example.com";
  readonly process = 9;
  readonly refusals: string[] = [];
  readonly frames: Uint8Array[] = [];

  send(frame: Uint8Array): void {
    this.frames.push(frame);
  }

  refuse(detail: string): void {
    this.refusals.push(detail);
  }

  get leases(): number {
    return this.frames.filter((frame) => frame[4] === FRAME_TYPE.lease).length;
  }

  get changes(): ChangesFields[] {
    return this.frames.filter((frame) => frame[4] === FRAME_TYPE.changes)
      .map((frame) => decodeChanges(frame, 0, frame.length));
  }

  get pieces(): SnapshotFields[] {
    return this.frames.filter((frame) => frame[4] === FRAME_TYPE.snapshot)
      .map((frame) => decodeSnapshot(frame, 0, frame.length));
  }

  /** Numbers of all changes sent. */
  get sequences(): number[] {
    return this.changes.flatMap(({ records }) => records.map(({ sequence }) => sequence));
  }
}

function record(sequence: number, resourcepart = "phone"): TableRecord {
  const name = `user${sequence}@example.com`;
  return { kind: "claim", isHidden: false, sequence, epoch: 1, name, resourcepart };
}

function numbers(from: number, to: number): number[] {
  return Array.from({ length: to - from + 1 }, (_, i) => from + i);
}

function scene(changes: number, claims: readonly TableRecord[] = []) {
  const log = new ChangeLog();
  for (const i of numbers(1, changes)) log.append(record(i));
  const feed = new AuthorFeed("dc2.example.com", {
    process: PROCESS,
    log,
    claims: () => claims[Symbol.iterator](),
    leaseFrame: () => LEASE,
  });
  const link = new Link();
  feed.opened(link);
  const position = (fields: Partial<Parameters<AuthorFeed["position"]>[1]>, over = link) =>
    feed.position(over, {
      process: PROCESS,
      round: 1,
      applied: 0,
      chunk: 0,
      isRestart: false,
      wantsSnapshot: false,
      ...fields,
    });
  return { feed, log, link, position };
}

Deno.test("AuthorFeed sends LEASE first, and nothing else before it gets a position", () => {
  const { feed, link } = scene(3);
  feed.pump();
  assert.deepEqual([link.leases, link.frames.length], [1, 1]);
});

Deno.test("AuthorFeed goes on after the last applied change, then with new changes", () => {
  const { feed, log, link, position } = scene(5);
  position({ isRestart: true, applied: 3 });
  assert.deepEqual(link.sequences, [4, 5]);
  assert.deepEqual(link.changes.map(({ first, round }) => [first, round]), [[4, 1]]);
  log.append(record(6));
  feed.pump();
  assert.deepEqual(link.sequences, [4, 5, 6]);
});

Deno.test("AuthorFeed sends at most 4096 changes ahead of the last applied one", () => {
  const { link, position } = scene(AHEAD + 600);
  position({ isRestart: true });
  assert.equal(link.sequences.length, AHEAD);
  position({ applied: 1 });
  assert.equal(link.sequences.length, AHEAD + 1);
  position({ applied: AHEAD });
  assert.deepEqual(link.sequences, numbers(1, AHEAD + 600));
});

Deno.test("AuthorFeed sends two pieces of a snapshot and waits, with changes in between", () => {
  const claims = numbers(1, 3 * CHUNK + 1).map((i) => record(i));
  const { feed, log, link, position } = scene(5, claims);
  position({ isRestart: true, wantsSnapshot: true });
  assert.deepEqual(link.pieces.map(({ chunk, isFirst }) => [chunk, isFirst]), [[1, true], [
    2,
    false,
  ]]);
  assert.deepEqual(link.sequences, [], "the snapshot replaces the log");
  log.append(record(6));
  feed.pump();
  assert.deepEqual([link.pieces.length, link.sequences], [2, [6]]);
  position({ chunk: 1 });
  assert.equal(link.pieces.length, 3);
  position({ chunk: 3 });
  assert.deepEqual(link.pieces.map(({ isLast }) => isLast), [false, false, false, true]);
  assert.deepEqual(
    link.pieces.flatMap(({ records }) => records.map(({ sequence }) => sequence)),
    numbers(1, 3 * CHUNK + 1),
  );
  assert.deepEqual(new Set(link.pieces.map(({ number }) => number)), new Set([5]));
});

Deno.test("AuthorFeed sends an empty snapshot without claims", () => {
  const { link, position } = scene(0);
  position({ isRestart: true, wantsSnapshot: true });
  assert.deepEqual(link.pieces.map(({ isFirst, isLast }) => [isFirst, isLast]), [[true, true]]);
});

Deno.test("AuthorFeed keeps pieces below the limit of a frame, whatever they contain", () => {
  const claims = numbers(1, CHUNK).map((i) => record(i, "☃".repeat(341)));
  const { link, position } = scene(0, claims);
  position({ isRestart: true, wantsSnapshot: true });
  for (let chunk = 1; !link.pieces.at(-1)!.isLast; chunk++) position({ chunk });
  assert.ok(link.pieces.length > 1);
  assert.equal(link.pieces.reduce((sum, { records }) => sum + records.length, 0), CHUNK);
});

Deno.test("AuthorFeed sends a snapshot to a datacenter that missed more than the log holds", () => {
  const { link, position } = scene(16_384 + 1, [record(1)]);
  position({ isRestart: true, applied: 0 });
  assert.deepEqual(link.pieces.map(({ number }) => number), [16_385]);
  const other = scene(16_384 + 1, [record(1)]);
  other.position({ isRestart: true, applied: 1 });
  assert.equal(other.link.pieces.length, 0);
  assert.equal(other.link.sequences[0], 2);
});

Deno.test("AuthorFeed moves to another link when its own ends, and sends LEASE there", () => {
  const { feed, link, position } = scene(3);
  position({ isRestart: true });
  const other = new Link();
  feed.opened(other);
  assert.equal(other.frames.length, 0, "one link is enough");
  feed.ended(link);
  assert.deepEqual([other.leases, other.sequences], [1, []]);
  position({ isRestart: true }, link);
  assert.equal(other.frames.length, 1, "a position from the old link does not count");
  position({ isRestart: true, round: 2, applied: 2 }, other);
  assert.deepEqual(other.sequences, [3]);
  feed.ended(other);
  feed.beat();
  assert.equal(feed.snapshot.state, "silent");
});

Deno.test("AuthorFeed refuses a position above its last change, and ignores another process's or an old one", () => {
  const { link, position } = scene(3);
  position({ isRestart: true, applied: 4 });
  assert.deepEqual(link.refusals, ["change 4 was never made"]);
  position({ isRestart: true, process: 8 });
  assert.deepEqual(link.sequences, []);
  position({ isRestart: true, round: 5 });
  position({ round: 4, applied: 3 });
  assert.deepEqual(link.sequences, [1, 2, 3]);
});

Deno.test("AuthorFeed refuses to be told of changes or pieces that it has not sent", () => {
  const claims = numbers(1, 10 * CHUNK).map((i) => record(i));
  const many = scene(AHEAD + 600, claims);
  many.position({ isRestart: true });
  many.position({ applied: AHEAD + 1 });
  assert.equal(many.link.sequences.length, AHEAD);
  assert.equal(many.link.refusals.length, 1);
  const snapshot = scene(0, claims);
  snapshot.position({ isRestart: true, wantsSnapshot: true });
  snapshot.position({ chunk: 0xffffffff });
  assert.equal(snapshot.link.pieces.length, 2, "not all of it at once");
  assert.equal(snapshot.link.refusals.length, 1);
});
