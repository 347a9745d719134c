import { Buffer } from "node:buffer";
import { randomHex } from "../../base/mod.ts";
import type { PepItem, PepStore } from "../../storage/mod.ts";
import type { Jid, StanzaErrorCondition, XmlElement } from "../../xmpp/mod.ts";
import { element, escapeValue, tryParseJid } from "../../xmpp/mod.ts";
import { listedBytes } from "../answer_bounds.ts";
import type { IqAnswer, IqRequest, IqService } from "../iq_service.ts";
import type { FormValues } from "./data_form.ts";
import { readForm, showForm } from "./data_form.ts";
import {
  DATA_FORM,
  NODE_CONFIG,
  PUBLISH_OPTIONS,
  PUBSUB,
  PUBSUB_ERRORS,
  PUBSUB_OWNER,
  RESULT_SET,
} from "./namespaces.ts";
import type { Affiliation } from "./node_config.ts";
import { NodeConfig } from "./node_config.ts";
import { admits, relationOf } from "./pep_access.ts";
import { tree } from "./pep_events.ts";
import type { PepHosts, PepOutcome, StillCheck } from "./pep_ports.ts";
import type { PepServer } from "./pep_server.ts";

/** Longest name of a node, and longest id of an item, in UTF-16 units. */
const MAX_NAME = 1_023;
/** Items that one request names. */
const MAX_NAMED_ITEMS = 200;
/** Bytes of an item in an answer, besides its id and its payload. */
const ITEM_BYTES = "<item id=''></item>".length;
/** Affiliations that one request changes. */
const MAX_AFFILIATIONS = 100;
/** Bytes of a request besides the payload of its item. */
const REQUEST_BYTES = 8_192;

/** Features of accounts with personal eventing (XEP-0163 §6.1, XEP-0060 §10). */
export const PEP_FEATURES = [
  PUBSUB,
  ...[
    "access-open",
    "access-presence",
    "access-roster",
    "access-whitelist",
    "auto-create",
    "auto-subscribe",
    "config-node",
    "config-node-max",
    "create-and-configure",
    "create-nodes",
    "delete-items",
    "delete-nodes",
    "filtered-notifications",
    "instant-nodes",
    "item-ids",
    "last-published",
    "member-affiliation",
    "modify-affiliations",
    "multi-items",
    "outcast-affiliation",
    "persistent-items",
    "presence-subscribe",
    "publish",
    "publish-options",
    "purge-nodes",
    "retract-items",
    "retrieve-default",
    "retrieve-items",
  ].map((each) => `${PUBSUB}#${each}`),
];

/** Objects behind the requests. */
export interface PepRequestsDeps {
  readonly server: PepServer;
  readonly hosts: PepHosts;
}

/** Makes the services for requests to personal eventing. */
export function pepRequests(deps: PepRequestsDeps): readonly IqService[] {
  return [
    new PubsubGet(deps),
    new PubsubSet(deps),
    new OwnerGet(deps),
    new OwnerSet(deps),
  ];
}

/** Properties that all four services share. */
abstract class PepService {
  readonly name = "pubsub";
  readonly module = "mod_pubsub";
  readonly targets = ["account"] as const;
  readonly isOrdered = true;
  readonly features: readonly string[] = [];
  protected readonly server: PepServer;
  protected readonly hosts: PepHosts;

  constructor({ server, hosts }: PepRequestsDeps) {
    this.server = server;
    this.hosts = hosts;
  }

  protected storeOf({ domainpart }: Jid): PepStore {
    const store = this.hosts.store(domainpart);
    if (store === undefined) {
      throw new TypeError(`Cannot ask for nodes of ${domainpart}: it has none`);
    }
    return store;
  }
}

/** Requests for items. */
class PubsubGet extends PepService implements IqService {
  readonly namespace = PUBSUB;
  readonly type = "get";
  override readonly features = PEP_FEATURES;

  answer(request: IqRequest): Promise<IqAnswer> {
    return this.#items(request);
  }

  /**
   * Answers `item-not-found` for nodes that the asker may not see, as for nodes and accounts that do
   * not exist. The steps are the same.
   */
  answerStranger(request: IqRequest): Promise<IqAnswer> {
    return this.#items(request);
  }

