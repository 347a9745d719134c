import type { HostPort } from "../options.ts";

/** Slots over which a cluster spreads its keys. */
export const SLOTS = 16_384;

/** The nodes of a cluster, and the master of each slot. */
export interface SlotMap {
  /** Address of the master of each slot, `host:port`; all of them are there. */
  readonly masters: readonly string[];
  /** Every node that the map names, replicas too, by its `host:port`. */
  readonly nodes: ReadonlyMap<string, HostPort>;
}

/**
 * Reads the answer to `CLUSTER SLOTS`: `[first slot, last slot, master, replica, …]`, each node
 * `[host, port, id, …]`.
 * @param from the node that has answered; a node without a host of its own is on that one
 * @throws TypeError on a reply that is no such answer, or lacks a slot
 */
export function parseSlotMap(reply: unknown, from: HostPort): SlotMap {
  const masters: string[] = new Array(SLOTS);
  const nodes = new Map<string, HostPort>();
  let covered = 0;
  for (const range of listOf(reply)) {
    const [first, last, ...holders] = listOf(range);
    if (!isWithin(first, 0, SLOTS - 1) || !isWithin(last, first, SLOTS - 1)) throw malformed();
    const addresses = holders.map((holder) => parseNode(holder, from));
    if (addresses.length === 0) throw malformed();
    for (const address of addresses) nodes.set(nodeName(address), address);
    const master = nodeName(addresses[0]!);
    for (let slot = first; slot <= last; slot++) {
      if (masters[slot] === undefined) covered++;
      masters[slot] = master;
    }
  }
  if (covered < SLOTS) {
    throw new TypeError(`${SLOTS - covered} of the cluster's ${SLOTS} slots have no master`);
  }
  return { masters, nodes };
}

/** Redirect of a command to another node, or a request to send it again. */
export interface Redirect {
  /** `ask`: this command alone, while its slot is under way there. `later`: to the same node again. */
  readonly kind: "moved" | "ask" | "later";
  readonly to: HostPort | undefined;
}

/** Reads `MOVED 3999 127.0.0.1:6381`, `ASK …` and `TRYAGAIN …`; undefined for any other error. */
export function tryParseRedirect(message: string, from: HostPort): Redirect | undefined {
  if (message.startsWith("TRYAGAIN")) return { kind: "later", to: undefined };
  const match = /^(MOVED|ASK) \d+ (.*):(\d+)$/.exec(message);
  if (match === null) return undefined;
  const [, kind, host, port] = match;
  if (!isWithin(Number(port), 1, 65_535)) return undefined;
  const to = { host: host === "" ? from.host : host!, port: Number(port) };
  return { kind: kind === "ASK" ? "ask" : "moved", to };
}

/** Returns the name of a node in the map. */
export function nodeName({ host, port }: HostPort): string {
  return `${host}:${port}`;
}

function parseNode(node: unknown, from: HostPort): HostPort {
  const [host, port] = listOf(node);
  if (!isWithin(port, 1, 65_535)) throw malformed();
  if (host === null || host === "") return { host: from.host, port };
  if (typeof host !== "string" || host === "?") throw malformed();
  return { host, port };
}

function listOf(value: unknown): readonly unknown[] {
  if (!Array.isArray(value)) throw malformed();
  return value;
}

function isWithin(value: unknown, least: number, most: number): value is number {
  return Number.isInteger(value) && (value as number) >= least && (value as number) <= most;
}

function malformed(): TypeError {
  return new TypeError("the answer to CLUSTER SLOTS cannot be read");
}
