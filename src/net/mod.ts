export type { Connection, ConnectionHandlers } from "./connection.ts";
