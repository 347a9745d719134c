import { z } from "zod";
import type { RateTarget } from "./part_options.ts";
import { absent, integer, secondsBetween, sets, withWords } from "./schema_words.ts";

/** Times per second; 0 for no limit. The burst is the option with `_burst_` in its name instead. */
function rate(target: RateTarget, byDefault: number, meaning: string) {
  return withWords(
    z.number().min(0).max(1_000_000).refine((perSec) => perSec === 0 || perSec >= 0.001),
    {
      allowed: "0 for no limit, or a number from 0.001 to 1000000",
      target,
      unit: "per second",
    },
  ).default(byDefault).describe(`${meaning}; 0: no limit`);
}

function burst(byDefault: number, ofRate: string) {
  return integer(1, 1_000_000).default(byDefault).describe(
    `the burst: how many may come at once, after a time with fewer than \`${ofRate}\``,
  );
}

/** `[limits]`. The ranges are those of the parts that enforce the limits. */
export const LIMITS = z.strictObject({
  max_stanza_bytes: sets("streams.maxStanzaBytes", integer(10_000, 16_777_216))
    .default(262_144).describe("bytes of one stanza or stream header from a client or component"),
  max_depth: sets("streams.maxDepth", integer(8, 250)).default(64).describe(
    "nesting of elements in one stanza; some clients' parsers read no more than 256 levels",
  ),
  max_attributes: sets("streams.maxAttributes", integer(16, 1000))
    .default(64).describe("attributes of one element, namespace declarations included"),
  authentication_timeout: sets("streams.negotiationTimeoutMs", secondsBetween(0.1, 3600))
    .default(30).describe(
      "time from the connection of a client to its bound resource, or of a component to its handshake",
    ),
  max_connections: sets("ports.maxConnections", integer(1, 1_000_000)).default(10_000).describe(
    "open connections at each port for clients or components; one more is refused",
  ),
  tls_handshake_timeout: sets("ports.handshakeTimeoutMs", secondsBetween(0.01, 3600))
    .default(10).describe(
      "time from the connection of a client or component to the end of its TLS handshake, or of " +
        "its HTTP request at a WebSocket port; at most `authentication_timeout`",
    ),
  close_timeout: sets("ports.lingerMs", secondsBetween(0.01, 3600)).default(5).describe(
    "time that a closing connection of a client or component waits for the peer to read " +
      "everything and to end its side",
  ),
  max_unauthenticated: sets("admission.maxUnauthenticated", integer(1, 1_000_000))
    .default(1000).describe(
      "open connections of clients and components that have not authenticated; one more ends " +
        "the oldest",
    ),
  max_unauthenticated_bytes: sets("streams.maxUnauthenticatedBytes", integer(1024, 16_777_216))
    .default(32_768).describe(
      "bytes that a client or component may send before it has authenticated",
    ),
  max_late_bytes: sets("streams.maxLateBytes", integer(0, 1_073_741_824))
    .default(4_194_304).describe(
      "bytes still read from a component, or a client without stream management, after this " +
        "node has ended its stream because it stops: the peer may have written them before it " +
        "noticed",
    ),
  max_connections_per_address: sets("admission.maxPerAddress", integer(1, 1_000_000))
    .default(1000).describe(
      "open connections of clients from one IP address (IPv6: from one /64); loopback is not counted",
    ),
  max_sessions_per_account: sets("sessions.maxSessionsPerAccount", integer(1, 10_000))
    .default(50).describe(
      "sessions of one account, over all nodes and datacenters that the session table knows; one " +
        "more is refused, unless a session here that waits to be resumed can make room. Sessions " +
        "that wait at other nodes count until `resume_timeout`, and those of a killed node until " +
        "`redis.expire_after`. While Redis is away, each node goes by what it last knew. Above " +
        "`datacenter_max_claims_per_account`, raise that too",
    ),
  max_directed_presence: sets("clients.maxDirectedPresence", integer(1, 100_000))
    .default(1000).describe(
      "entities to which a session has sent directed presence, and which get unavailable " +
        "presence when it ends",
    ),
  max_held_presence: sets("clients.maxHeldPresence", integer(0, 10_000)).default(200).describe(
    "presence stanzas that a session holds back while its client says that it is inactive " +
      "(XEP-0352); one more, or 65 536 bytes, sends all; 0: clients cannot say so",
  ),
  max_pending_requests: sets("services.maxPendingRequests", integer(1, 1_000_000))
    .default(1000).describe(
      "requests to the datacenter's own services that wait for their answer; one more is refused",
    ),
  max_pending_requests_per_account: sets("services.maxPendingPerAccount", integer(1, 1_000_000))
    .default(200).describe(
      "requests of one account to the datacenter's own services that wait for their answer; one " +
        "more is refused",
    ),
  account_check_interval: sets("accountWatch.checkIntervalMs", secondsBetween(1, 86_400))
    .default(60).describe(
      "time in seconds in which the node looks up once whether the accounts with sessions here " +
        "still exist; sessions of an account that was deleted elsewhere end then",
    ),
  kept_requests: sets("requests.maxRequests", integer(1, 10_000_000)).default(10_000).describe(
    "subscription requests that the node keeps until their contacts answer them; one more " +
      "replaces the oldest",
  ),
  kept_requests_per_sender: sets("requests.maxPerSender", integer(1, 1_000_000))
    .default(100).describe(
      "kept subscription requests from one account or one component; one more replaces its oldest",
    ),
  kept_requests_per_contact: sets("requests.maxPerContact", integer(1, 1_000_000))
    .default(100).describe(
      "kept subscription requests for one account; one more replaces the oldest from the sender " +
        "that has most of them",
    ),
  kept_request_bytes: sets("requests.maxBytes", integer(256, 262_144)).default(4096).describe(
    "bytes of a subscription request that is kept whole; of a longer request only the " +
      "addresses are kept",
  ),
  roster_max_items: sets("rosters.maxItems", integer(1, 1_000_000)).default(10_000).describe(
    "contacts in a roster; one more is refused",
  ),
  roster_max_requests: sets("rosters.maxRequests", integer(1, 1_000_000)).default(1000).describe(
    "subscription requests that wait for one account's answers; one more is ignored, and comes " +
      "again at its sender's next login",
  ),
  roster_max_groups: sets("rosters.maxGroups", integer(1, 10_000)).default(100).describe(
    "groups of a contact",
  ),
  roster_max_name_bytes: sets("rosters.maxNameBytes", integer(1, 65_536)).default(1023).describe(
    "bytes of the name of a contact or a group",
  ),
  max_iq_bytes: sets("services.maxIqBytes", integer(1, 16_777_216)).default(65_536).describe(
    "bytes of the payload of a request that the datacenter's own services answer",
  ),
  max_iq_elements: sets("services.maxIqElements", integer(1, 1_000_000)).default(1000).describe(
    "elements and attributes of the payload of a request that the datacenter's own services answer",
  ),
  connection_rate_per_address: rate(
    "edgeRates.connectionsPerAddress",
    100,
    "connections per second from one IP address (IPv6: from one /64), loopback not counted; " +
      "the rate counts streams over all ports together, and TLS handshakes of clients, " +
      "components and other nodes at each port",
  ),
  connection_burst_per_address: burst(1000, "connection_rate_per_address"),
  login_rate_per_address: rate(
    "edgeRates.loginsPerAddress",
    50,
    "login attempts per second from one IP address (IPv6: from one /64), successful or not, " +
      "loopback not counted",
  ),
  login_burst_per_address: burst(1000, "login_rate_per_address"),
  failed_login_rate_per_account: rate(
    "edgeRates.failedLoginsPerAccount",
    0.2,
    "wrong passwords per second for one account name, whether or not the account exists",
  ),
  failed_login_burst_per_account: burst(30, "failed_login_rate_per_account"),
  session_rate_per_node: rate(
    "edgeRates.sessions",
    0,
    "sessions that clients begin at this node per second, resumed ones not counted. Above the " +
      "rate, clients wait for their session for up to ten seconds or a third of " +
      "`authentication_timeout`, whichever is shorter, and are refused if that is not enough",
  ),
  session_burst_per_node: burst(10, "session_rate_per_node"),
  stanza_rate_per_account: rate(
    "edgeRates.stanzasPerAccount",
    0,
    "stanzas per second from all sessions that an account has at this node; above the rate, " +
      "the node reads more slowly",
  ),
  stanza_burst_per_account: burst(1000, "stanza_rate_per_account"),
  stanza_rate_per_address: rate(
    "edgeRates.stanzasPerAddress",
    0,
    "stanzas per second from all clients of one IP address (IPv6: of one /64), loopback not " +
      "counted; above the rate, the node reads more slowly",
  ),
  stanza_burst_per_address: burst(1000, "stanza_rate_per_address"),
  stanza_rate_per_component: rate(
    "edgeRates.stanzasPerComponent",
    0,
    "stanzas per second from a component, which speaks for many; above the rate, the node " +
      "reads more slowly",
  ),
  stanza_burst_per_component: burst(1000, "stanza_rate_per_component"),
  wrong_token_rate_per_address: rate(
    "admin.wrongTokens",
    1,
    "wrong admin API tokens per second from one IP address (IPv6: from one /64), loopback " +
      "included; above the rate, even the right token is refused from that address",
  ),
  wrong_token_burst_per_address: burst(30, "wrong_token_rate_per_address"),
  rate_max_keys: integer(1, 10_000_000).default(10_000).describe(
    "addresses, accounts or components that each of these rates counts; one more replaces the " +
      "one seen longest ago, which later starts again with a full burst",
  ),
  admin_max_connections: sets("admin.maxConnections", integer(1, 1_000_000)).default(256).describe(
    "open connections of the admin API. One more ends the oldest connection without a request " +
      "to answer, or else one whose peer reads its answer slowly: from an address with far more " +
      "connections, or for five seconds. Otherwise the new connection is refused",
  ),
  admin_request_timeout: sets("admin.requestTimeoutMs", secondsBetween(0.1, 3600))
    .default(10).describe("time from a connection to the admin API to the end of its request"),
  admin_max_head_bytes: sets("admin.maxHeadBytes", integer(1024, 1_048_576))
    .default(16_384).describe(
      "bytes of the head of an admin API request (its URL, header names and header values); a " +
        "longer head ends the connection",
    ),
  admin_max_body_bytes: sets("admin.maxBodyBytes", integer(1024, 16_777_216))
    .default(65_536).describe(
      "bytes of the body of an admin API request; a longer body is refused",
    ),
  sasl_attempts: sets("streams.maxAuthFailures", integer(1, 100))
    .default(3).describe("failed logins before the stream is closed"),
  max_pending_bytes: sets("streams.maxPendingBytes", integer(16_384, 1_073_741_824))
    .default(1_048_576).describe(
      "bytes that may wait for a client or component that reads slowly; a stanza above that is " +
        "refused, and while more than half is used, nothing is read from that peer",
    ),
  max_owed_bytes: sets("streams.maxOwedBytes", integer(0, 1_073_741_824))
    .default(67_108_864).describe(
      "bytes of errors that may wait in addition to `max_pending_bytes`: answers to the peer's " +
        "own stanzas, of which very many can come back at once. An error above that is dropped " +
        "and counted. The same amount again may wait for a client with stream management to " +
        "acknowledge it",
    ),
  slow_reader_timeout: sets("streams.slowReaderMs", secondsBetween(0.01, 3600))
    .default(30).describe(
      "time after which a connection is cut if the peer reads too slowly: stanzas were refused, " +
        "and the peer read less than half of `max_pending_bytes`. A peer that reads nothing while " +
        "more than half of `max_pending_bytes` waits is cut after twice that time",
    ),
  websocket_max_fragments: sets("webSockets.maxFragments", integer(1, 1_000_000))
    .default(1024).describe("frames of one WebSocket message; one more ends the connection"),
  http_max_head_bytes: sets("webSockets.maxHeadBytes", integer(1024, 1_048_576))
    .default(16_384).describe(
      "bytes of the head of an HTTP request to a WebSocket port; a longer head is refused",
    ),
  keepalive_interval: sets("streams.keepaliveIntervalMs", secondsBetween(0.1, 86_400))
    .default(150).describe("time without output to a client after which the node sends it a space"),
  link_max_frame_bytes: sets("links.maxFrameBytes", integer(16_384, 134_217_728))
    .default(524_288).describe("bytes of one frame on a link; above `max_stanza_bytes`"),
  link_handshake_timeout: sets("links.helloTimeoutMs", secondsBetween(0.01, 3600))
    .default(10).describe("time from the connection of a peer to its HELLO"),
  link_max_connections: sets("links.maxConnections", integer(1, 1_000_000))
    .default(10_000).describe("open incoming links at each endpoint; one more is refused"),
  link_max_unauthenticated: sets("links.maxUnauthenticated", integer(1, 1_000_000))
    .default(1024).describe(
      "open incoming links that have not sent HELLO; leave room for all nodes of other " +
        "datacenters to connect at the same time, each with `connections_per_endpoint` links",
    ),
  link_silence_timeout: sets("links.silenceTimeoutMs", secondsBetween(0.01, 3600))
    .default(15).describe("time without a frame after which a link counts as dead"),
  link_credit_bytes: sets("links.creditBytes", integer(16_384, 1_073_741_824))
    .default(4_194_304).describe("bytes that a peer may send before this node grants more"),
  link_max_pending_bytes: sets("links.maxPendingBytes", integer(1_048_576, Number.MAX_SAFE_INTEGER))
    .default(16_777_216).describe(
      "bytes that may wait on a link for the other node to read them; one more ends the link; " +
        "at least " +
        "`link_credit_bytes` + `link_max_frame_bytes` of the other nodes",
    ),
  link_max_lanes: sets("links.maxInboundLanes", integer(1, 1_000_000)).default(4096).describe(
    "incoming lanes that a node remembers, with the numbers received on them; the bound holds " +
      "separately for other datacenters and for its own. One more replaces a lane without a " +
      "link, or is refused",
  ),
  link_lane_lifetime: sets("links.inboundMemoryMs", secondsBetween(1, 86_400))
    .default(600).describe(
      "time for which an incoming lane without a link is remembered; `expire_after` if that is longer",
    ),
  datacenter_max_nodes: sets("datacenter.maxNodes", integer(1, 10_000)).default(256).describe(
    "live nodes of one other datacenter; one more is refused, unless a dead node can make room",
  ),
  datacenter_max_endpoints_per_node: sets("datacenter.maxEndpointsPerNode", integer(1, 64))
    .default(16).describe("endpoints of each node of another datacenter; further ones are ignored"),
  datacenter_max_endpoints: sets("datacenter.maxEndpoints", integer(1, 100_000))
    .default(256).describe(
      "endpoints of one other datacenter, over all its nodes, that are remembered and connected to",
    ),
  datacenter_max_claims: sets("datacenter.maxClaims", integer(1, 1_000_000_000))
    .default(1_000_000).describe(
      "sessions of one other datacenter that this datacenter's Redis stores, at about 0.9 KiB " +
        "each; a session with an address of more than 256 bytes counts as 16. One more is refused " +
        "until there is room",
    ),
  datacenter_max_claims_per_account: sets("datacenter.maxClaimsPerAccount", integer(1, 100_000))
    .default(200).describe(
      "sessions of one account among these; the oldest ones above that are removed until the " +
        "other datacenter reports them again",
    ),
  datacenter_max_domains: sets("datacenter.maxDomains", integer(1, 1_000_000))
    .default(1_000).describe(
      "component domains of one other datacenter that this datacenter's Redis stores; one more " +
        "is refused until there is room",
    ),
  datacenter_max_links: sets("links.maxDatacenterLinks", integer(1, 1_000_000))
    .default(2_500).describe(
      "open incoming links of one other datacenter, over all endpoints; one more is refused",
    ),
  datacenter_max_unauthenticated: sets("links.maxDatacenterUnauthenticated", integer(1, 1_000_000))
    .default(256).describe(
      "open incoming links of one other datacenter (by its certificate) that have not sent HELLO",
    ),
  datacenter_max_lanes: sets("links.maxDatacenterLanes", integer(1, 1_000_000))
    .default(1_024).describe("share of `link_max_lanes` that one other datacenter may use"),
  datacenter_max_lease: absent(
    sets("datacenter.maxLeaseMs", secondsBetween(1, 31_536_000)),
    "`expire_after`",
    "longest lease that a node of another datacenter can take, whatever it asks for",
  ),
  link_max_unsettled: sets("links.maxUnsettled", integer(1, Number.MAX_SAFE_INTEGER))
    .default(1_048_576).describe(
      "stanzas of one incoming lane that are not settled; one more ends the link",
    ),
  link_max_senders: sets("links.maxBindings", integer(1, 100_000_000)).default(200_000).describe(
    "senders whose lane to a datacenter is remembered; above that, senders without a stanza " +
      "in a lane are forgotten early",
  ),
  lane_max_bytes: sets("links.laneMaxBytes", integer(131_072, Number.MAX_SAFE_INTEGER))
    .default(16_777_216).describe(
      "bytes that one lane keeps until they are settled; an eighth is reserved for errors that " +
        "nodes owe",
    ),
  lane_max_items: sets("links.laneMaxItems", integer(1, Number.MAX_SAFE_INTEGER))
    .default(65_536).describe(
      "stanzas that one lane keeps until they are settled; an eighth is reserved for errors that " +
        "nodes owe",
    ),
  waiting_max_bytes: sets("limits.waitingMaxBytes", integer(16_777_216, Number.MAX_SAFE_INTEGER))
    .default(536_870_912).describe(
      "bytes of memory that all waiting stanzas of this node may take: in sessions, lanes, " +
        "lookups, hand-over and the bounce store. A stanza above that, or above its fair share, " +
        "is refused; at least 16 times `max_stanza_bytes`",
    ),
  lookup_max_items: sets("router.maxQueued", integer(1, Number.MAX_SAFE_INTEGER))
    .default(100_000).describe(
      "stanzas that wait for a lookup, of their own recipient or of an earlier stanza's, and as " +
        "many answers; each sender and datacenter has a fair share, and one more is refused",
    ),
  lookup_max_bytes: sets("router.maxQueuedBytes", integer(1024, Number.MAX_SAFE_INTEGER))
    .default(67_108_864).describe(
      "bytes of stanzas that wait for a lookup, about 1 KiB plus the text for each; shared in the " +
        "same way",
    ),
  lookup_rate_per_account: rate(
    "lookupRates.perAccount",
    200,
    "session-table lookups per second for the stanzas of all sessions of an account; above " +
      "the rate, a stanza waits for its lookup, and its sender's later stanzas wait behind it. " +
      "Retries of `bounce` have a rate of their own, `max_retries` times as high",
  ),
  lookup_burst_per_account: burst(1000, "lookup_rate_per_account"),
  lookup_rate_per_component: rate(
    "lookupRates.perComponent",
    2000,
    "session-table lookups per second for the stanzas of one domain that is not one of " +
      "`hosts`, such as a component's",
  ),
  lookup_burst_per_component: burst(10_000, "lookup_rate_per_component"),
  handover_max_items: sets("handover.maxWaiting", integer(1, Number.MAX_SAFE_INTEGER))
    .default(100_000).describe(
      "stanzas that wait after their recipient moved to another node of this datacenter: they " +
        "must not overtake their sender's earlier stanzas, which went to the old node. Each " +
        "sender and datacenter has a fair share, and one more is refused",
    ),
  handover_max_bytes: sets("handover.maxWaitingBytes", integer(1024, Number.MAX_SAFE_INTEGER))
    .default(67_108_864).describe(
      "bytes of the stanzas that `handover_max_items` counts, about 1 KiB plus the text for each; " +
        "shared in the same way",
    ),
  repeat_max_pairs: sets("memory.maxPairs", integer(2, 10_000_000)).default(65_536).describe(
    "pairs of sender and recipient whose deliveries here are remembered, so that a stanza " +
      "that arrives on two routes is delivered once; above that, the older half is forgotten",
  ),
  resend_max_messages: sets("memory.maxStanzas", integer(2, 16_777_216)).default(262_144).describe(
    "delivered stanzas that are remembered, at 16 bytes each, so that a stanza that its " +
      "client resends is delivered once; above that, the older half is forgotten",
  ),
  shutdown_timeout: sets("limits.shutdownTimeoutMs", secondsBetween(1, 3600)).default(8).describe(
    "time that a graceful stop (SIGTERM) may take; stanzas that are still held then come back " +
      "to their senders as errors",
  ),
});
