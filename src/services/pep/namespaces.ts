/** Namespaces of publish-subscribe (XEP-0060), and what goes along with it. */
export const PUBSUB = "http://jabber.org/protocol/pubsub";
export const PUBSUB_OWNER = "http://jabber.org/protocol/pubsub#owner";
export const PUBSUB_EVENT = "http://jabber.org/protocol/pubsub#event";
export const PUBSUB_ERRORS = "http://jabber.org/protocol/pubsub#errors";
export const NODE_CONFIG = "http://jabber.org/protocol/pubsub#node_config";
export const PUBLISH_OPTIONS = "http://jabber.org/protocol/pubsub#publish-options";
export const DATA_FORM = "jabber:x:data";
export const RESULT_SET = "http://jabber.org/protocol/rsm";

/** Nodes of user avatars (XEP-0084). */
export const AVATAR_DATA = "urn:xmpp:avatar:data";
export const AVATAR_METADATA = "urn:xmpp:avatar:metadata";