  async #items({ stanza, payload, client }: IqRequest): Promise<IqAnswer> {
    const [items, ...others] = payload.elements;
    if (items?.name !== "items") return notImplemented(items);
    const node = nodeOf(items);
    if (node === undefined) return failure("bad-request", "nodeid-required");
    if (others.some(({ namespace }) => namespace !== RESULT_SET)) return { error: "bad-request" };
    const asked = items.elements.filter(({ name }) => name === "item")
      .map((each) => each.attribute("id") ?? "");
    if (asked.length > MAX_NAMED_ITEMS || !asked.every(isName)) return { error: "bad-request" };
    const max = readMax(items.attribute("max_items"));
    if (max === undefined) return { error: "bad-request" };
    const { to: owner, from: asker } = stanza;
    const store = this.storeOf(owner);
    const isOwner = owner.text === asker.bare.text;
    const isShown = async () => {
      const [found, relation] = await Promise.all([
        store.node(owner.localpart, node),
        relationOf(this.hosts, owner, asker),
      ]);
      return found !== undefined && admits(NodeConfig.decode(found.config), relation);
    };
    if (!await isShown()) return { error: "item-not-found" };
    const { maxItemsPerNode } = this.hosts.limits(owner.domainpart);
    const all = asked.length > 0
      ? await store.items(owner.localpart, node, asked)
      : await store.newest(owner.localpart, node, Math.min(max, maxItemsPerNode));
    // The items may have been published once the node, or the owner, was hidden from the asker.
    if (!isOwner && !await isShown()) return { error: "item-not-found" };
    const shown = newestWithin(all, listedBytes({ client }));
    return {
      payload: element(
        "pubsub",
        { xmlns: PUBSUB },
        element(
          "items",
          { node },
          ...shown.map(({ id, xml }) => element("item", { id }, tree(xml))),
        ),
        shown.length < all.length ? resultSet(shown, all.length) : undefined,
      ),
    };
  }
}

/** Publication, retraction and new nodes. */
class PubsubSet extends PepService implements IqService {
  readonly namespace = PUBSUB;
  readonly type = "set";

  maxBytes(host: string): number {
    return this.hosts.limits(host).maxItemBytes + REQUEST_BYTES;
  }

  async answer({ stanza, payload, isCurrent }: IqRequest): Promise<IqAnswer> {
    const [action] = payload.elements;
    switch (action?.name) {
      case "publish":
        return await this.#publish(stanza.to, action, payload.child("publish-options"), isCurrent);
      case "retract":
        return await this.#retract(stanza.to, action, isCurrent);
      case "create":
        return await this.#create(stanza.to, action, payload.child("configure"), isCurrent);
      default:
        return notImplemented(action);
    }
  }

  async #publish(
    owner: Jid,
    publish: XmlElement,
    written: XmlElement | undefined,
    isStill: StillCheck | undefined,
  ): Promise<IqAnswer> {
    const node = nodeOf(publish);
    if (node === undefined) return failure("bad-request", "nodeid-required");
    const [item, ...others] = publish.elements;
    if (item === undefined || item.name !== "item") return failure("bad-request", "item-required");
    if (others.length > 0) return failure("not-allowed", "max-items-exceeded");
    const id = item.attribute("id") ?? randomHex(8);
    if (!isName(id)) return { error: "bad-request" };
    const [payload, ...more] = item.elements;
    if (payload === undefined) return failure("bad-request", "payload-required");
    if (more.length > 0) return failure("bad-request", "invalid-payload");
    const options = formIn(written, PUBLISH_OPTIONS);
    if (options === undefined) return { error: "bad-request" };
    const outcome = await this.server.publish(owner, { node, id, payload, options }, isStill);
    if (outcome !== "done") return refusal(outcome);
    return {
      payload: element(
        "pubsub",
        { xmlns: PUBSUB },
        element("publish", { node }, element("item", { id })),
      ),
    };
  }

  async #retract(
    owner: Jid,
    retract: XmlElement,
    isStill: StillCheck | undefined,
  ): Promise<IqAnswer> {
    const node = nodeOf(retract);
    if (node === undefined) return failure("bad-request", "nodeid-required");
    const ids = retract.elements.filter(({ name }) => name === "item")
      .map((each) => each.attribute("id") ?? "");
    if (ids.length === 0 || ids.length > MAX_NAMED_ITEMS || !ids.every(isName)) {
      return failure("bad-request", "item-required");
    }
    const notify = retract.attribute("notify");
    const isTold = notify === "1" || notify === "true";
    return answerOf(await this.server.retract(owner, node, { ids, isTold }, isStill));
  }

  async #create(
    owner: Jid,
    create: XmlElement,
    configure: XmlElement | undefined,
    isStill: StillCheck | undefined,
  ): Promise<IqAnswer> {
    const node = create.attribute("node") === undefined ? randomHex(16) : nodeOf(create);
    const values = formIn(configure, NODE_CONFIG);
    if (node === undefined || values === undefined) return { error: "bad-request" };
    const outcome = await this.server.create(owner, node, values, isStill);
    if (outcome !== "done") return refusal(outcome);
    return { payload: element("pubsub", { xmlns: PUBSUB }, element("create", { node })) };
  }
}

