import { element } from "../xmpp/mod.ts";
import type { IqAnswer, IqService } from "./iq_service.ts";

const NAMESPACE = "jabber:iq:version";

/** Name and version of the server. */
export interface Software {
  readonly name: string;
  readonly version: string;
}

/**
 * Answers with the software name and version (XEP-0092). It leaves out the operating system, which
 * helps only attackers.
 */
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
