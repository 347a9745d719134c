import type { FullJid } from "../jid/jid.ts";
import type { StanzaErrorCondition } from "../stanza/stanza_error.ts";
import { STANZA_ERROR_NAMESPACE, STANZA_ERROR_TYPES } from "../stanza/stanza_error.ts";
import { escapeText, escapeValue } from "../xml/escape.ts";
import { SM_FEATURE_XML } from "../sm/sm_xml.ts";
import type { SaslCondition } from "../sasl/mod.ts";
import {
  BIND_NAMESPACE,
  CHANNEL_BINDING_NAMESPACE,
  SASL_NAMESPACE,
  SESSION_NAMESPACE,
  TLS_NAMESPACE,
} from "../stream/namespaces.ts";
import type { OfferedFeatures } from "./negotiation_events.ts";

/** Returns the content of `<stream:features/>` (RFC 6120 §4.3.2). */
export function featuresXml(features: OfferedFeatures): string {
  let xml = "";
  if (features.startTls !== "none") {
    xml += `<starttls xmlns='${TLS_NAMESPACE}'>` +
      (features.startTls === "required" ? "<required/>" : "") + "</starttls>";
  }
  if (features.mechanisms.length > 0) {
    const each = features.mechanisms.map((name) => `<mechanism>${name}</mechanism>`).join("");
    xml += `<mechanisms xmlns='${SASL_NAMESPACE}'>${each}</mechanisms>`;
  }
  if (features.channelBindings.length > 0) {
    const each = features.channelBindings.map((type) => `<channel-binding type='${type}'/>`);
    xml += `<sasl-channel-binding xmlns='${CHANNEL_BINDING_NAMESPACE}'>${each.join("")}` +
      "</sasl-channel-binding>";
  }
  if (features.isBindable) {
    xml += `<bind xmlns='${BIND_NAMESPACE}'/>` +
      `<session xmlns='${SESSION_NAMESPACE}'><optional/></session>`;
  }
  if (features.isManageable) xml += SM_FEATURE_XML;
  return xml;
}

/** `<challenge/>` or `<success/>`; `text` is base64. */
export function saslXml(name: "challenge" | "success", text: string | undefined): string {
  return text === undefined || text === ""
    ? `<${name} xmlns='${SASL_NAMESPACE}'/>`
    : `<${name} xmlns='${SASL_NAMESPACE}'>${text}</${name}>`;
}

/** RFC 6120 §6.4.5. */
export function saslFailureXml(condition: SaslCondition): string {
  return `<failure xmlns='${SASL_NAMESPACE}'><${condition}/></failure>`;
}

/** RFC 6120 §7.6.1. */
export function bindResultXml(iqId: string, jid: FullJid): string {
  return `<iq type='result' id='${escapeValue(iqId)}'><bind xmlns='${BIND_NAMESPACE}'>` +
    `<jid>${escapeText(jid.text)}</jid></bind></iq>`;
}

/** RFC 6120 §7.6.2. */
export function bindErrorXml(iqId: string, condition: StanzaErrorCondition): string {
  return `<iq type='error' id='${escapeValue(iqId)}'><error type='${
    STANZA_ERROR_TYPES[condition]
  }'>` +
    `<${condition} xmlns='${STANZA_ERROR_NAMESPACE}'/></error></iq>`;
}
