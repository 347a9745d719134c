import type { PresenceAccount } from "../ledger/mod.ts";
import { attributeOf, type Sideline, type SidelineClient } from "./sideline.ts";

/** Tells the account of presence whom a client sees, and when it is online itself. */
export class PresenceReader implements Sideline {
  readonly #account: PresenceAccount;
  #client: SidelineClient | undefined;

  constructor(account: PresenceAccount) {
    this.#account = account;
  }

  join(client: SidelineClient): void {
    this.#client = client;
  }

  opened(jid: string): readonly string[] {
    this.#account.opened(this.#name, jid);
    return [];
  }

  online(): void {
    this.#account.online(this.#name);
  }

  lost(): void {
    this.#account.away(this.#name);
  }

  left(): void {
    this.#account.left(this.#name);
  }

  sawPresence(stanza: string): void {
    const from = attributeOf(stanza, "from");
    const type = attributeOf(stanza, "type");
    if (from === undefined || (type !== undefined && type !== "unavailable")) return;
    this.#account.saw(this.#name, from, type === undefined);
  }

  get #name(): string {
    return this.#client!.name; // `join` comes first
  }
}
