export type { C2sListenerOptions } from "./c2s_listener.ts";
export { C2sListener } from "./c2s_listener.ts";
export type { C2sSession } from "./c2s_session.ts";
export { RESENDING_MS } from "./c2s_session.ts";
export { DEFAULT_MAX_HELD_PRESENCE } from "./held_presence.ts";
export type { LocalSession, SessionRegistryEvents } from "./local_session.ts";
export { DEFAULT_MAX_DIRECTED_PRESENCE } from "./presence_state.ts";
export type { SessionRegistryOptions } from "./session_registry.ts";
export { DEFAULT_MAX_SESSIONS_PER_ACCOUNT, SessionRegistry } from "./session_registry.ts";
