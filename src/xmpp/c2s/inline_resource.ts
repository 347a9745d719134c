import { createHash } from "node:crypto";
import { randomHex } from "../../base/mod.ts";
import type { BareJid } from "../jid/jid.ts";
import { FullJid } from "../jid/jid.ts";
import { tryMakeJid } from "../jid/jid_parser.ts";
import type { InlineBind } from "./negotiation_events.ts";

/** Hexadecimal digits that the server puts into a resource, as in one that it chooses by itself. */
const DIGITS = 16;

/**
 * Returns the full JID for a request by XEP-0386: the client's tag, a slash, and digits of ours. A tag
 * that no JID can have is left out.
 *
 * The digits follow from the account, the tag and the id of the client's installation, if it gives one.
 * A client that logs in again then has the same full JID at every node and replaces its old session, as
 * XEP-0386 §3 asks. Nobody else can guess the digits, because the id is random.
 */
export function inlineJid(account: BareJid, { tag, clientId }: InlineBind): FullJid {
  const digits = clientId === undefined
    ? randomHex(DIGITS / 2)
    : createHash("sha256").update(JSON.stringify([account.text, tag, clientId])).digest("hex")
      .slice(0, DIGITS);
  const { localpart, domainpart } = account;
  const tagged = tag === undefined
    ? undefined
    : tryMakeJid(localpart, domainpart, `${tag}/${digits}`);
  return tagged instanceof FullJid ? tagged : new FullJid(account, digits);
}
