import type { IqAnswer, IqService } from "./iq_service.ts";

const NAMESPACE = "urn:xmpp:ping";

/** Answers pings (XEP-0199). */
export class Ping implements IqService {
  readonly namespace = NAMESPACE;
  readonly name = "ping";
  readonly type = "get";
  readonly module = "mod_ping";
  readonly targets = ["host", "account"] as const;
  readonly features = [NAMESPACE];

  answer(): IqAnswer {
    return "empty";
  }
}
