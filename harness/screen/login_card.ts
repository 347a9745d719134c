import type { CausewayNode, Cluster, Datacenter } from "../cluster/mod.ts";
import type { Address } from "../process/mod.ts";
import type { Palette } from "./palette.ts";
import { textTable } from "./text_table.ts";

/** Addresses of one node for users and components. */
export interface NodeDescription {
  readonly starttls: string;
  readonly directTls: string;
  readonly plaintext: string;
  readonly websocket: string;
  readonly secureWebsocket: string;
  readonly component: string | null;
  readonly admin: string;
}

/** All that someone needs to log in, in machine-readable form. */
export interface ClusterDescription {
  readonly globalHost: string;
  readonly caFile: string;
  readonly directory: string;
  /** The database that all nodes share. */
  readonly database: string;
  readonly users: readonly { readonly jid: string; readonly password: string }[];
  readonly components: readonly { readonly domain: string; readonly secret: string }[];
  /** Each with where its first node is, and where its others are. */
  readonly datacenters: readonly (NodeDescription & {
    readonly name: string;
    readonly localHost: string;
    readonly redis: string;
    readonly otherNodes: readonly (NodeDescription & { readonly node: string })[];
  })[];
}

export function describeCluster(cluster: Cluster): ClusterDescription {
  const { globalHost, options } = cluster;
  return {
    globalHost,
    caFile: cluster.caFile,
    directory: cluster.run.directory,
    database: cluster.database.description,
    users: cluster.users.map(({ localpart, password }) => ({
      jid: `${localpart}@${globalHost}`,
      password,
    })),
    components: options.components.map(({ name, secret }) => ({ domain: name, secret })),
    datacenters: cluster.datacenters.map((datacenter) => ({
      name: datacenter.name,
      localHost: datacenter.localHost,
      ...describeNode(datacenter, datacenter.node),
      redis: datacenter.redis.description,
      otherNodes: datacenter.nodes.slice(1).map((node) => ({
        node: node.ready.node,
        ...describeNode(datacenter, node),
      })),
    })),
  };

  function describeNode(datacenter: Datacenter, node: CausewayNode): NodeDescription {
    return {
      starttls: text(datacenter.clientAddress("starttls", node)),
      directTls: text(datacenter.clientAddress("direct", node)),
      plaintext: text(datacenter.clientAddress("none", node)),
      websocket: datacenter.webSocketUrl("none", { node }).href,
      secureWebsocket: datacenter.webSocketUrl("direct", { node }).href,
      component: options.components.length === 0 ? null : text(datacenter.componentAddress(node)),
      admin: datacenter.adminUrl("/", node).origin,
    };
  }
}

/** Renders the login card for people. */
export function loginCard(description: ClusterDescription, paint: Palette): string[] {
  const { datacenters, users, globalHost } = description;
  const [userHead, ...userLines] = textTable(
    [{ heading: "Account" }, { heading: "Password" }],
    users.map(({ jid, password }) => [paint.cyan(jid), password]),
  );
  const [dcHead, ...dcLines] = textTable(
    [
      { heading: "" },
      { heading: "STARTTLS" },
      { heading: "TLS" },
      { heading: "No TLS" },
      { heading: "ws" },
      { heading: "wss" },
      { heading: "XEP-0114" },
      { heading: "Dashboard" },
    ],
    datacenters.flatMap(({ otherNodes, ...first }) => [
      { ...first, head: paint.bold(first.name) },
      ...otherNodes.map((node) => ({ ...node, head: "" })),
    ]).map((each) => [
      each.head,
      paint.cyan(port(each.starttls)),
      paint.cyan(port(each.directTls)),
      port(each.plaintext),
      paint.cyan(new URL(each.websocket).port),
      paint.cyan(new URL(each.secureWebsocket).port),
      each.component === null ? "" : port(each.component),
      each.admin,
    ]),
  );
  const first = datacenters[0]?.starttls ?? "";
  const host = first.slice(0, first.lastIndexOf(":"));
  const count = datacenters.length === 1 ? "1 datacenter" : `${datacenters.length} datacenters`;
  return [
    `${paint.bold("Causeway")}  ${count}, one domain: ${paint.bold(globalHost)}`,
    "",
    "Every account works at every datacenter. Give any XMPP client one of these",
    `accounts, ${host} as its server, a port from below, and this file to trust:`,
    description.caFile,
    "Web clients find the rest of a WebSocket's address by themselves, or take all of it:",
    datacenters[0]?.websocket ?? "",
    "",
    `The logs of all nodes are in ${description.directory}`,
    `All nodes share one database: ${description.database}`,
    `Redis: ${datacenters.map(({ name, redis }) => `${name} ${redis}`).join(", ")}`,
    "",
    ...[paint.dim(userHead!), ...userLines].map(indent), // headings come first from `textTable`
    "",
    ...[paint.dim(dcHead!), ...dcLines].map(indent),
    "",
    ...componentLines(description, paint).map(indent),
    paint.dim("Ctrl-C ends everything and leaves nothing behind."),
  ];
}

/** The domains that may connect, those with one secret together. */
function componentLines({ components }: ClusterDescription, paint: Palette): string[] {
  if (components.length === 0) return [];
  const bySecret = Map.groupBy(components, ({ secret }) => secret);
  const lines = [...bySecret].map(([secret, group]) =>
    `${group.map(({ domain }) => paint.cyan(domain)).join("  ")}  (secret: ${secret})`
  );
  return [paint.dim("Component domains (XEP-0114)"), ...lines, ""];
}

function port(address: string): string {
  return address.slice(address.lastIndexOf(":") + 1);
}

function indent(line: string): string {
  return `  ${line}`;
}

function text({ host, port }: Address): string {
  return host.includes(":") ? `[${host}]:${port}` : `${host}:${port}`;
}
