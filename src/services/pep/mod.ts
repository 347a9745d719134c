export { relationOf } from "./pep_access.ts";
export { PepDisco } from "./pep_disco.ts";
export type { PepDeps, PepHosts, PepLimits } from "./pep_ports.ts";
export { pepRequests } from "./pep_requests.ts";
export { PepServer } from "./pep_server.ts";
