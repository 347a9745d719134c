export { EXIT } from "./command_docs.ts";
export { main } from "./main.ts";