/** Forms by which owners configure nodes, and affiliations. */
class OwnerGet extends PepService implements IqService {
  readonly namespace = PUBSUB_OWNER;
  readonly type = "get";

  async answer({ stanza, payload }: IqRequest): Promise<IqAnswer> {
    const [asked] = payload.elements;
    if (asked?.name === "default") {
      const form = showForm(NODE_CONFIG, NodeConfig.defaultOf("").fields());
      return answerWith(element("default", {}, form));
    }
    if (asked?.name !== "configure" && asked?.name !== "affiliations") return notImplemented(asked);
    const node = nodeOf(asked);
    if (node === undefined) return failure("bad-request", "nodeid-required");
    const { to: owner } = stanza;
    const found = await this.storeOf(owner).node(owner.localpart, node);
    if (found === undefined) return { error: "item-not-found" };
    const config = NodeConfig.decode(found.config);
    if (asked.name === "affiliations") {
      const all = [[owner.text, "owner"], ...config.affiliations];
      const shown = all.map(([jid, affiliation]) => element("affiliation", { jid, affiliation }));
      return answerWith(element("affiliations", { node }, ...shown));
    }
    return answerWith(element("configure", { node }, showForm(NODE_CONFIG, config.fields())));
  }
}

const OWNER_ACTIONS: ReadonlySet<string> = new Set([
  "configure",
  "affiliations",
  "delete",
  "purge",
]);

/** Configuration, affiliations and removal of nodes. */
class OwnerSet extends PepService implements IqService {
  readonly namespace = PUBSUB_OWNER;
  readonly type = "set";

  async answer({ stanza, payload, isCurrent }: IqRequest): Promise<IqAnswer> {
    const [action] = payload.elements;
    const node = action && nodeOf(action);
    if (action === undefined || !OWNER_ACTIONS.has(action.name)) return notImplemented(action);
    if (node === undefined) return failure("bad-request", "nodeid-required");
    const { to: owner } = stanza;
    if (action.name === "affiliations") {
      const changes = affiliationsIn(owner, action);
      if (changes === undefined) return { error: "not-acceptable" };
      return answerOf(await this.server.affiliate(owner, node, changes, isCurrent));
    }
    if (action.name !== "configure") {
      return answerOf(
        action.name === "delete"
          ? await this.server.remove(owner, node, isCurrent)
          : await this.server.purge(owner, node, isCurrent),
      );
    }
    if (action.child("x", DATA_FORM)?.attribute("type") === "cancel") return "empty";
    const values = formIn(action, NODE_CONFIG);
    if (values === undefined) return { error: "bad-request" };
    return answerOf(await this.server.configure(owner, node, values, isCurrent));
  }
}

/** Returns the changes of a request; undefined for one that asks for what there is not. */
function affiliationsIn(
  owner: Jid,
  { elements }: XmlElement,
): ReadonlyMap<string, Affiliation | "none"> | undefined {
  const changes = new Map<string, Affiliation | "none">();
  if (elements.length > MAX_AFFILIATIONS) return undefined;
  for (const each of elements) {
    const jid = tryParseJid(each.attribute("jid") ?? "");
    const affiliation = each.attribute("affiliation");
    if (each.name !== "affiliation" || jid === undefined || jid !== jid.bare) return undefined;
    if (jid.text === owner.text) {
      if (affiliation !== "owner") return undefined; // a node has its owner (XEP-0060 §8.9.2)
      continue;
    }
    if (affiliation !== "member" && affiliation !== "outcast" && affiliation !== "none") {
      return undefined;
    }
    changes.set(jid.text, affiliation);
  }
  return changes;
}

