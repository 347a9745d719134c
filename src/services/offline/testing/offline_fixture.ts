import assert from "node:assert/strict";
import { setImmediate } from "node:timers";
import type { ManualClock } from "../../../base/mod.ts";
import { InternalStore } from "../../../storage/mod.ts";
import type { OfflineStore } from "../../../storage/mod.ts";
import type { Fate, FullJid, Stanza } from "../../../xmpp/mod.ts";
import { FullJid as Full, parseJid } from "../../../xmpp/mod.ts";
import type { OfflineSession } from "../offline_messages_deps.ts";

export const HOST = "example.org";
export const BOB = `bob@${HOST}`;
export const OPTIONS = { maxMessages: 10, maxBytes: 100_000, lifetimeMs: 1_000_000 };

/** A message that a client was given. */
export interface Delivered {
  readonly to: string;
  readonly text: string;
  readonly fate: Fate & { stays(number: number): void };
  readonly number: number;
}

/** A session that a test changes. */
export interface TestSession extends OfflineSession {
  priority: number | undefined;
  isOpen: boolean;
}

export function fullJid(text: string): FullJid {
  const jid = parseJid(text);
  assert.ok(jid instanceof Full);
  return jid;
}

export function message(text: string, from = "alice@example.com/desk", to = BOB): Stanza {
  const xml = `<message from='${from}' to='${to}' type='chat'><body>${text}</body></message>`;
  const bytes = new TextEncoder().encode(xml);
  return { kind: "message", type: "chat", from: parseJid(from), to: parseJid(to), bytes };
}

/** Returns the text of a message that `message` made. */
export function textOf({ bytes }: Stanza): string {
  const [, text] = /<body>(.*)<\/body>/.exec(new TextDecoder().decode(bytes))!;
  return text!;
}

/** Lets everything happen that needs no time: the store answers within the turn. */
export async function settle(): Promise<void> {
  for (let turns = 0; turns < 20; turns++) await new Promise((resolve) => setImmediate(resolve));
}

export async function pass(clock: ManualClock, ms: number, stepMs = 1_000): Promise<void> {
  for (let passed = 0; passed < ms; passed += stepMs) {
    clock.advance(stepMs);
    await settle();
  }
}

/** Runs a test with an empty store. */
export async function withStore(work: (store: OfflineStore) => Promise<void>): Promise<void> {
  const path = await Deno.makeTempFile({ prefix: "causeway-offline-" });
  await Deno.remove(path);
  try {
    await using internal = await InternalStore.open({ path });
    await work(internal.offlineMessages(HOST));
  } finally {
    for (const end of ["", "-wal", "-shm"]) await Deno.remove(path + end).catch(() => {});
  }
}

/** A store that counts its calls, waits and fails as a test wants it to. */
export class WatchedStore {
  /** Set to make the store fail. */
  failure: Error | undefined;
  /** Set to make the store wait. */
  gate: Promise<void> | undefined;
  /** Methods of the store that `gate` and `failure` are for. */
  isTouched: (method: string) => boolean = () => true;
  /** Calls of the store by method. */
  readonly calls = new Map<string, number>();
  readonly store: OfflineStore;

  constructor(store: OfflineStore) {
    this.store = new Proxy(store, {
      get: (target, key) => async (...values: unknown[]) => {
        this.calls.set(key as string, (this.calls.get(key as string) ?? 0) + 1);
        if (this.isTouched(key as string)) {
          await this.gate;
          if (this.failure !== undefined) throw this.failure;
        }
        // Every member of a store is a method.
        return await (target[key as keyof OfflineStore] as (...all: unknown[]) => unknown)
          .apply(target, values);
      },
    });
  }
}
