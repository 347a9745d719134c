import { join } from "node:path";
import { SystemClock } from "../../../src/base/mod.ts";
import type { Listener } from "../../../src/net/mod.ts";
import { listen, TlsContextHolder } from "../../../src/net/mod.ts";
import { MetricsRegistry } from "../../../src/observe/mod.ts";
import type { CredentialSource, Stanza } from "../../../src/xmpp/mod.ts";
import {
  C2sListener,
  ComponentListener,
  ComponentRegistry,
  deriveScramCredentials,
  errorReply,
  SessionRegistry,
} from "../../../src/xmpp/mod.ts";
import { CertificateAuthority, writeCertificate } from "../../certificates.ts";
import { until } from "../../until.ts";
import type { ClientSecurity } from "../chat_client.ts";

export const DOMAIN = "example.com";
export const PASSWORD = "wonder,=land";
export const COMPONENT = { domain: "echo.example.com", secret: "s3cret" } as const;

const ITERATIONS = 100;
const NAMES = ["alice", "bob"];
const SETTLED = () => Promise.resolve();

/** One server without datacenters, for the clients to be tested against. */
export class TestServer implements AsyncDisposable {
  readonly caFile: string;
  readonly caPem: string;
  readonly #parts = new AsyncDisposableStack();
  readonly #listeners: Listener[] = [];
  readonly #ports = new Map<ClientSecurity | "component", number>();
  readonly #sessions: SessionRegistry;
  readonly #components = new ComponentRegistry({ connected: SETTLED, disconnected: SETTLED });

  private constructor(directory: string, authority: CertificateAuthority) {
    this.caFile = join(directory, "ca.pem");
    this.caPem = authority.certificatePem;
    this.#sessions = new SessionRegistry({
      events: { opened: SETTLED, closed: SETTLED },
      accountIq: () => "service-unavailable",
    });
  }

  /** `certificateName` is whom its certificate is for. */
  static async start(certificateName: string = DOMAIN): Promise<TestServer> {
    const directory = await Deno.makeTempDir({ prefix: "causeway-clients-" });
    const authority = await CertificateAuthority.create();
    const server = new TestServer(directory, authority);
    server.#parts.defer(() => Deno.remove(directory, { recursive: true }));
    await Deno.writeTextFile(server.caFile, server.caPem);
    const certificate = await authority.issue({ names: [certificateName] });
    const context = await TlsContextHolder.load(
      await writeCertificate(certificate, { directory, name: "server" }),
    );
    await server.#listen({
      starttls: { mode: "starttls", context },
      direct: { mode: "direct", context },
    });
    return server;
  }

  port(kind: ClientSecurity | "component"): number {
    return this.#ports.get(kind)!; // `start` has opened one for each
  }

  /** Returns the login options of a client for `localpart`. */
  optionsFor(localpart: string, security: ClientSecurity) {
    const { caFile } = this;
    const port = this.port(security);
    return { port, domain: DOMAIN, localpart, password: PASSWORD, security, caFile };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#parts.disposeAsync();
  }

  async #listen(
    tls: Record<"starttls" | "direct", NonNullable<Parameters<typeof listen>[0]["tls"]>>,
  ): Promise<void> {
    const credentials = await deriveScramCredentials(PASSWORD, ITERATIONS);
    const source: CredentialSource = {
      credentials: (name) => Promise.resolve(NAMES.includes(name) ? credentials : undefined),
    };
    const metrics = new MetricsRegistry(new SystemClock());
    this.#parts.defer(() => metrics.close());
    const common = { sink: { accept: (stanza: Stanza) => this.#route(stanza) }, metrics };
    const accounts = {
      ...common,
      hosts: new Map([[DOMAIN, source]]),
      registry: this.#sessions,
      scramIterations: ITERATIONS,
    };
    const encrypted = new C2sListener(accounts);
    const plain = new C2sListener({ ...accounts, allowPlaintext: true });
    const components = new ComponentListener({
      host: DOMAIN,
      ...common,
      domains: new Map([[COMPONENT.domain, { secret: COMPONENT.secret, isHidden: false }]]),
      registry: this.#components,
    });
    // Pushed first, so that it is waited for last: a connection that lingers keeps a timer.
    this.#parts.defer(() => this.#untilAlone());
    for (const edge of [encrypted, plain, components]) this.#parts.defer(() => edge.close());
    await this.#open("starttls", encrypted, tls.starttls);
    await this.#open("direct", encrypted, tls.direct);
    await this.#open("none", plain);
    await this.#open("component", components);
  }

  async #open(
    kind: ClientSecurity | "component",
    edge: C2sListener | ComponentListener,
    tls?: Parameters<typeof listen>[0]["tls"],
  ): Promise<void> {
    const options = { host: "127.0.0.1", port: 0, ...(tls === undefined ? {} : { tls }) };
    const listener: Listener = await listen(options, {
      accepted: (connection) => edge.accept(connection),
    });
    this.#ports.set(kind, listener.port);
    this.#listeners.push(listener);
    this.#parts.defer(() => listener.close());
  }

  async #untilAlone(): Promise<void> {
    await until(() => this.#listeners.every(({ connectionCount }) => connectionCount === 0), {
      what: "every connection has ended",
      everyMs: 1,
    });
  }

  #route(stanza: Stanza): void {
    const isForAccount = stanza.to.domainpart === DOMAIN;
    const outcome = (isForAccount ? this.#sessions : this.#components).deliver(stanza);
    if (outcome === "delivered" || outcome === "ignored") return;
    const isAbsent = outcome === "no-session" || outcome === "hidden";
    const condition = isAbsent ? "service-unavailable" : outcome;
    const reply = errorReply(stanza, condition);
    if (reply !== undefined) this.#route(reply);
  }
}
