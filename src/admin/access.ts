import { createHash, timingSafeEqual } from "node:crypto";
import type { Context, MiddlewareHandler } from "hono";
import type { RateLimit } from "../base/mod.ts";
import { addressKey } from "../base/mod.ts";

/** Returns true for addresses that only this machine can connect to. */
export function isLoopbackHost(host: string): boolean {
  const bare = host.toLowerCase().replace(/^\[|\]$/g, "");
  return bare === "localhost" || bare === "::1" || /^127(\.\d{1,3}){3}$/.test(bare);
}

/** Facts about a request that the request itself does not contain. */
export interface AdminBindings {
  /** Address and port of the caller, `127.0.0.1:40312` or `[2001:db8::1]:40312`. */
  readonly remoteAddress?: string;
}

/** Limit on wrong tokens. */
export interface WrongTokens {
  /** By address. */
  readonly limit: RateLimit;
  /** Called for each request that was refused without checking its token. */
  refused(): void;
}

/**
 * Admits requests that carry `token`. The comparison takes the same time however much of the token
 * is right. After too many wrong tokens from an address, even the right one is refused from there
 * for a while: an answer would let guessing go on.
 */
export function requireToken(
  token: string,
  wrongTokens: WrongTokens | undefined,
): MiddlewareHandler {
  const expected = digest(token);
  return async (context, next) => {
    const given = /^Bearer +(\S+)$/i.exec(context.req.header("authorization") ?? "")?.[1] ?? "";
    // The port passes these bindings on with each request. The framework does not know their type.
    const { remoteAddress = "" } = (context.env ?? {}) as AdminBindings;
    const from = addressKey({ remoteAddress, isLoopback: false });
    if (given !== "" && wrongTokens?.limit.take(from) === false) {
      wrongTokens.refused();
      context.header("retry-after", "1");
      return context.json({ error: "too-many-requests", message: "Too many wrong tokens" }, 429);
    }
    // `timingSafeEqual` needs equal lengths, and all digests have the same length.
    if (timingSafeEqual(digest(given), expected)) {
      wrongTokens?.limit.giveBack(from);
      return await next();
    }
    context.header("www-authenticate", 'Bearer realm="causeway"');
    return context.json({ error: "unauthorized", message: "A bearer token is required" }, 401);
  };
}

/**
 * Keeps web pages out of an API that trusts its own machine. A page on a foreign site must not call
 * it across sites (`Origin`, `Sec-Fetch-Site`), nor through a DNS name that points to loopback
 * (`Host`, DNS rebinding).
 */
export function requireLocalCaller(): MiddlewareHandler {
  return async (context, next) => {
    const why = foreignness(context);
    if (why === undefined) return await next();
    return context.json({ error: "forbidden", message: why }, 403);
  };
}

function foreignness({ req }: Context): string | undefined {
  const host = req.header("host") ?? new URL(req.url).host;
  if (!isLoopbackAuthority(host)) return "The Host header names no loopback address";
  const origin = req.header("origin");
  if (origin !== undefined && origin !== `http://${host}`) return "The Origin is another site";
  const site = req.header("sec-fetch-site");
  if (site !== undefined && site !== "same-origin" && site !== "none") {
    return "The request comes from another site";
  }
  return undefined;
}

function isLoopbackAuthority(authority: string): boolean {
  const match = /^(\[[^\]]+\]|[^:]+)(:\d{1,5})?$/.exec(authority);
  return match !== null && isLoopbackHost(match[1]!);
}

function digest(text: string): Uint8Array {
  return createHash("sha256").update(text).digest();
}
