export { CopyOrder } from "./copy_order.ts";
export type { CopyOrderDeps, RoomCopy } from "./copy_order.ts";
export type { ConfigField } from "./room_config.ts";
export { isFieldName } from "./room_config.ts";
export type { RoomOptions, RoomService } from "./room_options.ts";
export type { RoomServerDeps } from "./room_server.ts";
export { RoomServer } from "./room_server.ts";
