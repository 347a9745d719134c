export type { AccountWatchOptions } from "./account_watch.ts";
export { AccountWatch, DEFAULT_CHECK_INTERVAL_MS } from "./account_watch.ts";
export type { OwnAccountDeps } from "./own_account.ts";
export { ownAccount } from "./own_account.ts";
