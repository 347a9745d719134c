import type { Account, OwnSession } from "./account.ts";
import type { Claim } from "./claims.ts";
import {
  formatClaim,
  incarnationOf,
  isHost,
  isImpossibleClaim,
  isNewer,
  newestClaim,
  tryParseClaim,
} from "./claims.ts";
import type { KeyDecision, KeyRule } from "./key_rule.ts";
import { claimsKey, fullJidKey, isReservedDomain } from "../redis/keys.ts";
import type { Answer } from "../redis/ask.ts";
import { listIn, textIn } from "../redis/ask.ts";
import type { RedisCommand } from "../redis/redis_commands.ts";

/** The table's entries for one account at one moment. */
export interface AccountView {
  /** Claims of other processes that could be read, live and dead. */
  readonly foreign: readonly Claim[];
  /** Claims of this process by id, as Redis has them. */
  readonly own: ReadonlyMap<string, string>;
  /** Value of each key of the account; null when there is none. */
  readonly values: ReadonlyMap<string, string | null>;
  /** Ids of claims with an impossible epoch: no node reads them, and they are removed. */
  readonly impossible: readonly string[];
  /** Number of values that the table does not write. */
  readonly garbage: number;
  /** True when no session of the account is ours: only the claims were read. */
  readonly isReplica: boolean;
}

/** Context of a plan besides the account and the view. */
export interface PlanContext {
  readonly localHost: string;
  readonly nodeName: string;
  readonly expireSeconds: string;
  readonly expireMs: number;
  /**
   * Life of other datacenters' entries with builtin replication, where leases decide which entries
   * count.
   */
  readonly replicaSeconds: string | undefined;
  /** Claims of one other datacenter on the account that are left to it, where the nodes replicate. */
  readonly maxClaimsPerAccount: number;
  readonly nowMs: number;
  readonly nowUs: number;
  /** Draws an epoch above `known`. */
  nextEpoch(known: number): number;
  /** True while the node that made the claim holds its lease. */
  isLive(claim: Claim): boolean;
  readonly rule: KeyRule;
}

/** Result of a plan besides the commands. */
export interface PlanResult {
  /** Keys that named the wrong host and are corrected. */
  readonly repaired: number;
  /** Keys that changed other than by a login here, to drop from the cache. */
  readonly changedKeys: readonly string[];
  /** Our sessions whose full JID another node of this datacenter has since taken. */
  readonly displaced: readonly OwnSession[];
  /** True when a key names a host without a claim and needs another check soon. */
  readonly isDoubtful: boolean;
  /** Number of removed claims, by datacenter with too many on this account. */
  readonly excess: ReadonlyMap<string, number>;
}

/** Age after which a claim of a dead node is removed from the hash. */
const DEAD_CLAIM_US = 3_600_000_000;

/**
 * Returns the resourceparts whose keys concern us, with the account's own key as "". Empty if that
 * key is one of the table's own: claims on such a domain are refused, and a leftover claim writes
 * nothing.
 */
function concernedResources(account: Account, touched: ReadonlySet<string>): Iterable<string> {
  if (isReservedDomain(account.name) && !account.name.includes("@")) return [];
  const resources = new Set(["", ...touched]);
  for (const { resourcepart } of account.sessions) resources.add(resourcepart);
  for (const { resourcepart } of account.closed) resources.add(resourcepart);
  return resources;
}

function keyOf(account: Account, resourcepart: string): string {
  return resourcepart === "" ? account.name : fullJidKey(account.name, resourcepart);
}

/** True when no session of it is ours: only another datacenter's changes have touched it. */
function isReplica(account: Account): boolean {
  return account.sessions.length === 0 && account.closed.length === 0;
}

/** Adds the commands that read the view of the account; returns their number. */
export function readAccount(
  account: Account,
  touched: ReadonlySet<string>,
  into: RedisCommand[],
): number {
  const before = into.length;
  into.push(["HGETALL", claimsKey(account.name)]);
  if (isReplica(account)) return into.length - before; // the keys would change nothing
  for (const resource of concernedResources(account, touched)) {
    into.push(["GET", keyOf(account, resource)]);
  }
  return into.length - before;
}

