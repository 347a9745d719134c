import { deepStrictEqual, rejects, strictEqual, throws } from "node:assert/strict";
import { newId, type ReceivedStanza } from "../clients/mod.ts";
import { until } from "../until.ts";
import type { Correspondent } from "./_message_run.ts";
import { ascents, assertNoneReturned, isAscending, MessageRun } from "./_message_run.ts";

const CLUSTER = { until };
/** Short: nothing is on its way that could still come. */
const WITHIN_MS = 30;

/** A correspondent whose stanzas the test supplies. */
class Fake implements Correspondent {
  readonly jid = "somebody@example.com/fake";
  readonly received: ReceivedStanza[] = [];
  readonly sent: string[] = [];
  readonly taken: ReceivedStanza[] = [];

  sendMessage(_to: string, _body: string, { id = newId("fake") } = {}): Promise<string> {
    this.sent.push(id);
    return Promise.resolve(id);
  }

  expectStanza(predicate: string | ((stanza: ReceivedStanza) => boolean)): Promise<ReceivedStanza> {
    const found = this.received.find((each) => typeof predicate !== "string" && predicate(each));
    if (found === undefined) throw new Error("nothing fits");
    this.taken.push(found);
    return Promise.resolve(found);
  }

  put(id: string | undefined, errorCondition?: string): void {
    const type = errorCondition === undefined ? "chat" : "error";
    const [from, to] = [this.jid, this.jid];
    this.received.push({ kind: "message", id, type, from, to, body: "", errorCondition, xml: "" });
  }
}

async function start(count: number) {
  const [sender, one, other] = [new Fake(), new Fake(), new Fake()];
  const run = new MessageRun(sender);
  await run.send(one.jid, count);
  return { run, sender, one, other };
}

Deno.test("MessageRun.fates() returns where each message arrived or why it came back, and claims it", async () => {
  const { run, sender, one, other } = await start(4);
  one.put(sender.sent[1]);
  one.put(sender.sent[0]);
  one.put("somebody else's");
  other.put(sender.sent[3]);
  sender.put(sender.sent[2], "gone");
  const fates = await run.fates(CLUSTER, [one, other], WITHIN_MS);
  deepStrictEqual(fates, {
    arrived: [[1, 0], [3]],
    returned: [2],
    conditions: new Set(["gone"]),
  });
  deepStrictEqual([one, other, sender].map(({ taken }) => taken.length), [2, 1, 1]);
});

Deno.test("assertNoneReturned() tells what came back, and why", () => {
  const fates = { returned: [3, 1], conditions: new Set(["gone", "conflict"]) };
  const message = "he is there, but gone,conflict came back for 3,1";
  throws(() => assertNoneReturned(fates, "he is there"), { message });
  assertNoneReturned({ returned: [], conditions: new Set() }, "he is there");
});

Deno.test("MessageRun.fates() finds a lost message", async () => {
  const { run, sender, one } = await start(3);
  one.put(sender.sent[0]);
  one.put(sender.sent[2]);
  await rejects(run.fates(CLUSTER, [one], WITHIN_MS), /Neither arrived nor came back: 1$/m);
});

Deno.test("MessageRun.fates() finds a message that arrived twice, at one client or two, or arrived and came back", async () => {
  for (const place of ["one", "other", "sender"] as const) {
    const { run, ...people } = await start(2);
    const { sender, one, other } = people;
    for (const id of sender.sent) one.put(id);
    if (place === "sender") sender.put(sender.sent[1], "gone");
    else people[place].put(sender.sent[1]);
    await rejects(run.fates(CLUSTER, [one, other], WITHIN_MS), /there are 3/);
  }
});

Deno.test("isAscending() and ascents() tell order from disorder", () => {
  for (
    const [numbers, runs] of [[[], 0], [[1, 2, 5], 1], [[3, 4, 1, 2], 2], [[3, 2, 1], 3]] as const
  ) {
    strictEqual(isAscending(numbers), runs <= 1);
    strictEqual(ascents(numbers), runs);
  }
});
