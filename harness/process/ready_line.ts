/** An address that something listens on. */
export interface Address {
  readonly host: string;
  readonly port: number;
}

/**
 * Ready line of a node: its name and the addresses where it listens, in the order of its
 * configuration.
 */
export interface ReadyLine {
  readonly node: string;
  readonly c2s: readonly Address[];
  readonly websocket: readonly Address[];
  readonly component: readonly Address[];
  readonly links: readonly Address[];
  readonly admin: Address | undefined;
}

/** Reads `ready {…}`; undefined when the line is something else. @throws when it is malformed */
export function tryReadyLine(line: string): ReadyLine | undefined {
  if (!line.startsWith("ready {")) return undefined;
  const fields = JSON.parse(line.slice("ready ".length)) as Record<string, unknown>;
  if (typeof fields["node"] !== "string") {
    throw new TypeError(`Cannot read the ready line: it names no node: ${line}`);
  }
  const listed = (name: string) => parseAddresses(fields[name] ?? [], name);
  const admin = fields["admin"] ?? undefined;
  return {
    node: fields["node"],
    c2s: listed("c2s"),
    websocket: listed("websocket"),
    component: listed("component"),
    links: listed("links"),
    admin: admin === undefined ? undefined : parseAddress(admin, "admin"),
  };
}

function parseAddresses(value: unknown, field: string): readonly Address[] {
  if (!Array.isArray(value)) {
    throw new TypeError(`Cannot read the ready line: ${field} is no list`);
  }
  return value.map((item) => parseAddress(item, field));
}

/** Reads `127.0.0.1:5222` or `[::1]:5222`. */
function parseAddress(value: unknown, field: string): Address {
  const match = typeof value === "string" ? /^(?:\[(.+)\]|([^:]+)):(\d+)$/.exec(value) : null;
  const host = match?.[1] ?? match?.[2];
  const port = Number(match?.[3]);
  if (host === undefined || port < 1 || port > 65_535) {
    throw new TypeError(
      `Cannot read the ready line: ${field} holds ${Deno.inspect(value)}, which is no address`,
    );
  }
  return { host, port };
}
