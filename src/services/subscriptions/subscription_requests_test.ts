import assert from "node:assert/strict";
import { join } from "node:path";
import { ManualClock } from "../../base/mod.ts";
import { MemoryLogger, MetricsRegistry } from "../../observe/mod.ts";
import { InternalStore } from "../../storage/mod.ts";
import type { RequestChange, SubscriptionRequestStore } from "../../storage/mod.ts";
import { FullJid, parseJid } from "../../xmpp/mod.ts";
import type { PresenceType, Stanza } from "../../xmpp/mod.ts";
import type { KeptRequest } from "./kept_request.ts";
import type { RequestEntry } from "./subscription_requests.ts";
import { SubscriptionRequests } from "./subscription_requests.ts";

const [ALICE, BOB, CAROL] = ["alice@example.com", "bob@example.com", "carol@example.com"];
const PHONE = parseJid(`${BOB}/phone`) as FullJid;
const ENTRY: RequestEntry = { origin: "dc1.example.com", process: 1, sequence: 9 };
const [GATHER_MS, SWEEP_MS] = [20, 10_000];

function presence(type: PresenceType, from = ALICE, to = BOB, status = "let me in"): Stanza {
  const text =
    `<presence from='${from}' to='${to}' type='${type}'><status>${status}</status></presence>`;
  const bytes = new TextEncoder().encode(text);
  return { kind: "presence", type, from: parseJid(from), to: parseJid(to), bytes };
}

function textOf({ bytes }: Stanza): string {
  return new TextDecoder().decode(bytes);
}

/** One node between fakes, with a store of its own in a file. */
class Node implements AsyncDisposable {
  readonly clock = new ManualClock();
  readonly metrics = new MetricsRegistry(this.clock);
  readonly logger = new MemoryLogger();
  readonly accounts = new Set([ALICE, BOB, CAROL]);
  /** Accounts with a session here. */
  readonly here = new Set<string>();
  readonly table = new Map<string, string>();
  readonly routed: { readonly text: string; readonly kept: KeptRequest }[] = [];
  readonly entries: RequestEntry[] = [];
  readonly delivered: string[] = [];
  /** Changes that the store received, one array for each write. */
  readonly writes: (readonly RequestChange[])[] = [];
  isBroken = false;
  readonly store: SubscriptionRequestStore;
  readonly requests: SubscriptionRequests;
  readonly #internal: InternalStore;
  readonly #directory: string;

  private constructor(directory: string, internal: InternalStore, maxBytes: number) {
    this.#directory = directory;
    this.#internal = internal;
    const inner = this.store = this.#internal.subscriptionRequests();
    this.requests = new SubscriptionRequests({
      store: {
        change: (changes) => {
          this.writes.push(changes);
          return this.isBroken ? Promise.reject(new Error("full")) : inner.change(changes);
        },
        ofContact: (contact) => inner.ofContact(contact),
        contacts: () => inner.contacts(),
        count: () => inner.count(),
      },
      exists: ({ text }) => Promise.resolve(this.accounts.has(text)),
      isHere: (contact) => this.here.has(contact),
      locate: ({ text }) => Promise.resolve(this.table.get(text)),
      route: (request, kept, { origin, process, sequence }) => {
        this.routed.push({ text: textOf(request), kept });
        this.entries.push({ origin, process, sequence });
      },
      deliver: (to, request) => this.delivered.push(`${to.text} ${textOf(request)}`) > 0,
      senderOf: ({ text }) => text,
      maxBytes,
      metrics: this.metrics,
      logger: this.logger,
      clock: this.clock,
    });
  }

  /** @param directory of a node that has ended, to start it again */
  static async start({ maxBytes = 4096, directory = "" } = {}): Promise<Node> {
    if (directory === "") directory = await Deno.makeTempDir({ prefix: "causeway-requests-" });
    const internal = await InternalStore.open({ path: join(directory, "store.sqlite") });
    const node = new Node(directory, internal, maxBytes);
    await node.requests.start();
    return node;
  }

  /** Lets time pass, and everything happen that it triggers. */
  async pass(forMs: number): Promise<void> {
    this.clock.advance(forMs);
    for (let i = 0; i < 5; i++) await new Promise((resolve) => setImmediate(resolve));
  }

  /** Makes the node keep a request. */
  async keep(stanza = presence("subscribe")): Promise<KeptRequest> {
    const noted = this.requests.note(stanza, ENTRY);
    await this.pass(GATHER_MS);
    return (await noted)!;
  }

  async counted(outcome: string): Promise<number> {
    const line = `causeway_subscription_requests_total{outcome="${outcome}"} `;
    const text = await this.metrics.prometheus();
    return Number(text.split("\n").find((each) => each.startsWith(line))?.slice(line.length));
  }

