import type { Jid, Stanza, XmlElement } from "../xmpp/mod.ts";
import { buildStanza, element } from "../xmpp/mod.ts";
import type { IqAnswer } from "./iq_service.ts";

/** Identity of a result. */
export interface IqResultOptions {
  /** The `id` of the request. */
  readonly id: string | undefined;
  readonly from: Jid;
  readonly to: Jid;
}

/** Builds the result for an answer that is no error. */
export function iqResult(
  answer: Exclude<IqAnswer, { readonly error: unknown }>,
  { id, from, to }: IqResultOptions,
): Stanza {
  const iq = (payload?: XmlElement) => element("iq", { id, type: "result" }, payload);
  if (answer === "empty" || "farewell" in answer) return buildStanza(iq(), { from, to });
  return "payload" in answer
    ? buildStanza(iq(answer.payload), { from, to })
    : buildStanza(iq(), { from, to, content: answer.written });
}
