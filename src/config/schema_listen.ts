import { z } from "zod";
import type { Role } from "../admin/mod.ts";
import {
  absent,
  domain,
  filePath,
  hostName,
  listenPort,
  secret,
  withWords,
} from "./schema_words.ts";

const C2S_TLS = withWords(
  z.strictObject({
    mode: z.enum(["starttls", "direct", "none"]).describe(
      "`starttls`: required before login (RFC 6120 §5); `direct`: TLS from the first byte " +
        "(XEP-0368), where a client that offers application protocols (ALPN) must offer " +
        "`xmpp-client`; `none`: no encryption, refused off loopback unless `allow_plaintext = true`",
    ),
    certfile: filePath().optional().describe(
      "PEM file with the certificate chain; needed with TLS",
    ),
    keyfile: filePath().optional().describe("PEM file with the private key, if not in `certfile`"),
  }),
  { allowed: 'a table such as { mode = "starttls", certfile = "…", keyfile = "…" }' },
);

const DIRECT_TLS = withWords(
  z.strictObject({
    certfile: filePath().describe("PEM file with the certificate chain"),
    keyfile: filePath().optional().describe("PEM file with the private key, if not in `certfile`"),
  }),
  { allowed: 'a table such as { certfile = "…", keyfile = "…" }' },
);

/** One `[[listen.c2s]]`. */
export const C2S = z.strictObject({
  host: hostName().default("0.0.0.0").describe("host name or IP address to listen on"),
  port: listenPort().default(5222).describe("TCP port; 0 takes a free one"),
  tls: C2S_TLS.describe("how the port is secured"),
  allow_plaintext: z.boolean().default(false).describe(
    'allows `mode = "none"` off loopback: passwords and messages travel in the clear',
  ),
});

/** One `[[listen.websocket]]`. */
export const WEBSOCKET = z.strictObject({
  host: hostName().default("0.0.0.0").describe("host name or IP address to listen on"),
  port: listenPort().default(5280).describe("TCP port; 0 takes a free one"),
  tls: DIRECT_TLS.optional().describe(
    "TLS from the first byte, `wss`; absent: `ws`, no encryption, refused off loopback unless " +
      "`allow_plaintext = true`",
  ),
  allow_plaintext: z.boolean().default(false).describe(
    "allows a port without `tls` off loopback: passwords and messages travel in the clear",
  ),
  url: absent(
    withWords(z.string().max(2048).regex(/^wss?:\/\/[^\s/?#"'<>]+(?:[/?][^\s#"'<>]*)?$/i), {
      allowed: 'a URL such as "wss://chat.example.com/xmpp-websocket"',
    }),
    "scheme and host of the request",
    "URL that `/.well-known/host-meta` (XEP-0156) names, if clients reach the port by another " +
      "name, for example through a proxy",
  ),
});

/** A name in the audit log. */
function adminName() {
  return withWords(z.string().regex(/^[\w.@-]{1,64}$/), {
    allowed: 'a name of letters, digits, and "_", ".", "@" or "-", such as "grafana"',
  });
}

const COMPONENT_DOMAIN = z.strictObject({
  name: domain().describe("domain that the component serves"),
  secret: secret().describe("secret that the component proves to know (XEP-0114 §3)"),
  hidden: z.boolean().default(false).describe(
    "service discovery shows the component only to users who may see hidden services",
  ),
});

const COMPONENT = z.strictObject({
  host: hostName().default("127.0.0.1").describe("host name or IP address to listen on"),
  port: listenPort().default(8888).describe("TCP port; 0 takes a free one"),
  tls: DIRECT_TLS.optional().describe("TLS from the first byte; absent: plain TCP"),
  domains: withWords(z.array(COMPONENT_DOMAIN).min(1), {
    allowed: "a list of at least one { name, secret }",
  }).describe("domains that may connect here"),
});

function adminRole() {
  return z.enum(["read", "act", "admin"] satisfies readonly Role[]);
}

const ADMIN_TOKEN = z.strictObject({
  name: adminName().describe("name of its holder in the audit log"),
  role: adminRole().describe(
    "`read`: see everything but the audit log; `act`: also act on links, the cache and sessions; " +
      "`admin`: also drain, reload, remove datacenters and see the audit log",
  ),
  token: secret().describe("bearer token"),
});

const ADMIN_CERTIFICATE = z.strictObject({
  name: domain().describe("DNS name that the certificate carries as alternative name"),
  role: adminRole().describe("as for `tokens`"),
});

const ADMIN_TLS = withWords(
  z.strictObject({
    certfile: filePath().describe("PEM file with the certificate chain"),
    keyfile: filePath().optional().describe("PEM file with the private key, if not in `certfile`"),
    cafile: filePath().optional().describe(
      "PEM file with the authorities of client certificates; absent: clients are asked for none",
    ),
  }),
  { allowed: 'a table such as { certfile = "…", keyfile = "…", cafile = "…" }' },
);

/** `[listen.admin]`. */
export const ADMIN = z.strictObject({
  host: hostName().default("127.0.0.1").describe("host name or IP address to listen on"),
  port: listenPort().default(8088).describe("TCP port; 0 takes a free one"),
  socket: filePath().optional().describe(
    "path of a Unix socket to listen on besides, for the user of the node and root, who need no " +
      "token there; absent: none",
  ),
  token: secret().optional().describe(
    "bearer token of the role `admin`; off loopback a token is needed, this one or one of `tokens`",
  ),
  tokens: withWords(z.array(ADMIN_TOKEN).max(100), {
    allowed: "a list of { name, role, token }",
  }).default([]).describe("bearer tokens with a name and a role"),
  tls: ADMIN_TLS.optional().describe("HTTPS; absent: plain HTTP"),
  certificates: withWords(z.array(ADMIN_CERTIFICATE).max(100), {
    allowed: "a list of { name, role }",
  }).default([]).describe(
    "names in client certificates, each with a role; they need `tls.cafile`",
  ),
});

/** `[listen]`. */
export const LISTEN = z.strictObject({
  c2s: z.array(C2S).default([]).describe("ports for clients over TCP (RFC 6120)"),
  websocket: z.array(WEBSOCKET).default([]).describe(
    "ports for clients over WebSocket (RFC 7395), path `/xmpp-websocket`",
  ),
  component: z.array(COMPONENT).default([]).describe("ports for external components (XEP-0114)"),
  admin: ADMIN.prefault({}).describe("port for health, metrics and the admin API"),
});
