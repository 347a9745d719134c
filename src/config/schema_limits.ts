import { z } from "zod";
import { atLeast, fractionalSeconds } from "./schema_words.ts";

/** `[limits]`. */
export const LIMITS = z.strictObject({
  max_stanza_bytes: atLeast(1024).default(262_144).describe(
    "bytes of one stanza or stream header from a client or component",
  ),
  max_depth: atLeast(4).default(64).describe("nesting of elements in one stanza"),
  max_attributes: atLeast(8).default(64).describe(
    "attributes of one element, namespace declarations included",
  ),
  authentication_timeout: fractionalSeconds().default(30).describe(
    "seconds that a client or component may take to authenticate",
  ),
  max_unauthenticated: atLeast(1).default(1000).describe(
    "connections of clients and components that have not authenticated, at once",
  ),
  max_connections_per_address: atLeast(1).default(1000).describe(
    "connections of clients from one IP address, at once; loopback is not counted",
  ),
  sasl_attempts: atLeast(1).default(3).describe("failed logins before the stream is closed"),
  max_pending_bytes: atLeast(4096).default(1_048_576).describe(
    "bytes queued to one client or component that reads slowly, before it is disconnected",
  ),
  link_max_frame_bytes: atLeast(4096).default(1_048_576).describe("bytes of one frame on a link"),
  link_handshake_timeout: fractionalSeconds().default(10).describe(
    "seconds that a peer may take for TLS and HELLO",
  ),
  link_max_unauthenticated: atLeast(1).default(128).describe(
    "incoming links that have not completed HELLO, at once",
  ),
  link_silence_timeout: fractionalSeconds().default(15).describe(
    "seconds without a frame after which a link is dead",
  ),
  lane_max_bytes: atLeast(65_536).default(67_108_864).describe(
    "bytes that one lane keeps until they are settled",
  ),
  lane_max_items: atLeast(16).default(100_000).describe(
    "stanzas that one lane keeps until they are settled",
  ),
});
