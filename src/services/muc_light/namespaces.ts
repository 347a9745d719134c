/** Namespace of MUC Light, which disco#info lists. */
export const MUC_LIGHT = "urn:xmpp:muclight:0";
export const CREATE = `${MUC_LIGHT}#create`;
export const DESTROY = `${MUC_LIGHT}#destroy`;
export const CONFIGURATION = `${MUC_LIGHT}#configuration`;
export const AFFILIATIONS = `${MUC_LIGHT}#affiliations`;
export const INFO = `${MUC_LIGHT}#info`;
export const BLOCKING = `${MUC_LIGHT}#blocking`;
