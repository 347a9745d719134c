import assert from "node:assert/strict";
import { setImmediate as immediately } from "node:timers/promises";
import { PacedWork } from "../../base/mod.ts";
import { ALICE, DC2, PHONE } from "./testing/alice_and_bob.ts";
import { fullJid, hidingFrom, item, RosterFixture } from "./testing/roster_fixture.ts";

const CONTACTS = Array.from({ length: 12 }, (_, index) => `contact${index}@example.com`);

/** Returns random whole numbers below a bound, the same for the same seed. */
function numbersFrom(seed: number): (bound: number) => number {
  let state = seed;
  return (bound) => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0;
    return (state >>> 8) % bound;
  };
}

/** A session of alice's with contacts at another datacenter, and what each of them sees of it. */
class Scene {
  readonly #turns: (() => void)[] = [];
  #nowMs = 0;
  readonly #paced = new PacedWork({
    sliceMs: 1,
    nowMs: () => this.#nowMs,
    nextTurn: (callback) => this.#turns.push(callback),
    after: () => () => {},
  });
  readonly #fixture = new RosterFixture({ paced: this.#paced, maxItems: CONTACTS.length });
  /** Contacts who see the session. */
  readonly seeing = new Set<string>();
  readonly steps: string[] = [];
  isAvailable = false;
  #hasBegun = false;
  #read = 0;

  constructor() {
    for (const contact of CONTACTS) {
      this.#fixture.store.put(ALICE, item(contact, { subscription: "from" }));
      this.#fixture.elsewhere.set(contact, [{ host: DC2, resourcepart: "x", process: 2 }]);
    }
  }

  /** True while something waits. */
  get isBusy(): boolean {
    return this.#turns.length > 0 || this.#fixture.server.isTelling(fullJid(PHONE));
  }

  hides(contact: string): boolean {
    return this.#fixture.hidden.get(PHONE)?.has(contact) === true;
  }

  change(isAvailable: boolean): void {
    this.steps.push(isAvailable ? "presence" : "end");
    this.isAvailable = isAvailable;
    this.#hasBegun = true;
    const status = `${this.steps.length}`;
    this.#fixture.sendPresence(PHONE, isAvailable ? undefined : "unavailable", status);
  }

  /** Begins to hide the session from those contacts from whom it is not hidden, and the other way round. */
  toggle(contacts: readonly string[]): void {
    const before = this.#fixture.hidden.get(PHONE) ?? new Set();
    const after = before.symmetricDifference(new Set(contacts));
    this.steps.push(`hide from ${[...after]}`);
    this.#fixture.hidden.set(PHONE, after);
    if (!this.#hasBegun) return;
    const change = { before: hidingFrom(before), after: hidingFrom(after) };
    this.#fixture.server.privacyChanged(fullJid(PHONE), change);
  }

  /** Lets a piece of what waits happen, and checks it. */
  async turn(isBusy: boolean): Promise<void> {
    this.steps.push("turn");
    if (isBusy) void this.#paced.run(() => void (this.#nowMs += 1));
    this.#nowMs += 2;
    this.#turns.shift()?.();
    for (let i = 0; i < 12; i++) {
      await immediately();
      this.#check();
    }
  }

  #check(): void {
    const { sent } = this.#fixture;
    for (; this.#read < sent.length; this.#read++) {
      const { stanza: { type, to: { text: to } } } = sent[this.#read]!;
      if (!CONTACTS.includes(to) || type === "probe") continue;
      this.steps.push(`${type} to ${to}`);
      const about = this.steps.join("\n");
      if (type === "available") {
        assert.ok(!this.hides(to), about);
        this.seeing.add(to);
      } else assert.ok(this.seeing.delete(to) || !this.hides(to), about);
    }
  }
}

Deno.test("contacts see a session as its list says, however that and its presence change meanwhile", async () => {
  for (let seed = 1; seed <= 40; seed++) {
    const below = numbersFrom(seed);
    const scene = new Scene();
    for (let step = 0; step < 40; step++) {
      const kind = below(3);
      if (kind === 0) scene.change(!scene.isAvailable || below(5) < 3);
      else if (kind === 1) {
        scene.toggle(Array.from({ length: 1 + below(4) }, () => CONTACTS[below(CONTACTS.length)]!));
      } else await scene.turn(below(3) > 0);
    }
    while (scene.isBusy) await scene.turn(false);
    const expected = scene.isAvailable ? CONTACTS.filter((each) => !scene.hides(each)) : [];
    assert.deepEqual([...scene.seeing].sort(), expected.toSorted(), scene.steps.join("\n"));
  }
});
