import assert from "node:assert/strict";
import type { OfflineStore } from "../../storage/mod.ts";
import { MessageClaim } from "./message_claim.ts";

class Fixture {
  readonly calls: string[] = [];
  readonly events: string[] = [];
  /** Set to make the store fail. */
  failure: Error | undefined;
  /** Set to make the store wait. */
  gate: Promise<void> | undefined;
  readonly claim: MessageClaim;

  constructor() {
    const note = (method: string) => async (_localpart: string, _id: unknown, which: number[]) => {
      this.calls.push(`${method} ${which}`);
      await this.gate;
      if (this.failure !== undefined) throw this.failure;
    };
    const store: Partial<OfflineStore> = {
      remove: note("remove") as OfflineStore["remove"],
      release: note("release") as OfflineStore["release"],
    };
    // A claim calls these two methods alone.
    this.claim = new MessageClaim(store as OfflineStore, "bob", new Uint8Array(16), {
      changed: () => void this.events.push("changed"),
      delivered: () => void this.events.push("delivered"),
      returned: () => void this.events.push("returned"),
    });
  }
}

Deno.test("MessageClaim removes what clients have, and releases what nobody has", async () => {
  const { claim, calls, events } = new Fixture();
  for (const sequence of [1, 2, 3]) claim.sending(sequence);
  claim.settle(1);
  claim.stays(2);
  claim.unsent(3);
  claim.giveBack([3, 4]);
  assert.deepEqual(events, ["delivered", "changed", "returned", "changed", "changed"]);
  await claim.flush();
  await claim.flush();
  assert.deepEqual(calls, ["remove 1", "release 2,3,4"]);
});

Deno.test("MessageClaim counts the first end of a message alone", async () => {
  const { claim, calls, events } = new Fixture();
  claim.sending(1);
  claim.settle(1);
  claim.settle(1);
  claim.stays(1);
  claim.settle(2);
  assert.deepEqual(events, ["delivered", "changed"]);
  await claim.flush();
  assert.deepEqual(calls, ["remove 1"]);
});

Deno.test("MessageClaim.flush() tries again what failed", async () => {
  const fixture = new Fixture();
  const { claim, calls } = fixture;
  claim.sending(1);
  claim.settle(1);
  claim.giveBack([2]);
  fixture.failure = new Error("away");
  await assert.rejects(claim.flush(), /away/);
  fixture.failure = undefined;
  await claim.flush();
  assert.deepEqual(calls, ["remove 1", "remove 1", "release 2"]);
});

Deno.test("MessageClaim.flush() waits for an earlier one, and then flushes what is left", async () => {
  const fixture = new Fixture();
  const { claim, calls } = fixture;
  const gate = Promise.withResolvers<void>();
  fixture.gate = gate.promise;
  claim.giveBack([1]);
  const earlier = claim.flush();
  await Promise.resolve();
  claim.giveBack([2]);
  let isFlushed = false;
  const later = claim.flush().then(() => isFlushed = true);
  for (let turns = 0; turns < 20; turns++) await Promise.resolve();
  const [callsMeanwhile, wasFlushed] = [[...calls], isFlushed];
  gate.resolve();
  await Promise.all([earlier, later]);
  assert.deepEqual([callsMeanwhile, wasFlushed], [["release 1"], false]);
  assert.deepEqual(calls, ["release 1", "release 2"]);
});

Deno.test("MessageClaim.flush() flushes although an earlier one fails", async () => {
  const fixture = new Fixture();
  const { claim, calls } = fixture;
  const answer = Promise.withResolvers<void>();
  fixture.gate = answer.promise;
  claim.giveBack([1]);
  const [earlier, later] = [claim.flush(), claim.flush()];
  await Promise.resolve();
  fixture.gate = undefined;
  answer.reject(new Error("away"));
  await assert.rejects(earlier, /away/);
  await later;
  assert.deepEqual(calls, ["release 1", "release 1"]);
});

Deno.test("MessageClaim is done once it is finished and nothing of it is left", async () => {
  const fixture = new Fixture();
  const { claim } = fixture;
  assert.equal(claim.isDone, false, "there may be another page");
  claim.sending(1);
  claim.finish();
  assert.equal(claim.isDone, false, "a message is under way");
  claim.settle(1);
  assert.equal(claim.isDone, false, "it is still in the store");
  const gate = Promise.withResolvers<void>();
  fixture.gate = gate.promise;
  const flushed = claim.flush();
  assert.equal(claim.isDone, false, "it is being removed");
  gate.resolve();
  await flushed;
  assert.equal(claim.isDone, true);
});
