import {
  type ChatClient,
  type ClientSecurity,
  type ReceivedStanza,
  RoomService,
  SlixmppClient,
  XmppComponent,
  type XmppComponentOptions,
  XmppJsClient,
} from "../clients/mod.ts";
import type { Cluster, Datacenter } from "../cluster/mod.ts";
import type { Address } from "../process/mod.ts";
import { runUsersCommand } from "./_users_command.ts";

/** Password of the accounts that `Stage.addAccount` adds. */
const ADDED_PASSWORD = "secret";

/** Library behind a client. */
export type Library = "@xmpp" | "slixmpp";

/** Options of a login. */
export interface Entrance {
  /** @default "@xmpp" */
  readonly library?: Library;
  /** @default "starttls" */
  readonly security?: ClientSecurity;
  /** Over WebSocket; with `security` "direct" or "none". @default false */
  readonly webSocket?: boolean;
  /** @default chosen by the server */
  readonly resource?: string;
  /** With stream management (XEP-0198). @default false */
  readonly streamManagement?: boolean;
  /** Domain of the account. @default the global host */
  readonly domain?: string;
  /** Number of the node in its datacenter, counting from 0. @default 0 */
  readonly node?: number;
  /** @default that of the cluster's account */
  readonly password?: string;
  /** Milliseconds within which the client must be let in. @default that of the clients */
  readonly loginWithinMs?: number;
}

/** Logs in the users and components of one scenario, and disconnects all of them at its end. */
export class Stage implements AsyncDisposable {
  readonly cluster: Cluster;
  readonly #entered = new AsyncDisposableStack();

  constructor(cluster: Cluster) {
    this.cluster = cluster;
  }

  /** Adds an account at another of `hosts` than the global one, with the configuration of `at`. */
  async addAccount(jid: string, at: string): Promise<void> {
    await runUsersCommand(this.cluster, this.cluster.datacenter(at), ["add", jid], ADDED_PASSWORD);
  }

  /** Makes the scenario's end log out `entered` too. */
  use<T extends AsyncDisposable>(entered: T): T {
    return this.#entered.use(entered);
  }

  /** Logs in the account `who` at the datacenter `at`, without presence. */
  async enter(who: string, at: string, entrance: Entrance = {}): Promise<ChatClient> {
    const { cluster } = this;
    const { library = "@xmpp", security = "starttls", resource, webSocket = false } = entrance;
    const { domain = cluster.globalHost, loginWithinMs } = entrance;
    const user = domain === cluster.globalHost
      ? cluster.users.find(({ localpart }) => localpart === who)
      : { localpart: who, password: ADDED_PASSWORD };
    if (user === undefined) throw new RangeError(`The cluster has no account ${who}`);
    const datacenter = cluster.datacenter(at);
    const { host, port } = addressOf(datacenter, entrance);
    const options = {
      host,
      port,
      domain,
      ...user,
      ...(entrance.password === undefined ? {} : { password: entrance.password }),
      security,
      caFile: cluster.caFile,
      webSocket,
      streamManagement: entrance.streamManagement ?? false,
      ...(resource === undefined ? {} : { resource }),
      ...(loginWithinMs === undefined ? {} : { loginWithinMs }),
    };
    const client = library === "slixmpp"
      ? await SlixmppClient.connect(options)
      : await XmppJsClient.connect({ ...options, ...quickMechanism(security) });
    return this.#entered.use(client);
  }

  /** As `enter`, and sends presence: stanzas for the bare JID can reach the client now. */
  async enterAvailable(who: string, at: string, entrance?: Entrance): Promise<ChatClient> {
    const client = await this.enter(who, at, entrance);
    await becomeAvailable(client);
    return client;
  }

  /**
   * Connects the component `name` (`echo` is `echo.example.com`; a whole domain is itself) to a node of the
   * datacenter `at`.
   */
  async connectComponent(name: string, at: string, node = 0): Promise<XmppComponent> {
    return this.#entered.use(await XmppComponent.connect(this.#componentEntrance(name, at, node)));
  }

