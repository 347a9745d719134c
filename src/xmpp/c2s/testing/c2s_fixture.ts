import { Buffer } from "node:buffer";
import type { Clock, FairShares } from "../../../base/mod.ts";
import { ManualClock } from "../../../base/mod.ts";
import type { Connection, MemoryPairOptions } from "../../../net/mod.ts";
import { memoryConnectionPair } from "../../../net/mod.ts";
import { MemoryLogger } from "../../../observe/mod.ts";
import { errorReply } from "../../stanza/error_reply.ts";
import type { FullJid } from "../../jid/jid.ts";
import type { CredentialSource, ScramCredentials } from "../../sasl/mod.ts";
import { deriveScramCredentials } from "../../sasl/mod.ts";
import type { StreamManagementOptions } from "../../sm/mod.ts";
import { isWorthRouting, StreamManagement } from "../../sm/mod.ts";
import type { Stanza } from "../../stanza/stanza.ts";
import { MemoryMetrics } from "../../stream/testing/memory_metrics.ts";
import { RawPeer } from "../../stream/testing/raw_peer.ts";
import type { StanzaSource } from "../../stream/stanza_sink.ts";
import { TestDelivery } from "./delivery.ts";
import type { C2sListenerDeps } from "../c2s_listener.ts";
import { C2sListener } from "../c2s_listener.ts";
import type { C2sSession } from "../c2s_session.ts";
import type { SessionRegistryEvents } from "../local_session.ts";
import { SessionRegistry } from "../session_registry.ts";

const ITERATIONS = 16;
const USERS = ["alice", "bob", "carol"];

/** Returns a user's password: the user's name in reverse. */
export function passwordOf(user: string): string {
  return [...user].reverse().join("");
}

const CREDENTIALS = new Map<string, ScramCredentials>(
  await Promise.all(
    USERS.map(async (user) =>
      [user, await deriveScramCredentials(passwordOf(user), ITERATIONS)] as const
    ),
  ),
);

const ACCOUNTS: CredentialSource = {
  credentials: (localpart) => Promise.resolve(CREDENTIALS.get(localpart)),
};

/** The hosts of every fixture. */
export const HOSTS: ReadonlyMap<string, CredentialSource> = new Map([["example.com", ACCOUNTS]]);

export type FixtureOptions = Partial<Omit<C2sListenerDeps, "management">> & {
  readonly events?: SessionRegistryEvents;
  readonly maxSessionsPerAccount?: number;
  /** Turns stream management on. */
  readonly management?: StreamManagementOptions;
  /** Budget for everything that its sessions keep. */
  readonly budget?: FairShares;
  /** Reports whether a session has moved elsewhere, as the session table would. */
  readonly hasMoved?: (jid: FullJid) => Promise<boolean>;
};

/**
 * A listener with accounts. Its sink delivers to its own sessions, and answers a stanza that reaches
 * none.
 */
export class C2sFixture implements AsyncDisposable {
  readonly clock: Clock & { advance?(byMs: number): void };
  readonly metrics = new MemoryMetrics();
  readonly log = new MemoryLogger();
  readonly opened: string[] = [];
  readonly closed: string[] = [];
  /** Everything that sessions gave to the sink. */
  readonly accepted: Stanza[] = [];
  readonly sources: StanzaSource[] = [];
  readonly registry: SessionRegistry;
  readonly listener: C2sListener;
  readonly management: StreamManagement<C2sSession> | undefined;
  /** Everything that ended sessions returned, before it was delivered anew. */
  readonly rerouted: Stanza[] = [];
  readonly #peers: RawPeer[] = [];

  constructor(options: FixtureOptions = {}) {
    const { events, maxSessionsPerAccount, management, budget, hasMoved, ...listenerOptions } =
      options;
    this.clock = options.clock ?? new ManualClock();
    this.registry = new SessionRegistry({
      events: events ?? {
        opened: (jid: FullJid) => this.#note(this.opened, jid),
        closed: (jid: FullJid) => this.#note(this.closed, jid),
      },
      accountIq: () => "service-unavailable",
      ...(maxSessionsPerAccount === undefined ? {} : { maxSessionsPerAccount }),
    });
    this.management = management && new StreamManagement<C2sSession>(management, {
      metrics: this.metrics,
      clock: this.clock,
      log: this.log,
      returned: (delivery, reason) => {
        if (reason === "unreadable") {
          const reply = errorReply(delivery.stanza, "not-acceptable");
          if (reply !== undefined) this.registry.deliver(reply);
          return;
        }
        this.rerouted.push(delivery.stanza);
        if (delivery instanceof TestDelivery && isWorthRouting(delivery.stanza)) {
          this.route(delivery);
        }
      },
      ...(hasMoved === undefined ? {} : { hasMoved }),
      ...(budget === undefined ? {} : { budget }),
    });
    this.listener = new C2sListener({
      hosts: HOSTS,
      registry: this.registry,
      sink: {
        accept: (stanza, source, fate, number) => {
          this.accepted.push(stanza);
          this.sources.push(source);
          this.route(new TestDelivery(stanza, fate, number));
        },
      },
      metrics: this.metrics,
      log: this.log,
      clock: this.clock,
      scramIterations: ITERATIONS,
      maxHeldPresence: 0, // most tests name all features of a stream
      ...(this.management === undefined ? {} : { management: this.management }),
      ...listenerOptions,
    });
  }

