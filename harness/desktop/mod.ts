export type { DinoContact, DinoMessage, DinoOptions } from "./dino_client.ts";
export { DinoClient } from "./dino_client.ts";
export { SocksGateway } from "./socks_gateway.ts";
export { XServer } from "./x_server.ts";
