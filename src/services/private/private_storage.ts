import type { PrivateBounds, PrivateChange, PrivateStore } from "../../storage/mod.ts";
import { element, parseElement } from "../../xmpp/mod.ts";
import type { XmlElement } from "../../xmpp/mod.ts";
import type { IqAnswer, IqRequest, IqService } from "../iq_service.ts";
import { STORED_MARK_BYTES, storedElement } from "../stored_element.ts";

const NAMESPACE = "jabber:iq:private";

/**
 * Longest stored form of one element in bytes: twice what a request may hold by default. An answer
 * with it stays well below `max_stanza_bytes`, which is what other nodes must take.
 */
const MAX_ELEMENT_BYTES = 131_072;

/** Attempts at a change of elements that others change at the same moment. */
const MAX_ATTEMPTS = 8;

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
      const xml = isEmpty(each) ? undefined : storedElement(each);
      // Namespaces that a prefix declares once may be written often.
      const bytes = xml === undefined ? 0 : new TextEncoder().encode(xml).length;
      if (bytes > MAX_ELEMENT_BYTES + STORED_MARK_BYTES) return { error: "policy-violation" };
      changes.push({ namespace: each.namespace, name: each.name, xml });
    }
    const [store, bounds] = [this.deps.storeOf(domainpart), this.deps.boundsOf(domainpart)];
    return await changeElements(store, localpart, { changes, bounds, isCurrent });
  }
}

/**
 * Changes elements of an account. What is replaced was there before the account was looked up, so that
 * it is not an element of the name's next owner.
 */
async function changeElements(
  store: PrivateStore,
  localpart: string,
  { changes, bounds, isCurrent }: {
    readonly changes: readonly PrivateChange[];
    readonly bounds: PrivateBounds;
    readonly isCurrent: IqRequest["isCurrent"];
  },
): Promise<IqAnswer> {
  for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
    const meant: PrivateChange[] = [];
    for (const each of changes) {
      meant.push({ ...each, expected: await store.read(localpart, each) ?? null });
    }
    if (await isCurrent?.() === false) return { error: "registration-required" };
    const outcome = await store.change(localpart, meant, bounds);
    if (outcome === "full") return { error: "resource-constraint" };
    if (outcome === "changed") continue;
    // If there was no element, the account may have been deleted before its first one was written.
    const added = meant.filter(({ expected, xml }) => expected === null && xml !== undefined);
    if (added.length === 0 || await isCurrent?.() !== false) return "empty";
    for (const { namespace, name, xml } of added) {
      // One by one: the name's next owner may have replaced some of them.
      const removal = { namespace, name, xml: undefined, expected: xml! };
      await store.change(localpart, [removal], bounds);
    }
    return { error: "registration-required" };
  }
  return { error: "internal-server-error" };
}

function hasOwnNamespace({ namespace }: XmlElement): boolean {
  return namespace !== NAMESPACE && namespace !== "";
}

function isEmpty({ attributes, children }: XmlElement): boolean {
  return children.length === 0 && Object.keys(attributes).length === 0;
}
