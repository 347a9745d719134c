import type { FullJid, XmlElement } from "../../xmpp/mod.ts";
import { element } from "../../xmpp/mod.ts";
import type { IqAnswer, IqRequest, IqService } from "../iq_service.ts";
import type { Privacy } from "./account_privacy.ts";
import { groupsIn } from "./privacy_list.ts";
import type { PrivacyEdit } from "./privacy_pushes.ts";
import type { PrivacyError } from "./list_changes.ts";
import type { PrivacyServer } from "./privacy_server.ts";
import { listElement, PRIVACY_NAMESPACE, readItems } from "./privacy_xml.ts";

/** Makes the services for privacy lists (XEP-0016). */
export function privacyServices(server: PrivacyServer): readonly IqService[] {
  return [new PrivacyGet(server), new PrivacySet(server)];
}

/** Properties that both services share. */
abstract class PrivacyService {
  readonly namespace = PRIVACY_NAMESPACE;
  readonly name = "query";
  readonly module = "mod_privacy";
  readonly targets = ["account"] as const;
  readonly features = [PRIVACY_NAMESPACE];
  readonly isOrdered = true;
  protected readonly server: PrivacyServer;

  constructor(server: PrivacyServer) {
    this.server = server;
  }
}

/** Answers with the names of all lists, or with one list (XEP-0016 §2.3). */
class PrivacyGet extends PrivacyService implements IqService {
  readonly type = "get";

  async answer({ stanza, payload }: IqRequest): Promise<IqAnswer> {
    const client = stanza.from as FullJid; // only clients have the bare JID that was asked
    const [asked, ...others] = payload.elements;
    if (others.length > 0) return { error: "bad-request" };
    const name = asked?.attribute("name");
    if (asked !== undefined && (asked.name !== "list" || name === undefined)) {
      return { error: "bad-request" };
    }
    const privacy = await this.server.listsOf(client.bare);
    if (name === undefined) return { payload: namesElement(this.server.activeOf(client), privacy) };
    const list = privacy.lists.get(name);
    return list === undefined
      ? { error: "item-not-found" }
      : { payload: element("query", { xmlns: PRIVACY_NAMESPACE }, listElement(list)) };
  }
}

/** Changes the active list, the default list or one list (XEP-0016 §2.4 to §2.8). */
class PrivacySet extends PrivacyService implements IqService {
  readonly type = "set";

  async answer({ stanza, payload, isCurrent }: IqRequest): Promise<IqAnswer> {
    const client = stanza.from as FullJid; // only clients have the bare JID that was asked
    const [asked, ...others] = payload.elements;
    if (asked === undefined || others.length > 0 || asked.namespace !== PRIVACY_NAMESPACE) {
      return { error: "bad-request" };
    }
    const name = asked.attribute("name");
    switch (asked.name) {
      case "active":
        return answerOf(await this.server.activate(client, name));
      case "default":
        return answerOf(await this.#setDefault(client, name, isCurrent));
      case "list":
        return name === undefined || name === ""
          ? { error: "bad-request" }
          : await this.#setList(client, { name, asked, isCurrent });
      default:
        return { error: "bad-request" };
    }
  }

  async #setDefault(
    client: FullJid,
    name: string | undefined,
    isCurrent: IqRequest["isCurrent"],
  ): Promise<PrivacyError | undefined> {
    const others = await this.server.othersOf(client);
    return await this.server.change(client, ({ defaultName, lists }) => {
      if (name !== undefined && !lists.has(name)) return "item-not-found";
      if (name === defaultName) return "unchanged";
      // XEP-0016 §2.5: the list in use stays while others use it. Without one, nobody does.
      const isInUse = defaultName !== undefined &&
        others.some(({ active }) => active === undefined);
      return isInUse ? "conflict" : { defaultName: name };
    }, isCurrent);
  }

  async #setList(client: FullJid, { name, asked, isCurrent }: {
    readonly name: string;
    readonly asked: XmlElement;
    readonly isCurrent: IqRequest["isCurrent"];
  }): Promise<IqAnswer> {
    const items = readItems(asked);
    if (typeof items === "string") return { error: items };
    if (items.length > 0) {
      const unknown = await this.server.unknownGroups(client.bare, items);
      return answerOf(
        await this.server.change(client, ({ defaultName, lists }) => {
          // XEP-0016 §2.1. What the list has named before may stay, as a list is always set whole.
          const before = groupsIn(lists.get(name)?.items ?? []);
          if (unknown.some((group) => !before.includes(group))) return "item-not-found";
          return { defaultName, list: { name, items } };
        }, isCurrent),
      );
    }
    const others = await this.server.othersOf(client);
    return answerOf(
      await this.server.change(client, ({ defaultName, lists }): PrivacyEdit | PrivacyError => {
        if (!lists.has(name)) return "item-not-found";
        const isInUse = others.some(({ active }) => (active ?? defaultName) === name);
        if (isInUse) return "conflict";
        return {
          defaultName: defaultName === name ? undefined : defaultName,
          list: { name, items: undefined },
        };
      }, isCurrent),
    );
  }
}

function namesElement(active: string | undefined, { defaultName, lists }: Privacy): XmlElement {
  const named = (kind: string, name: string | undefined) =>
    name === undefined ? [] : [element(kind, { name })];
  return element(
    "query",
    { xmlns: PRIVACY_NAMESPACE },
    ...named("active", active),
    ...named("default", defaultName),
    ...[...lists.keys()].toSorted().map((name) => element("list", { name })),
  );
}

function answerOf(error: PrivacyError | "not-allowed" | undefined): IqAnswer {
  return error === undefined ? "empty" : { error };
}
