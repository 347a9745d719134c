import { Buffer } from "node:buffer";
import { createHash } from "node:crypto";
import type { CancelTimer } from "../../base/mod.ts";
import { CausewayError, describeError, GatheredLookup } from "../../base/mod.ts";
import type { LastPepItem, PepItem } from "../../storage/mod.ts";
import type { FullJid, Jid, Stanza, StanzaErrorCondition, XmlElement } from "../../xmpp/mod.ts";
import {
  buildStanza,
  element,
  findChild,
  parseJid,
  serialize,
  stanzaElement,
  stanzaSource,
} from "../../xmpp/mod.ts";
import { storedElement } from "../stored_element.ts";
import { AVATAR_DATA, AVATAR_METADATA } from "./namespaces.ts";
import { NodeConfig } from "./node_config.ts";
import { admits, relationOf } from "./pep_access.ts";
import { tree } from "./pep_events.ts";
import type { PepDeps, PepOutcome, Publication, StillCheck } from "./pep_ports.ts";

const VCARD = "vcard-temp";
const VCARD_UPDATE = "vcard-temp:x:update";

/** Feature of accounts whose avatars and photos are converted (XEP-0398 §2). */
export const PHOTO_CONVERSION = "urn:xmpp:pep-vcard-conversion:0";

/** Bytes of a presence that gets the hash of its sender's photo. */
const MAX_PRESENCE_BYTES = 16_384;

/** Bytes of metadata that are read for the hash. */
const MAX_METADATA_BYTES = 16_384;

/** Attempts at a change of a vCard that others change at the same moment. */
const MAX_ATTEMPTS = 8;

/** Milliseconds after which avatars that could not be read are read again. */
const RETRY_MS = 5_000;

/** Accounts whose metadata one query reads. */
const ACCOUNTS_AT_ONCE = 100;

/** Collaborators of `AvatarPhotos`. */
export interface AvatarPhotosDeps extends PepDeps {
  publish(owner: Jid, publication: Publication, isStill?: StillCheck): Promise<PepOutcome>;
}

/** The picture that an avatar's metadata name. */
interface Picture {
  readonly id: string;
  readonly type: string | undefined;
}

/** The avatar of an account that has sessions here. */
interface Photo {
  /** Sessions here. */
  readonly sessions: Set<string>;
  /**
   * Hash of the photo, empty after its removal; undefined: there never was any, or those who see
   * the presence may not see it.
   */
  hash: string | undefined;
  /** True when everybody may see it. */
  isOpen: boolean;
  /** True while the avatar is read; changes of that time make it be read once more. */
  isRead: boolean;
  hasChanged: boolean;
  /** True once a reading has failed, until the next one that does not. */
  hasFailed: boolean;
}

/**
 * The conversion between avatars (XEP-0084) and the photos of vCards (XEP-0398). The avatar is the
 * one source: a photo that is stored is published as avatar, and a vCard that is read shows the
 * avatar to those who may see that. The hash of the photo (XEP-0153) goes into the presence of all
 * clients.
 */
export class AvatarPhotos {
  readonly #deps: AvatarPhotosDeps;
  readonly #photos = new Map<string, Photo>();
  readonly #loading = new Set<Promise<void>>();
  /** Accounts whose avatars are to be read again, by bare JID. */
  readonly #outdated = new Set<string>();
  #isCatchingUp = false;
  #cancelRetry: CancelTimer | undefined;
  /** Last metadata of accounts, by host. */
  readonly #metadata = new Map<string, GatheredLookup<LastPepItem>>();

  constructor(deps: AvatarPhotosDeps) {
    this.#deps = deps;
  }

