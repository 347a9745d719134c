/** Namespaces of Multi-User Chat (XEP-0045). */
export const MUC = "http://jabber.org/protocol/muc";
export const MUC_USER = `${MUC}#user`;
export const MUC_ADMIN = `${MUC}#admin`;
export const MUC_OWNER = `${MUC}#owner`;
export const ROOM_CONFIG = `${MUC}#roomconfig`;
export const ROOM_INFO = `${MUC}#roominfo`;
export const VOICE_REQUEST = `${MUC}#request`;
/** A room answers pings of occupants to themselves at once (XEP-0410 §3.3). */
export const SELF_PING = `${MUC}#self-ping-optimization`;
/** Occupants get a message under the id that its sender gave it. */
export const STABLE_ID = `${MUC}#stable_id`;

export const DATA_FORM = "jabber:x:data";
export const DELAY = "urn:xmpp:delay";
export const OCCUPANT_ID = "urn:xmpp:occupant-id:0";
export const PING = "urn:xmpp:ping";
export const STANZA_IDS = "urn:xmpp:sid:0";
export const VCARD = "vcard-temp";

/** Namespace of what nodes tell each other of occupants. */
export const NEWS = "urn:causeway:muc:0";
