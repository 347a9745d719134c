export type { PrivateStorageDeps } from "./private_storage.ts";
export { privateStorage } from "./private_storage.ts";
