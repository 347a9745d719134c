import { RawSocket } from "../../clients/mod.ts";
import { readSeeds } from "../corpus.ts";
import { bytesOf } from "../fuzz_target.ts";
import { EdgeTarget } from "./edge_target.ts";
import { joinBytes } from "../../net/join_bytes.ts";

const SASL = "urn:ietf:params:xml:ns:xmpp-sasl";
const OPEN = "<open xmlns='urn:ietf:params:xml:ns:xmpp-framing' to='example.com' version='1.0'/>";
const CLOSE = "<close xmlns='urn:ietf:params:xml:ns:xmpp-framing'/>";
const PLAIN = `<auth xmlns='${SASL}' mechanism='PLAIN'>${btoa("\0alice\0secret")}</auth>`;
const BIND = "<iq xmlns='jabber:client' type='set' id='b'>" +
  "<bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'/></iq>";
const MESSAGE =
  "<message xmlns='jabber:client' to='bob@example.com' id='m'><body>hi</body></message>";

const UPGRADE = "GET /xmpp-websocket HTTP/1.1\r\nHost: example.com\r\nUpgrade: websocket\r\n" +
  "Connection: Upgrade\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n" +
  "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Protocol: xmpp\r\n\r\n";

const TEXT = 0x81;
const TEXT_BEGUN = 0x01;
const CONTINUED = 0x80;
const CLOSING = 0x88;
const PING = 0x89;

const UTF8 = new TextEncoder();

/** A frame of a client (RFC 6455 §5.2), masked with zeros so that its payload can be read here. */
function frame(first: number, payload: string): Uint8Array {
  const bytes = UTF8.encode(payload);
  const { length } = bytes;
  const lengthBytes = length < 126 ? [0x80 | length] : [0xfe, length >> 8, length & 0xff];
  return Uint8Array.of(first, ...lengthBytes, 0, 0, 0, 0, ...bytes);
}

const LOGIN = [OPEN, PLAIN, OPEN, BIND].map((text) => frame(TEXT, text));

/** The port for WebSockets: HTTP, the frames of RFC 6455, and what RFC 7395 has in them. */
export function startWebsocket(): Promise<EdgeTarget> {
  return EdgeTarget.start({
    name: "websocket",
    tokens: [
      ...bytesOf([
        ..."<>/='\"&; \0é😀",
        "\r\n",
        "\r\n\r\n",
        "Host: x\r\n",
        "Content-Length: 9\r\n",
        "Transfer-Encoding: chunked\r\n",
        "Sec-WebSocket-Protocol: other\r\n",
        "Sec-WebSocket-Extensions: permessage-deflate\r\n",
        "GET /.well-known/host-meta HTTP/1.1\r\n",
        UPGRADE,
      ]),
      ...[OPEN, CLOSE, PLAIN, BIND, MESSAGE].map((text) => frame(TEXT, text)),
      frame(TEXT_BEGUN, "<mess"),
      frame(CONTINUED, "age/>"),
      frame(PING, "p"),
      frame(CLOSING, "\x03\xe8"),
      Uint8Array.of(0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff),
    ],
    seeds: [
      joinBytes(UPGRADE, ...LOGIN, frame(TEXT, MESSAGE), frame(PING, "p"), frame(TEXT, MESSAGE)),
      joinBytes(UPGRADE, frame(TEXT_BEGUN, OPEN.slice(0, 20)), frame(CONTINUED, OPEN.slice(20))),
      joinBytes(UPGRADE, frame(TEXT, OPEN), frame(TEXT, PLAIN), frame(CLOSING, "\x03\xe8")),
      ...readSeeds("websocket"),
    ],
    open: (cluster) =>
      RawSocket.connect({ port: cluster.datacenter("dc1").webSocketAddress("none").port }),
    leave: { bytes: frame(TEXT, CLOSE), answer: "<close" },
    ending: joinBytes("\r\n\r\n", Uint8Array.of(0xff, 0xff)),
  });
}
