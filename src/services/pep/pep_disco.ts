import type { Jid, XmlElement } from "../../xmpp/mod.ts";
import { element } from "../../xmpp/mod.ts";
import { seesPresence } from "../../storage/mod.ts";
import type { AccountDisco } from "../iq_service.ts";
import { PHOTO_CONVERSION } from "./avatar_photos.ts";
import { PUBSUB } from "./namespaces.ts";
import { NodeConfig } from "./node_config.ts";
import { admits, relationOf } from "./pep_access.ts";
import type { PepHosts } from "./pep_ports.ts";

/** Service discovery of accounts and their nodes (XEP-0163 §6, XEP-0060 §5). */
export class PepDisco implements AccountDisco {
  readonly #hosts: PepHosts;
  readonly #hasVcards: (host: string) => boolean;

  /** @param hasVcards true for a host whose accounts have vCards, with photos to convert */
  constructor(hosts: PepHosts, hasVcards: (host: string) => boolean) {
    this.#hosts = hosts;
    this.#hasVcards = hasVcards;
  }

  identities(host: string): readonly XmlElement[] {
    if (this.#hosts.store(host) === undefined) return [];
    return [element("identity", { category: "pubsub", type: "pep" })];
  }

  features(host: string): readonly string[] {
    const hasPhotos = this.#hosts.store(host) !== undefined && this.#hasVcards(host);
    return hasPhotos ? [PHOTO_CONVERSION] : [];
  }

  async mayAsk(owner: Jid, asker: Jid): Promise<boolean> {
    const { isOwner, item } = await relationOf(this.#hosts, owner, asker);
    return isOwner || seesPresence(item?.subscription);
  }

  async nodes(owner: Jid, asker: Jid): Promise<readonly string[]> {
    const store = this.#hosts.store(owner.domainpart);
    const [nodes, relation] = await Promise.all([
      store?.nodes(owner.localpart) ?? [],
      relationOf(this.#hosts, owner, asker),
    ]);
    const shown: string[] = [];
    for (const { name, config } of nodes) {
      if (admits(NodeConfig.decode(config), relation)) shown.push(name);
    }
    return shown;
  }

  async node(owner: Jid, asker: Jid, name: string): Promise<readonly XmlElement[] | undefined> {
    const store = this.#hosts.store(owner.domainpart);
    const [found, relation] = await Promise.all([
      store?.node(owner.localpart, name),
      relationOf(this.#hosts, owner, asker),
    ]);
    if (found === undefined) return undefined;
    if (!admits(NodeConfig.decode(found.config), relation)) return undefined;
    return [
      element("identity", { category: "pubsub", type: "leaf" }),
      element("feature", { var: PUBSUB }),
    ];
  }
}