/**
 * Makes a view of the answers from `at` on. It lacks the keys of sessions that were added since.
 */
export function viewAccount(
  commands: readonly RedisCommand[],
  answers: readonly Answer[],
  range: { readonly at: number; readonly count: number; readonly ownIdPrefix: string },
): AccountView {
  const foreign: Claim[] = [];
  const own = new Map<string, string>();
  const impossible: string[] = [];
  const values = new Map<string, string | null>();
  let garbage = 0;
  const hash = listIn(answers[range.at]);
  for (let i = 0; i + 1 < hash.length; i += 2) {
    const [id, text] = [hash[i]!, hash[i + 1]!];
    if (id.startsWith(range.ownIdPrefix)) {
      own.set(id, text);
      continue;
    }
    const claim = tryParseClaim(id, text);
    if (claim !== undefined) foreign.push(claim);
    else {
      garbage++;
      if (isImpossibleClaim(id, text)) impossible.push(id);
    }
  }
  for (let i = range.at + 1; i < range.at + range.count; i++) {
    const value = textIn(answers[i]);
    if (value === null || isHost(value)) values.set(commands[i]![1], value);
    else {
      garbage++;
      // It is in the way of our key: without a claim it is replaced at the second check.
      values.set(commands[i]![1], "");
    }
  }
  return { foreign, own, impossible, values, garbage, isReplica: range.count === 1 };
}

/**
 * Adds the commands that correct the table for `account`, and notes in the account which hosts it
 * wrote. Pure except for the account: all other input is in `view` and `context`.
 */
export function planAccount(
  account: Account,
  view: AccountView,
  context: PlanContext,
  into: RedisCommand[],
  touchedBefore: ReadonlySet<string> = new Set(),
): PlanResult {
  const surplus = surplusClaims(view.foreign, context);
  const touched = surplus.size === 0
    ? touchedBefore
    : new Set([...touchedBefore, ...Array.from(surplus, ({ resourcepart }) => resourcepart)]);
  // their keys were not read here, so the next pass sees to them
  if (!view.isReplica) { for (const { resourcepart } of surplus) account.touch(resourcepart); }
  const foreign = surplus.size === 0
    ? view.foreign
    : view.foreign.filter((claim) => !surplus.has(claim));
  drawEpochs(account, foreign, context);
  const ours = account.sessions.map((session) => ownClaim(session, context));
  if (context.replicaSeconds === undefined) account.noteRenewals(foreign, context.nowMs);
  const live = foreign.length === 0
    ? ours
    : [...ours, ...foreign.filter((claim) => isLive(account, claim, context))];

  account.elsewhere = live.length === ours.length ? 0 : resourcesElsewhere(ours, live);

  withdrawClaims(account, view, context, into);
  const excess = new Map<string, number>();
  for (const { host } of surplus) excess.set(host, (excess.get(host) ?? 0) + 1);
  if (surplus.size > 0) {
    into.push(["HDEL", claimsKey(account.name), ...Array.from(surplus, ({ id }) => id)]);
  }
  if (ours.length > 0) {
    for (const claim of ours) {
      const value = formatClaim(claim);
      if (view.own.get(claim.id) === value) continue;
      into.push(["HSET", claimsKey(account.name), claim.id, value]);
    }
    const life = context.replicaSeconds ?? context.expireSeconds;
    into.push(["EXPIRE", claimsKey(account.name), life]);
  }

  let repaired = 0;
  const changedKeys: string[] = [];
  for (const resource of concernedResources(account, touched)) {
    const key = keyOf(account, resource);
    // An unread key may have any value: it is written or deleted in any case.
    const isUnread = view.isReplica && (resource === "" || touched.has(resource));
    const current = isUnread ? "" : view.values.get(key);
    if (current === undefined) continue; // a session added meanwhile: the next pass checks its key
    const concerned = resource === ""
      ? live
      : live.filter((claim) => claim.resourcepart === resource);
    const newest = newestClaim(concerned);
    const isLogin = account.sessions.some((session) =>
      !session.isAnnounced && (resource === "" || session.resourcepart === resource)
    );
    const decision = context.rule({
      current,
      localHost: context.localHost,
      newest,
      isOurs: newest !== undefined && ours.includes(newest),
      isLogin,
      isLogout: account.closed.some((session) =>
        resource === "" || session.resourcepart === resource
      ),
      isFirstLogout: account.closed.some((session) =>
        !session.isWithdrawn && (resource === "" || session.resourcepart === resource)
      ),
      isClaimed: foreign.some((claim) =>
        claim.host === current && (resource === "" || claim.resourcepart === resource)
      ),
      isSuspect: account.suspect(key) === current,
      handedTo: account.handedTo(key),
    });
    note(account, key, current, decision, context.localHost);
    const command = commandFor(key, decision, context);
    if (command !== undefined) into.push(command);
    if (decision.kind === "set" && decision.host !== current) {
      if (!isLogin || decision.host !== context.localHost) changedKeys.push(key);
      if (current !== null) repaired++;
    } else if (decision.kind === "delete") changedKeys.push(key);
  }
  const displaced = live.length === ours.length
    ? []
    : account.sessions.filter((session, i) =>
      session.resourcepart !== "" && live.some((claim) =>
        claim.host === context.localHost && claim.node !== context.nodeName &&
        claim.resourcepart === session.resourcepart && isNewer(claim, ours[i]!)
      )
    );
  return { repaired, changedKeys, displaced, isDoubtful: account.isDoubtful, excess };
}

