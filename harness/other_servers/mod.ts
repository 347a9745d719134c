export { Ejabberd } from "./ejabberd.ts";
export { Prosody } from "./prosody.ts";
