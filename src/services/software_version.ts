import { element } from "../xmpp/mod.ts";
import type { IqAnswer, IqService } from "./iq_service.ts";

const NAMESPACE = "jabber:iq:version";

/** What the server tells about itself. */
export interface Software {
  readonly name: string;
  readonly version: string;
}

/** Tells which software this is (XEP-0092); not the operating system, which helps only attackers. */
export class SoftwareVersion implements IqService {
  readonly namespace = NAMESPACE;
  readonly name = "query";
  readonly type = "get";
  readonly module = "mod_version";
  readonly targets = ["host"] as const;
  readonly features = [NAMESPACE];
  readonly #answer: IqAnswer;

  constructor(software: Software) {
    const children = [
      element("name", {}, software.name),
      element("version", {}, software.version),
    ];
    this.#answer = { payload: element("query", { xmlns: NAMESPACE }, ...children) };
  }

  answer(): IqAnswer {
    return this.#answer;
  }
}
