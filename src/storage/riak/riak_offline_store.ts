import { randomHex } from "../../base/mod.ts";
import type {
  HeldClaim,
  KeptMessage,
  OfflineBounds,
  OfflineClaim,
  OfflineMessage,
  OfflineStore,
  WaitingMessage,
} from "../offline_store.ts";
import { OfflineRoom, senderKey } from "../sql/offline_room.ts";
import type { DocumentChange, DocumentState } from "./document_state.ts";
import { nameOf, placeOf, textOf } from "./places.ts";
import type { RiakPlace } from "./places.ts";
import type { RiakDeps } from "./riak_user_store.ts";

/** First characters of the entries of messages and of claims, each before an id. */
const [MESSAGE, CLAIM] = ["m", "c"];
/** Bytes of the id of a message. */
const ID_BYTES = 16;
/** Bucket of the messages of all accounts, and its index of the times when they expire. */
const [CONTENTS, EXPIRES] = [nameOf("messages"), "expires_int"];
/** Expired messages that one step removes. */
const EXPIRED_AT_ONCE = 200;

/** A message in the document of its account. */
interface Waiting {
  readonly sequence: number;
  readonly sender: string;
  readonly bytes: number;
  readonly sentAtMs: number;
  readonly expiresAtMs: number;
  /** Id of its claim, in hexadecimal; empty for none. */
  readonly claim: string;
}

/** A message and its id. */
type Found = readonly [id: string, waiting: Waiting];

/** A message as it is stored. */
interface Content {
  readonly localpart: string;
  readonly domainpart: string;
  /** In Base64. */
  readonly stanza: string;
}

/**
 * The messages that wait for the accounts of one domain, in Riak. The mailbox of an account is a
 * numbered document of its messages and claims; the stanzas are objects of their own, written before the
 * document refers to them. Claims end by the clock of the server that is asked, in whole seconds.
 */
export class RiakOfflineStore implements OfflineStore {
  readonly #deps: RiakDeps;
  readonly #domainpart: string;

  constructor(deps: RiakDeps, domainpart: string) {
    this.#deps = deps;
    this.#domainpart = domainpart;
  }

