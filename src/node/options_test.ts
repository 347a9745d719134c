import assert from "node:assert/strict";
import { parseConfig } from "../config/mod.ts";
import {
  adminLimits,
  edgeRates,
  handoverOptions,
  linksOptions,
  managementOptions,
  portLimits,
  resumptionOptions,
  routerBounds,
  tableOptions,
  webSocketLimits,
} from "./options.ts";

const CONFIG = parseConfig(
  `hosts = ["example.com", "dc1.example.com"]
[limits]
stanza_rate_per_component = 9
link_max_connections = 7
link_max_unauthenticated = 6
link_max_pending_bytes = 1340000
link_credit_bytes = 133000
link_max_lanes = 13
link_lane_lifetime = 14.5
link_max_unsettled = 15
link_max_senders = 16
websocket_max_fragments = 5
http_max_head_bytes = 2000
max_stanza_bytes = 20000
rate_max_keys = 25
authentication_timeout = 2.8
tls_handshake_timeout = 2.7
close_timeout = 2.6
max_connections = 29
max_unauthenticated = 30
max_pending_bytes = 20000
max_owed_bytes = 3000
admin_max_connections = 21
admin_request_timeout = 2.2
admin_max_head_bytes = 2300
admin_max_body_bytes = 2400
lookup_max_items = 11
lookup_max_bytes = 1100
repeat_max_pairs = 31
resend_max_messages = 32
handover_max_items = 12
handover_max_bytes = 1200
[modules.mod_stream_management]
moved_check_ms = 123
end_hold_ms = 321
resume_elsewhere_max = 19
stale_h = { max_items = 20 }
[modules.mod_global_distrib]
global_host = "example.com"
local_host = "dc1.example.com"
connections.tls_opts = false
redis = { expire_after = 14, refresh_after = 5, command_timeout_ms = 330 }
connections.rehome_after_ms = 17
connections.reroute_after_ms = 18
`,
  {
    file: "/etc/causeway/c.toml",
    env: () => undefined,
    readFile: () => "",
    hostname: () => "box",
  },
);

Deno.test("linksOptions() gives the links the bounds of the file", () => {
  const links = linksOptions(CONFIG);
  assert.deepEqual([links.maxConnections, links.maxUnauthenticated], [7, 6]);
  assert.deepEqual([links.maxInboundLanes, links.inboundMemoryMs], [13, 14_500]);
  assert.deepEqual([links.maxPendingBytes, links.creditBytes], [1_340_000, 133_000]);
  assert.deepEqual([links.maxUnsettled, links.maxBindings], [15, 16]);
  assert.deepEqual([links.rehomeAfterMs, links.rerouteFirstMs], [17, 18]);
});

Deno.test("linksOptions() forgets no lane with which a peer may still come back", () => {
  const { limits } = CONFIG;
  const longer = { ...CONFIG, limits: { ...limits, linkLaneLifetimeMs: 13_999 } };
  assert.equal(linksOptions(longer).inboundMemoryMs, 14_000);
});

Deno.test("tableOptions() gives the session table the times of the file", () => {
  const { redis } = tableOptions(CONFIG, 1);
  assert.deepEqual(
    [redis!.expireAfterMs, redis!.refreshAfterMs, redis!.commandTimeoutMs],
    [14_000, 5000, 330],
  );
});

Deno.test("routerBounds() and handoverOptions() give routing the bounds of the file", () => {
  assert.deepEqual(routerBounds(CONFIG), {
    maxQueued: 11,
    maxQueuedBytes: 1100,
    memory: { maxPairs: 31, maxStanzas: 32 },
  });
  assert.deepEqual(handoverOptions(CONFIG), { maxWaiting: 12, maxWaitingBytes: 1200 });
});

Deno.test("adminLimits() gives the admin API the bounds of the file", () => {
  assert.deepEqual(adminLimits(CONFIG), {
    maxConnections: 21,
    requestTimeoutMs: 2200,
    maxHeadBytes: 2300,
    maxBodyBytes: 2400,
  });
});

Deno.test("portLimits() gives a port the bounds of the file, and no handshake longer than a login", () => {
  const bounds = {
    maxConnections: 29,
    maxPendingBytes: 43_000,
    lingerMs: 2600,
    handshakeTimeoutMs: 2700,
    maxHandshakes: 30,
  };
  assert.deepEqual(portLimits(CONFIG), bounds);
  const hasty = { ...CONFIG, limits: { ...CONFIG.limits, authenticationTimeoutMs: 2699 } };
  assert.deepEqual(portLimits(hasty), { ...bounds, handshakeTimeoutMs: 2699 });
});

Deno.test("webSocketLimits() gives a port for WebSockets the bounds of the file", () => {
  assert.deepEqual(webSocketLimits(CONFIG), {
    maxMessageBytes: 20_000,
    maxFragments: 5,
    maxHeadBytes: 2000,
  });
});

Deno.test("managementOptions() gives stream management the times and bounds of the file", () => {
  const { movedCheckMs, endHoldMs, maxStaleH } = managementOptions(CONFIG)!;
  assert.deepEqual([movedCheckMs, endHoldMs, maxStaleH], [123, 321, 20]);
  assert.equal(resumptionOptions(CONFIG)!.maxGivings, 19);
});

Deno.test("edgeRates() gives the edge the rates of the file, and none where there is none", () => {
  const rates = edgeRates(CONFIG);
  assert.deepEqual(rates.stanzasPerComponent, { perSec: 9, burst: 1000, maxKeys: 25 });
  assert.deepEqual(rates.loginsPerAddress, { perSec: 50, burst: 1000, maxKeys: 25 });
  assert.ok(!("stanzasPerAccount" in rates));
});
