import type { FairShares } from "../../base/mod.ts";
import type { StreamManagement } from "../sm/stream_management.ts";
import type { StreamDeps } from "../stream/stream_deps.ts";
import type { SessionRegistry } from "./session_registry.ts";

/** Data that all clients' sessions of one listener share. */
export interface SharedSessionDeps extends StreamDeps {
  readonly registry: SessionRegistry;
  readonly maxDirectedPresence: number;
  /** Presence that a session of an inactive client holds back; 0: clients cannot say that they are. */
  readonly maxHeldPresence: number;
  /** Budget of what all of them hold back. */
  readonly heldPresence: FairShares;
  /** Undefined when stream management is not offered. */
  readonly management: StreamManagement | undefined;
}