/** Returns the values of the form in an element, none without one; undefined for a wrong form. */
function formIn(around: XmlElement | undefined, formType: string): FormValues | undefined {
  const form = around?.child("x", DATA_FORM);
  return form === undefined ? new Map() : readForm(form, formType);
}

function nodeOf(action: XmlElement): string | undefined {
  const node = action.attribute("node") ?? "";
  return isName(node) ? node : undefined;
}

function isName(text: string): boolean {
  return text !== "" && text.length <= MAX_NAME;
}

/** Returns the items that are asked for; Infinity without a number, undefined for a wrong one. */
function readMax(written: string | undefined): number | undefined {
  if (written === undefined) return Infinity;
  return /^[1-9]\d{0,8}$/.test(written) ? Number(written) : undefined;
}

/** Returns the newest items that have room in an answer, one at least. */
function newestWithin(items: readonly PepItem[], maxBytes: number): readonly PepItem[] {
  let bytes = 0;
  let start = items.length;
  while (start > 0) {
    const { id, xml } = items[start - 1]!;
    bytes += Buffer.byteLength(escapeValue(id)) + Buffer.byteLength(xml) + ITEM_BYTES;
    if (bytes > maxBytes && start < items.length) break;
    start--;
  }
  return items.slice(start);
}

/** Says that an answer has only some of the items (XEP-0060 §6.5.4). */
function resultSet(shown: readonly PepItem[], count: number): XmlElement {
  return element(
    "set",
    { xmlns: RESULT_SET },
    element("first", { index: `${count - shown.length}` }, shown[0]!.id),
    element("last", {}, shown.at(-1)!.id),
    element("count", {}, `${count}`),
  );
}

function answerWith(content: XmlElement): IqAnswer {
  return { payload: element("pubsub", { xmlns: PUBSUB_OWNER }, content) };
}

function failure(error: StanzaErrorCondition, detail: string): IqAnswer {
  return { error, detail: element(detail, { xmlns: PUBSUB_ERRORS }) };
}

/** Features of XEP-0060 that PEP needs nothing of, by the elements that ask for them. */
const UNSUPPORTED: ReadonlyMap<string, string> = new Map([
  [`${PUBSUB} subscribe`, "subscribe"],
  [`${PUBSUB} unsubscribe`, "subscribe"],
  [`${PUBSUB} subscriptions`, "retrieve-subscriptions"],
  [`${PUBSUB} affiliations`, "retrieve-affiliations"],
  [`${PUBSUB} options`, "subscription-options"],
  [`${PUBSUB} default`, "retrieve-default-sub"],
  [`${PUBSUB_OWNER} subscriptions`, "manage-subscriptions"],
]);

/** Refuses a request that is not served, and names the feature that is missing (XEP-0060 §6.1.3). */
function notImplemented(asked: XmlElement | undefined): IqAnswer {
  if (asked === undefined) return { error: "bad-request" };
  const error = "feature-not-implemented";
  const feature = UNSUPPORTED.get(`${asked.namespace} ${asked.name}`);
  if (feature === undefined) return { error };
  return { error, detail: element("unsupported", { xmlns: PUBSUB_ERRORS, feature }) };
}

function answerOf(outcome: PepOutcome): IqAnswer {
  return outcome === "done" ? "empty" : refusal(outcome);
}

function refusal(outcome: Exclude<PepOutcome, "done">): IqAnswer {
  switch (outcome) {
    case "no-node":
    case "no-item":
      return { error: "item-not-found" };
    case "exists":
      return { error: "conflict" };
    case "precondition-not-met":
      return failure("conflict", "precondition-not-met");
    case "too-large":
      return failure("not-acceptable", "payload-too-big");
    case "not-acceptable":
      return { error: "not-acceptable" };
    case "no-access-model":
      return failure("not-acceptable", "unsupported-access-model");
    case "full":
      return { error: "resource-constraint" };
    case "contended":
      return { error: "internal-server-error" };
    case "former":
      return { error: "registration-required" };
    default:
      return outcome satisfies never;
  }
}
