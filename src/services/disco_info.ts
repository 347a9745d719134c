import { element } from "../xmpp/mod.ts";
import type { IqAnswer, IqRequest, IqService, IqTarget } from "./iq_service.ts";

/** Namespace of queries for identity and features. */
export const DISCO_INFO = "http://jabber.org/protocol/disco#info";

/** True where `service` is answered at the host, and for its accounts. */
export type IsOn = (service: IqService, host: string) => boolean;

interface Identity {
  readonly category: string;
  readonly type: string;
  readonly name?: string;
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

  /**
   * @param others services whose features it lists beside its own, where they are on
   * @param hostFeatures features of a host that no service has
   */
  constructor(
    others: readonly IqService[],
    softwareName: string,
    isOn: IsOn,
    hostFeatures: (host: string) => readonly string[] = () => [],
  ) {
    this.#hostFeatures = hostFeatures;
    this.#services = [this, ...others];
    this.#isOn = isOn;
    this.#identities = {
      host: { category: "server", type: "im", name: softwareName },
      account: { category: "account", type: "registered" },
    };
  }

  answer(request: IqRequest): IqAnswer {
    // XEP-0030 §3.2: this server has no disco nodes.
    if (request.payload.attribute("node") !== undefined) return { error: "item-not-found" };
    const features = new Set<string>();
    for (const service of this.#services) {
      if (request.target !== "host" && !service.targets.includes(request.target)) continue;
      if (!this.#isOn(service, request.stanza.to.domainpart)) continue;
      for (const feature of service.features) features.add(feature);
    }
    if (request.target === "host") {
      for (const feature of this.#hostFeatures(request.stanza.to.domainpart)) features.add(feature);
    }
    const children = [
      element("identity", { ...this.#identities[request.target] }),
      ...[...features].sort().map((name) => element("feature", { var: name })),
    ];
    return { payload: element("query", { xmlns: DISCO_INFO }, ...children) };
  }
}
