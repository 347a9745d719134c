import assert from "node:assert/strict";
import type { Stanza, StanzaErrorCondition } from "../../../xmpp/mod.ts";
import type { Envelope } from "../../envelope.ts";
import type { Archive, ArchiveSide, WaitForRoom } from "../ports.ts";
import type { RouterDeps } from "../router_options.ts";
import { OpenNoting } from "./open_noting.ts";
import { FakeLink, idOf, OWN_PROCESS, RouterFixture, stanza } from "./router_fixture.ts";

export const [ALICE, BOB] = ["alice@example.com/desk", "bob@example.com"];

/** Archives that take messages when the test says so. */
export class FakeArchive implements Archive {
  /** Id and side of each message. */
  readonly noted: string[] = [];
  readonly asked: string[] = [];
  readonly takenBack: string[] = [];
  readonly outcomes: {
    kept(isStored: boolean): void;
    refused(condition: StanzaErrorCondition): void;
  }[] = [];
  readonly #open = new Map<string, OpenNoting>();
  /** Sides whose archives have no room. */
  readonly full = new Set<ArchiveSide>();
  /** Messages of senders for which there is room. */
  room = Infinity;
  /** Messages that wait for room, by id, with the end of their wait. */
  readonly waits = new Map<string, WaitForRoom & { end(hasRoom: boolean): void }>();
  isHurried = false;
  /** Accounts with sessions on this node. */
  readonly here = new Set<string>();

  isHere({ stanza }: Envelope): boolean {
    return this.here.has(stanza.to.bare.text);
  }

  note({ stanza }: Envelope, side: ArchiveSide) {
    if (stanza.type === "error") return undefined;
    if (this.full.has(side)) return "resource-constraint" as const;
    if (side === "sender" && this.room-- <= 0) return "resource-constraint" as const;
    const name = `${idOf(stanza)} ${side}`;
    this.noted.push(name);
    const noting = new OpenNoting(() => void this.takenBack.push(name));
    this.#open.set(name, noting);
    return noting;
  }

  whenRoom({ stanza }: Envelope, wait: WaitForRoom): Promise<boolean> {
    return new Promise((end) => this.waits.set(idOf(stanza)!, { ...wait, end }));
  }

  hurry(): void {
    this.isHurried = true;
  }

  /** Gives the archives of one side room for a message that waits for it, or lets its time end. */
  endWait(id: string, hasRoom: boolean): void {
    const wait = this.waits.get(id)!;
    this.waits.delete(id);
    if (hasRoom) {
      this.full.delete(wait.side);
      assert.equal(wait.attempt(), true);
    }
    wait.end(hasRoom);
  }

  keep({ stanza }: Envelope, outcome: (typeof this.outcomes)[number]): boolean {
    this.asked.push(idOf(stanza)!);
    this.outcomes.push(outcome);
    return true;
  }

  stamped({ stanza, isArchived }: Envelope): Stanza {
    return isArchived ? { ...stanza, bytes: new TextEncoder().encode("stamped") } : stanza;
  }

  /** Lets a message go on before an archive has it. */
  goOn(name: string): void {
    this.#open.get(name)!.goOn();
  }

  /** Ends the way of a message into an archive, by id and side. */
  end(name: string, isStored = true): void {
    this.#open.get(name)!.end(isStored);
  }
}

/** A router whose accounts have archives. */
export class ArchiveFixture extends RouterFixture {
  readonly archive: FakeArchive;

  constructor(budget?: RouterDeps["budget"]) {
    const archive = new FakeArchive();
    super({ bounce: { resendAfterMs: 100, maxRetries: 1 } }, budget, OWN_PROCESS, archive);
    this.archive = archive;
    this.local.set(ALICE, "delivered");
    this.cache.set(ALICE, "dc1.example.com");
  }

  /** Puts bob at this datacenter. */
  isHere(): void {
    this.sessions.set(BOB, { isHere: true, isResourceHere: false, priority: 0 });
    this.cache.set(BOB, "dc1.example.com");
    this.cache.set(`${BOB}/x`, "dc1.example.com");
    this.local.set(BOB, "delivered");
    this.archive.here.add(BOB);
  }

  /** Makes archives take a message, by id and side, and lets the router go on. */
  async end(name: string, isStored = true): Promise<void> {
    this.archive.end(name, isStored);
    await this.settled();
  }

  get ids(): readonly (string | undefined)[] {
    return this.delivered.map(idOf);
  }
}

/** Makes a message of alice's to bob. */
export const message = (id: string) => stanza(ALICE, BOB, { kind: "message", type: "chat", id });
/** Makes a request of alice's to a device of bob's. */
export const request = (id: string) => stanza(ALICE, `${BOB}/x`, { kind: "iq", type: "get", id });

/** Accepts a message for an account that is offline, up to the question to its archive. */
export async function acceptForAbsent(fixture: ArchiveFixture): Promise<FakeLink> {
  const client = new FakeLink();
  fixture.router.accept(message("1"), client, 7);
  await fixture.end("1 sender");
  await fixture.end("1 absent", false);
  fixture.clock.advance(1_000);
  await fixture.settled();
  return client;
}
