import { createHash, timingSafeEqual } from "node:crypto";
import type { Context, MiddlewareHandler } from "hono";
import type { RateLimit } from "../base/mod.ts";
import { addressKey } from "../base/mod.ts";

/** True where only this machine can connect. */
export function isLoopbackHost(host: string): boolean {
  const bare = host.toLowerCase().replace(/^\[|\]$/g, "");
  return bare === "localhost" || bare === "::1" || /^127(\.\d{1,3}){3}$/.test(bare);
}

/** What the API knows of a request besides what it says. */
export interface AdminBindings {
  /** Who asks, with the port, `127.0.0.1:40312` or `[2001:db8::1]:40312`. */
  readonly remoteAddress?: string;
}

/** How many tokens may be wrong. */
export interface WrongTokens {
  /** By address. */
  readonly limit: RateLimit;
  /** Told of each request that was answered without a look at its token. */
  refused(): void;
}

/**
 * Lets in who carries `token`, in a time that does not tell how much of it was right. From an address
 * with too many wrong ones not even the right one is taken for a while, or guessing would go on.
 */
export function requireToken(
  token: string,
  wrongTokens: WrongTokens | undefined,
): MiddlewareHandler {
  const expected = digest(token);
  return async (context, next) => {
    const given = /^Bearer +(\S+)$/i.exec(context.req.header("authorization") ?? "")?.[1] ?? "";
    // What the port passes on with each request; the framework does not know its type.
    const { remoteAddress = "" } = (context.env ?? {}) as AdminBindings;
    const from = addressKey({ remoteAddress, isLoopback: false });
    if (given !== "" && wrongTokens?.limit.take(from) === false) {
      wrongTokens.refused();
      context.header("retry-after", "1");
      return context.json({ error: "too-many-requests", message: "Too many wrong tokens" }, 429);
    }
    // Digests have one length, whatever was given.
    if (timingSafeEqual(digest(given), expected)) {
      wrongTokens?.limit.giveBack(from);
      return await next();
    }
    context.header("www-authenticate", 'Bearer realm="causeway"');
    return context.json({ error: "unauthorized", message: "A bearer token is required" }, 401);
  };
}

/**
 * Keeps web pages out of an API that trusts its machine: a page on a foreign site must not ask it
 * across sites (`Origin`, `Sec-Fetch-Site`), nor by a name of its own that it points to loopback
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
