import assert from "node:assert/strict";
import fc from "fast-check";
import { parseJid } from "../../xmpp/mod.ts";
import type { Stanza } from "../../xmpp/mod.ts";
import type { Envelope } from "../envelope.ts";
import type { Archive, ArchiveSide, Noting } from "./ports.ts";
import { OpenNoting } from "./testing/open_noting.ts";
import { fromLink, idOf, OWN_PROCESS, RouterFixture, stanza } from "./testing/router_fixture.ts";

const BOB = "bob@example.com/b";
const ACCOUNT = "bob@example.com";
const HERE = "dc1.example.com";
const THERE = "dc2.example.com";
const SENDERS = ["alice@example.com/a", "carol@example.com/c", "room@muc.example.com/x"];

/** A message that the next transaction writes. */
interface Gathered {
  readonly id: string;
  readonly side: ArchiveSide;
  goOn(): void;
  end(isStored: boolean): void;
}

/** Archives that write what has gathered, in order, when the test says so. */
class SlowArchive implements Archive {
  /** Messages in the archive of bob, in its order. */
  readonly stored: string[] = [];
  /** Messages that went on before they were in it, or that it could not take. */
  readonly excused = new Set<string>();
  isBobHere = false;
  /** Messages whose archive began with them while earlier ones of their sender waited. */
  foreseen = 0;
  #gathered: Gathered[] = [];

  isHere(): boolean {
    return this.isBobHere;
  }

  note({ stanza }: Envelope, side: ArchiveSide): Noting | undefined {
    if (stanza.type === "error") return undefined;
    const id = idOf(stanza);
    const noting = new OpenNoting(() => {});
    const [sender] = id.split("-");
    const isAhead = (each: Gathered) =>
      each.side === "recipient" && each.id.startsWith(`${sender}-`) && each.id !== id;
    if (side === "recipient" && this.#gathered.some(isAhead)) this.foreseen++;
    this.#gathered.push({
      id,
      side,
      goOn: () => {
        if (side !== "sender") this.excused.add(id);
        noting.goOn();
      },
      end: (isStored) => {
        if (isStored && side !== "sender" && !this.stored.includes(id)) this.stored.push(id);
        if (!isStored && side === "recipient") this.excused.add(id);
        noting.end(isStored);
      },
    });
    return noting;
  }

  /**
   * Ends a transaction, one message right after another. For `late` it only lets go who waits.
   * @param of the side whose archives have a transaction of their own: default all share one
   */
  write(how: "stored" | "fails" | "late", of?: "sender" | "recipient"): void {
    if (how === "late") return this.#gathered.forEach((each) => each.goOn());
    const isOf = ({ side }: Gathered) =>
      of === undefined || (side === "sender") === (of === "sender");
    const ended = this.#gathered.filter(isOf);
    this.#gathered = this.#gathered.filter((each) => !isOf(each));
    for (const each of ended) each.end(how === "stored");
  }

  whenRoom(): Promise<boolean> {
    return Promise.reject(new Error("there is always room"));
  }

  hurry(): void {}

  keep({ stanza }: Envelope, { kept }: { kept(isStored: boolean): void }): boolean {
    const id = idOf(stanza);
    if (!this.stored.includes(id)) this.stored.push(id);
    this.kept.push(id);
    kept(true);
    return true;
  }

  /** Messages that nobody got. */
  readonly kept: string[] = [];

  stamped({ stanza }: Envelope): Stanza {
    return stanza;
  }
}

class World extends RouterFixture {
  readonly archive: SlowArchive;
  readonly #counts = [0, 0, 0];
  #sequence = 0;

  constructor() {
    const archive = new SlowArchive();
    super({ bounce: { resendAfterMs: 100, maxRetries: 3 } }, undefined, OWN_PROCESS, archive);
    this.archive = archive;
    this.domains.add("muc.example.com");
    for (const sender of SENDERS) {
      this.cache.set(sender, HERE);
      this.local.set(sender, "delivered");
    }
  }

  /** Puts bob at a datacenter, or nowhere. */
  moved(host: string | null): void {
    this.cache.set(BOB, host);
    if (host === null) this.table.delete(BOB);
    else this.table.set(BOB, host);
    this.archive.isBobHere = host === HERE;
    if (host === HERE) {
      this.local.set(BOB, "delivered");
      this.sessions.set(ACCOUNT, { isHere: true, isResourceHere: true, priority: 0 });
    } else {
      this.local.delete(BOB);
      this.sessions.delete(ACCOUNT);
    }
  }

