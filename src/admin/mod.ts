export type {
  AdminDeps,
  AdminLimits,
  AdminMetrics,
  AdminOptions,
  PartHealth,
  PartState,
} from "./admin_deps.ts";
export { ADMIN_LIMITS } from "./admin_deps.ts";
export type { AdminServer, AdminServerDeps } from "./admin_server.ts";
export { createAdmin } from "./admin_server.ts";
