import type { AdminEvent, AdminEventKind, EventLog } from "../../admin/mod.ts";
import type { LogEntry, LogFields } from "../../observe/mod.ts";
import { redactFields } from "../../observe/mod.ts";

/** Form in which an event of the log is shown to operators. */
interface Telling {
  readonly kind: AdminEventKind;
  readonly text: (fields: LogFields) => string;
}

/** Longest text of a detail. */
const MAX_DETAIL_LENGTH = 500;

/** The node that the fields name, or else its datacenter. */
const peer = ({ node, host }: LogFields): string => String(node ?? host ?? "an unknown node");
const why = ({ reason, detail }: LogFields): string => {
  // The other side says in its detail that "this node" goes down, and means itself.
  if (reason === "leaving") return "one of the two nodes stops";
  return detail === undefined || detail === "" ? String(reason) : `${reason}: ${detail}`;
};

/** Events of the log that operators are told, by name. */
const TELLINGS: Readonly<Record<string, Telling>> = {
  "link.opened": { kind: "link-up", text: (fields) => `The link to ${peer(fields)} is up` },
  "link.closed": {
    kind: "link-lost",
    text: (fields) => `The link to ${peer(fields)} is down: ${why(fields)}`,
  },
  "link.refused": {
    kind: "link-refused",
    text: (fields) => `A link with ${peer(fields)} was refused: ${why(fields)}`,
  },
  "link.unreachable": {
    kind: "link-unreachable",
    text: (fields) => `${fields["endpoint"]} of ${peer(fields)} cannot be reached`,
  },
  "link.accepted": {
    kind: "incoming-link-up",
    text: (fields) => `${peer(fields)} has linked to this node`,
  },
  "endpoint.opened": endpoint("is known"),
  "endpoint.enabled": endpoint("is listed again"),
  "endpoint.disabled": endpoint("is no longer listed"),
  "endpoint.closed": endpoint("is given up"),
  "replication.author-lost": {
    kind: "node-gone",
    text: ({ node, host }) => `${node} of ${host} counts as gone: Redis has no lease of it`,
  },
  "replication.author-back": {
    kind: "node-back",
    text: ({ node, host }) => `${node} of ${host} is back`,
  },
  "replication.author-left": {
    kind: "node-left",
    text: ({ node, host }) => `${node} of ${host} has left`,
  },
  "replication.peer": {
    kind: "datacenter-found",
    text: ({ host }) => `The endpoints of ${host} are known`,
  },
  "links.forgotten": { kind: "datacenter-forgotten", text: ({ host }) => `${host} is forgotten` },
  "datacenter.limit": {
    kind: "datacenter-limit",
    text: ({ host, limit }) => `${host} has announced more than it may: ${limit}`,
  },
  "redis.up": { kind: "redis-up", text: () => "Redis answers" },
  "redis.down": { kind: "redis-down", text: ({ reason }) => `Redis is away: ${reason}` },
  "redis.lost-data": {
    kind: "redis-lost-data",
    text: () => "Redis has lost data; it is filled again",
  },
  "storage.up": { kind: "database-up", text: ({ pool }) => `The database ${pool} can be reached` },
  "storage.down": {
    kind: "database-down",
    text: ({ pool, error }) => `The database ${pool} cannot be reached: ${error}`,
  },
  "tls.expires-soon": {
    kind: "certificate-expiring",
    text: ({ certfile, daysLeft }) => `${certfile} ends in ${daysLeft} days`,
  },
  "config.reloaded": {
    kind: "configuration-reloaded",
    text: ({ restart }) =>
      Array.isArray(restart) && restart.length > 0
        ? `The configuration was read again; a restart is needed for ${restart.join(", ")}`
        : "The configuration was read again",
  },
  "config.reload-refused": {
    kind: "configuration-refused",
    text: ({ error }) => `The configuration cannot be used, so nothing has changed: ${error}`,
  },
  "config.reload-incomplete": {
    kind: "configuration-incomplete",
    text: ({ error }) => `The configuration is in force only in part: ${error}`,
  },
  "tls.reloaded": {
    kind: "certificates-reloaded",
    text: ({ certfile }) => `${certfile} was read again`,
  },
  "tls.reload-failed": {
    kind: "certificates-unusable",
    text: ({ certfile, error }) => `${certfile ?? "A certificate"} cannot be used: ${error}`,
  },
  "clock.off": { kind: "clock-off", text: () => "This clock differs from those of the mesh" },
  "clock.agrees": { kind: "clock-agrees", text: () => "This clock agrees with the mesh again" },
  "node.makes-room": {
    kind: "memory-scarce",
    text: () => "Waiting stanzas take nearly all their memory",
  },
  "node.ready": { kind: "node-ready", text: () => "This node is ready" },
  "node.stopping": { kind: "node-stopping", text: () => "This node stops" },
  "node.superseded": {
    kind: "node-superseded",
    text: () => "A newer process has taken this node's name",
  },
  "admin.action": {
    kind: "action",
    text: ({ who, action, target, outcome }) =>
      `${who}: ${action}${target === undefined ? "" : ` ${target}`}: ${outcome}`,
  },
};

function endpoint(change: string): Telling {
  return {
    kind: "endpoint-changed",
    text: (fields) => `The endpoint ${fields["endpoint"]} of ${fields["host"]} ${change}`,
  };
}

/** Reasons of an orderly end, after which nobody has to look. */
const ORDERLY: ReadonlySet<unknown> = new Set(["leaving", "superseded", "endpoint-gone"]);

/** Adds an event of the log to the events that operators see, if it is one of them. */
export function tellOperators(events: EventLog, { level, event, fields }: LogEntry): void {
  const telling = Object.hasOwn(TELLINGS, event) ? TELLINGS[event] : undefined;
  if (telling === undefined || isOfStranger(event, fields)) return;
  const isIncoming = telling.kind === "link-lost" && fields["direction"] === "in";
  const { host, node } = fields;
  events.add({
    kind: isIncoming ? "incoming-link-lost" : telling.kind,
    severity: severityOf(level, telling.kind, fields),
    text: cut(
      isIncoming ? `The link of ${peer(fields)} is down: ${why(fields)}` : telling.text(fields),
    ),
    ...(typeof host === "string" && { datacenter: host }),
    ...(typeof node === "string" && { node }),
    details: detailsOf(fields),
  });
}

/**
 * True for an action that was refused to an unknown caller. The audit log has it. Here it would push
 * out events that matter, as strangers can ask as often as they like.
 */
function isOfStranger(event: string, { who, role }: LogFields): boolean {
  return event === "admin.action" && who === "unknown" && role === undefined;
}

function severityOf(
  level: LogEntry["level"],
  kind: AdminEventKind,
  { reason }: LogFields,
): AdminEvent["severity"] {
  if (kind === "link-lost" && !ORDERLY.has(reason)) return "warning";
  return level === "warn" ? "warning" : level === "error" ? "error" : "info";
}

/** Returns the plain values among the fields of an event, without secrets. */
function detailsOf(fields: LogFields): AdminEvent["details"] {
  const details: Record<string, string | number | boolean> = {};
  for (const [name, value] of Object.entries(redactFields(fields))) {
    if (typeof value === "string") details[name] = cut(value);
    else if (typeof value === "boolean" || Number.isFinite(value)) {
      details[name] = value as number | boolean; // the two that are left
    }
  }
  return details;
}

function cut(text: string): string {
  return text.length <= MAX_DETAIL_LENGTH ? text : `${text.slice(0, MAX_DETAIL_LENGTH)}…`;
}