  /** Returns a client's end of a connection in memory, encrypted by default. */
  connect(options: MemoryPairOptions = {}): RawPeer {
    const [client, server] = memoryConnectionPair({ isEncrypted: true, ...options });
    this.listener.accept(server);
    return this.play(client);
  }

  /** Returns a client inside TLS that seems to come from another machine. */
  connectFrom(remoteAddress: string): RawPeer {
    const [client, server] = memoryConnectionPair({ isEncrypted: true });
    const connection = new Proxy<Connection>(server, {
      get(target, name) {
        if (name === "isLoopback") return false;
        if (name === "remoteAddress") return remoteAddress;
        const value = Reflect.get(target, name, target);
        return typeof value === "function" ? value.bind(target) : value;
      },
    });
    this.listener.accept(connection);
    return this.play(client);
  }

  play(connection: Connection): RawPeer {
    const peer = new RawPeer(connection);
    this.#peers.push(peer);
    return peer;
  }

  /** Returns a client that has logged in and bound, and has sent no presence. */
  async login(user: string, resource: string, options: MemoryPairOptions = {}): Promise<RawPeer> {
    const peer = this.connect(options);
    await authenticate(peer, user);
    await bind(peer, resource);
    return peer;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.listener.close();
    for (const peer of this.#peers) if (!peer.isClosed) peer.close();
    await Promise.all(this.#peers.map((peer) => peer.expectClosed()));
  }

  #note(list: string[], jid: FullJid): Promise<void> {
    list.push(jid.text);
    return Promise.resolve();
  }

  /** Delivers to the sessions here, or answers with an error. */
  route(delivery: TestDelivery): void {
    const { stanza } = delivery;
    const outcome = this.registry.deliver(stanza, delivery);
    if (!delivery.isKept) delivery.settle();
    if (outcome === "delivered" || outcome === "ignored") return;
    const isAbsent = outcome === "no-session" || outcome === "hidden";
    const condition = isAbsent ? "service-unavailable" : outcome;
    const reply = errorReply(stanza, condition);
    if (reply !== undefined) this.registry.deliver(reply);
  }
}

export const HEADER = "<?xml version='1.0'?><stream:stream to='example.com' version='1.0' " +
  "xml:lang='en' xmlns='jabber:client' xmlns:stream='http://etherx.jabber.org/streams'>";

export const SASL = "urn:ietf:params:xml:ns:xmpp-sasl";

export const SASL2 = "urn:xmpp:sasl:2";

/** The stream features of mechanisms, by RFC 6120 and by XEP-0388, without stream management. */
export function mechanismsXml(...names: readonly string[]): string {
  const each = names.map((name) => `<mechanism>${name}</mechanism>`).join("");
  return `<mechanisms xmlns='${SASL}'>${each}</mechanisms><authentication xmlns='${SASL2}'>${each}` +
    "<inline><bind xmlns='urn:xmpp:bind:0'/></inline></authentication>";
}

export function plainOf(user: string, password = passwordOf(user), authzid = ""): string {
  const text = Buffer.from(`${authzid}\0${user}\0${password}`).toString("base64");
  return `<auth xmlns='${SASL}' mechanism='PLAIN'>${text}</auth>`;
}

/** Opens a stream, logs in by PLAIN, and opens the next stream. */
export async function authenticate(peer: RawPeer, user: string): Promise<void> {
  peer.send(HEADER);
  await peer.expect("</stream:features>");
  await peer.exchange(plainOf(user), `<success xmlns='${SASL}'/>`);
  peer.send(HEADER);
  await peer.expect("</stream:features>");
}

/** Binds and returns the full JID. */
export async function bind(peer: RawPeer, resource?: string): Promise<string> {
  const child = resource === undefined ? "" : `<resource>${resource}</resource>`;
  const match = await peer.exchange(
    `<iq type='set' id='b1'><bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'>${child}</bind></iq>`,
    /<iq type='result' id='b1'><bind [^>]*><jid>([^<]*)<\/jid><\/bind><\/iq>/,
  );
  return match[1]!;
}

/** Checks that only `text`s arrive before anything that is sent from now on. */
export async function expectOnly(
  peer: RawPeer,
  jid: string,
  ...texts: (string | RegExp)[]
): Promise<void> {
  for (const text of texts) await peer.expectNext(text);
  await peer.exchange(
    `<message id='marker' to='${jid}'/>`,
    new RegExp(`^<message from='${RegExp.escape(jid)}'[^>]*id='marker'[^>]*/>`),
  );
}
