export type { VcardDeps } from "./vcard.ts";
export { vcards } from "./vcard.ts";
