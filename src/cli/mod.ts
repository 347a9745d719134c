export { EXIT } from "./command_docs.ts";
export type { AddedCommand } from "./main.ts";
export { main } from "./main.ts";
