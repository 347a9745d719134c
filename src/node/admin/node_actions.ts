import type { ActionOutcome, AdminActions, LinkTarget } from "../../admin/mod.ts";
import type { LinkLayer } from "../../distribution/links/mod.ts";
import type { SessionTable } from "../../distribution/table/mod.ts";
import { CausewayError } from "../../base/mod.ts";
import type { LocalSession, SessionRegistry } from "../../xmpp/mod.ts";
import { BareJid, FullJid, tryParseJid } from "../../xmpp/mod.ts";
import type { CheckedParts } from "../node_services.ts";
import { checkAccount } from "../node_services.ts";
import type { ReloadReport } from "../reload.ts";
import { pathsOf } from "../reload.ts";

/** Parts of a node that operators act on. The links are read with each action. */
export interface ActedParts extends CheckedParts {
  readonly table: SessionTable;
  readonly sessions: SessionRegistry;
  readonly links: LinkLayer | undefined;
  readonly cluster: LinkLayer | undefined;
  /** Domains whose accounts are in the node's databases. */
  readonly accounts: { has(domain: string): boolean };
}

/** Actions of operators on the whole node. */
export interface NodeControl {
  /** Makes the process stop gracefully and end; false when it is doing so already. */
  requestStop(): boolean;
  /** Reads the configuration and the certificates again. @throws CausewayError when it is refused */
  reload(): Promise<ReloadReport>;
}

/** Makes what operators can have a node do. */
export function makeActions(
  parts: ActedParts,
  control: NodeControl,
  localHost: string,
): AdminActions {
  const { table, sessions } = parts;
  const layers = () => [parts.links, parts.cluster].filter((layer) => layer !== undefined);
  return {
    drain: () => {
      if (control.requestStop()) {
        return { outcome: "started", affected: sessions.count, text: "The node stops" };
      }
      return { outcome: "nothing-to-do", affected: 0, text: "The node stops already" };
    },
    pause: (target) => linksAction(target, parts.links, "pause"),
    resume: (target) => linksAction(target, parts.links, "resume"),
    retry: (datacenter) => {
      const hosts = retried(parts, localHost, datacenter?.toLowerCase());
      if (hosts === 0 && datacenter !== undefined) return unknown(datacenter);
      return done(hosts, `Dialled ${countOf(hosts, "destination")} where a link is down`);
    },
    rebalance: (datacenter) => {
      const host = datacenter?.toLowerCase();
      const found = parts.links?.control.rebalance(host) ?? { hosts: 0, senders: 0 };
      if (found.hosts === 0 && host !== undefined) return unknown(host);
      return done(found.senders, `Moved ${countOf(found.senders, "sender")} to other lanes`);
    },
    refresh: async () => {
      const entries = await table.refreshOwn();
      if (entries === undefined) return AWAY;
      for (const layer of layers()) layer.control.retry();
      return done(entries, `Wrote ${countOf(entries, "entry", "entries")} anew`);
    },
    dropCache: (address) => {
      if (address === undefined) {
        const { cached } = table.snapshot();
        return table.forgetAll()
          ? done(cached, `Dropped ${countOf(cached, "address", "addresses")}`)
          : AWAY;
      }
      const jid = tryParseJid(address);
      if (jid === undefined) return notAJid(address);
      table.forget(jid);
      return { outcome: "done", affected: 1, text: `The next lookup of ${jid.text} asks Redis` };
    },
    kick: (address) => {
      const jid = tryParseJid(address);
      if (jid === undefined) return notAJid(address);
      const ended = sessions.ofAccount(jid.bare.text)
        .filter((session) => !(jid instanceof FullJid) || session.jid.text === jid.text);
      if (ended.length === 0) {
        return { failure: "not-found", text: `${jid.text} has no session at this node` };
      }
      // A list of its own: each end changes the registry's.
      for (const session of [...ended]) endSession(session);
      return done(ended.length, `Ended ${countOf(ended.length, "session")} of ${jid.text}`);
    },
    checkAccount: async (address) => {
      const jid = tryParseJid(address);
      if (!(jid instanceof BareJid) || jid.localpart === "") return notAnAccount(address);
      if (!parts.accounts.has(jid.domainpart)) return notAnAccount(address);
      const told = await checkAccount(jid, parts);
      const nodes = `Told the nodes of ${countOf(told, "session")}`;
      return done(told, `${nodes} to look up whether ${jid.text} exists`);
    },
    reload: async () => {
      try {
        return reloaded(await control.reload());
      } catch (thrown) {
        if (!(thrown instanceof CausewayError)) throw thrown;
        return { failure: "conflict", text: thrown.message };
      }
    },
  };
}

