import type { FullJid } from "../../xmpp/mod.ts";
import type { IqAnswer, IqRequest, IqService } from "../iq_service.ts";
import type { Privacy } from "./account_privacy.ts";
import { blockedOf, defaultOf } from "./account_privacy.ts";
import type { PrivacyItem, PrivacyList } from "./privacy_list.ts";
import { blocksFirst, withBlocked, withoutBlocked } from "./privacy_list.ts";
import type { PrivacyEdit } from "./privacy_pushes.ts";
import type { PrivacyServer } from "./privacy_server.ts";
import { BLOCKING_NAMESPACE, blockingElement, readBlockedJids } from "./privacy_xml.ts";

/** Name of the list that the first block makes, and makes the default list. */
const BLOCKING_LIST = "blocking";

/** Makes the services for the blocking command (XEP-0191). */
export function blockingServices(server: PrivacyServer): readonly IqService[] {
  return [
    new BlockListGet(server),
    new BlockingCommand("block", server),
    new BlockingCommand("unblock", server),
  ];
}

/** Answers with the block list, and has the client told of its changes (XEP-0191 §3.2). */
class BlockListGet implements IqService {
  readonly namespace = BLOCKING_NAMESPACE;
  readonly name = "blocklist";
  readonly type = "get";
  readonly module = "mod_blocking";
  readonly targets = ["account"] as const;
  readonly features = [BLOCKING_NAMESPACE];
  readonly isOrdered = true;
  readonly #server: PrivacyServer;

  constructor(server: PrivacyServer) {
    this.#server = server;
  }

  async answer({ stanza, checked }: IqRequest): Promise<IqAnswer> {
    const client = stanza.from as FullJid; // only clients have the bare JID that was asked
    await checked;
    return { payload: blockingElement("blocklist", await this.#server.follow(client)) };
  }
}

/** Blocks or unblocks contacts, by the default list (XEP-0191 §3.3 to §3.5, §5). */
class BlockingCommand implements IqService {
  readonly namespace = BLOCKING_NAMESPACE;
  readonly name: "block" | "unblock";
  readonly type = "set";
  readonly module = "mod_blocking";
  readonly targets = ["account"] as const;
  readonly features = [];
  readonly isOrdered = true;
  readonly #server: PrivacyServer;

  constructor(name: "block" | "unblock", server: PrivacyServer) {
    this.name = name;
    this.#server = server;
  }

  async answer({ stanza, payload, isCurrent }: IqRequest): Promise<IqAnswer> {
    const jids = readBlockedJids(payload);
    if (typeof jids === "string") return { error: jids };
    const isBlock = this.name === "block";
    if (isBlock && jids.length === 0) return { error: "bad-request" };
    const client = stanza.from as FullJid; // only clients have the bare JID that was asked
    const error = await this.#server.change(
      client,
      (privacy) => isBlock ? block(privacy, jids) : unblock(privacy, jids),
      isCurrent,
    );
    return error === undefined ? "empty" : { error };
  }
}

function block(privacy: Privacy, jids: readonly string[]): PrivacyEdit | "unchanged" {
  const list = defaultOf(privacy);
  if (blocksFirst(list, jids)) return "unchanged";
  const name = list?.name ?? BLOCKING_LIST;
  return edited(name, withBlocked(privacy.lists.get(name), jids));
}

function unblock(privacy: Privacy, jids: readonly string[]): PrivacyEdit | "unchanged" {
  const list = defaultOf(privacy);
  const known = blockedOf(privacy);
  const isKnown = jids.length === 0 ? known.length > 0 : jids.some((jid) => known.includes(jid));
  if (list === undefined || !isKnown) return "unchanged";
  return edited(list.name, withoutBlocked(list, jids.length === 0 ? undefined : jids));
}

/** A list without items is no list any more (XEP-0016 §2.8). */
function edited(name: PrivacyList["name"], items: readonly PrivacyItem[]): PrivacyEdit {
  return items.length === 0
    ? { isCommand: true, defaultName: undefined, list: { name, items: undefined } }
    : { isCommand: true, defaultName: name, list: { name, items } };
}
