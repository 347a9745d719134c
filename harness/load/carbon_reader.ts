import type { Ledger } from "../ledger/mod.ts";
import { readLoadStanza } from "./load_stanza.ts";
import { attributeOf, type Sideline, SIDELINE_ID, type SidelineClient } from "./sideline.ts";

const NAMESPACE = "urn:xmpp:carbons:2";
const WRAPPED = new RegExp(`^<message[^>]*><(sent|received) xmlns=['"]${NAMESPACE}['"]`);

/** Turns carbons on at each login (XEP-0280), and tells the ledger of those that come. */
export class CarbonReader implements Sideline {
  readonly #ledger: Ledger;
  #client: SidelineClient | undefined;
  #account = "";

  constructor(ledger: Ledger) {
    this.#ledger = ledger;
  }

  join(client: SidelineClient): void {
    this.#client = client;
  }

  opened(jid: string): readonly string[] {
    this.#account = jid.split("/", 1)[0]!; // split gives at least one part
    return [`<iq type='set' id='${SIDELINE_ID}c'><enable xmlns='${NAMESPACE}'/></iq>`];
  }

  take(stanza: string): boolean {
    const direction = WRAPPED.exec(stanza)?.[1];
    if (direction === undefined) return false;
    const inner = readLoadStanza(stanza.slice(stanza.indexOf("<message", 1)));
    // Carbons come from the own account: others could forge them (XEP-0280 §11).
    const isOwn = attributeOf(stanza, "from") === this.#account;
    if (isOwn && inner.kind === "arrival") {
      this.#ledger.carbonArrived(
        this.#client!.name, // `join` comes first
        direction === "sent" ? "sent" : "received",
        inner.mark,
      );
    } else this.#ledger.stray();
    return true;
  }
}
