import { Buffer } from "node:buffer";
import { element, serialize } from "../xmpp/mod.ts";
import { listedBytes } from "./answer_bounds.ts";
import type { AccountDisco, IqAnswer, IqRequest, IqService } from "./iq_service.ts";

/** Namespace of queries for the items of an address. */
export const DISCO_ITEMS = "http://jabber.org/protocol/disco#items";

const RESULT_SET = "http://jabber.org/protocol/rsm";

/** Longest disco `node` that an answer repeats, in UTF-16 units. No name of a node is longer. */
const MAX_ECHOED_NODE = 1023;

/** A component that disco may list, and the datacenter it is connected to. */
export interface PublicDomain {
  readonly domain: string;
  readonly host: string;
}

/** Asks for the components of all datacenters that `host` shows to its users. */
export type PublicDomains = (host: string) => Promise<readonly PublicDomain[]>;

/**
 * Lists the components of all datacenters (XEP-0030 §4), each once however often it is connected.
 * The items of an account are its nodes.
 */
export class DiscoItems implements IqService {
  readonly namespace = DISCO_ITEMS;
  readonly name = "query";
  readonly type = "get";
  readonly module = "mod_disco";
  readonly targets = ["host", "account"] as const;
  readonly features = [DISCO_ITEMS];
  readonly #publicDomains: PublicDomains;

  readonly #accounts: AccountDisco | undefined;

  constructor(publicDomains: PublicDomains, accounts?: AccountDisco) {
    this.#publicDomains = publicDomains;
    this.#accounts = accounts;
  }

  answer(request: IqRequest): IqAnswer | Promise<IqAnswer> {
    const accounts = request.target === "account" ? this.#accounts : undefined;
    if (request.payload.attribute("node") !== undefined) {
      return accounts === undefined ? { error: "item-not-found" } : this.#ofNode(accounts, request);
    }
    if (accounts !== undefined) return this.#listNodes(accounts, request);
    return request.target === "account"
      ? answerWith([])
      : this.#listDomains(request.stanza.to.domainpart);
  }

  /**
   * Answers with the nodes that the requester may see. An account that does not exist, or whose
   * nodes are hidden, gives the same empty result, for every disco node (XEP-0030 §8).
   */
  answerStranger(request: IqRequest): IqAnswer | Promise<IqAnswer> {
    const isForNodes = request.payload.attribute("node") === undefined;
    if (this.#accounts !== undefined && isForNodes) {
      return this.#listNodes(this.#accounts, request);
    }
    const asked = request.payload.attribute("node") ?? "";
    const node = asked === "" || asked.length > MAX_ECHOED_NODE ? undefined : asked;
    return { payload: element("query", { xmlns: DISCO_ITEMS, node }) };
  }

  /** Answers for a node of an account. Its items are not listed (XEP-0060 §5.5), only asked for. */
  async #ofNode(accounts: AccountDisco, { stanza, payload }: IqRequest): Promise<IqAnswer> {
    const { to, from } = stanza;
    const node = payload.attribute("node")!; // the caller looks
    const found = node.length > MAX_ECHOED_NODE ? undefined : await accounts.node(to, from, node);
    if (found === undefined) return { error: "item-not-found" };
    return { payload: element("query", { xmlns: DISCO_ITEMS, node }) };
  }

  /** Answers with as many nodes as the answer may list. It gives the number of all if that is not all. */
  async #listNodes(accounts: AccountDisco, { stanza, client }: IqRequest): Promise<IqAnswer> {
    const { to, from } = stanza;
    const nodes = await accounts.nodes(to, from);
    const shown = [];
    let room = listedBytes({ client });
    for (const node of nodes) {
      const item = element("item", { jid: to.text, node });
      room -= Buffer.byteLength(serialize(item));
      if (room < 0) break;
      shown.push(item);
    }
    const set = shown.length === nodes.length
      ? undefined
      : element("set", { xmlns: RESULT_SET }, element("count", {}, `${nodes.length}`));
    return { payload: element("query", { xmlns: DISCO_ITEMS }, ...shown, set) };
  }

  async #listDomains(host: string): Promise<IqAnswer> {
    const domains = await this.#publicDomains(host);
    return answerWith([...new Set(domains.map(({ domain }) => domain))].sort());
  }
}

function answerWith(jids: readonly string[]): IqAnswer {
  const items = jids.map((jid) => element("item", { jid }));
  return { payload: element("query", { xmlns: DISCO_ITEMS }, ...items) };
}