  /** As `connectComponent`, and it serves rooms. */
  async connectRooms(
    name: string,
    at: string,
    options: { readonly historyLength: number },
  ): Promise<RoomService> {
    const entrance = this.#componentEntrance(name, at, 0);
    return this.#entered.use(await RoomService.connect({ ...entrance, ...options }));
  }

  /**
   * Waits until the tables of all datacenters, or of those named, place this session at the
   * datacenter where `client` logged in.
   */
  async untilTableSaysOfSession(
    client: ChatClient,
    at: string,
    tables?: readonly string[],
  ): Promise<void> {
    const { localHost } = this.cluster.datacenter(at);
    await this.untilTableSays(client.jid, localHost, tables);
    await this.untilTableSays(bare(client.jid), localHost, tables);
  }

  /** Waits until no datacenter's Redis knows `name`, a JID or a domain. */
  async untilGone(name: string): Promise<void> {
    await this.untilTableSays(name, null);
  }

  /** Waits until the Redis of every datacenter, or of those named, says that `name` is at `host`. */
  async untilTableSays(
    name: string,
    host: string | null,
    at: readonly string[] = this.cluster.datacenters.map((each) => each.name),
  ): Promise<void> {
    const wanted = JSON.stringify(at.map(() => host));
    const ask = (each: string) => this.cluster.datacenter(each).redisClient.call("GET", name);
    let seen = "";
    await this.cluster.until(
      async () => (seen = JSON.stringify(await Promise.all(at.map(ask)))) === wanted,
      {
        what: `the tables of ${at.join(", ")} place ${name} at ${host ?? "nowhere"}`,
        evidence: () => `they say ${seen}`,
      },
    );
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#entered.disposeAsync();
  }

  #componentEntrance(name: string, at: string, node: number): XmppComponentOptions {
    const domain = name.includes(".") ? name : `${name}.${this.cluster.globalHost}`;
    const account = this.cluster.options.components.find((each) => each.name === domain);
    if (account === undefined) throw new RangeError(`The cluster has no component ${domain}`);
    const datacenter = this.cluster.datacenter(at);
    const { host, port } = datacenter.componentAddress(datacenter.nodes[node]);
    return { host, port, domain, secret: account.secret };
  }
}

function addressOf(datacenter: Datacenter, entrance: Entrance): Address {
  const { library, security = "starttls", webSocket = false } = entrance;
  const node = datacenter.nodes[entrance.node ?? 0];
  if (!webSocket) return datacenter.clientAddress(security, node);
  if (security === "starttls" || library === "slixmpp") {
    throw new RangeError(`No ${library ?? "client"} logs in over WebSocket with ${security}`);
  }
  return datacenter.webSocketAddress(security, node);
}

/**
 * `@xmpp/client` computes the 10 000 rounds of a password in script, which takes over a second of
 * processor time. Encrypted streams offer PLAIN, so it logs in with PLAIN there. slixmpp uses
 * SCRAM.
 */
export function quickMechanism(security: ClientSecurity): { readonly mechanism?: "PLAIN" } {
  return security === "none" ? {} : { mechanism: "PLAIN" };
}

/** Sends initial presence, and waits until the server has said it back (RFC 6121 §4.2.2). */
export async function becomeAvailable(client: ChatClient, priority?: number): Promise<void> {
  await client.presence(priority === undefined ? {} : { priority });
  await client.expectStanza(isPresence({ from: client.jid, type: undefined }));
}

/** Returns a predicate for presence of a sender and a type. */
export function isPresence(
  wanted: { readonly from: string; readonly type: string | undefined },
): (stanza: ReceivedStanza) => boolean {
  return (stanza) =>
    stanza.kind === "presence" && stanza.from === wanted.from && stanza.type === wanted.type;
}

/** The bare JID in a full one. */
export function bare(jid: string): string {
  return jid.split("/", 1)[0]!; // split gives at least one part
}