/** Counts the resources of live claims that no claim of ours has: one that moves here counts once. */
function resourcesElsewhere(ours: readonly Claim[], live: readonly Claim[]): number {
  const here = new Set(ours.map(({ resourcepart }) => resourcepart));
  const all = new Set(live.map(({ resourcepart }) => resourcepart));
  return all.size - here.size; // ours are live
}

const NO_CLAIMS: ReadonlySet<Claim> = new Set();

/**
 * Returns the oldest claims of each other datacenter that has more on one account than it may.
 * Every check of the account reads all its claims.
 */
function surplusClaims(foreign: readonly Claim[], context: PlanContext): ReadonlySet<Claim> {
  const { maxClaimsPerAccount: bound, replicaSeconds, localHost } = context;
  if (replicaSeconds === undefined || foreign.length <= bound) return NO_CLAIMS;
  const byHost = Map.groupBy(foreign, ({ host }) => host);
  byHost.delete(localHost);
  return new Set(
    [...byHost.values()].flatMap((claims) =>
      claims.sort((one, other) => isNewer(one, other) ? -1 : 1).slice(bound)
    ),
  );
}

/**
 * Draws missing epochs: the time of the login, or one above all known epochs. A session that has come
 * from another node is asked for at that time, and only claims on its own full JID count.
 * @returns the sessions that had none
 */
export function drawEpochs(
  account: Account,
  known: readonly Claim[],
  context: Pick<PlanContext, "nextEpoch" | "isLive">,
): readonly OwnSession[] {
  const drawn = account.sessions.filter((session) => session.epoch === 0);
  if (drawn.length === 0) return drawn;
  for (const session of drawn) {
    session.epoch = passedOver(session, known, context) ?? epochAfter(
      session,
      session.origin === undefined
        ? [...known, ...account.sessions]
        : [...known, ...account.sessions].filter((each) =>
          each.resourcepart === session.resourcepart
        ),
      context,
    );
  }
  return drawn;
}

/**
 * Returns the epoch of a session that has come from another node when a client has logged in with its
 * full JID since that node gave it: the epoch that it had there, so that the login is newer. Where that
 * epoch was not read in time, the node's newest claim may be such a login itself, or be gone.
 */