  async keep(
    localpart: string,
    messages: readonly OfflineMessage[],
    bounds: OfflineBounds,
  ): Promise<readonly boolean[]> {
    const action = "keep messages in";
    const ids = messages.map(({ id }) => id?.slice(0, 2 * ID_BYTES) ?? randomHex(ID_BYTES));
    const written = new Set<number>();
    let kept: readonly boolean[] = [];
    await this.#change(localpart, action, async (state) => {
      const room = roomOf(messagesIn(state), bounds);
      const isThere = (index: number) => state.entries.has(`${MESSAGE}${ids[index]}`);
      kept = messages.map((message, index) => isThere(index) || room.take(message));
      let sequence = room.last;
      const entries: [string, string][] = [];
      for (const [index, { stanza, sender, sentAtMs, expiresAtMs }] of messages.entries()) {
        if (!kept[index] || isThere(index)) continue;
        const waiting: Waiting = {
          sequence: ++sequence,
          sender: senderKey(sender),
          bytes: stanza.length,
          sentAtMs: Math.trunc(sentAtMs),
          expiresAtMs: Math.trunc(expiresAtMs),
          claim: "",
        };
        entries.push([`${MESSAGE}${ids[index]}`, JSON.stringify(waiting)]);
        if (written.has(index)) continue;
        const content: Content = {
          localpart,
          domainpart: this.#domainpart,
          stanza: stanza.toBase64(),
        };
        const indexes = { [EXPIRES]: waiting.expiresAtMs };
        await this.#deps.objects.put(placeOfContent(ids[index]!), content, { action, indexes });
        written.add(index);
      }
      return entries.length === 0 ? undefined : entries;
    });
    const unused = [...written].filter((index) => !kept[index]).map((index) => ids[index]!);
    await this.#removeContents(unused, action);
    return kept;
  }

  async claim(localpart: string, { id, nowMs, forMs }: OfflineClaim): Promise<number> {
    let claimed: readonly Found[] = [];
    await this.#change(localpart, "claim messages in", (state) => {
      claimed = freeMessages(state, nowMs);
      if (claimed.length === 0) return undefined;
      return [
        ...claimed.map(([messageId, waiting]) =>
          [
            `${MESSAGE}${messageId}`,
            JSON.stringify({ ...waiting, claim: id.toHex() }),
          ] as const
        ),
        [`${CLAIM}${id.toHex()}`, `${state.serverMs + Math.trunc(forMs)}`],
      ];
    });
    return claimed.length;
  }

  async claimed(
    localpart: string,
    claimId: Uint8Array,
    { after, limit }: { readonly after: number; readonly limit: number },
  ): Promise<readonly WaitingMessage[]> {
    const held = claimId.toHex();
    const found = messagesIn(await this.#read(localpart))
      .filter(([, { claim, sequence }]) => claim === held && sequence > after);
    return await this.#contentsOf(found.slice(0, limit));
  }

  async renew(claims: readonly HeldClaim[], forMs: number): Promise<void> {
    await this.#deps.client.forEach(claims, async ({ localpart, id }) => {
      const name = `${CLAIM}${id.toHex()}`;
      // Most ends of claims are held by documents that have them.
      if (!(await this.#read(localpart)).entries.has(name)) return;
      await this.#change(
        localpart,
        "renew claims in",
        (state) =>
          state.entries.has(name) ? [[name, `${state.serverMs + Math.trunc(forMs)}`]] : undefined,
      );
    });
  }

  async release(
    localpart: string,
    claimId: Uint8Array,
    sequences: readonly number[],
  ): Promise<void> {
    await this.#change(
      localpart,
      "release messages in",
      (state) =>
        leaving(
          state,
          claimId,
          sequences,
          (waiting) => JSON.stringify({ ...waiting, claim: "" } satisfies Waiting),
        ),
    );
  }

  async remove(
    localpart: string,
    claimId: Uint8Array,
    sequences: readonly number[],
  ): Promise<void> {
    const action = "remove messages from";
    let ids: readonly string[] = [];
    await this.#change(localpart, action, (state) => {
      ids = heldMessages(state, claimId, sequences).map(([id]) => id);
      return leaving(state, claimId, sequences, () => null);
    });
    await this.#removeContents(ids, action);
  }

  async waiting(localparts: readonly string[], nowMs: number): Promise<readonly string[]> {
    const have = await this.#deps.client.forEach(
      localparts,
      async (localpart) => freeMessages(await this.#read(localpart), nowMs).length > 0,
    );
    return localparts.filter((_, i) => have[i]);
  }

  async all(localpart: string): Promise<readonly KeptMessage[]> {
    return await this.#contentsOf(messagesIn(await this.#read(localpart)));
  }

  async removeAll(localpart: string): Promise<void> {
    const action = "remove messages from";
    let ids: readonly string[] = [];
    await this.#change(localpart, action, (state) => {
      ids = messagesIn(state).map(([id]) => id);
      const names = [...state.entries.keys()];
      return names.length === 0 ? undefined : names.map((name) => [name, null]);
    });
    await this.#removeContents(ids, action);
  }

  async removeExpired(nowMs: number): Promise<number> {
    const action = "remove messages from";
    let continuation: string | undefined;
    do {
      const page = await this.#deps.objects.keysBetween({ type: "offline", bucket: CONTENTS }, {
        index: EXPIRES,
        from: "0",
        to: `${Math.trunc(nowMs)}`,
        limit: EXPIRED_AT_ONCE,
        continuation,
        action,
      });
      const removed = await this.#removeMessages(page.keys.map(textOf), action);
      if (removed > 0) return removed;
      // The index may name messages for long that are not there any more.
      continuation = page.continuation;
    } while (continuation !== undefined);
    return 0;
  }

  /** Removes messages of all accounts, and returns how many were there. */
  async #removeMessages(ids: readonly string[], action: string): Promise<number> {
    const found: string[] = [];
    const accounts = new Map<string, { readonly content: Content; readonly names: string[] }>();
    await this.#deps.client.forEach(ids, async (id) => {
      const content = (await this.#deps.objects.read<Content>(placeOfContent(id), action))?.value;
      if (content === undefined) return;
      found.push(id);
      const account = `${content.localpart}@${content.domainpart}`;
      const { names } = accounts.get(account) ?? { names: [] };
      accounts.set(account, { content, names: [...names, `${MESSAGE}${id}`] });
    });
    for (const { content, names } of accounts.values()) {
      await this.#deps.documents.change(placeOfMailbox(content), action, ({ entries }) => {
        const there = names.filter((name) => entries.has(name));
        return there.length === 0 ? undefined : there.map((name) => [name, null]);
      });
    }
    // A message whose document does not refer to it is left from a write that was cut off.
    await this.#removeContents(found, action);
    return found.length;
  }

  async #read(localpart: string): Promise<DocumentState> {
    return await this.#deps.documents.read(this.#place(localpart), "read messages from");
  }

  async #change(
    localpart: string,
    action: string,
    decide: (
      state: DocumentState,
    ) => DocumentChange["entries"] | undefined | Promise<DocumentChange["entries"] | undefined>,
  ): Promise<void> {
    await this.#deps.documents.change(this.#place(localpart), action, decide);
  }

  /** Reads the stanzas of messages; those that were removed meanwhile are left out. */
  async #contentsOf(found: readonly Found[]): Promise<readonly KeptMessage[]> {
    const action = "read messages from";
    const messages = await this.#deps.client.forEach(found, async ([id, waiting]) => {
      const content = await this.#deps.objects.read<Content>(placeOfContent(id), action);
      if (content === undefined) return [];
      const { sequence, sentAtMs, expiresAtMs } = waiting;
      const stanza = Uint8Array.fromBase64(content.value.stanza);
      return [{ sequence, sentAtMs, expiresAtMs, stanza }];
    });
    return messages.flat();
  }

  async #removeContents(ids: readonly string[], action: string): Promise<void> {
    await this.#deps.client.forEach(
      ids,
      (id) => this.#deps.objects.remove(placeOfContent(id), action),
    );
  }

  #place(localpart: string): RiakPlace {
    return placeOfMailbox({ localpart, domainpart: this.#domainpart });
  }
}

