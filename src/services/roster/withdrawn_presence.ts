import type { PacedWork } from "../../base/mod.ts";
import { describeError } from "../../base/mod.ts";
import type { Logger } from "../../observe/mod.ts";
import type { Jid } from "../../xmpp/mod.ts";
import { parseJid } from "../../xmpp/mod.ts";
import type { LiveProcesses } from "./live_processes.ts";
import { MAX_LOST, SECOND_ANNOUNCEMENT } from "./live_processes.ts";

/** Pairs of an account and a resource whose directed presence is asked for at one look. */
const ASKED_AT_ONCE = 1_000;
/** Questions for the presence of a contact in one piece of paced work. */
const PROBED_AT_ONCE = 64;
/** Pairs of a resource and an account that are remembered. */
const MAX_PAIRS = 1_000_000;

/** Collaborators of `WithdrawnPresence`. */
export interface WithdrawnPresenceDeps {
  /** Asks for the presence of `account` in the name of `asker`, who may no longer be allowed to. */
  probe(asker: Jid, account: Jid): void;
  /** Asks a resource elsewhere for the directed presence that it has sent to an account here. */
  askForDirected(account: Jid, resource: Jid): void;
  readonly paced: Pick<PacedWork, "run">;
  readonly log: Logger;
}

/** A process that is gone: the resources whose presence was withdrawn, by the accounts told. */
interface Lost {
  readonly host: string;
  readonly withdrawn: Map<string, Set<string>>;
  /** Looks until directed presence is asked for; undefined while the process is away. */
  looksLeft: number | undefined;
  /** Set while the accounts ask for the presence of their contacts: it names this very time. */
  asking: object | undefined;
}

/**
 * Presence that was withdrawn here as its process was gone. When the process is back, the accounts ask
 * for that of their contacts again, and a moment later for directed presence of those resources that
 * have not come back.
 */
export class WithdrawnPresence {
  readonly #deps: WithdrawnPresenceDeps;
  readonly #lost = new Map<number, Lost>();
  #pairs = 0;

  constructor(deps: WithdrawnPresenceDeps) {
    this.#deps = deps;
  }

  /** Local hosts of the processes that are gone. */
  get hosts(): readonly string[] {
    return [...this.#lost.values()].map(({ host }) => host);
  }

  /** Notes that a resource's presence is withdrawn from accounts here. */
  add(
    from: string,
    { host, process }: { readonly host: string; readonly process: number },
    accounts: Iterable<string>,
  ): void {
    let lost = this.#lost.get(process);
    if (lost === undefined) {
      lost = { host, withdrawn: new Map(), looksLeft: undefined, asking: undefined };
      this.#lost.set(process, lost);
    }
    for (const account of accounts) {
      const resources = lost.withdrawn.get(account) ?? new Set<string>();
      lost.withdrawn.set(account, resources);
      if (!resources.has(from)) this.#pairs++;
      resources.add(from);
    }
    while (this.#lost.size > MAX_LOST || this.#pairs > MAX_PAIRS) {
      const [oldest] = this.#lost.keys();
      this.#loseSight(oldest!); // there is one: the pairs are its
    }
  }

  /** Forgets that any process's presence of a resource was withdrawn from an account. */
  returned(account: string, from: string): void {
    for (const lost of this.#lost.values()) this.#take(lost, account, from);
  }

  /** Forgets that the presence of a resource was withdrawn as the process was gone; false if not. */
  take(process: number, account: string, from: string): boolean {
    const lost = this.#lost.get(process);
    return lost !== undefined && this.#take(lost, account, from);
  }

  /** Forgets an account whose last session here has ended. */
  left(account: string): void {
    for (const { withdrawn } of this.#lost.values()) {
      this.#pairs -= withdrawn.get(account)?.size ?? 0;
      withdrawn.delete(account);
    }
  }

  /** Asks for the presence of processes that are back. */
  look(live: LiveProcesses): void {
    for (const [process, lost] of [...this.#lost]) {
      if (live.get(lost.host)?.has(process) !== true) lost.looksLeft = lost.asking = undefined;
      else if (lost.looksLeft === undefined) {
        lost.looksLeft = SECOND_ANNOUNCEMENT;
        void this.#askAgain(lost); // never rejects
      } else if (lost.asking !== undefined) continue; // contacts come first
      else if (lost.looksLeft > 1) lost.looksLeft--;
      else this.#askForDirected(process, lost);
    }
  }

  #take({ withdrawn }: Lost, account: string, from: string): boolean {
    const resources = withdrawn.get(account);
    if (resources?.delete(from) !== true) return false;
    this.#pairs--;
    if (resources.size === 0) withdrawn.delete(account);
    return true;
  }

  /** Asks nobody any more. */
  close(): void {
    for (const lost of this.#lost.values()) lost.asking = undefined;
  }

  /** Asks for the presence of all contacts, a few at a time: there may be very many. Never rejects. */
  async #askAgain(lost: Lost): Promise<void> {
    const { probe, paced, log } = this.#deps;
    const asking = lost.asking = {};
    const pairs: (readonly [account: string, contact: string])[] = [];
    for (const [account, resources] of lost.withdrawn) {
      const contacts = new Set([...resources].map((from) => from.slice(0, from.indexOf("/"))));
      for (const contact of contacts) pairs.push([account, contact]);
    }
    try {
      for (let at = 0; at < pairs.length && lost.asking === asking; at += PROBED_AT_ONCE) {
        await paced.run(() => {
          if (lost.asking !== asking) return;
          for (const [account, contact] of pairs.slice(at, at + PROBED_AT_ONCE)) {
            if (lost.withdrawn.has(account)) probe(parseJid(account), parseJid(contact));
          }
        });
      }
    } catch (thrown) {
      log.error("presence.bug", { error: describeError(thrown) });
    }
    if (lost.asking === asking) lost.asking = undefined;
  }

  /** Asks for some of the resources that have not come back as contacts, and forgets them. */
  #askForDirected(process: number, lost: Lost): void {
    let left = ASKED_AT_ONCE;
    // Entries that are removed meanwhile do not disturb the loops.
    for (const [account, resources] of lost.withdrawn) {
      for (const from of resources) {
        if (left-- === 0) return; // the rest at the next look
        this.#take(lost, account, from);
        this.#deps.askForDirected(parseJid(account), parseJid(from));
      }
    }
    this.#lost.delete(process);
  }

  /** Forgets a process that is gone. */
  #loseSight(process: number): void {
    for (const resources of this.#lost.get(process)?.withdrawn.values() ?? []) {
      this.#pairs -= resources.size;
    }
    this.#lost.delete(process);
  }
}
