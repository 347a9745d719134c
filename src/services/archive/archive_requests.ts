import type { ArchivePreferences, ArchiveStore } from "../../storage/mod.ts";
import { archiveKeyOf, DEFAULT_ARCHIVE_PREFERENCES } from "../../storage/mod.ts";
import type { FullJid, Stanza, XmlElement } from "../../xmpp/mod.ts";
import { element, tryParseJid } from "../../xmpp/mod.ts";
import type { IqAnswer, IqRequest, IqService } from "../iq_service.ts";
import { answerForm, answerMetadata, answerQuery } from "./archive_answers.ts";
import { STANZA_IDS } from "./archive_form.ts";
import { ARCHIVE_IDS } from "./archive_id.ts";
import { ARCHIVE, FULL_TEXT } from "./archive_query.ts";
import type { MessageArchive } from "./message_archive.ts";

/**
 * People whom the preferences of one account name, and UTF-16 units of their addresses together. Nodes
 * and databases read the preferences again and again as messages come.
 */
const [MAX_NAMED, MAX_NAMED_UNITS] = [200, 16_384];
/** Answer to a client that is no longer here. */
const GONE: IqAnswer = { error: "service-unavailable" };

/** Objects behind the requests. */
export interface ArchiveRequestsDeps {
  readonly archive: MessageArchive;
  /** Returns the `LocalSession.creation` of a client at this node. Undefined: there is none. */
  creationOf(client: FullJid): string | undefined;
  /** Sends a message to a client; false when it takes none now. */
  send(to: FullJid, message: Stanza): boolean;
}

/** Makes the services for requests to archives (XEP-0313). Accounts have their own archive alone. */
export function archiveRequests(deps: ArchiveRequestsDeps): readonly IqService[] {
  return [
    new QueryForm(deps),
    new QuerySet(deps),
    new Metadata(deps),
    new PreferencesGet(deps),
    new PreferencesSet(deps),
  ];
}

/** Properties that all services share. */
abstract class ArchiveService {
  readonly namespace = ARCHIVE;
  readonly module = "mod_mam";
  readonly targets = ["account"] as const;
  /** One query of an account runs at a time. */
  readonly isOrdered = true;
  readonly features: readonly string[] = [];
  protected readonly archive: MessageArchive;
  protected readonly deps: ArchiveRequestsDeps;

  constructor(deps: ArchiveRequestsDeps) {
    this.deps = deps;
    this.archive = deps.archive;
  }

  /**
   * Returns the store of the account that asks, and the key of its archive. Undefined when its client
   * is no longer here: whoever has the name by now may be somebody else.
   */
  protected archiveOf(
    { from, to }: Stanza,
  ): { readonly store: ArchiveStore; readonly key: string } | undefined {
    const creation = this.deps.creationOf(from as FullJid);
    if (creation === undefined) return undefined;
    return {
      store: this.archive.storeOf(to.domainpart),
      key: archiveKeyOf(to.bare.text, creation),
    };
  }
}

/** Tells which fields a query may have. */
class QueryForm extends ArchiveService implements IqService {
  readonly name = "query";
  readonly type = "get";

  answer({ stanza: { to } }: IqRequest): IqAnswer {
    return answerForm({ searchesText: this.archive.searchesText(to.domainpart) });
  }
}

/** Sends a page of an archive, message by message, and then its summary. */
class QuerySet extends ArchiveService implements IqService {
  readonly name = "query";
  readonly type = "set";
  readonly isForFormerOwners = true; // archives are of accounts, not of names
  override readonly features = [ARCHIVE, `${ARCHIVE}#extended`];
  // XEP-0359 §4: whoever announces it gives ids in its own name, and lets no forged ones through.
  readonly accountFeatures = [STANZA_IDS];

  featuresAt(host: string): readonly string[] {
    return this.archive.searchesText(host) ? [FULL_TEXT] : [];
  }

  async answer({ stanza, payload }: IqRequest): Promise<IqAnswer> {
    const { to: owner, from: asker } = stanza;
    const options = this.archive.optionsOf(owner.domainpart);
    if (options === undefined) return { error: "service-unavailable" };
    const own = this.archiveOf(stanza);
    if (own === undefined) return GONE;
    await this.archive.caughtUp(owner.bare, own.key);
    const searchesText = this.archive.searchesText(owner.domainpart);
    return await answerQuery(payload, {
      ...own,
      owner,
      asker: asker as FullJid,
      ids: ARCHIVE_IDS,
      limits: { ...options, searchesText },
      pages: this.archive.metrics.queries,
      send: (to, message) => this.deps.send(to, message),
    });
  }
}

/** Tells the first and the last message of an archive. */
class Metadata extends ArchiveService implements IqService {
  readonly name = "metadata";
  readonly type = "get";

  async answer({ stanza }: IqRequest): Promise<IqAnswer> {
    const own = this.archiveOf(stanza);
    if (own === undefined) return GONE;
    await this.archive.caughtUp(stanza.to.bare, own.key);
    return await answerMetadata({ ...own, ids: ARCHIVE_IDS });
  }
}

/** Tells the preferences of an account (XEP-0441). */
class PreferencesGet extends ArchiveService implements IqService {
  readonly name = "prefs";
  readonly type = "get";

  async answer({ stanza }: IqRequest): Promise<IqAnswer> {
    const own = this.archiveOf(stanza);
    if (own === undefined) return GONE;
    const preferences = await own.store.preferences(own.key);
    return { payload: preferencesElement(preferences ?? DEFAULT_ARCHIVE_PREFERENCES) };
  }
}

/** Sets them. */
class PreferencesSet extends ArchiveService implements IqService {
  readonly name = "prefs";
  readonly type = "set";
  readonly isForFormerOwners = true; // archives are of accounts, not of names

  async answer({ stanza, payload }: IqRequest): Promise<IqAnswer> {
    const preferences = readPreferences(payload);
    if (typeof preferences === "string") return { error: preferences };
    const own = this.archiveOf(stanza);
    if (own === undefined) return GONE;
    await this.archive.caughtUp(stanza.to.bare, own.key); // what was sent before them is not theirs
    await own.store.setPreferences(own.key, preferences);
    return { payload: preferencesElement(preferences) };
  }
}

function preferencesElement({ byDefault, always, never }: ArchivePreferences): XmlElement {
  const list = (name: string, jids: readonly string[]) =>
    element(name, {}, ...jids.map((jid) => element("jid", {}, jid)));
  return element(
    "prefs",
    { xmlns: ARCHIVE, default: byDefault },
    list("always", always),
    list("never", never),
  );
}

function readPreferences(
  prefs: XmlElement,
): ArchivePreferences | "bad-request" | "jid-malformed" | "policy-violation" {
  const byDefault = prefs.attribute("default");
  if (byDefault !== "always" && byDefault !== "never" && byDefault !== "roster") {
    return "bad-request";
  }
  const named: string[][] = [];
  for (const name of ["always", "never"]) {
    const jids = prefs.child(name)?.elements.filter((each) => each.name === "jid") ?? [];
    if (jids.length > MAX_NAMED) return "policy-violation";
    const normalised = jids.map(({ text }) => tryParseJid(text.trim())?.text);
    if (normalised.includes(undefined)) return "jid-malformed";
    named.push([...new Set(normalised as string[])]); // the check before has found all of them
  }
  const [always, never] = named as [string[], string[]]; // one for each name
  const all = [...always, ...never];
  const units = all.reduce((sum, jid) => sum + jid.length, 0);
  if (all.length > MAX_NAMED || units > MAX_NAMED_UNITS) return "policy-violation";
  return { byDefault, always, never };
}