  /** Ends the node like `kill -9`, and returns its directory. */
  async die(): Promise<string> {
    await this.#internal.close();
    this.metrics.close();
    return this.#directory;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.requests.close();
    await this.die();
    await Deno.remove(this.#directory, { recursive: true });
  }
}

Deno.test("SubscriptionRequests.note() resolves when the request is on the disk", async () => {
  await using node = await Node.start();
  let isDone = false;
  const noted = node.requests.note(presence("subscribe"), ENTRY)!;
  void noted.then(() => isDone = true);
  await node.pass(GATHER_MS - 1);
  assert.deepEqual([isDone, await node.store.count()], [false, 0]);
  await node.pass(1);
  assert.equal(isDone, true);
  const [request] = await node.store.ofContact(BOB);
  assert.deepEqual([request?.requester, request?.stanza], [ALICE, presence("subscribe").bytes]);
  assert.equal(await node.counted("kept"), 1);
});

Deno.test("SubscriptionRequests.note() takes the same steps whether or not there is such an account", async () => {
  await using node = await Node.start();
  for (const contact of [BOB, "nobody@example.com"]) {
    const before = node.writes.length;
    const kept = await node.keep(presence("subscribe", ALICE, contact));
    kept.stays();
    assert.deepEqual(node.writes.slice(before).map((each) => each.map(({ kind }) => kind)), [[
      "keep",
    ]]);
    assert.equal((await node.store.ofContact(contact)).length, 1);
  }
  await node.pass(SWEEP_MS);
  await node.pass(GATHER_MS);
  assert.deepEqual(await node.store.contacts(), [BOB]);
  assert.equal(await node.counted("ignored"), 1);
});

Deno.test("SubscriptionRequests writes simultaneous changes in one write", async () => {
  await using node = await Node.start();
  const noted = [ALICE, CAROL, "dan@example.com"].map((from) =>
    node.requests.note(presence("subscribe", from), ENTRY)
  );
  await node.pass(GATHER_MS);
  assert.equal((await Promise.all(noted)).length, 3);
  assert.deepEqual(node.writes.map(({ length }) => length), [3]);
});

Deno.test("SubscriptionRequests writes at most 64 changes at once, in their order", async () => {
  await using node = await Node.start();
  const from = Array.from(
    { length: 150 },
    (_, i) => `user${String(i).padStart(3, "0")}@example.com`,
  );
  const noted = from.map((each) => node.requests.note(presence("subscribe", each), ENTRY));
  for (let i = 0; i < 3; i++) await node.pass(GATHER_MS);
  for (const kept of await Promise.all(noted)) kept!.stays();
  assert.deepEqual(node.writes.map(({ length }) => length), [64, 64, 22]);
  const written = node.writes.flat().map((change) =>
    change.kind === "keep" ? change.request.requester : ""
  );
  assert.deepEqual(written, from);
});

Deno.test("SubscriptionRequests delivers to each client that becomes available, until the contact answers", async () => {
  for (const answer of ["subscribed", "unsubscribed"] as const) {
    await using node = await Node.start();
    (await node.keep()).stays();
    (await node.keep(presence("subscribe", CAROL))).stays();
    const texts = [ALICE, CAROL].map((from) => textOf(presence("subscribe", from)));
    node.here.add(BOB);
    for (const resource of ["phone", "desk"]) {
      const to = new FullJid(parseJid(BOB).bare, resource);
      node.requests.becameAvailable(to);
      await node.pass(0);
      assert.deepEqual(node.delivered.splice(0), texts.map((text) => `${to.text} ${text}`));
    }
    assert.equal(node.requests.note(presence(answer, BOB, ALICE), ENTRY), undefined);
    await node.pass(GATHER_MS);
    node.requests.becameAvailable(PHONE);
    await node.pass(0);
    assert.deepEqual(node.delivered, [`${PHONE.text} ${texts[1]}`], answer);
  }
});

Deno.test("SubscriptionRequests forgets a request that its requester cancels, even at the same moment", async () => {
  await using node = await Node.start();
  (await node.keep()).stays();
  assert.equal(
    node.requests.note(presence("unsubscribe"), ENTRY),
    undefined,
    "nobody waits for it",
  );
  await node.pass(GATHER_MS);
  assert.equal(await node.store.count(), 0);
  const noted = node.requests.note(presence("subscribe"), ENTRY);
  node.requests.note(presence("unsubscribe"), ENTRY);
  await node.pass(GATHER_MS);
  (await noted)!.stays();
  assert.equal(await node.store.count(), 0);
  node.requests.becameAvailable(PHONE);
  await node.pass(0);
  assert.deepEqual(node.delivered, []);
});

Deno.test("SubscriptionRequests keeps the newest request of a pair, and forgets only one that another node has", async () => {
  await using node = await Node.start();
  const older = await node.keep(presence("subscribe", ALICE, BOB, "first"));
  const newer = await node.keep(presence("subscribe", ALICE, BOB, "second"));
  older.settle();
  await node.pass(GATHER_MS);
  assert.equal(await node.store.count(), 1);
  newer.settle();
  await node.pass(GATHER_MS);
  assert.equal(await node.store.count(), 0);
  assert.equal(await node.counted("passed-on"), 2);
});

Deno.test("SubscriptionRequests routes kept requests when the contact is revealed, one attempt at a time", async () => {
  await using node = await Node.start();
  (await node.keep()).stays();
  const { text } = { text: textOf(presence("subscribe")) };
  node.requests.revealed(CAROL);
  node.requests.revealed(BOB);
  node.requests.revealed(BOB);
  await node.pass(0);
  assert.deepEqual(node.routed.map((each) => each.text), [text]);
  assert.deepEqual(node.entries, [ENTRY]);
  node.routed[0]!.kept.stays(); // nobody was there after all
  node.requests.revealed(BOB);
  await node.pass(0);
  assert.equal(node.routed.length, 2);
  node.routed[1]!.kept.settle();
  await node.pass(GATHER_MS);
  node.requests.revealed(BOB);
  await node.pass(0);
  assert.equal(node.routed.length, 2);
  assert.equal(await node.store.count(), 0);
});

Deno.test("SubscriptionRequests routes no request for a contact who is at this node", async () => {
  await using node = await Node.start();
  (await node.keep()).stays();
  node.here.add(BOB);
  node.table.set(BOB, "dc1.example.com");
  node.requests.revealed(BOB);
  await node.pass(SWEEP_MS);
  assert.deepEqual(node.routed, []);
});

Deno.test("SubscriptionRequests looks up contacts that nobody revealed, also after a restart", async () => {
  const before = await Node.start();
  (await before.keep()).stays();
  await using node = await Node.start({ directory: await before.die() });
  await node.pass(SWEEP_MS);
  assert.equal(node.routed.length, 0, "bob is nowhere");
  node.table.set(BOB, "dc2.example.com");
  await node.pass(SWEEP_MS);
  assert.deepEqual(node.routed.map(({ text }) => text), [textOf(presence("subscribe"))]);
  node.routed[0]!.kept.settle();
  await node.pass(2 * SWEEP_MS);
  assert.equal(node.routed.length, 1);
  assert.equal(await node.store.count(), 0);
});

Deno.test("SubscriptionRequests keeps only the addresses of a request that is long or not between accounts", async () => {
  await using node = await Node.start({ maxBytes: 300 });
  const long = presence("subscribe", ALICE, BOB, "x".repeat(300));
  const full = presence("subscribe", "rooms.example.com/nick", CAROL);
  for (const stanza of [long, full]) (await node.keep(stanza)).stays();
  for (const [contact, from] of [[BOB, ALICE], [CAROL, "rooms.example.com"]] as const) {
    const [request] = await node.store.ofContact(contact);
    const text = new TextDecoder().decode(request!.stanza);
    assert.match(text, new RegExp(`^<presence [^>]*from=['"]${from}['"][^>]*/>$`));
    assert.match(text, /type=['"]subscribe['"]/);
  }
});

Deno.test("SubscriptionRequests keeps nothing when the store fails, logs that, and goes on", async () => {
  await using node = await Node.start();
  node.isBroken = true;
  assert.equal(await node.keep(), undefined);
  assert.equal(node.logger.named("subscriptions.store-failed").length, 1);
  assert.equal(await node.counted("failed"), 1);
  node.isBroken = false;
  (await node.keep()).stays();
  assert.equal(await node.store.count(), 1);
});

Deno.test("SubscriptionRequests.close() writes the gathered changes", async () => {
  await using node = await Node.start();
  const noted = node.requests.note(presence("subscribe"), ENTRY)!;
  await node.requests.close();
  (await noted)!.stays();
  assert.equal(await node.store.count(), 1);
});

Deno.test("requests of an account that was deleted are forgotten, and those for it", async () => {
  await using node = await Node.start();
  await node.keep();
  await node.keep(presence("subscribe", BOB, CAROL));
  await node.keep(presence("subscribe", CAROL, ALICE));
  node.requests.forget(BOB);
  await node.pass(GATHER_MS);
  assert.deepEqual(await node.store.contacts(), [ALICE]);
});

Deno.test("requests for an account that is deleted at another node are forgotten after some sweeps", async () => {
  await using node = await Node.start();
  await node.keep();
  for (let i = 0; i < 3; i++) await node.pass(SWEEP_MS);
  assert.deepEqual(await node.store.contacts(), [BOB]);
  node.accounts.delete(BOB);
  for (let i = 0; i < 10; i++) await node.pass(SWEEP_MS);
  assert.deepEqual(await node.store.contacts(), []);
});
