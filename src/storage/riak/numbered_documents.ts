import type { Random } from "../../base/mod.ts";
import { backoffMs, MATH_RANDOM, randomHex } from "../../base/mod.ts";
import { storageError } from "../storage_error.ts";
import type { Ballot, DocumentChange, DocumentState, ElementChange } from "./document_state.ts";
import {
  askingElement,
  compareBallots,
  makingElements,
  parseDocument,
  proposingElement,
  REMEMBERED,
} from "./document_state.ts";
import { BUCKET_TYPES } from "./places.ts";
import type { RiakPlace } from "./places.ts";
import type { RiakClient } from "./riak_client.ts";

/** Name of the set within a map that holds a document. */
const FIELD = "log_set";
/** Attempts of one change before it gives up: others are always faster. */
const MAX_ATTEMPTS = 60;
/** Pauses between attempts that were in each other's way. */
const PAUSES = { firstMs: 2, maxMs: 200, jitter: 1 };

const READ = { r: "quorum", pr: "quorum" };
const WRITE = { w: "quorum", pw: "quorum", dw: "quorum" };

/** Chooses the entries that a change adds to the document it finds; undefined for none. */
export type Decide = (
  state: DocumentState,
) => DocumentChange["entries"] | undefined | Promise<DocumentChange["entries"] | undefined>;

/** Entry of a document that its owner has removed as a whole, and that nobody has made again. */
const EMPTIED = "x";

/**
 * Returns the version that a store shows of a document: 0 for one that was never made, or removed as a
 * whole. Its numbers go on behind that, so that a change for what was removed finds another version.
 */
export function shownVersion({ version, entries }: DocumentState): number {
  return entries.has(EMPTIED) ? 0 : version;
}

/** Returns the entries of a change that removes a document as a whole; undefined when it is removed. */
export function emptying(
  { version, entries }: DocumentState,
): DocumentChange["entries"] | undefined {
  if (version === 0 || entries.has(EMPTIED)) return undefined;
  return [...[...entries.keys()].map((name) => [name, null] as const), [EMPTIED, ""]];
}

/** Adds to a change what makes a removed document again. */
export function reviving(
  { entries }: DocumentState,
  change: DocumentChange["entries"],
): DocumentChange["entries"] {
  return entries.has(EMPTIED) ? [...change, [EMPTIED, null]] : change;
}

/** Methods of a client that documents use. */
export type DocumentClient = Pick<RiakClient, "request" | "inLine" | "clock" | "place">;

/** A document as a read with a context shows it. */
interface Snapshot {
  readonly state: DocumentState;
  readonly context: string | undefined;
}

/**
 * Documents whose changes are numbered and made one after the other, whichever process makes them
 * (`document_state.ts`). A change takes three reads and three writes when nobody is in its way.
 */
export class NumberedDocuments {
  readonly #client: DocumentClient;
  readonly #random: Random;

  constructor(client: DocumentClient, random: Random = MATH_RANDOM) {
    this.#client = client;
    this.#random = random;
  }