function passedOver(
  { origin, resourcepart }: OwnSession,
  known: readonly Claim[],
  { isLive }: Pick<PlanContext, "isLive">,
): number | undefined {
  if (origin === undefined) return undefined;
  const alike = known.filter((claim) => claim.resourcepart === resourcepart);
  const before = origin.epoch ??
    newestClaim(alike.filter(({ id }) => incarnationOf(id) === origin.process))?.epoch;
  if (before === undefined) return undefined;
  return alike.some((claim) => claim.epoch > before && isLive(claim)) ? before : undefined;
}

function epochAfter(
  { openedUs }: OwnSession,
  known: readonly { readonly epoch: number }[],
  { nextEpoch }: Pick<PlanContext, "nextEpoch">,
): number {
  const newest = known.reduce((epoch, each) => Math.max(epoch, each.epoch), 0);
  return openedUs > newest ? openedUs : nextEpoch(newest);
}

function ownClaim(session: OwnSession, context: PlanContext): Claim {
  session.renewal++;
  return {
    id: session.id,
    epoch: session.epoch,
    host: context.localHost,
    node: context.nodeName,
    resourcepart: session.resourcepart,
    // With builtin replication a lease stands for its renewal, and the claim stays as written.
    renewal: context.replicaSeconds === undefined ? session.renewal : 1,
    priority: session.priority,
  };
}

/**
 * True when the claim's node lives and renews the claim. A claim whose removal was lost between
 * datacenters has a living node, but is no longer renewed.
 */
function isLive(account: Account, claim: Claim, context: PlanContext): boolean {
  if (context.replicaSeconds !== undefined) return context.isLive(claim);
  const sinceMs = account.unchangedSinceMs(claim) ?? context.nowMs;
  const isRenewed = context.nowMs - sinceMs <= context.expireMs;
  return isRenewed && context.isLive(claim);
}

/** Removes claims of closed sessions, and our claims whose earlier removal was lost. */
function withdrawClaims(
  account: Account,
  view: AccountView,
  context: PlanContext,
  into: RedisCommand[],
): void {
  const open = new Set(account.sessions.map(({ id }) => id));
  const ids = new Set<string>();
  for (const { id, isWithdrawn } of account.closed) if (!isWithdrawn) ids.add(id);
  for (const id of view.own.keys()) if (!open.has(id)) ids.add(id);
  for (const id of view.impossible) ids.add(id);
  for (const claim of view.foreign) {
    // With builtin replication the author of another datacenter's claim relies on its being here.
    if (context.replicaSeconds !== undefined && claim.host !== context.localHost) continue;
    const isOld = context.nowUs - claim.epoch > DEAD_CLAIM_US;
    if (isOld && !isLive(account, claim, context)) ids.add(claim.id);
  }
  if (ids.size > 0) into.push(["HDEL", claimsKey(account.name), ...ids]);
}

/** Notes the state that the next check of the key needs. */
function note(
  account: Account,
  key: string,
  current: string | null,
  decision: KeyDecision,
  localHost: string,
): void {
  const isSuspect = decision.kind === "suspect" && current !== null;
  account.noteSuspect(key, isSuspect ? current : undefined);
  if (decision.kind !== "set" && decision.kind !== "set-absent") return;
  account.noteHandedTo(key, decision.host === localHost ? undefined : decision.host);
}

function commandFor(
  key: string,
  decision: KeyDecision,
  { localHost, expireSeconds, replicaSeconds = expireSeconds }: PlanContext,
): RedisCommand | undefined {
  switch (decision.kind) {
    case "set":
    case "set-absent": {
      const life = decision.host === localHost ? expireSeconds : replicaSeconds;
      return decision.kind === "set"
        ? ["SET", key, decision.host, "EX", life]
        : ["SET", key, decision.host, "EX", life, "NX"];
    }
    case "delete":
      return ["DEL", key];
    case "suspect":
    case "leave":
      return undefined;
    default:
      return decision satisfies never;
  }
}
