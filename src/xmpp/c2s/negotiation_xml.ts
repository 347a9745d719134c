import type { BareJid, FullJid } from "../jid/jid.ts";
import type { StanzaErrorCondition } from "../stanza/stanza_error.ts";
import { STANZA_ERROR_NAMESPACE, STANZA_ERROR_TYPES } from "../stanza/stanza_error.ts";
import { escapeText, escapeValue } from "../xml/escape.ts";
import { failedXml, SM_FEATURE_XML, SM_NAMESPACE } from "../sm/sm_xml.ts";
import type { SaslCondition } from "../sasl/mod.ts";
import {
  BIND2_NAMESPACE,
  BIND_NAMESPACE,
  CARBONS_NAMESPACE,
  CHANNEL_BINDING_NAMESPACE,
  REGISTER_NAMESPACE,
  SASL2_NAMESPACE,
  SASL_NAMESPACE,
  SESSION_NAMESPACE,
  TLS_NAMESPACE,
} from "../stream/namespaces.ts";
import { CSI_NAMESPACE } from "./held_presence.ts";
import type {
  AccountFeature,
  CreationOutcome,
  InlineFeatures,
  OfferedFeatures,
  PendingSuccess,
  SaslProfile,
} from "./negotiation_events.ts";

/** Features by their elements, which have no content. */
const ACCOUNT_FEATURES: Readonly<Record<AccountFeature, string>> = {
  "roster-versions": "<ver xmlns='urn:xmpp:features:rosterver'/>",
  "pre-approval": "<sub xmlns='urn:xmpp:features:pre-approval'/>",
};

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
    if (features.sasl2 !== undefined) {
      xml += `<authentication xmlns='${SASL2_NAMESPACE}'>${each}` +
        `${inlineXml(features.sasl2)}</authentication>`;
    }
  }
  if (features.channelBindings.length > 0) {
    const each = features.channelBindings.map((type) => `<channel-binding type='${type}'/>`);
    xml += `<sasl-channel-binding xmlns='${CHANNEL_BINDING_NAMESPACE}'>${each.join("")}` +
      "</sasl-channel-binding>";
  }
  if (features.isCreatable === true) {
    xml += "<register xmlns='http://jabber.org/features/iq-register'/>";
  }
  if (features.isBindable) {
    xml += `<bind xmlns='${BIND_NAMESPACE}'/>` +
      `<session xmlns='${SESSION_NAMESPACE}'><optional/></session>`;
  }
  if (features.isManageable) xml += SM_FEATURE_XML;
  if (features.hasCsi) xml += `<csi xmlns='${CSI_NAMESPACE}'/>`;
  for (const feature of features.account ?? []) xml += ACCOUNT_FEATURES[feature];
  return xml;
}

/** `<inline/>`: what a client may ask for together with its login (XEP-0388 §2.2, XEP-0386 §3). */
function inlineXml({ isManageable, hasCarbons, hasCsi }: InlineFeatures): string {
  const features = (isManageable ? `<feature var='${SM_NAMESPACE}'/>` : "") +
    (hasCarbons ? `<feature var='${CARBONS_NAMESPACE}'/>` : "") +
    (hasCsi ? `<feature var='${CSI_NAMESPACE}'/>` : "");
  const bind = features === ""
    ? `<bind xmlns='${BIND2_NAMESPACE}'/>`
    : `<bind xmlns='${BIND2_NAMESPACE}'><inline>${features}</inline></bind>`;
  return `<inline>${bind}${isManageable ? SM_FEATURE_XML : ""}</inline>`;
}

const NAMESPACES: Readonly<Record<SaslProfile, string>> = {
  sasl: SASL_NAMESPACE,
  sasl2: SASL2_NAMESPACE,
};

/** `<challenge/>`; `text` is base64. */
export function challengeXml(profile: SaslProfile, text: string): string {
  return textXml("challenge", NAMESPACES[profile], text);
}

/** `<success/>` of RFC 6120 §6.4.6; `text` is base64. */
export function successXml(text: string | undefined): string {
  return textXml("success", SASL_NAMESPACE, text ?? "");
}

/**
 * `<success/>` of XEP-0388 §2.6.1.
 * @param content answers to what the client asked for together with its login
 */
export function success2Xml(
  jid: BareJid | FullJid,
  { text, failedResume }: PendingSuccess,
  content: string,
): string {
  const data = text === undefined ? "" : `<additional-data>${text}</additional-data>`;
  const failed = failedResume && failedXml(failedResume.condition, failedResume.h);
  return `<success xmlns='${SASL2_NAMESPACE}'>${data}` +
    `<authorization-identifier>${escapeText(jid.text)}</authorization-identifier>` +
    `${failed ?? ""}${content}</success>`;
}

/** `<bound/>` (XEP-0386 §3); `content` holds the answers to what was enabled. */
export function boundXml(content: string): string {
  return content === ""
    ? `<bound xmlns='${BIND2_NAMESPACE}'/>`
    : `<bound xmlns='${BIND2_NAMESPACE}'>${content}</bound>`;
}

/** RFC 6120 §6.4.5, XEP-0388 §2.6.2. */
export function saslFailureXml(profile: SaslProfile, condition: SaslCondition): string {
  const child = profile === "sasl"
    ? `<${condition}/>`
    : `<${condition} xmlns='${SASL_NAMESPACE}'/>`;
  return `<failure xmlns='${NAMESPACES[profile]}'>${child}</failure>`;
}

function textXml(name: string, namespace: string, text: string): string {
  return text === ""
    ? `<${name} xmlns='${namespace}'/>`
    : `<${name} xmlns='${namespace}'>${text}</${name}>`;
}

/** XEP-0077 §3.1.1: the fields of an account. */
export function creationFormXml(iqId: string, host: string): string {
  return `<iq type='result' id='${escapeValue(iqId)}' from='${escapeValue(host)}'>` +
    `<query xmlns='${REGISTER_NAMESPACE}'><instructions>Choose a username and a password` +
    "</instructions><username/><password/></query></iq>";
}

/** Answer to a request to make an account (XEP-0077 §3.1.1). */
export function creationAnswerXml(iqId: string, host: string, outcome: CreationOutcome): string {
  const start = `<iq id='${escapeValue(iqId)}' from='${escapeValue(host)}'`;
  if (outcome === "made") return `${start} type='result'/>`;
  return `${start} type='error'><error type='${STANZA_ERROR_TYPES[outcome]}'>` +
    `<${outcome} xmlns='${STANZA_ERROR_NAMESPACE}'/></error></iq>`;
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
