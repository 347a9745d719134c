import type { XmlElement } from "../xmpp/mod.ts";
import { element } from "../xmpp/mod.ts";
import type { AccountDisco, IqAnswer, IqRequest, IqService, IqTarget } from "./iq_service.ts";

/** Namespace of queries for identity and features. */
export const DISCO_INFO = "http://jabber.org/protocol/disco#info";

/** True where `service` is answered at the host, and for its accounts. */
export type IsOn = (service: IqService, host: string) => boolean;

interface Identity {
  readonly category: string;
  readonly type: string;
  readonly name?: string;
}

/** Things that a discovery lists and no service has. */
export interface DiscoveredBeside {
  /** Returns features of a host. @default none */
  readonly hostFeatures?: (host: string) => readonly string[];
  /** Discovery of accounts and their nodes. @default accounts have no nodes */
  readonly accounts?: AccountDisco;
}

/** Answers with the identity and features of the server, or of an account on it (XEP-0030 §3). */
export class DiscoInfo implements IqService {
  readonly namespace = DISCO_INFO;
  readonly name = "query";
  readonly type = "get";
  readonly module = "mod_disco";
  readonly targets = ["host", "account"] as const;
  readonly features = [DISCO_INFO];
  readonly #services: readonly IqService[];
  readonly #isOn: IsOn;
  readonly #identities: Readonly<Record<IqTarget, Identity>>;
  readonly #hostFeatures: (host: string) => readonly string[];
  readonly #accounts: AccountDisco | undefined;
  /**
   * Answers those who may discover the account as its owner, and others with `service-unavailable`,
   * whether or not it exists.
   */
  readonly answerStranger?: (request: IqRequest) => Promise<IqAnswer>;

  /** @param others services whose features it lists beside its own, where they are on */
  constructor(
    others: readonly IqService[],
    softwareName: string,
    isOn: IsOn,
    { hostFeatures = () => [], accounts }: DiscoveredBeside = {},
  ) {
    this.#hostFeatures = hostFeatures;
    this.#accounts = accounts;
    if (accounts !== undefined) {
      this.answerStranger = async (request) => {
        const { to, from } = request.stanza;
        const node = request.payload.attribute("node");
        if (node !== undefined) return await this.#answerNode(request, accounts, node);
        if (!await accounts.mayAsk(to, from)) return { error: "service-unavailable" };
        return this.#describe(request);
      };
    }
    this.#services = [this, ...others];
    this.#isOn = isOn;
    this.#identities = {
      host: { category: "server", type: "im", name: softwareName },
      account: { category: "account", type: "registered" },
    };
  }

  answer(request: IqRequest): IqAnswer | Promise<IqAnswer> {
    const node = request.payload.attribute("node");
    if (node === undefined) return this.#describe(request);
    // XEP-0030 §3.2: hosts have no disco nodes.
    if (request.target === "host" || this.#accounts === undefined) {
      return { error: "item-not-found" };
    }
    return this.#answerNode(request, this.#accounts, node);
  }

  async #answerNode(
    { stanza: { to, from } }: IqRequest,
    accounts: AccountDisco,
    node: string,
  ): Promise<IqAnswer> {
    const content = await accounts.node(to, from, node);
    if (content !== undefined) return answerWith(content, node);
    const isOwner = to.text === from.bare.text;
    return { error: isOwner ? "item-not-found" : "service-unavailable" };
  }

  #describe(request: IqRequest): IqAnswer {
    const features = new Set<string>();
    const { domainpart } = request.stanza.to;
    for (const service of this.#services) {
      if (request.target !== "host" && !service.targets.includes(request.target)) continue;
      if (!this.#isOn(service, domainpart)) continue;
      for (const feature of service.features) features.add(feature);
      for (const feature of service.featuresAt?.(domainpart) ?? []) features.add(feature);
      if (request.target !== "account") continue;
      for (const feature of service.accountFeatures ?? []) features.add(feature);
    }
    if (request.target === "host") {
      for (const feature of this.#hostFeatures(domainpart)) features.add(feature);
    }
    const accounts = request.target === "account" ? this.#accounts : undefined;
    for (const feature of accounts?.features(domainpart) ?? []) features.add(feature);
    const children = [
      element("identity", { ...this.#identities[request.target] }),
      ...accounts?.identities(domainpart) ?? [],
      ...[...features].sort().map((name) => element("feature", { var: name })),
    ];
    return answerWith(children);
  }
}

function answerWith(children: readonly XmlElement[], node?: string): IqAnswer {
  return { payload: element("query", { xmlns: DISCO_INFO, node }, ...children) };
}
