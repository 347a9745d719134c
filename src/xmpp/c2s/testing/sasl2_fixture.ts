import type { RawPeer } from "../../stream/testing/raw_peer.ts";
import { C2sFixture, HEADER, passwordOf, SASL, SASL2 } from "./c2s_fixture.ts";

/** Features after a login that has bound no resource. */
export const UNBOUND_FEATURES =
  "<stream:features><bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'/>" +
  "<session xmlns='urn:ietf:params:xml:ns:xmpp-session'><optional/></session></stream:features>";
/** Features after a login that leaves nothing to offer. */
export const NO_FEATURES = "<stream:features/>";

export const BIND2 = "urn:xmpp:bind:0";

/** `<authenticate/>` by PLAIN; `content` is what the client asks for besides. */
export function authenticateXml(
  user: string,
  content = "",
  { password = passwordOf(user), authzid = "" } = {},
): string {
  const first = btoa(`${authzid}\0${user}\0${password}`);
  return `<authenticate xmlns='${SASL2}' mechanism='PLAIN'>` +
    `<initial-response>${first}</initial-response>${content}</authenticate>`;
}

/** A request to bind. */
export function bind2Xml(content = ""): string {
  return `<bind xmlns='${BIND2}'>${content}</bind>`;
}

/** `<user-agent/>` with the id of an installation. */
export function agentXml(id: string): string {
  return `<user-agent id='${id}'><software>test</software></user-agent>`;
}

/** `<success/>`; `content` is what follows the identifier. */
export function success2Xml(jid: string, content = ""): string {
  return `<success xmlns='${SASL2}'><authorization-identifier>${jid}</authorization-identifier>` +
    `${content}</success>`;
}

export function failure2Xml(condition: string): string {
  return `<failure xmlns='${SASL2}'><${condition} xmlns='${SASL}'/></failure>`;
}

/** A client that has been offered mechanisms. */
export async function offered(
  fixture: C2sFixture,
  { header = HEADER, ...options }: Parameters<C2sFixture["connect"]>[0] & { header?: string } = {},
): Promise<RawPeer> {
  const peer = fixture.connect(options);
  peer.send(header);
  await peer.expect("</stream:features>");
  return peer;
}

/** Logs in and binds by one element; returns the full JID and the content of `<bound/>`. */
export async function enter(
  peer: RawPeer,
  user: string,
  { inBind = "", besides = "" } = {},
): Promise<{ jid: string; bound: string }> {
  const match = await peer.exchange(
    authenticateXml(user, besides + bind2Xml(inBind)),
    /^<success [^>]*><authorization-identifier>([^<]*)<\/authorization-identifier>(?:<bound [^>]*\/>|<bound [^>]*>(.*?)<\/bound>)<\/success>/,
  );
  return { jid: match[1]!, bound: match[2] ?? "" };
}