  /** Begins to follow the avatar of a session's account. */
  opened(jid: FullJid): void {
    if (this.#deps.hosts.store(jid.domainpart) === undefined) return;
    const account = jid.bare;
    const known = this.#photos.get(account.text);
    if (known !== undefined) return void known.sessions.add(jid.text);
    this.#photos.set(account.text, {
      sessions: new Set([jid.text]),
      hash: undefined,
      isOpen: false,
      isRead: false,
      hasChanged: false,
      hasFailed: false,
    });
    this.#follow(this.#load(account));
  }

  /** Forgets a session that has ended. */
  closed(jid: FullJid): void {
    const photo = this.#photos.get(jid.bare.text);
    photo?.sessions.delete(jid.text);
    if (photo?.sessions.size === 0) this.#photos.delete(jid.bare.text);
    if (this.#photos.size > 0) return;
    this.#cancelRetry?.();
    this.#cancelRetry = undefined;
  }

  /** Takes the news that an account's metadata have changed. */
  changed(account: Jid): void {
    this.#follow(this.#load(account));
  }

  /** Reads the avatars of all accounts with sessions here again: news of them may have been lost. */
  readAgain(): void {
    for (const account of this.#photos.keys()) this.#outdated.add(account);
    this.#catchUp();
  }

  /** Returns presence of a client of this node with the hash of the account's photo (XEP-0398 §4). */
  complete(presence: Stanza): Stanza {
    const account = presence.from.bare;
    const { hash, isOpen = false } = this.#photos.get(account.text) ?? {};
    if (hash === undefined || presence.bytes.length > MAX_PRESENCE_BYTES) return presence;
    // The recipient of directed presence need not be a contact.
    if (!isOpen && presence.to.text !== account.text) return presence;
    const written = stanzaElement(presence);
    const update = written.child("x", VCARD_UPDATE);
    const photo = update?.child("photo");
    // An empty one says that the client does not want to show any.
    if (photo !== undefined && (photo.text === "" || photo.text === hash)) return presence;
    const { from, to } = presence;
    const others = written.children.filter((each) => each !== update);
    const { name, attributes } = written;
    const x = element("x", { xmlns: VCARD_UPDATE }, element("photo", {}, hash || undefined));
    return buildStanza(element(name, attributes, ...others, x), { from, to });
  }

  /**
   * Returns the vCard of an account as `asker` sees it: where the account has an avatar, that is its
   * photo. It takes the same steps for accounts that do not exist.
   *
   * @throws CausewayError with a code `storage/…`
   */
  async shown(
    owner: Jid,
    asker: Jid,
    vcard: XmlElement | undefined,
  ): Promise<XmlElement | undefined> {
    const { hosts } = this.#deps;
    const store = hosts.store(owner.domainpart);
    if (store === undefined) return vcard;
    const { localpart } = owner;
    const [node, [item], relation] = await Promise.all([
      store.node(localpart, AVATAR_METADATA),
      store.newest(localpart, AVATAR_METADATA, 1),
      relationOf(hosts, owner, asker),
    ]);
    if (node === undefined || item === undefined) return vcard;
    const picture = pictureIn(tree(item.xml));
    const isAdmitted = admits(NodeConfig.decode(node.config), relation);
    const photo = picture !== undefined && isAdmitted
      ? await this.#photoOf(owner, picture, asker)
      : undefined;
    const others = (vcard?.children ?? []).filter((each) =>
      typeof each === "string" || each.name !== "PHOTO"
    );
    const hasOthers = others.some((each) => typeof each !== "string");
    if (photo === undefined && !hasOthers) return undefined;
    return element("vCard", { xmlns: VCARD }, ...others, photo);
  }

  /**
   * Publishes the photo of a vCard that its owner is about to store as avatar, unless it is that
   * already.
   *
   * @param isStill see `PepServer.publish`
   * @returns the condition of the error when nobody would see the photo: it cannot become the avatar,
   * and the account has another one
   * @throws CausewayError with a code `storage/…`
   */
  async stored(
    owner: Jid,
    vcard: XmlElement,
    isStill?: StillCheck,
  ): Promise<StanzaErrorCondition | undefined> {
    const { hosts, publish, log } = this.#deps;
    const store = hosts.store(owner.domainpart);
    const photo = vcard.child("PHOTO");
    const encoded = photo?.child("BINVAL")?.text.replaceAll(/\s/g, "") ?? "";
    const type = photo?.child("TYPE")?.text.trim() ?? "image/png";
    const bytes = Buffer.from(encoded, "base64");
    if (store === undefined || bytes.length === 0 || !type.startsWith("image/")) {
      return undefined;
    }
    const id = createHash("sha1").update(bytes).digest("hex");
    const isNamed = (last: PepItem | undefined) =>
      last !== undefined && pictureIn(tree(last.xml))?.id === id;
    const data = element("data", { xmlns: AVATAR_DATA }, bytes.toString("base64"));
    const info = element("info", { bytes: `${bytes.length}`, id, type });
    const metadata = element("metadata", { xmlns: AVATAR_METADATA }, info);
    const publishIn = async (node: string, payload: XmlElement) => {
      // Everybody may read a vCard. A node that is there already keeps what its owner has said.
      const isNew = await store.node(owner.localpart, node) === undefined;
      const options = new Map(isNew ? [["pubsub#access_model", ["open"]]] : []);
      const outcome = await publish(owner, { node, id, payload, options }, isStill);
      if (outcome !== "done") log.debug("pep.photo-not-published", { outcome });
      return outcome;
    };
    const [current] = await store.newest(owner.localpart, AVATAR_METADATA, 1);
    if (!isNamed(current)) {
      for (const [node, payload] of [[AVATAR_DATA, data], [AVATAR_METADATA, metadata]] as const) {
        const outcome = await publishIn(node, payload);
        if (outcome === "done") continue;
        // Without any avatar the vCard shows its own photo.
        return current === undefined ? undefined : refusalOf(outcome);
      }
    }
    // Another datacenter may have stored a photo between both: the one that is named must be there.
    const [[last], [kept]] = await Promise.all([
      store.newest(owner.localpart, AVATAR_METADATA, 1),
      store.items(owner.localpart, AVATAR_DATA, [id]),
    ]);
    if (isNamed(last) && kept === undefined) await publishIn(AVATAR_DATA, data);
    return undefined;
  }

  /**
   * Removes the photo from the vCard of an account whose avatar is about to be removed. The avatar
   * stood for it, and an older photo must not be seen again.
   * @throws CausewayError with a code `storage/…`
   */
  async removing({ localpart, domainpart }: Jid): Promise<void> {
    const { hosts } = this.#deps;
    const vcards = hosts.vcards(domainpart);
    const [avatar] = await hosts.store(domainpart)?.newest(localpart, AVATAR_METADATA, 1) ?? [];
    // The photo of a directory stays.
    if (vcards === undefined || vcards.isReadOnly === true || avatar === undefined) return;
    let removed: string | undefined;
    for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
      const xml = await vcards.read(localpart);
      const vcard = xml === undefined ? undefined : tree(xml);
      const photo = vcard?.child("PHOTO");
      if (xml === undefined || vcard === undefined || photo === undefined) return;
      const shown = serialize(photo);
      // A vCard that was stored meanwhile brings its own.
      if (removed !== undefined && shown !== removed) return;
      removed = shown;
      const others = vcard.elements.filter(({ name }) => name !== "PHOTO");
      const left = others.length === 0
        ? undefined
        : storedElement(element("vCard", { ...vcard.attributes, xmlns: VCARD }, ...others));
      if (await vcards.replace(localpart, xml, left)) return;
    }
    throw new CausewayError(
      "storage/busy",
      "Cannot remove the photo of a vCard: it keeps changing",
    );
  }

  /** Waits until all that is to be read has been read. */
  async settled(): Promise<void> {
    while (this.#loading.size > 0) await Promise.all(this.#loading);
  }

  async #photoOf(
    owner: Jid,
    { id, type }: Picture,
    asker: Jid,
  ): Promise<XmlElement | undefined> {
    const { hosts } = this.#deps;
    const store = hosts.store(owner.domainpart)!; // asked before
    const [item] = await store.items(owner.localpart, AVATAR_DATA, [id]);
    // Read behind the item, which may have been published once the node was hidden.
    const node = await store.node(owner.localpart, AVATAR_DATA);
    if (node === undefined || item === undefined) return undefined;
    if (!admits(NodeConfig.decode(node.config), await relationOf(hosts, owner, asker))) {
      return undefined;
    }
    const data = tree(item.xml);
    if (data.name !== "data" || data.namespace !== AVATAR_DATA) return undefined;
    return element(
      "PHOTO",
      { xmlns: VCARD },
      type === undefined ? undefined : element("TYPE", {}, type),
      element("BINVAL", {}, data.text.replaceAll(/\s/g, "")),
    );
  }

  /**
   * Reads the hash of an account's photo, if the account has sessions here. Their presence is sent anew
   * when that is news. Never rejects.
   */
  async #load(account: Jid): Promise<void> {
    const photo = this.#photos.get(account.text);
    if (photo === undefined) return;
    photo.hasChanged = true;
    // All sessions of an account here hear of a change.
    if (photo.isRead) return;
    photo.isRead = true;
    await this.#readAll(account, photo);
  }

  #catchUp(): void {
    if (this.#isCatchingUp) return;
    this.#isCatchingUp = true;
    const accounts = [...this.#outdated];
    this.#outdated.clear();
    this.#follow(this.#readOutdated(accounts));
  }

  /** Reads the avatars of accounts, as many at once as one query does. Never rejects. */
  async #readOutdated(accounts: readonly string[]): Promise<void> {
    for (let start = 0; start < accounts.length; start += ACCOUNTS_AT_ONCE) {
      const some = accounts.slice(start, start + ACCOUNTS_AT_ONCE);
      await this.#deps.paced.run(() =>
        Promise.all(some.map((account) => this.#load(parseJid(account))))
      );
    }
    this.#isCatchingUp = false;
    if (this.#outdated.size > 0) this.#catchUpLater();
  }

  #catchUpLater(): void {
    this.#cancelRetry ??= this.#deps.clock.after(RETRY_MS, () => {
      this.#cancelRetry = undefined;
      this.#catchUp();
    });
  }

  #follow(reading: Promise<void>): void {
    const task = reading.finally(() => this.#loading.delete(task)); // it never rejects
    this.#loading.add(task);
  }

  /** Reads the avatar until nothing has changed meanwhile. Never rejects. */
  async #readAll(account: Jid, photo: Photo): Promise<void> {
    while (photo.hasChanged && this.#photos.get(account.text) === photo) {
      photo.hasChanged = false;
      try {
        await this.#read(account, photo);
        photo.hasFailed = false;
      } catch (thrown) {
        if (!photo.hasFailed) {
          this.#deps.log.warn("pep.photo-unread", { error: describeError(thrown) });
        }
        photo.hasFailed = true;
        if (this.#photos.get(account.text) !== photo) break;
        this.#outdated.add(account.text);
        if (!this.#isCatchingUp) this.#catchUpLater();
      }
    }
    photo.isRead = false;
  }

  async #read(account: Jid, photo: Photo): Promise<void> {
    const last = await this.#lastMetadataOf(account);
    if (photo.hasChanged || this.#photos.get(account.text) !== photo) return;
    const model = last && NodeConfig.decode(last.node.config).accessModel;
    photo.isOpen = model === "open";
    const isShown = photo.isOpen || model === "presence";
    const id = isShown && last?.xml !== undefined ? pictureIn(tree(last.xml))?.id ?? "" : undefined;
    // Contacts have been told of an avatar, and hear that it has ended.
    this.#became(account, photo, id ?? (photo.hash === undefined ? undefined : ""));
  }

  /** Very many logins at once cost few queries. */
  #lastMetadataOf({ localpart, domainpart }: Jid): Promise<LastPepItem | undefined> {
    let lookup = this.#metadata.get(domainpart);
    if (lookup === undefined) {
      const store = this.#deps.hosts.store(domainpart)!; // asked before
      lookup = new GatheredLookup(async (localparts) => {
        const found = await store.lastItems({
          localparts,
          nodes: [AVATAR_METADATA],
          maxPayloadBytes: MAX_METADATA_BYTES,
        });
        return new Map(found.map((last) => [last.localpart, last]));
      }, ACCOUNTS_AT_ONCE);
      this.#metadata.set(domainpart, lookup);
    }
    return lookup.find(localpart);
  }

  #became(account: Jid, photo: Photo, hash: string | undefined): void {
    const { sessions, presenceAgain } = this.#deps;
    if (photo.hash === hash) return;
    photo.hash = hash;
    for (const { jid, lastPresence } of [...sessions.here(account.text)]) {
      // A session that comes from another node has told its contacts already.
      if (lastPresence !== undefined && hashIn(lastPresence) !== hash) presenceAgain(jid);
    }
  }
}

/** Returns the condition of the error for a photo that did not become the avatar. */
function refusalOf(outcome: Exclude<PepOutcome, "done">): StanzaErrorCondition {
  if (outcome === "too-large") return "policy-violation";
  if (outcome === "former") return "registration-required";
  return outcome === "full" ? "resource-constraint" : "internal-server-error";
}

/** Returns the hash of the photo that a presence names; undefined where it names none. */
function hashIn(presence: Stanza): string | undefined {
  if (findChild(stanzaSource(presence.bytes), "x", VCARD_UPDATE) === undefined) return undefined;
  return stanzaElement(presence).child("x", VCARD_UPDATE)?.child("photo")?.text;
}

/** Returns the picture that is in the data node (XEP-0084 §4.2); undefined where there is none. */
function pictureIn(metadata: XmlElement): Picture | undefined {
  if (metadata.name !== "metadata") return undefined;
  const info = metadata.elements.find((each) =>
    each.name === "info" && each.attribute("url") === undefined
  );
  const id = info?.attribute("id");
  return info === undefined || id === undefined || !/^[0-9a-fA-F]{40}$/.test(id)
    ? undefined
    : { id, type: info.attribute("type") };
}
