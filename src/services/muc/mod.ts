export type { MucOptions, MucService } from "./muc_options.ts";
export type { MucServerDeps } from "./muc_ports.ts";
export { MucServer } from "./muc_server.ts";
