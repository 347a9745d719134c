import type { ReceivedStanza } from "./received_stanza.ts";
import { PATIENCE_MS } from "../until.ts";

/**
 * Members that we use of the objects from `@xmpp/client` and `@xmpp/component`. Neither package has
 * types.
 */
export interface XmppJsElement {
  readonly name: string;
  readonly attrs: Readonly<Record<string, string | undefined>>;
  getChild(name: string, namespace?: string): XmppJsElement | undefined;
  getChildText(name: string): string | null;
  children: readonly (XmppJsElement | string)[];
  toString(): string;
}

export interface XmppJsEntity {
  readonly jid: { toString(): string } | null;
  readonly status: string;
  readonly options: { readonly service: string };
  socket: XmppJsSocket | null;
  start(): Promise<{ toString(): string }>;
  stop(): Promise<unknown>;
  write(text: string): Promise<void>;
  send(element: XmppJsElement): Promise<void>;
  sendMany(elements: readonly XmppJsElement[]): Promise<void>;
  on(event: "error", listener: (error: Error) => void): void;
  on(event: "disconnect", listener: () => void): void;
  on(event: "stanza", listener: (element: XmppJsElement) => void): void;
  prependListener(event: "element", listener: (element: XmppJsElement) => void): void;
  /** Milliseconds that it waits for each answer of the server; 2000 unless set. */
  timeout: number;
  readonly reconnect: { stop(): void; reconnect(): Promise<void> };
  /** Present on clients only. */
  readonly streamManagement?: XmppJsStreamManagement;
}

/** The package's own stream management (XEP-0198). */
export interface XmppJsStreamManagement {
  readonly enabled: boolean;
  on(event: "resumed" | "fail", listener: () => void): void;
  off(event: "resumed" | "fail", listener: () => void): void;
}

/** A socket of theirs: `node:net`'s own, or a shell that holds one in `socket`. */
export interface XmppJsSocket {
  destroy?(): void;
  readonly socket?: { destroy(): void } | null;
}

/** Makes an element; children may be elements or text. */
export type XmppJsXml = (
  name: string,
  attributes?: Readonly<Record<string, string | undefined>>,
  ...children: readonly (XmppJsElement | string | undefined)[]
) => XmppJsElement;

/** Reads a stream; `element` is one below its root. */
export interface XmppJsParser {
  on(event: "element", listener: (element: XmppJsElement) => void): void;
  on(event: "error", listener: (error: Error) => void): void;
  write(text: string): void;
}

/** For `timeout`: its own patience runs out where many clusters start on few cores. */
export const ANSWER_WITHIN_MS = PATIENCE_MS;

export function toReceivedStanza(element: XmppJsElement): ReceivedStanza {
  const condition = element.getChild("error")?.children.find((child) =>
    typeof child !== "string" && child.name !== "text"
  ) as XmppJsElement | undefined;
  return {
    // Their `stanza` event is for these three names alone.
    kind: element.name as ReceivedStanza["kind"],
    type: element.attrs.type,
    from: element.attrs.from,
    to: element.attrs.to,
    id: element.attrs.id,
    body: element.getChildText("body") ?? undefined,
    errorCondition: condition?.name,
    xml: element.toString(),
  };
}

/** Cuts the connection of either kind of socket. */
export function destroySocket(entity: XmppJsEntity): void {
  const socket = entity.socket;
  if (socket?.destroy !== undefined) socket.destroy();
  else socket?.socket?.destroy();
}
