import type { FullJid, Stanza } from "../../xmpp/mod.ts";
import {
  attributeOf,
  buildStanza,
  element,
  findChild,
  parseElement,
  serialize,
  stanzaId,
  stanzaSource,
} from "../../xmpp/mod.ts";
import { ROSTER_NAMESPACE } from "./roster_query.ts";

/**
 * Clients here that get roster pushes, and the roster version up to which each of them has been told
 * everything (RFC 6121 §2.6).
 *
 * A push may be lost, such as by a split. A client that then gets a later push with its version would
 * ask for what has changed since that version, and never hear of the lost change. So a push that does
 * not follow the last one keeps the version that its client knows.
 */
export class ToldVersions {
  /** By full JID; undefined while the version of a client is not known. */
  readonly #known = new Map<string, number | undefined>();

  /** Notes that a client gets pushes. */
  follow({ text }: FullJid): void {
    this.#known.set(text, this.#known.get(text));
  }

  /** Notes the version of a roster that a client is told as a whole. */
  told({ text }: FullJid, version: number): void {
    if (this.#known.has(text)) this.#known.set(text, version);
  }

  /** True for a client that gets pushes. */
  has(client: string): boolean {
    return this.#known.has(client);
  }

  forget({ text }: FullJid): void {
    this.#known.delete(text);
  }

  /** Returns a roster push as its client gets it: with a version up to which nothing is missing. */
  asTold(push: Stanza): Stanza {
    const { bytes, from, to } = push;
    const query = findChild(stanzaSource(bytes), "query", ROSTER_NAMESPACE);
    const ver = query && attributeOf(query, "ver");
    if (query === undefined || ver === undefined) return push;
    const version = Number(ver);
    const known = this.#known.get(to.text);
    if (known !== undefined && version <= known) return push;
    if (known !== undefined && version === known + 1) {
      this.#known.set(to.text, version);
      return push;
    }
    const { start, end, defaultNamespace, prefixes } = query;
    try {
      const { children } = parseElement(bytes.subarray(start, end), defaultNamespace, prefixes);
      const attributes = { xmlns: ROSTER_NAMESPACE, ver: known?.toString() };
      const iq = element("iq", { type: "set", id: stanzaId(push) });
      const content = serialize(element("query", attributes, ...children));
      return buildStanza(iq, { from, to, content });
    } catch {
      return push; // our nodes write pushes that can be read; another datacenter might not
    }
  }
}