  /**
   * Reads a document.
   *
   * @throws CausewayError with a code `storage/…`
   */
  async read(place: RiakPlace, action: string): Promise<DocumentState> {
    return (await this.#read(place, action, false)).state;
  }

  /**
   * Changes a document. `decide` is asked again each time that another change was faster.
   *
   * @returns the number of the change; undefined when `decide` wants none
   * @throws CausewayError `storage/conflict` when others are always faster, `storage/…`
   */
  async change(place: RiakPlace, action: string, decide: Decide): Promise<number | undefined> {
    const name = `${place.type} ${place.bucket} ${place.key}`;
    return await this.#client.inLine(name, action, () => this.#change(place, action, decide));
  }

  async #change(place: RiakPlace, action: string, decide: Decide): Promise<number | undefined> {
    let state = await this.read(place, action);
    let own: { readonly number: number; readonly change: DocumentChange } | undefined;
    for (let attempt = 1; attempt <= MAX_ATTEMPTS; attempt++) {
      if (own !== undefined && state.version >= own.number) {
        if (state.made.has(own.change.id)) return own.number; // another process has made it
        if (state.version >= own.number + REMEMBERED) break; // nobody knows what became of it
        own = undefined;
      }
      if (own === undefined) {
        const entries = await decide(state);
        if (entries === undefined) return undefined;
        own = { number: state.version + 1, change: { id: randomHex(8), entries } };
      }
      const vote = await this.#vote(place, action, { state, ...own });
      if (vote.isOver) {
        const { snapshot, decided } = vote;
        const { number } = own;
        const made = makingElements(
          snapshot.state,
          number,
          decided,
          this.#client.clock.wallMs(),
        );
        await this.#update(place, action, made, snapshot.context);
        if (decided.id === own.change.id) return number;
        state = await this.read(place, action);
        continue;
      }
      if (vote.state.version < own.number) await this.#pause(attempt);
      state = await this.read(place, action);
    }
    throw storageError("conflict", { action, place: this.#client.place });
  }

  /** Votes once on a change. `isOver` means: `decided` is the one with this number, whatever happens. */
  async #vote(
    place: RiakPlace,
    action: string,
    { state, number, change }: {
      readonly state: DocumentState;
      readonly number: number;
      readonly change: DocumentChange;
    },
  ): Promise<
    | { readonly isOver: true; readonly snapshot: Snapshot; readonly decided: DocumentChange }
    | { readonly isOver: false; readonly state: DocumentState }
  > {
    const ballot: Ballot = [(state.highest?.[0] ?? 0) + 1, randomHex(8)];
    await this.#add(place, action, askingElement(number, ballot));
    const promised = await this.read(place, action);
    if (!isFirst(promised, number, ballot)) return { isOver: false, state: promised };
    // Whatever may have been decided before is what the highest ballot has proposed.
    const decided = promised.proposal?.change ?? change;
    await this.#add(place, action, proposingElement(number, ballot, decided));
    const snapshot = await this.#read(place, action, true);
    if (!isFirst(snapshot.state, number, ballot)) return { isOver: false, state: snapshot.state };
    return { isOver: true, snapshot, decided };
  }

  async #pause(attempt: number): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#client.clock.after(backoffMs(Math.min(attempt, 10), PAUSES, this.#random), resolve);
    await promise;
  }

  async #add(place: RiakPlace, action: string, element: string): Promise<void> {
    await this.#update(place, action, { added: [element], removed: [] }, undefined);
  }

  async #update(
    place: RiakPlace,
    action: string,
    { added, removed }: ElementChange,
    context: string | undefined,
  ): Promise<void> {
    const change = {
      add_all: added,
      // Only what was read may be removed, and only with the context of that read.
      ...(removed.length === 0 || context === undefined ? {} : { remove_all: removed }),
    };
    await this.#client.request({
      method: "POST",
      path: pathOf(place),
      query: WRITE,
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({
        ...(isSet(place) ? change : { update: { [FIELD]: change } }),
        ...(context === undefined ? {} : { context }),
      }),
      accepts: [200, 204],
      action,
    });
  }

  async #read(place: RiakPlace, action: string, withContext: boolean): Promise<Snapshot> {
    const { status, headers, body } = await this.#client.request({
      method: "GET",
      path: pathOf(place),
      query: { ...READ, include_context: `${withContext}` },
      accepts: [200, 404],
      action,
    });
    const serverMs = Date.parse(headers.get("Date") ?? "");
    const nowMs = Number.isNaN(serverMs) ? this.#client.clock.wallMs() : serverMs;
    if (status === 404) return { state: parseDocument([], nowMs), context: undefined };
    const { value, context } = JSON.parse(new TextDecoder().decode(body)) as {
      readonly value: readonly string[] | { readonly [FIELD]?: readonly string[] };
      readonly context?: string;
    };
    const elements = "length" in value ? value : value[FIELD] ?? [];
    return { state: parseDocument(elements, nowMs), context };
  }
}

/** True when no other ballot for this number is above the given one, and the number is still open. */
function isFirst(state: DocumentState, number: number, ballot: Ballot): boolean {
  return state.version === number - 1 && state.highest !== undefined &&
    compareBallots(state.highest, ballot) === 0;
}

function isSet({ type }: RiakPlace): boolean {
  const { datatype } = BUCKET_TYPES[type] as { readonly datatype?: string };
  return datatype === "set";
}

function pathOf({ type, bucket, key }: RiakPlace): readonly string[] {
  return ["types", type, "buckets", bucket, "datatypes", key];
}
