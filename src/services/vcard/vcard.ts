import type { VcardStore } from "../../storage/mod.ts";
import type { Jid, StanzaErrorCondition, XmlElement } from "../../xmpp/mod.ts";
import { element, parseElement, parseJid } from "../../xmpp/mod.ts";
import type { IqAnswer, IqRequest, IqService } from "../iq_service.ts";
import { STORED_MARK_BYTES, storedElement } from "../stored_element.ts";

const NAMESPACE = "vcard-temp";

/** Attempts at a change of a vCard that others change at the same moment. */
const MAX_ATTEMPTS = 8;

/** The conversion between photos and avatars (XEP-0398). */
export interface VcardPhotos {
  /** Returns a vCard as `asker` sees it; undefined where there is nothing to see. */
  shown(owner: Jid, asker: Jid, vcard: XmlElement | undefined): Promise<XmlElement | undefined>;
  /**
   * Takes the vCard that its owner is about to store. Returns the condition of the error when its photo
   * would not be shown.
   *
   * @param isStill asked once the photo is written: the next owner of the name must not have it
   */
  stored(
    owner: Jid,
    vcard: XmlElement,
    isStill?: IqRequest["isCurrent"],
  ): Promise<StanzaErrorCondition | undefined>;
}

/** Objects behind the vCards. */
export interface VcardDeps {
  /** Returns the vCards of the accounts of a host. */
  storeOf(host: string): VcardStore;
  /** Returns the bytes that a vCard at this host may have. */
  maxBytesOf(host: string): number;
  /**
   * True when the privacy lists of `owner` hide it from `asker`. It must take the same steps whether or
   * not the owner exists, or is online. @default nobody hides
   *
   * @throws CausewayError with a code `storage/…`
   */
  isHidden?(owner: Jid, asker: Jid): Promise<boolean>;
  /** @default photos are what was stored */
  readonly photos?: VcardPhotos;
}

/**
 * Makes the services for vCards (XEP-0054): everybody reads them whom their owners do not block, and
 * their owners write them.
 */
export function vcards(deps: VcardDeps): readonly IqService[] {
  return [new VcardGet(deps), new VcardSet(deps)];
}

/** Properties that both services share. */
abstract class VcardService {
  readonly namespace = NAMESPACE;
  readonly name = "vCard";
  readonly module = "mod_vcard";
  readonly targets = ["account"] as const;
  readonly features = [NAMESPACE];
  readonly isOrdered = true;
  protected readonly deps: VcardDeps;

  constructor(deps: VcardDeps) {
    this.deps = deps;
  }
}

class VcardGet extends VcardService implements IqService {
  readonly type = "get";
  /** Localpart of an account that does not exist: nobody can guess it. */
  readonly #nobody = crypto.randomUUID();

  /** Answers with an empty vCard where there is none: clients read it before they change it. */
  async answer(request: IqRequest): Promise<IqAnswer> {
    const { to, from } = request.stanza;
    return { payload: await this.#read(to, from) ?? element("vCard", { xmlns: NAMESPACE }) };
  }

  /**
   * Answers `item-not-found` for an account without a vCard, for one that does not exist (XEP-0054
   * §3.3), and for one that hides from the asker. The steps are the same, and take as long: a vCard
   * that the asker is not to see is not read.
   */
  async answerStranger(request: IqRequest): Promise<IqAnswer> {
    const { to, from } = request.stanza;
    const isHidden = await this.deps.isHidden?.(to, from) === true;
    const read = isHidden ? parseJid(`${this.#nobody}@${to.domainpart}`) : to;
    const payload = await this.#read(read, from);
    return payload === undefined || isHidden ? { error: "item-not-found" } : { payload };
  }

  async #read(owner: Jid, asker: Jid): Promise<XmlElement | undefined> {
    const { localpart, domainpart } = owner;
    const xml = await this.deps.storeOf(domainpart).read(localpart);
    const vcard = xml === undefined ? undefined : parseElement(new TextEncoder().encode(xml));
    const { photos } = this.deps;
    return photos === undefined ? vcard : await photos.shown(owner, asker, vcard);
  }
}

class VcardSet extends VcardService implements IqService {
  readonly type = "set";

  maxBytes(host: string): number {
    return this.deps.maxBytesOf(host);
  }

  async answer({ stanza, payload, isCurrent }: IqRequest): Promise<IqAnswer> {
    const { localpart, domainpart } = stanza.to;
    const store = this.deps.storeOf(domainpart);
    // Its photo must not become the avatar either.
    if (store.isReadOnly === true) return { error: "not-allowed" };
    if (payload.elements.length === 0) return await changeVcard(store, localpart, { isCurrent });
    const xml = storedElement(payload);
    // Namespaces that a prefix declares once may be written often.
    const bytes = new TextEncoder().encode(xml).length - STORED_MARK_BYTES;
    if (bytes > this.deps.maxBytesOf(domainpart)) return { error: "policy-violation" };
    const refusal = await this.deps.photos?.stored(stanza.to, payload, isCurrent);
    if (refusal !== undefined) return { error: refusal };
    return await changeVcard(store, localpart, { xml, isCurrent });
  }
}

/**
 * Replaces the vCard of an account, or removes it without `xml`. What is replaced was there before the
 * account was looked up, so that it is not the vCard of the name's next owner.
 */
async function changeVcard(
  store: VcardStore,
  localpart: string,
  { xml, isCurrent }: {
    readonly xml?: string;
    readonly isCurrent: IqRequest["isCurrent"];
  },
): Promise<IqAnswer> {
  for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
    const before = await store.read(localpart);
    if (await isCurrent?.() === false) return { error: "registration-required" };
    if (!await store.replace(localpart, before, xml)) continue;
    // If there was no vCard, the account may have been deleted before its first one was written.
    if (before !== undefined || await isCurrent?.() !== false) return "empty";
    await store.replace(localpart, xml, undefined); // unless the name's next owner has written one
    return { error: "registration-required" };
  }
  return { error: "internal-server-error" };
}