function placeOfMailbox(
  { localpart, domainpart }: Pick<Content, "localpart" | "domainpart">,
): RiakPlace {
  return placeOf("causeway", { localpart, domainpart: `mailboxes ${domainpart}` });
}

function placeOfContent(id: string): RiakPlace {
  return { type: "offline", bucket: CONTENTS, key: nameOf(id) };
}

/** Returns the messages of a mailbox in their order. */
function messagesIn({ entries }: DocumentState): readonly Found[] {
  return [...entries].filter(([name]) => name.startsWith(MESSAGE))
    .map(([name, { value }]): Found => [name.slice(MESSAGE.length), JSON.parse(value) as Waiting])
    // Two clusters that merged may have given one sequence.
    .sort(([one, a], [other, b]) => a.sequence - b.sequence || (one < other ? -1 : 1));
}

/** Returns the messages that nobody holds and that have not expired. */
function freeMessages(state: DocumentState, nowMs: number): readonly Found[] {
  return messagesIn(state).filter(([, { claim, expiresAtMs }]) => {
    const untilMs = Number(state.entries.get(`${CLAIM}${claim}`)?.value ?? 0);
    return untilMs <= state.serverMs && expiresAtMs > Math.trunc(nowMs);
  });
}

function heldMessages(
  state: DocumentState,
  claimId: Uint8Array,
  sequences: readonly number[],
): readonly Found[] {
  const held = claimId.toHex();
  return messagesIn(state)
    .filter(([, { claim, sequence }]) => claim === held && sequences.includes(sequence));
}

/** Takes messages out of a claim, and the claim with the last of them. */
function leaving(
  state: DocumentState,
  claimId: Uint8Array,
  sequences: readonly number[],
  valueOf: (waiting: Waiting) => string | null,
): DocumentChange["entries"] | undefined {
  const held = heldMessages(state, claimId, sequences);
  if (held.length === 0) return undefined;
  const claim = claimId.toHex();
  const isLast = messagesIn(state).filter((found) => found[1].claim === claim).length ===
    held.length;
  return [
    ...held.map(([id, waiting]) => [`${MESSAGE}${id}`, valueOf(waiting)] as const),
    ...(isLast ? [[`${CLAIM}${claim}`, null] as const] : []),
  ];
}

function roomOf(messages: readonly Found[], bounds: OfflineBounds): OfflineRoom {
  const shares = new Map<string, { messages: number; bytes: number }>();
  for (const [, { sender, bytes }] of messages) {
    const share = shares.get(sender) ?? { messages: 0, bytes: 0 };
    shares.set(sender, { messages: share.messages + 1, bytes: share.bytes + bytes });
  }
  return new OfflineRoom(messages.at(-1)?.[1].sequence ?? 0, shares, bounds);
}
