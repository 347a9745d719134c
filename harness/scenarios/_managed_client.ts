import type { ChatClient } from "../clients/mod.ts";
import { SlixmppClient, XmppJsClient } from "../clients/mod.ts";
import type { Cluster } from "../cluster/mod.ts";
import { LinkProxy } from "../faults/mod.ts";
import { quickMechanism } from "./_stage.ts";
import type { Library } from "./_stage.ts";

/** Account, datacenter and proxy of a login. */
export interface ManagedEntrance {
  readonly library: Library;
  /** `dc1` */
  readonly at: string;
  readonly resource: string;
  /** As in `XmppJsClientOptions`; of no meaning for slixmpp. */
  readonly sasl2As?: string;
  /** Proxy between client and node. @default none */
  readonly proxy?: LinkProxy;
}

/** A client with stream management. */
export type ManagedClient = ChatClient & {
  drop(): Promise<void>;
  comeBack(withinMs?: number): Promise<void>;
};

/** Logs one of the cluster's users in over STARTTLS, with stream management on. */
export function enterManaged(
  cluster: Cluster,
  localpart: string,
  { library, at, resource, sasl2As, proxy }: ManagedEntrance,
): Promise<ManagedClient> {
  const user = cluster.users.find((each) => each.localpart === localpart);
  if (user === undefined) throw new RangeError(`The cluster has no user ${localpart}`);
  const { host, port } = proxy?.address ?? cluster.datacenter(at).clientAddress("starttls");
  const options = {
    ...user,
    host,
    port,
    domain: cluster.globalHost,
    resource,
    security: "starttls",
    caFile: cluster.caFile,
    streamManagement: true,
  } as const;
  return library === "slixmpp" ? SlixmppClient.connect(options) : XmppJsClient.connect({
    ...options,
    ...quickMechanism("starttls"),
    ...(sasl2As === undefined ? {} : { sasl2As }),
  });
}

/** Starts a proxy in front of the STARTTLS port of the datacenter `at`. The caller closes it. */
export async function proxyBefore(cluster: Cluster, at: string): Promise<LinkProxy> {
  const proxy = new LinkProxy(`clients→${at}`);
  proxy.setTarget(cluster.datacenter(at).clientAddress("starttls"));
  await proxy.start();
  return proxy;
}

/** Returns numbered bodies such as `body 1`, `body 2`, … */
export function numbered(prefix: string, first: number, last: number): string[] {
  return Array.from({ length: last - first + 1 }, (_, at) => `${prefix} ${first + at}`);
}

/** The bodies beginning with `prefix` that `client` has received, in order and with repeats. */
export function bodiesOf(client: ChatClient, prefix: string): string[] {
  return client.received.flatMap(({ kind, type, body }) =>
    kind === "message" && type !== "error" && body?.startsWith(`${prefix} `) === true ? [body] : []
  );
}

/** Returns the errors that came back to `client`. */
export function errorsOf(client: ChatClient): string[] {
  return client.received.flatMap(({ type, errorCondition, id }) =>
    type === "error" ? [`${errorCondition} for ${id}`] : []
  );
}
