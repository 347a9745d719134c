import type { ChatClient } from "../clients/mod.ts";
import { SlixmppClient, XmppJsClient } from "../clients/mod.ts";
import type { Cluster } from "../cluster/mod.ts";
import { LinkProxy } from "../faults/mod.ts";
import { quickMechanism } from "./_stage.ts";
import type { Library } from "./_stage.ts";

/** Who logs in, where, and through what. */
export interface ManagedEntrance {
  readonly library: Library;
  /** `dc1` */
  readonly at: string;
  readonly resource: string;
  /** Stands between client and node. @default nothing does */
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
  { library, at, resource, proxy }: ManagedEntrance,
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
  return library === "slixmpp"
    ? SlixmppClient.connect(options)
    : XmppJsClient.connect({ ...options, ...quickMechanism("starttls") });
}

/** A proxy before the clients' STARTTLS port of the datacenter `at`; whoever asks for it ends it. */
export async function proxyBefore(cluster: Cluster, at: string): Promise<LinkProxy> {
  const proxy = new LinkProxy(`clients→${at}`);
  proxy.setTarget(cluster.datacenter(at).clientAddress("starttls"));
  await proxy.start();
  return proxy;
}

/** `body 1`, `body 2`, … to be told apart from everything else. */
export function numbered(prefix: string, first: number, last: number): string[] {
  return Array.from({ length: last - first + 1 }, (_, at) => `${prefix} ${first + at}`);
}

/** The bodies beginning with `prefix` that `client` has received, in order and with repeats. */
export function bodiesOf(client: ChatClient, prefix: string): string[] {
  return client.received.flatMap(({ kind, type, body }) =>
    kind === "message" && type !== "error" && body?.startsWith(`${prefix} `) === true ? [body] : []
  );
}

/** Errors that came back to `client`. */
export function errorsOf(client: ChatClient): string[] {
  return client.received.flatMap(({ type, errorCondition, id }) =>
    type === "error" ? [`${errorCondition} for ${id}`] : []
  );
}
