import assert from "node:assert/strict";
import fc from "fast-check";
import { parseJid } from "../jid/jid_parser.ts";
import type { RawPeer } from "../stream/testing/raw_peer.ts";
import { authenticate, C2sFixture } from "./testing/c2s_fixture.ts";
import { TestDelivery } from "./testing/delivery.ts";

const SM = "urn:xmpp:sm:3";
const HOME = "alice@example.com/home";

/** A client that counts as XEP-0198 requires, over any number of streams. */
class CountingClient {
  peer: RawPeer;
  readonly id: string;
  /** Ids of the stanzas it received, in order. */
  readonly received: string[] = [];
  /** Ids of the stanzas it sent and the server has not acknowledged. */
  unacknowledged: string[] = [];
  #sent = 0;
  #acknowledged = 0;

  private constructor(peer: RawPeer, id: string) {
    this.peer = peer;
    this.id = id;
  }

  static async enter(fixture: C2sFixture): Promise<CountingClient> {
    const peer = await fixture.login("alice", "home");
    const enabled = /<enabled [^>]*id='([0-9a-f-]+)'[^>]*\/>/;
    const [, id] = await peer.exchange(`<enable xmlns='${SM}' resume='true'/>`, enabled);
    return new CountingClient(peer, id!);
  }

  send(): string {
    const id = `up${++this.#sent}`;
    this.unacknowledged.push(id);
    this.#write(id);
    return id;
  }

  acknowledge(): void {
    this.peer.send(`<a xmlns='${SM}' h='${this.received.length}'/>`);
  }

  /** True when the last `read` brought something. */
  hasMore = false;

  /** Reads everything that was sent until now. */
  async read(): Promise<void> {
    const { length } = this.received;
    this.peer.send(`<r xmlns='${SM}'/>`);
    await this.#take(/<a [^>]*h='(\d+)'\/>/);
    this.hasMore = this.received.length > length;
  }

  /** Reconnects, with or without losing what is on its way to it. */
  async comeBack(fixture: C2sFixture, { readsFirst }: { readsFirst: boolean }): Promise<void> {
    if (readsFirst) await this.read();
    this.peer.cut();
    this.peer = fixture.connect();
    await authenticate(this.peer, "alice");
    const h = this.received.length;
    this.peer.send(`<resume xmlns='${SM}' previd='${this.id}' h='${h}'/>`);
    await this.#take(/<resumed [^>]*h='(\d+)'\/>/);
    for (const id of this.unacknowledged) this.#write(id);
  }

  #write(id: string): void {
    this.peer.send(`<message to='bob@example.com' type='headline' id='${id}'/>`);
  }

  /** Reads up to the nonza that carries `h`, and acts on that `h`. */
  async #take(nonza: RegExp): Promise<void> {
    const before = this.peer.unread;
    const match = await this.peer.expect(nonza);
    const text = match.input.slice(0, match.index);
    assert.ok(text.startsWith(before));
    for (const [, id] of text.matchAll(/<message [^>]*id='(down\d+)'/g)) this.received.push(id!);
    const h = Number(match[1]);
    this.unacknowledged.splice(0, h - this.#acknowledged);
    this.#acknowledged = h;
  }
}

type Step = "down" | "up" | "ack" | "read" | "cut" | "read-and-cut";

const STEP = fc.oneof(
  { weight: 6, arbitrary: fc.constant<Step>("down") },
  { weight: 4, arbitrary: fc.constant<Step>("up") },
  { weight: 2, arbitrary: fc.constant<Step>("read") },
  fc.constantFrom<Step>("ack", "cut", "read-and-cut"),
);

Deno.test("nothing is lost or doubled in either direction, over any acknowledgements, cuts and resumes", async () => {
  const bob = parseJid("bob@example.com/x");
  const home = parseJid(HOME);
  await fc.assert(
    fc.asyncProperty(fc.array(STEP, { maxLength: 40 }), async (steps) => {
      const carried: string[] = [];
      await using fixture = new C2sFixture({
        // A client that is cut off again and again gets fewer stanzas at once, and no stanza is bounced
        // for it.
        management: { ackFreq: 1000, ackDelayMs: 3_600_000, suspectWithinMs: 0 },
        sink: {
          accept: (stanza, _source, fate, number) => {
            const id = /id='(up\d+)'/.exec(new TextDecoder().decode(stanza.bytes))?.[1];
            if (id !== undefined) carried.push(id);
            fate?.settle(number!);
          },
        },
      });
      const client = await CountingClient.enter(fixture);
      const down: TestDelivery[] = [];
      const up: string[] = [];
      for (const step of [...steps, "read", "read-and-cut", "read"] satisfies Step[]) {
        switch (step) {
          case "down": {
            const bytes = new TextEncoder().encode(`<message id='down${down.length}'/>`);
            const type = "chat" as const;
            down.push(new TestDelivery({ kind: "message", type, from: bob, to: home, bytes }));
            fixture.route(down.at(-1)!);
            break;
          }
          case "up":
            up.push(client.send());
            break;
          case "ack":
            client.acknowledge();
            break;
          case "read":
            await client.read();
            break;
          case "cut":
          case "read-and-cut":
            await client.comeBack(fixture, { readsFirst: step === "read-and-cut" });
            break;
          default:
            step satisfies never;
        }
      }
      do {
        client.acknowledge();
        await client.read();
      } while (client.hasMore);
      client.acknowledge();
      await client.read();
      assert.deepEqual(client.received, down.map((_, number) => `down${number}`));
      assert.deepEqual(carried, up);
      assert.ok(down.every(({ isSettled }) => isSettled));
      assert.deepEqual([client.unacknowledged, fixture.rerouted], [[], []]);
    }),
    { numRuns: 60 },
  );
});
