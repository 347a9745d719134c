import type {
  AdminEvent,
  Certificate,
  Database,
  Datacenter,
  DatacenterLinks,
  Drain,
  MeshNode,
  Part,
} from "./api_types.ts";
import { nameSome } from "./mesh_links.ts";
import { countOf, formatMoment } from "./text.ts";

/** One finding that somebody should look at, with what is wrong. */
export interface Finding {
  readonly severity: "warning" | "bad";
  readonly subject: string;
  readonly text: string;
  /** Local host of the datacenter to show. */
  readonly datacenter?: string;
}

/** Events that report an end of trouble. */
const RECOVERIES: ReadonlySet<AdminEvent["kind"]> = new Set([
  "link-up",
  "incoming-link-up",
  "node-back",
  "datacenter-found",
  "redis-up",
  "database-up",
  "clock-agrees",
  "node-ready",
]);

/** Returns the state whose mark stands before an event. */
export function markOf({ kind, severity }: AdminEvent): "good" | "info" | "warning" | "bad" {
  if (severity === "error") return "bad";
  if (severity === "warning") return "warning";
  return RECOVERIES.has(kind) ? "good" : "info";
}

interface Findable {
  readonly status: {
    readonly node?: string;
    readonly parts: readonly Part[];
    readonly drain?: Drain;
  };
  readonly datacenters: readonly Datacenter[];
  readonly nodes: readonly MeshNode[];
  readonly databases: readonly Database[];
  readonly certificates: readonly Certificate[];
}

/**
 * Returns what needs attention now, the worst first.
 *
 * @param told links of all datacenters, as they tell of them
 */
export function findingsOf(
  facts: Findable,
  told: readonly DatacenterLinks[] = [],
): readonly Finding[] {
  const { status, datacenters, nodes, databases, certificates } = facts;
  const findings: Finding[] = [];
  // This node's own trouble comes first, as it may be the cause of what it sees of others.
  for (const { pool, state, reason } of databases) {
    if (state === "up") continue;
    findings.push({ severity: "bad", subject: pool, text: `down${reason ? `: ${reason}` : ""}` });
  }
  // A database that is down has a line already.
  const isNamed = (name: string) => findings.some(({ subject }) => subject.startsWith(name));
  const { drain } = status;
  if (drain?.isDraining) {
    findings.push({ severity: "warning", subject: "this node", text: sayDrain(drain) });
  }
  for (const { name, state, reason } of status.parts) {
    if (state === "up" || state === "draining" || isNamed(name)) continue;
    const severity = state === "down" ? "bad" : "warning";
    findings.push({ severity, subject: name, text: reason ? `${state}: ${reason}` : state });
  }
  for (const { datacenter, state, reason } of datacenters) {
    if (state !== "unreachable" && state !== "degraded" && state !== "paused") continue;
    findings.push({
      severity: state === "unreachable" ? "bad" : "warning",
      subject: datacenter,
      text: reason === undefined ? state : `${state}: ${reason}`,
      datacenter,
    });
  }
  const unreachable = new Set(
    datacenters.filter(({ state }) => state === "unreachable").map(({ datacenter }) => datacenter),
  );
  for (const { datacenter, isOwn, troubles } of told) {
    const away = troubles.filter(({ trouble }) => trouble === "redis-away");
    if (away.length > 0 && !isOwn) {
      const nodes = nameSome(away.map(({ node }) => node));
      const text = `Redis is away, says ${nodes}`;
      findings.push({ severity: "bad", subject: datacenter, text, datacenter });
    }
    for (const { node, trouble } of troubles) {
      if (trouble !== "stopping" || node === status.node) continue;
      findings.push({ severity: "warning", subject: node, text: "says that it stops", datacenter });
    }
  }
  // Trouble that this node sees itself has its own line above.
  for (const { datacenter, isOwn, links } of told) {
    if (isOwn) continue;
    const lost = links.filter(({ state, datacenter: other }) =>
      state === "unreachable" && !unreachable.has(other)
    );
    if (lost.length === 0) continue;
    findings.push({
      severity: "bad",
      subject: datacenter,
      text: `says that it cannot reach ${nameSome(lost.map((to) => to.datacenter))}`,
      datacenter,
    });
  }
  for (const { node, datacenter, hasLease } of nodes) {
    if (hasLease || unreachable.has(datacenter)) continue;
    findings.push({
      severity: "warning",
      subject: node,
      text: `linked, but the session table of ${datacenter} does not list it as alive`,
      datacenter,
    });
  }
  for (const { certfile, names, daysLeft, isExpiringSoon } of certificates) {
    if (!isExpiringSoon) continue;
    const when = daysLeft < 1 ? "within a day" : `in ${countOf(daysLeft, "day")}`;
    findings.push({
      severity: daysLeft < 3 ? "bad" : "warning",
      subject: names[0] ?? certfile,
      text: daysLeft < 0
        ? `the certificate in ${certfile} has expired`
        : `the certificate in ${certfile} expires ${when}`,
    });
  }
  return findings.toSorted((one, other) =>
    Number(one.severity !== "bad") - Number(other.severity !== "bad")
  );
}

/** Says how far a graceful stop is. */
function sayDrain({ step, sessions, stanzas, deadlineAt }: Drain): string {
  const left = `${countOf(sessions, "session")} and ${countOf(stanzas, "stanza")} left`;
  return `stops${step === undefined ? "" : ` (step: ${step})`}: ${left}` +
    (deadlineAt === undefined ? "" : `; it ends by ${formatMoment(deadlineAt)} at the latest`);
}
