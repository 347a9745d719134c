import { createHash, timingSafeEqual } from "node:crypto";
import type { Context, MiddlewareHandler } from "hono";
import type { RateLimit } from "../base/mod.ts";
import { addressKey } from "../base/mod.ts";
import type { Caller, Role } from "./api/action_schemas.ts";
import type { AdminBindings, AdminEnv } from "./api/admin_env.ts";

/** A token, and what who presents it may do. */
export interface TokenHolder {
  /** Name in the audit log. */
  readonly name: string;
  readonly role: Role;
  readonly token: string;
}

/** A name in client certificates, and what who presents one with it may do. */
export interface CertificateHolder {
  /** DNS name, in lower case; also the name in the audit log. */
  readonly name: string;
  readonly role: Role;
}

/** The caller at the Unix socket: the owner of the process, or root. */
const SOCKET_CALLER: Caller = { who: "socket", role: "admin" };

/** The caller where no token is asked for: only this machine can connect. */
const LOCAL_CALLER: Caller = { who: "local", role: "admin" };

/** Returns true for addresses that only this machine can connect to. */
export function isLoopbackHost(host: string): boolean {
  const bare = host.toLowerCase().replace(/^\[|\]$/g, "");
  return bare === "localhost" || bare === "::1" || /^127(\.\d{1,3}){3}$/.test(bare);
}

/** Limit on wrong tokens. */
export interface WrongTokens {
  /** By address. */
  readonly limit: RateLimit;
  /** Called for each request that was refused without checking its token. */
  refused(): void;
}

/** Admits every request, as this machine is trusted. */
export function admitLocally(): MiddlewareHandler<AdminEnv> {
  return async (context, next) => {
    const { isLocal = false } = (context.env ?? {}) as AdminBindings;
    context.set("caller", isLocal ? SOCKET_CALLER : LOCAL_CALLER);
    await next();
  };
}

/**
 * Admits requests that carry one of the tokens, or come over a connection whose client has
 * presented a certificate with one of the names. A token, right or wrong, goes before. The comparison takes the same time however much of
 * a token is right, and whichever it is. After too many wrong tokens from an address, even a right
 * one is refused from there for a while: an answer would let guessing go on.
 */
export function requireToken(
  { tokens, certificates }: {
    readonly tokens: readonly TokenHolder[];
    readonly certificates: readonly CertificateHolder[];
  },
  wrongTokens: WrongTokens | undefined,
): MiddlewareHandler<AdminEnv> {
  const byName = new Map(certificates.map(({ name, role }) => [name, { who: name, role }]));
  const known = tokens.map(({ name, role, token }) => ({
    caller: { who: name, role },
    expected: digest(token),
  }));
  return async (context, next) => {
    const given = /^Bearer +(\S+)$/i.exec(context.req.header("authorization") ?? "")?.[1] ?? "";
    // The port passes these bindings on with each request. The framework does not know their type.
    const { remoteAddress = "", certificateNames = [], isLocal = false } =
      (context.env ?? {}) as AdminBindings;
    if (given === "" && isLocal) {
      context.set("caller", SOCKET_CALLER);
      return await next();
    }
    if (given === "") {
      const name = certificateNames.find((each) => byName.has(each));
      if (name !== undefined) {
        context.set("caller", byName.get(name)!);
        return await next();
      }
    }
    const from = addressKey({ remoteAddress, isLoopback: false });
    if (given !== "" && wrongTokens?.limit.take(from) === false) {
      wrongTokens.refused();
      context.header("retry-after", "1");
      return context.json({ error: "too-many-requests", message: "Too many wrong tokens" }, 429);
    }
    let found: Caller | undefined;
    for (const { caller, expected } of known) {
      // `timingSafeEqual` needs equal lengths, and all digests have the same length.
      if (timingSafeEqual(digest(given), expected)) found = caller;
    }
    if (found !== undefined) {
      wrongTokens?.limit.giveBack(from);
      context.set("caller", found);
      return await next();
    }
    context.header("www-authenticate", 'Bearer realm="causeway"');
    return context.json({
      error: "unauthorized",
      message: "A bearer token or a client certificate is required",
    }, 401);
  };
}

/**
 * Keeps web pages out that use a DNS name which points to loopback (DNS rebinding). For an API that
 * trusts its own machine.
 */
export function requireLocalName(): MiddlewareHandler<AdminEnv> {
  return async (context, next) => {
    if (isLoopbackAuthority(hostOf(context))) return await next();
    const message = "The Host header names no loopback address";
    return context.json({ error: "forbidden", message }, 403);
  };
}

/** Keeps web pages of foreign sites out (`Origin`, `Sec-Fetch-Site`). No answer allows CORS. */
export function requireSameSite(): MiddlewareHandler<AdminEnv> {
  return async (context, next) => {
    const message = foreignness(context);
    if (message === undefined) return await next();
    return context.json({ error: "forbidden", message }, 403);
  };
}

/**
 * Refuses a POST that does not say it is JSON: the types that a form can send on behalf of a
 * foreign page are all others. JSON's type has no parameters (RFC 8259 §11), so any that were sent
 * are taken away: the framework refuses some that RFC 9110 §5.6.6 allows, such as a lone `;`.
 */
export function requireJson(): MiddlewareHandler<AdminEnv> {
  return async (context, next) => {
    const { req } = context;
    if (req.method !== "POST") return await next();
    if (/^application\/json[ \t]*(;|$)/i.test(req.header("content-type") ?? "")) {
      req.raw.headers.set("content-type", "application/json");
      return await next();
    }
    const message = "The content type must be application/json";
    return context.json({ error: "unsupported-media-type", message }, 415);
  };
}

const RANKS: Readonly<Record<Role, number>> = { read: 0, act: 1, admin: 2 };

/** True when the caller has the role, or a higher one. */
export function mayAct({ role }: Caller, needed: Role): boolean {
  return RANKS[role] >= RANKS[needed];
}

function foreignness(context: Context<AdminEnv>): string | undefined {
  const { req } = context;
  const host = hostOf(context);
  const origin = req.header("origin");
  if (origin !== undefined && origin !== `http://${host}` && origin !== `https://${host}`) {
    return "The Origin is another site";
  }
  const site = req.header("sec-fetch-site");
  if (site !== undefined && site !== "same-origin" && site !== "none") {
    return "The request comes from another site";
  }
  return undefined;
}

function hostOf({ req }: Context<AdminEnv>): string {
  return req.header("host") ?? new URL(req.url).host;
}

function isLoopbackAuthority(authority: string): boolean {
  const match = /^(\[[^\]]+\]|[^:]+)(:\d{1,5})?$/.exec(authority);
  return match !== null && isLoopbackHost(match[1]!);
}

function digest(text: string): Uint8Array {
  return createHash("sha256").update(text).digest();
}
