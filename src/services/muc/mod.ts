export type { MucOptions, MucService } from "./muc_options.ts";
export type { MucServerDeps, MucStanza } from "./muc_ports.ts";
export { MucServer } from "./muc_server.ts";
