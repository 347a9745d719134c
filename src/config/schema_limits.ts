import { z } from "zod";
import { absent, integer, secondsBetween, withWords } from "./schema_words.ts";

/** Times per second; 0 for no limit. */
function rate(byDefault: number, meaning: string) {
  return withWords(
    z.number().min(0).max(1_000_000).refine((perSec) => perSec === 0 || perSec >= 0.001),
    {
      allowed: "0 for no limit, or a number from 0.001 to 1000000",
    },
  ).default(byDefault).describe(`${meaning}; 0: no limit`);
}

function burst(byDefault: number, ofRate: string) {
  return integer(1, 1_000_000).default(byDefault).describe(
    `how many of them at once, after a time with fewer than \`${ofRate}\``,
  );
}

/** `[limits]`. Ranges are those of the parts that keep them. */
export const LIMITS = z.strictObject({
  max_stanza_bytes: integer(10_000, 16_777_216).default(262_144).describe(
    "bytes of one stanza or stream header from a client or component",
  ),
  max_depth: integer(8, 250).default(64).describe(
    "nesting of elements in one stanza; some clients' parsers read no more than 256 levels",
  ),
  max_attributes: integer(16, 1000).default(64).describe(
    "attributes of one element, namespace declarations included",
  ),
  authentication_timeout: secondsBetween(0.1, 3600).default(30).describe(
    "from the connection of a client to its bound resource, or of a component to its handshake",
  ),
  max_connections: integer(1, 1_000_000).default(10_000).describe(
    "connections that each port for clients or components has at once; one more is refused",
  ),
  tls_handshake_timeout: secondsBetween(0.01, 3600).default(10).describe(
    "from the connection of a client or component to the end of its TLS handshake, or of the HTTP " +
      "request at a port for WebSockets; at most `authentication_timeout`",
  ),
  close_timeout: secondsBetween(0.01, 3600).default(5).describe(
    "how long a connection of a client or component that is to end waits until what was sent is taken " +
      "and the peer has ended its side",
  ),
  max_unauthenticated: integer(1, 1_000_000).default(1000).describe(
    "connections of clients and components that have not authenticated, at once",
  ),
  max_unauthenticated_bytes: integer(1024, 16_777_216).default(32_768).describe(
    "bytes that a client or component may send before it has authenticated",
  ),
  max_late_bytes: integer(0, 1_073_741_824).default(4_194_304).describe(
    "bytes that are taken of a client without stream management, or a component, after this node has " +
      "ended its stream to stop: what it had written by then",
  ),
  max_connections_per_address: integer(1, 1_000_000).default(1000).describe(
    "connections of clients from one IP address, at once (IPv6: from one /64); loopback is not counted",
  ),
  max_sessions_per_account: integer(1, 10_000).default(50).describe(
    "sessions of one account at this node, at once; one more is refused, unless one waits to be resumed",
  ),
  max_directed_presence: integer(1, 100_000).default(1000).describe(
    "entities to which a session has sent presence directly and that are told of its end",
  ),
  max_pending_requests: integer(1, 1_000_000).default(1000).describe(
    "requests to the datacenter's own services that wait for their answer, at once",
  ),
  kept_requests: integer(1, 10_000_000).default(10_000).describe(
    "requests for subscriptions that the node keeps until their contacts answer them; one more takes the " +
      "place of the oldest",
  ),
  kept_requests_per_sender: integer(1, 1_000_000).default(100).describe(
    "of them, those of one account or one component; one more takes the place of the sender's oldest",
  ),
  kept_requests_per_contact: integer(1, 1_000_000).default(100).describe(
    "of them, those for one account; one more takes the place of the oldest from whoever has most of them",
  ),
  kept_request_bytes: integer(256, 262_144).default(4096).describe(
    "bytes of a request that is kept as it came; of a longer one the addresses are",
  ),
  max_iq_bytes: integer(1, 16_777_216).default(65_536).describe(
    "bytes of the payload of a request that the datacenter's own services answer",
  ),
  max_iq_elements: integer(1, 1_000_000).default(1000).describe(
    "elements of such a payload, attributes counted with them",
  ),
  connection_rate_per_address: rate(
    100,
    "connections per second from one IP address (IPv6: from one /64), loopback not counted; for " +
      "streams over all ports, for TLS handshakes of clients, components and other nodes at each port",
  ),
  connection_burst_per_address: burst(1000, "connection_rate_per_address"),
  login_rate_per_address: rate(
    50,
    "attempts to log in per second from one IP address (IPv6: from one /64), right or wrong, loopback not counted",
  ),
  login_burst_per_address: burst(1000, "login_rate_per_address"),
  failed_login_rate_per_account: rate(
    0.2,
    "wrong passwords per second for one account, or for a name that could be one",
  ),
  failed_login_burst_per_account: burst(30, "failed_login_rate_per_account"),
  stanza_rate_per_account: rate(
    0,
    "stanzas per second from all sessions that an account has at this node; what is past it is read later",
  ),
  stanza_burst_per_account: burst(1000, "stanza_rate_per_account"),
  stanza_rate_per_address: rate(
    0,
    "stanzas per second from all clients of one IP address (IPv6: of one /64), loopback not counted; what is past it is read later",
  ),
  stanza_burst_per_address: burst(1000, "stanza_rate_per_address"),
  stanza_rate_per_component: rate(
    0,
    "stanzas per second from a component, which speaks for many; what is past it is read later",
  ),
  stanza_burst_per_component: burst(1000, "stanza_rate_per_component"),
  wrong_token_rate_per_address: rate(
    1,
    "wrong tokens per second for the admin API from one IP address (IPv6: from one /64), loopback too; " +
      "past it the right one is not taken from there either",
  ),
  wrong_token_burst_per_address: burst(30, "wrong_token_rate_per_address"),
  rate_max_keys: integer(1, 10_000_000).default(10_000).describe(
    "addresses, accounts or components that each of these rates keeps count of; past it who was heard " +
      "of longest ago is forgotten, and has a full burst again",
  ),
  admin_max_connections: integer(1, 1_000_000).default(256).describe(
    "connections that the admin API has at once; one more ends the oldest that has not asked yet",
  ),
  admin_request_timeout: secondsBetween(0.1, 3600).default(10).describe(
    "from a connection to the admin API to the end of its request",
  ),
  admin_max_head_bytes: integer(1024, 1_048_576).default(16_384).describe(
    "bytes of the head of a request to the admin API, its URL and its headers' names and values; a " +
      "longer one is cut off",
  ),
  admin_max_body_bytes: integer(1024, 16_777_216).default(65_536).describe(
    "bytes of the body of a request to the admin API; a longer one is refused",
  ),
  sasl_attempts: integer(1, 100).default(3).describe("failed logins before the stream is closed"),
  max_pending_bytes: integer(16_384, 1_073_741_824).default(1_048_576).describe(
    "bytes that may wait for a client or component that reads slowly; a stanza past it is refused, and over half of it nothing is read from that peer",
  ),
  max_owed_bytes: integer(0, 1_073_741_824).default(67_108_864).describe(
    "bytes that may wait beyond that of errors by which nodes answer what a client or component has " +
      "sent, so that it gets them when very many come back at once; one past it is dropped and " +
      "counted. As many again may wait for a client with stream management to acknowledge them",
  ),
  slow_reader_timeout: secondsBetween(0.01, 3600).default(30).describe(
    "after this long with stanzas refused for want of reading, and less than half of " +
      "`max_pending_bytes` read in it, a connection is cut; and after twice as long of reading nothing " +
      "where over half of that waits",
  ),
  websocket_max_fragments: integer(1, 1_000_000).default(1024).describe(
    "frames of one WebSocket message; one more ends the connection",
  ),
  http_max_head_bytes: integer(1024, 1_048_576).default(16_384).describe(
    "bytes of the head of an HTTP request to a port for WebSockets; a longer one is refused",
  ),
  keepalive_interval: secondsBetween(0.1, 86_400).default(150).describe(
    "after this long without anything sent to a client, a space is",
  ),
  link_max_frame_bytes: integer(16_384, 134_217_728).default(524_288).describe(
    "bytes of one frame on a link; above `max_stanza_bytes`",
  ),
  link_handshake_timeout: secondsBetween(0.01, 3600).default(10).describe(
    "from the connection of a peer to its HELLO",
  ),
  link_max_connections: integer(1, 1_000_000).default(10_000).describe(
    "incoming links that each endpoint has at once; one more is refused",
  ),
  link_max_unauthenticated: integer(1, 1_000_000).default(1024).describe(
    "incoming links without HELLO, at once; all nodes of other datacenters may call at the same time, " +
      "each over `connections_per_endpoint` links",
  ),
  link_silence_timeout: secondsBetween(0.01, 3600).default(15).describe(
    "after this long without a frame a link is dead",
  ),
  link_credit_bytes: integer(16_384, 1_073_741_824).default(4_194_304).describe(
    "bytes that a peer may have on the way to this node",
  ),
  link_max_pending_bytes: integer(1_048_576, Number.MAX_SAFE_INTEGER).default(16_777_216).describe(
    "bytes that wait for another node to read them; one more ends the link; at least " +
      "`link_credit_bytes` + `link_max_frame_bytes` of the other nodes",
  ),
  link_max_lanes: integer(1, 1_000_000).default(4096).describe(
    "peers' lanes of which each side of the node (other datacenters, its own) knows what it has " +
      "received; one more takes the place of one that is not linked, or is refused",
  ),
  link_lane_lifetime: secondsBetween(1, 86_400).default(600).describe(
    "how long that is known of a lane that is not linked; `expire_after` where that is longer",
  ),
  datacenter_max_nodes: integer(1, 10_000).default(256).describe(
    "nodes of one other datacenter that live, at once; one more is refused, unless one that is dead makes room",
  ),
  datacenter_max_endpoints_per_node: integer(1, 64).default(16).describe(
    "endpoints of each of its nodes; the first so many are taken",
  ),
  datacenter_max_endpoints: integer(1, 100_000).default(256).describe(
    "endpoints of one other datacenter that are remembered and called, of all its nodes",
  ),
  datacenter_max_claims: integer(1, 1_000_000_000).default(1_000_000).describe(
    "sessions that one other datacenter may put into the Redis of this one, at about 0.9 KiB each there; one with an address of more than 256 bytes counts as 16; one more is refused, and taken when there is room",
  ),
  datacenter_max_claims_per_account: integer(1, 100_000).default(200).describe(
    "of them those of one account; the oldest beyond it are taken away until they are told anew",
  ),
  datacenter_max_domains: integer(1, 1_000_000).default(1_000).describe(
    "component domains of one other datacenter; the same",
  ),
  datacenter_max_links: integer(1, 1_000_000).default(2_500).describe(
    "incoming links of one other datacenter, at once, over all endpoints; one more is refused",
  ),
  datacenter_max_unauthenticated: integer(1, 1_000_000).default(256).describe(
    "of them those without HELLO, by the names in their certificate",
  ),
  datacenter_max_lanes: integer(1, 1_000_000).default(1_024).describe(
    "of `link_max_lanes` those of one other datacenter",
  ),
  datacenter_max_lease: absent(
    secondsBetween(1, 31_536_000),
    "`expire_after`",
    "how long a lease of another datacenter's node holds at most, whatever it says",
  ),
  link_max_unsettled: integer(1, Number.MAX_SAFE_INTEGER).default(1_048_576).describe(
    "stanzas of one peer's lane whose fate is open; one more ends the link",
  ),
  link_max_senders: integer(1, 100_000_000).default(200_000).describe(
    "senders whose lane to a datacenter is remembered; past it those go early of whom no lane holds " +
      "anything",
  ),
  lane_max_bytes: integer(131_072, Number.MAX_SAFE_INTEGER).default(16_777_216).describe(
    "bytes that one lane keeps until they are settled; an eighth is kept for the errors by which nodes answer",
  ),
  lane_max_items: integer(1, Number.MAX_SAFE_INTEGER).default(65_536).describe(
    "stanzas that one lane keeps until they are settled; an eighth is kept for the errors by which nodes answer",
  ),
  waiting_max_bytes: integer(16_777_216, Number.MAX_SAFE_INTEGER).default(536_870_912).describe(
    "bytes of memory that all stanzas which wait for somebody may take, over all queues of this node: of " +
      "sessions, lanes, lookups, hand-over and the bounce store; one past it, or past a fair share of it, " +
      "is refused; at least 16 times `max_stanza_bytes`",
  ),
  lookup_max_items: integer(1, Number.MAX_SAFE_INTEGER).default(100_000).describe(
    "stanzas that wait until the session table has said where their sender's earlier ones go, at once, " +
      "and as many answers; each sender and datacenter has a fair share of them, and one more is refused",
  ),
  lookup_max_bytes: integer(1024, Number.MAX_SAFE_INTEGER).default(67_108_864).describe(
    "bytes of them, about 1 KiB and its text for each; shared in the same way",
  ),
  lookup_rate_per_account: rate(
    200,
    "lookups of the session table per second for what all sessions of an account send; what needs more " +
      "waits, and its sender's later stanzas behind it. Retries of `bounce` have `max_retries` times as many of their own",
  ),
  lookup_burst_per_account: burst(1000, "lookup_rate_per_account"),
  lookup_rate_per_component: rate(
    2000,
    "the same for all that comes from one domain that is none of `hosts`, such as a component's",
  ),
  lookup_burst_per_component: burst(10_000, "lookup_rate_per_component"),
  handover_max_items: integer(1, Number.MAX_SAFE_INTEGER).default(100_000).describe(
    "stanzas that wait, so as not to overtake what their sender has under way to another node of this " +
      "datacenter which their recipient has left, at once; each sender and datacenter has a fair share of " +
      "them, and one more is refused",
  ),
  handover_max_bytes: integer(1024, Number.MAX_SAFE_INTEGER).default(67_108_864).describe(
    "bytes of them, about 1 KiB and its text for each; shared in the same way",
  ),
  repeat_max_pairs: integer(2, 10_000_000).default(65_536).describe(
    "pairs of sender and recipient of which it is remembered what was delivered here, so that what comes " +
      "on two ways is delivered once; past it the older half is forgotten",
  ),
  resend_max_messages: integer(2, 16_777_216).default(262_144).describe(
    "stanzas delivered here that are remembered, at 16 bytes each, so that one that a client sends " +
      "again is delivered once; past it the older half is forgotten",
  ),
  shutdown_timeout: secondsBetween(1, 3600).default(8).describe(
    "what a stop in order (SIGTERM) may take; what is open then goes back to its senders as errors",
  ),
});
