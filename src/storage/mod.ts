export type { ListPage, UserStore } from "./user_store.ts";
export { DEFAULT_PAGE_LIMIT, listUsers } from "./user_store.ts";
export type { InternalStoreOptions } from "./internal_store.ts";
export { InternalStore } from "./internal_store.ts";
export type {
  RequestBounds,
  RequestChange,
  RequestPair,
  SubscriptionRequest,
  SubscriptionRequestStore,
} from "./subscription_request_store.ts";
export { resolveRequestBounds } from "./subscription_request_store.ts";
