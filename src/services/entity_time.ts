import type { Clock } from "../base/mod.ts";
import { element } from "../xmpp/mod.ts";
import type { IqAnswer, IqService } from "./iq_service.ts";

const NAMESPACE = "urn:xmpp:time";

/**
 * Answers with the time of this machine (XEP-0202). It answers in UTC and does not reveal the time
 * zone.
 */
export class EntityTime implements IqService {
  readonly namespace = NAMESPACE;
  readonly name = "time";
  readonly type = "get";
  readonly module = "mod_time";
  readonly targets = ["host"] as const;
  readonly features = [NAMESPACE];
  readonly #clock: Clock;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  answer(): IqAnswer {
    const utc = new Date(this.#clock.wallMs()).toISOString();
    const children = [element("tzo", {}, "+00:00"), element("utc", {}, utc)];
    return { payload: element("time", { xmlns: NAMESPACE }, ...children) };
  }
}
