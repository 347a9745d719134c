import assert from "node:assert/strict";
import { setImmediate } from "node:timers";
import fc from "fast-check";
import { CausewayError, SeededRandom, SystemClock } from "../../base/mod.ts";
import { FORGET_AFTER_MS, makingElements, parseDocument } from "./document_state.ts";
import type { DocumentChange } from "./document_state.ts";
import { NumberedDocuments } from "./numbered_documents.ts";
import type { DocumentClient } from "./numbered_documents.ts";
import type { RiakPlace } from "./places.ts";
import type { RiakAnswer, RiakRequest } from "./riak_client.ts";

const PLACE: RiakPlace = { type: "users", bucket: "_b", key: "_k" };

/**
 * A set that several processes change. It takes requests in an order drawn from a seed; some are never
 * taken, and of some the answer is lost, as when a connection breaks. A request whose sender has given
 * up may still be taken later.
 */
class UnreliableSet {
  readonly elements = new Set<string>();
  readonly #random: SeededRandom;
  readonly #lossRate: number;
  readonly #pending: (() => void)[] = [];
  #isScheduled = false;

  constructor(seed: number, lossRate: number) {
    this.#random = new SeededRandom(seed);
    this.#lossRate = lossRate;
  }

  /** Returns what one more process has of it. */
  client(): DocumentClient {
    return {
      place: "the set",
      clock: {
        wallMs: () => 0,
        wallUs: () => 0,
        monotonicMs: () => 0,
        after: (_ms, callback) => {
          this.#enqueue(callback);
          return () => {};
        },
      },
      inLine: (_name, _action, work) => work(),
      request: (request) => this.#request(request),
    };
  }

  #request(request: RiakRequest): Promise<RiakAnswer> {
    const { promise, resolve, reject } = Promise.withResolvers<RiakAnswer>();
    const fate = this.#random.unit();
    const lost = () => reject(new CausewayError("storage/timeout", "Lost", { retryable: true }));
    if (fate < this.#lossRate / 3) {
      this.#enqueue(lost); // and never done
    } else if (fate < this.#lossRate) {
      this.#enqueue(lost);
      this.#enqueue(() => void this.#take(request)); // done at some time
    } else this.#enqueue(() => resolve(this.#take(request)));
    return promise;
  }

  #take({ method, body }: RiakRequest): RiakAnswer {
    if (method === "GET") {
      return answer({ value: { log_set: [...this.elements] }, context: "x" });
    }
    const { update } = JSON.parse(body as string);
    for (const element of update.log_set.remove_all ?? []) this.elements.delete(element);
    for (const element of update.log_set.add_all ?? []) this.elements.add(element);
    return answer({});
  }

  #enqueue(callback: () => void): void {
    this.#pending.push(callback);
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    setImmediate(() => this.#takeOne());
  }

  #takeOne(): void {
    this.#isScheduled = false;
    const index = Math.floor(this.#random.unit() * this.#pending.length);
    const [next] = this.#pending.splice(index, 1);
    next?.();
    if (this.#pending.length > 0 && !this.#isScheduled) {
      this.#isScheduled = true;
      setImmediate(() => this.#takeOne());
    }
  }
}

function answer(value: unknown): RiakAnswer {
  const body = new TextEncoder().encode(JSON.stringify(value));
  return { status: 200, headers: new Headers(), body };
}

Deno.test("of processes that change one document at once each change is made once, in one order", async () => {
  await fc.assert(
    fc.asyncProperty(fc.nat(), fc.constantFrom(0, 0.05, 0.2), async (seed, lossRate) => {
      const set = new UnreliableSet(seed, lossRate);
      const made: string[] = [];
      const writers = Array.from({ length: 4 }, async (_, writer) => {
        const documents = new NumberedDocuments(set.client(), new SeededRandom(seed + writer));
        for (let step = 0; step < 3; step++) {
          const word = `${writer}.${step}`;
          try {
            await documents.change(PLACE, "change", ({ entries }) => {
              const words = JSON.parse(entries.get("words")?.value ?? "[]") as string[];
              return words.includes(word)
                ? undefined
                : [["words", JSON.stringify([...words, word])]];
            });
            made.push(word);
          } catch (thrown) {
            assert.ok(thrown instanceof CausewayError);
          }
        }
      });
      await Promise.all(writers);
      const { entries } = parseDocument([...set.elements], 0);
      const words = JSON.parse(entries.get("words")?.value ?? "[]") as string[];
      assert.equal(new Set(words).size, words.length, "no change is made twice");
      for (const word of made) assert.ok(words.includes(word), `${word} is lost: ${words}`);
      const numbers = [...parseDocument([...set.elements], 0).made.values()];
      assert.equal(new Set(numbers).size, numbers.length, "a number is one change's");
    }),
    { numRuns: 25 },
  );
});

Deno.test("NumberedDocuments.change() returns undefined when its change is not wanted any more", async () => {
  const documents = new NumberedDocuments(new UnreliableSet(1, 0).client());
  const write = (expected: number) =>
    documents.change(
      PLACE,
      "change",
      ({ version }) => version === expected ? [["a", "1"]] : undefined,
    );
  assert.equal(await write(0), 1);
  assert.equal(await write(0), undefined);
  assert.equal(await write(1), 2);
});

Deno.test("a change that is made late, or again, takes nothing back", () => {
  const change = (id: string, value: string | null): DocumentChange => ({
    id,
    entries: [["a", value]],
  });
  const made = (elements: readonly string[], number: number, of: DocumentChange, nowMs = 0) => {
    const { added, removed } = makingElements(parseDocument(elements, 0), number, of, nowMs);
    return [...new Set([...elements, ...added])].filter((text) => !removed.includes(text));
  };
  const valueOf = (elements: readonly string[]) =>
    parseDocument(elements, 0).entries.get("a")?.value;
  const [first, second] = [change("f", "one"), change("s", "two")];
  const two = made(made([], 1, first), 2, second);
  assert.equal(valueOf(made(two, 1, first)), "two");
  assert.equal(parseDocument(made(two, 1, first), 0).version, 2);
  const gone = made(two, 3, change("g", null));
  assert.equal(valueOf(made(gone, 2, second)), undefined, "what was removed stays removed");
  // Much later nobody can bring it back, and it is forgotten.
  const later = made(gone, 4, { id: "h", entries: [["b", "x"]] }, FORGET_AFTER_MS + 1);
  assert.equal(later.some((text) => text.includes('"a"')), false);
});

Deno.test("where two clusters have made one number each entry has one of its values whole", () => {
  const both = ["x", "y"].flatMap((id) =>
    makingElements(parseDocument([], 0), 1, {
      id,
      entries: [["shared", `${id}${id}`], [`own ${id}`, id]],
    }, new SystemClock().wallMs()).added
  );
  for (const elements of [both, both.toReversed()]) {
    const { entries } = parseDocument(elements, 0);
    assert.equal(entries.get("shared")?.value, "yy");
    assert.deepEqual([...entries.keys()].toSorted(), ["own x", "own y", "shared"]);
  }
});
