// The packages `@xmpp/client` and `@xmpp/component` bring no types; these are of what we use.
import type { XmppJsEntity, XmppJsParser, XmppJsXml } from "./xmpp_js_entity.ts";
import type { TrustedEntity } from "./xmpp_js_trust.ts";

export declare const xml: XmppJsXml & { readonly Parser: new () => XmppJsParser };
export declare function client(options: object): TrustedEntity;
export declare function component(options: object): XmppJsEntity;
