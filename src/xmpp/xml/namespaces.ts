/** Namespace of the prefix `xml`, bound without a declaration (XML Namespaces §3). */
export const XML_NAMESPACE = "http://www.w3.org/XML/1998/namespace";
export const XMLNS_NAMESPACE = "http://www.w3.org/2000/xmlns/";
/** RFC 6120 §4.8.1. */
export const STREAM_NAMESPACE = "http://etherx.jabber.org/streams";
/** RFC 6120 §4.8.2. */
export const CLIENT_NAMESPACE = "jabber:client";
/** XEP-0114 §3. */
export const COMPONENT_NAMESPACE = "jabber:component:accept";
/** RFC 7395 §3.3.2. */
export const FRAMING_NAMESPACE = "urn:ietf:params:xml:ns:xmpp-framing";
