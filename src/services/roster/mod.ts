export type { RosterBounds } from "./roster_query.ts";
export { resolveRosterBounds } from "./roster_query.ts";
export type { AccountSessions, RosterHosts, ServerRoutes, SessionPlace } from "./roster_ports.ts";
export type { RosterServerDeps } from "./roster_server.ts";
export { RosterServer } from "./roster_server.ts";