  /** Makes a sender write, from a link for one who is at the other datacenter. */
  send(of: number, isFromLink = false): void {
    const sent = stanza(SENDERS[of]!, BOB, { id: `${of}-${++this.#counts[of]!}` });
    if (isFromLink) this.received(fromLink(sent, { sequence: ++this.#sequence }));
    else this.router.accept(sent);
  }

  get all(): readonly string[] {
    return this.#counts.flatMap((count, of) =>
      Array.from({ length: count }, (_, at) => `${of}-${at + 1}`)
    );
  }

  /** Messages that came to bob here. */
  get got(): readonly string[] {
    return this.delivered.filter(({ to, type }) => to.text === BOB && type !== "error").map(idOf);
  }
}

function assertOrdered(ids: readonly string[]): void {
  for (const of of SENDERS.keys()) {
    const numbers = ids.filter((id) => id.startsWith(`${of}-`)).map((id) => Number(id.slice(2)));
    assert.deepEqual(numbers, numbers.toSorted((a, b) => a - b));
  }
}

Deno.test("Router delivers no message to a person before the archive has it, whatever happens when", async () => {
  const step = fc.record({
    kind: fc.constantFrom(
      ...["send", "send", "send", "send", "leave", "come", "come", "away", "reveal", "forget"],
      ...["back", "turn", "clock", "stored", "sender", "recipient", "fails", "late", "gate"],
    ),
    of: fc.nat({ max: 2 }),
    ms: fc.nat({ max: 300 }),
  });
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 20, maxLength: 60 }), async (steps) => {
      const world = new World();
      const { archive, router } = world;
      world.moved(HERE);
      let open: (() => void) | undefined;
      let seen = 0;
      const look = () => {
        for (const id of world.got.slice(seen)) {
          assert.ok(archive.excused.has(id) || archive.stored.includes(id), id);
        }
        seen = world.got.length;
      };
      for (const { kind, of, ms } of steps) {
        if (kind === "send") world.send(of);
        else if (kind === "leave") world.moved(null);
        else if (kind === "come") world.moved(HERE);
        else if (kind === "away") world.moved(THERE);
        else if (kind === "reveal") router.revealed(parseJid(BOB));
        else if (kind === "forget") world.cache.delete(BOB);
        else if (kind === "back") {
          for (const { envelope } of world.sent.splice(0)) router.returned(envelope, "peer-gone");
        } else if (kind === "turn") await world.settled();
        else if (kind === "clock") world.clock.advance(ms);
        else if (kind === "gate") {
          open?.();
          const gate = open === undefined ? Promise.withResolvers<void>() : undefined;
          world.gate = gate?.promise;
          open = gate?.resolve;
        } else {
          if (kind === "sender" || kind === "recipient") archive.write("stored", kind);
          else archive.write(kind as "stored" | "fails" | "late");
          await world.settled();
        }
        look();
      }
      open?.();
      world.gate = undefined;
      for (let round = 0; round < 100; round++) {
        archive.write("stored");
        await world.settled();
        look();
        if (round % 4 === 0) world.clock.advance(700);
      }
      const passed = world.sent.map(({ envelope }) => idOf(envelope.stanza));
      // A recipient who moves to another datacenter may get messages in another order.
      if (!steps.some(({ kind }) => kind === "away")) assertOrdered(world.got);
      assert.deepEqual(
        [...world.got, ...passed, ...archive.kept].toSorted(),
        world.all.toSorted(),
      );
      assert.equal(router.bouncing, 0);
      world.close();
    }),
    { numRuns: 1000 },
  );
});

Deno.test("Router gives bob's messages places in his archive in the order in which he gets them", async () => {
  let foreseen = 0;
  const step = fc.record({
    kind: fc.constantFrom(
      ...["send", "send", "send", "link", "link", "forget", "turn", "turn"],
      ...["stored", "sender", "recipient", "gate"],
    ),
    of: fc.nat({ max: 2 }),
  });
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 20, maxLength: 60 }), async (steps) => {
      const world = new World();
      const { archive } = world;
      world.moved(HERE);
      let open: (() => void) | undefined;
      for (const { kind, of } of steps) {
        if (kind === "send") world.send(of === 0 ? 0 : 1);
        else if (kind === "link") world.send(2, true);
        else if (kind === "forget") world.cache.delete(BOB);
        else if (kind === "turn") await world.settled();
        else if (kind === "gate") {
          open?.();
          const gate = open === undefined ? Promise.withResolvers<void>() : undefined;
          world.gate = gate?.promise;
          open = gate?.resolve;
        } else if (kind === "stored") archive.write("stored");
        else archive.write("stored", kind as "sender" | "recipient");
      }
      open?.();
      world.gate = undefined;
      for (let round = 0; round < 150; round++) {
        archive.write("stored");
        await world.settled();
      }
      assert.deepEqual(world.got.toSorted(), world.all.toSorted());
      assert.deepEqual(archive.stored, world.got);
      foreseen += archive.foreseen;
      world.close();
    }),
    { numRuns: 1000 },
  );
  assert.ok(foreseen > 1_000, `archives began early with ${foreseen} messages`);
});
