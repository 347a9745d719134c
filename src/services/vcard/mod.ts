export type { VcardDeps, VcardPhotos } from "./vcard.ts";
export { vcards } from "./vcard.ts";
export type { VcardSearchOptions } from "./vcard_search.ts";
export { vcardSearch } from "./vcard_search.ts";
