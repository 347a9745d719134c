export type { AdminDeps, AdminMetrics, AdminOptions, PartHealth, PartState } from "./admin_deps.ts";
export type { AdminServer, AdminSurroundings } from "./admin_server.ts";
export { createAdmin } from "./admin_server.ts";
