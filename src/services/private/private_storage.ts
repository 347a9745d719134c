import type { PrivateBounds, PrivateStore } from "../../storage/mod.ts";
import { element, parseElement, serialize } from "../../xmpp/mod.ts";
import type { XmlElement } from "../../xmpp/mod.ts";
import type { IqAnswer, IqRequest, IqService } from "../iq_service.ts";

const NAMESPACE = "jabber:iq:private";

/**
 * Longest stored form of one element in bytes: twice what a request may hold by default. An answer
 * with it stays well below `max_stanza_bytes`, which is what other nodes must take.
 */
const MAX_ELEMENT_BYTES = 131_072;

/** Objects behind private storage. */
export interface PrivateStorageDeps {
  /** Returns the private storage of the accounts of a host. */
  storeOf(host: string): PrivateStore;
  /** Returns the limits on each account of a host. */
  boundsOf(host: string): PrivateBounds;
}

/** Makes the services for elements that clients store for themselves (XEP-0049). */
export function privateStorage(deps: PrivateStorageDeps): readonly IqService[] {
  return [new PrivateGet(deps), new PrivateSet(deps)];
}

/** Properties that both services share. */
abstract class PrivateService {
  readonly namespace = NAMESPACE;
  readonly name = "query";
  readonly module = "mod_private";
  readonly targets = ["account"] as const;
  readonly features = [NAMESPACE];
  readonly isOrdered = true;
  protected readonly deps: PrivateStorageDeps;

  constructor(deps: PrivateStorageDeps) {
    this.deps = deps;
  }
}

/** Answers with one element, or with the empty element that was asked for. */
class PrivateGet extends PrivateService implements IqService {
  readonly type = "get";

  async answer({ stanza, payload }: IqRequest): Promise<IqAnswer> {
    const [asked, ...others] = payload.elements;
    // XEP-0049 §3: one query is for one element, and that element has a namespace of its own.
    if (asked === undefined || others.length > 0) return { error: "bad-request" };
    if (!hasOwnNamespace(asked)) return { error: "not-acceptable" };
    const { localpart, domainpart } = stanza.to;
    const xml = await this.deps.storeOf(domainpart).read(localpart, asked);
    const found = xml === undefined
      ? element(asked.name, { xmlns: asked.namespace })
      : parseElement(new TextEncoder().encode(xml));
    return { payload: element("query", { xmlns: NAMESPACE }, found) };
  }
}

/** Stores elements. Storing an empty element removes the one that was there. */
class PrivateSet extends PrivateService implements IqService {
  readonly type = "set";

  async answer({ stanza, payload, isCurrent }: IqRequest): Promise<IqAnswer> {
    const elements = payload.elements;
    if (elements.length === 0) return { error: "bad-request" };
    if (!elements.every(hasOwnNamespace)) return { error: "not-acceptable" };
    const { localpart, domainpart } = stanza.to;
    const changes = [];
    for (const each of elements) {
      const xml = isEmpty(each) ? undefined : serialize(each);
      // Namespaces that a prefix declares once may be written often.
      if (xml !== undefined && new TextEncoder().encode(xml).length > MAX_ELEMENT_BYTES) {
        return { error: "policy-violation" };
      }
      changes.push({ namespace: each.namespace, name: each.name, xml });
    }
    const bounds = this.deps.boundsOf(domainpart);
    const store = this.deps.storeOf(domainpart);
    if (!await store.change(localpart, changes, bounds)) return { error: "resource-constraint" };
    if (await isCurrent?.() === false) {
      // What a next owner of the name has stored since stays. They lose what they had stored under
      // the same names a moment before.
      const removals = changes.filter(({ xml }) => xml !== undefined)
        .map((each) => ({ ...each, xml: undefined, removed: each.xml! })); // those that have one
      await store.change(localpart, removals, bounds);
      return { error: "registration-required" };
    }
    return "empty";
  }
}

function hasOwnNamespace({ namespace }: XmlElement): boolean {
  return namespace !== NAMESPACE && namespace !== "";
}

function isEmpty({ attributes, children }: XmlElement): boolean {
  return children.length === 0 && Object.keys(attributes).length === 0;
}
