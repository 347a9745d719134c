import type { OpenAPIHono } from "@hono/zod-openapi";
import type { Caller } from "./action_schemas.ts";

/** Facts about a request that the request itself does not contain. */
export interface AdminBindings {
  /** Address and port of the caller, `127.0.0.1:40312` or `[2001:db8::1]:40312`. */
  readonly remoteAddress?: string;
  /** Names in the verified certificate of the caller. */
  readonly certificateNames?: readonly string[];
  /** True for a caller at the Unix socket. */
  readonly isLocal?: boolean;
}

/** Environment of the API's handlers. */
export interface AdminEnv {
  readonly Bindings: AdminBindings;
  readonly Variables: {
    /** Set before any handler runs. */
    caller: Caller;
  };
}

/** The API as an application. */
export type AdminApp = OpenAPIHono<AdminEnv>;
