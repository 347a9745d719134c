export { CLIENT_NAMESPACE, COMPONENT_NAMESPACE, STREAM_NAMESPACE } from "../xml/namespaces.ts";

/** RFC 6120 §5. */
export const TLS_NAMESPACE = "urn:ietf:params:xml:ns:xmpp-tls";
/** RFC 6120 §5.4.2.2. */
export const TLS_FAILURE_XML = `<failure xmlns='${TLS_NAMESPACE}'/>`;
/** RFC 6120 §6. */
export const SASL_NAMESPACE = "urn:ietf:params:xml:ns:xmpp-sasl";
/** XEP-0388 §2. */
export const SASL2_NAMESPACE = "urn:xmpp:sasl:2";
/** XEP-0386 §3. */
export const BIND2_NAMESPACE = "urn:xmpp:bind:0";
/** XEP-0440 §2. */
export const CHANNEL_BINDING_NAMESPACE = "urn:xmpp:sasl-cb:0";
/** XEP-0280. */
export const CARBONS_NAMESPACE = "urn:xmpp:carbons:2";
/** RFC 6120 §7. */
/** XEP-0077. */
export const REGISTER_NAMESPACE = "jabber:iq:register";
export const BIND_NAMESPACE = "urn:ietf:params:xml:ns:xmpp-bind";
/** RFC 3921 §3. RFC 6121 dropped it, but clients still request it. */
export const SESSION_NAMESPACE = "urn:ietf:params:xml:ns:xmpp-session";