/** Most characters of the names of settings in a text; the report has all. */
const MOST_NAMES = 400;

function reloaded(report: ReloadReport): ActionOutcome {
  const { changes, certificates, pools } = report;
  const inForce = [...pathsOf(changes, false), ...certificates];
  const waiting = pathsOf(changes, true);
  const texts = [
    ...inForce.length === 0 ? [] : [`in force: ${named(inForce)}`],
    ...waiting.length === 0 ? [] : [`needs a restart: ${named(waiting)}`],
  ];
  return {
    ...done(inForce.length, texts.length === 0 ? "Nothing has changed" : texts.join("; ")),
    reload: { changes: [...changes], certificates: [...certificates], pools: [...pools] },
  };
}

function named(paths: readonly string[]): string {
  const names = paths.join(", ");
  return names.length <= MOST_NAMES ? names : `${names.slice(0, MOST_NAMES)}…`;
}

const AWAY: ActionOutcome = { failure: "unavailable", text: "Redis is away; try again" };

function linksAction(
  { datacenter, endpoint }: LinkTarget,
  links: LinkLayer | undefined,
  verb: "pause" | "resume",
): ActionOutcome {
  const host = datacenter.toLowerCase();
  const count = links?.control[verb](host, endpoint === undefined ? undefined : keyOf(endpoint));
  if (count === undefined) return unknown(host);
  const known = links!.snapshot().hosts.find((each) => each.host === host); // it was found
  const isKnown = endpoint === undefined ||
    known?.endpoints.some((each) => each.endpoint === keyOf(endpoint)) === true;
  if (!isKnown) return { failure: "not-found", text: `${host} has no endpoint ${endpoint}` };
  const what = verb === "pause" ? "Paused" : "Resumed";
  return done(count, `${what} ${countOf(count, "endpoint")} of ${host}`);
}

/** Returns the number of destinations that are dialled. */
function retried(
  { links, cluster }: ActedParts,
  localHost: string,
  host: string | undefined,
): number {
  const nodes = host === undefined || host === localHost ? cluster?.control.retry() ?? 0 : 0;
  return nodes + (host === localHost ? 0 : links?.control.retry(host) ?? 0);
}

function endSession(session: LocalSession): void {
  session.end("policy-violation");
}

/** Returns a count with its noun: `1 session`, `3 sessions`. */
function countOf(count: number, one: string, many = `${one}s`): string {
  return `${count} ${count === 1 ? one : many}`;
}

function done(affected: number, text: string): ActionOutcome {
  return { outcome: affected > 0 ? "done" : "nothing-to-do", affected, text };
}

function unknown(datacenter: string): ActionOutcome {
  return { failure: "not-found", text: `No other datacenter is known as ${datacenter}` };
}

function notAJid(address: string): ActionOutcome {
  return { failure: "not-found", text: `${address} is no JID` };
}

function notAnAccount(address: string): ActionOutcome {
  return { failure: "not-found", text: `${address} is no account of this node's hosts` };
}

/** Returns `host:port`, as people write it, as the links have it. */
function keyOf(endpoint: string): string {
  const colon = endpoint.lastIndexOf(":");
  const host = endpoint.slice(0, Math.max(0, colon)).replace(/^\[|\]$/g, "");
  return `${host}#${endpoint.slice(colon + 1)}`;
}
