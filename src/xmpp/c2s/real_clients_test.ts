import assert from "node:assert/strict";
import { join } from "node:path";
import { CertificateAuthority, writeCertificate } from "../../../harness/certificates.ts";
import type { ChatClient, ClientSecurity } from "../../../harness/clients/mod.ts";
import { SlixmppClient, XmppComponent, XmppJsClient } from "../../../harness/clients/mod.ts";
import { SystemClock } from "../../base/mod.ts";
import type { Listener, ListenerTls } from "../../net/mod.ts";
import { listen, TlsContextHolder } from "../../net/mod.ts";
import { ComponentListener, ComponentRegistry } from "../component/mod.ts";
import { errorReply } from "../stanza/error_reply.ts";
import type { Stanza } from "../stanza/stanza.ts";
import type { StanzaSink } from "../stream/stanza_sink.ts";
import { C2sFixture, HOSTS, passwordOf } from "./testing/c2s_fixture.ts";
import { C2sListener } from "./c2s_listener.ts";

/** A server on real sockets, with one port for each kind of security and one for components. */
class RealServer implements AsyncDisposable {
  readonly caFile: string;
  readonly fixture: C2sFixture;
  readonly components: ComponentRegistry;
  /** The listener that allows plaintext. */
  readonly #plainListener: C2sListener;
  readonly #componentListener: ComponentListener;
  readonly #ports = new Map<string, Listener>();
  readonly #directory: string;

  private constructor(directory: string) {
    this.#directory = directory;
    this.caFile = join(directory, "ca.pem");
    this.components = new ComponentRegistry({
      connected: () => Promise.resolve(),
      disconnected: () => Promise.resolve(),
    });
    const sink: StanzaSink = {
      accept: (stanza, _source, fate, number) => {
        this.#route(stanza);
        fate?.settle(number!); // they come together
      },
    };
    this.fixture = new C2sFixture({ sink, clock: new SystemClock(), management: {} });
    const { registry, metrics } = this.fixture;
    this.#plainListener = new C2sListener({
      hosts: HOSTS,
      registry,
      sink,
      metrics,
      allowPlaintext: true,
    });
    this.#componentListener = new ComponentListener({
      host: "example.com",
      domains: new Map([["echo.example.com", { secret: "s3cret", isHidden: false }]]),
      registry: this.components,
      sink,
      metrics,
    });
  }

  static async start(): Promise<RealServer> {
    const directory = await Deno.makeTempDir({ prefix: "causeway-c2s-" });
    const server = new RealServer(directory);
    const authority = await CertificateAuthority.create();
    await Deno.writeTextFile(server.caFile, authority.certificatePem);
    const certificate = await authority.issue({ names: ["example.com"] });
    const files = await writeCertificate(certificate, { directory, name: "server" });
    const context = await TlsContextHolder.load(files);
    await server.#listen("starttls", { mode: "starttls", context });
    await server.#listen("direct", { mode: "direct", context });
    await server.#listen("none", undefined);
    server.#ports.set(
      "component",
      await listen({ host: "127.0.0.1", port: 0 }, {
        accepted: (connection) => server.#componentListener.accept(connection),
      }),
    );
    return server;
  }

  port(kind: ClientSecurity | "component"): number {
    return this.#ports.get(kind)!.port;
  }

  optionsFor(localpart: string, security: ClientSecurity) {
    return {
      port: this.port(security),
      domain: "example.com",
      localpart,
      password: passwordOf(localpart),
      resource: "test",
      security,
      caFile: this.caFile,
    };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#componentListener.close();
    await this.#plainListener.close();
    await this.fixture[Symbol.asyncDispose]();
    for (const listener of this.#ports.values()) await listener.close();
    await Deno.remove(this.#directory, { recursive: true });
  }

  async #listen(kind: string, tls: ListenerTls | undefined): Promise<void> {
    const options = { host: "127.0.0.1", port: 0, ...(tls === undefined ? {} : { tls }) };
    const listener = tls === undefined ? this.#plainListener : this.fixture.listener;
    const accepted = listener.accept.bind(listener);
    this.#ports.set(kind, await listen(options, { accepted }));
  }

  #route(stanza: Stanza): void {
    const isForComponent = stanza.to.domainpart !== "example.com";
    const outcome = (isForComponent ? this.components : this.fixture.registry).deliver(stanza);
    if (outcome === "delivered" || outcome === "ignored") return;
    const isAbsent = outcome === "no-session" || outcome === "hidden";
    const condition = isAbsent ? "service-unavailable" : outcome;
    const reply = errorReply(stanza, condition);
    if (reply !== undefined) this.#route(reply);
  }
}

async function talk(from: ChatClient, to: ChatClient): Promise<void> {
  const body = `Grüße an ${to.jid} & <alle>`;
  await from.sendMessage(to.jid, body);
  const message = await to.expectMessage(body);
  assert.equal(message.from, from.jid);
  assert.equal(message.to, to.jid);
}

for (const security of ["starttls", "direct", "none"] as const) {
  for (const mechanism of ["SCRAM-SHA-1", "PLAIN"] as const) {
    Deno.test(`@xmpp/client logs in by ${mechanism} over ${security} and talks to slixmpp`, async () => {
      await using server = await RealServer.start();
      await using alice = await XmppJsClient.connect({
        ...server.optionsFor("alice", security),
        mechanism,
      });
      await using bob = await SlixmppClient.connect({
        ...server.optionsFor("bob", security),
        ...(mechanism === "PLAIN" ? { mechanism } : {}),
      });
      assert.equal(alice.jid, "alice@example.com/test");
      assert.equal(bob.jid, "bob@example.com/test");
      await talk(alice, bob);
      await talk(bob, alice);
      await alice.presence();
      await alice.sendMessage("bob@example.com", "too early");
      const error = await alice.expectStanza((stanza) => stanza.type === "error");
      assert.equal(error.errorCondition, "service-unavailable");
      await bob.presence({ priority: 3 });
      await bob.expectStanza((stanza) => stanza.kind === "presence" && stanza.from === bob.jid);
      await alice.sendMessage("bob@example.com", "now");
      await bob.expectMessage("now");
      await bob.disconnect();
      await alice.disconnect();
    });
  }
}

const INSTALLATION = "d4565fa7-4d72-4749-b3d3-740edbf87770";

Deno.test("@xmpp/client logs in and binds by SASL2, and resumes together with its next login", async () => {
  await using server = await RealServer.start();
  const options = { streamManagement: true, sasl2As: INSTALLATION };
  await using alice = await XmppJsClient.connect({
    ...server.optionsFor("alice", "starttls"),
    ...options,
  });
  assert.match(alice.jid, /^alice@example\.com\/test\/[0-9a-f]{16}$/);
  await using bob = await XmppJsClient.connect(server.optionsFor("bob", "direct"));
  await talk(alice, bob);
  await talk(bob, alice);
  await alice.drop();
  await bob.sendMessage(alice.jid, "while it was away");
  await alice.comeBack();
  await alice.expectMessage("while it was away");
  await talk(alice, bob);
  const { metrics } = server.fixture;
  const labels = { edge: "c2s", mechanism: "SCRAM-SHA-1" };
  assert.equal(metrics.value("xmpp_auth_successes_total", labels), 3);
  assert.equal(metrics.value("xmpp_sm_resumed_total", {}), 1);
});

Deno.test("@xmpp/client has the same address at each login by SASL2 with its id", async () => {
  await using server = await RealServer.start();
  const options = { ...server.optionsFor("alice", "direct"), sasl2As: INSTALLATION };
  await using older = await XmppJsClient.connect(options);
  await using newer = await XmppJsClient.connect(options);
  assert.equal(newer.jid, older.jid);
  await assert.rejects(older.expectMessage("nothing"), /conflict|disconnected/);
  await talk(newer, newer);
});

Deno.test("@xmpp/client learns of a wrong password by SASL2", async () => {
  await using server = await RealServer.start();
  const options = { ...server.optionsFor("alice", "starttls"), sasl2As: INSTALLATION };
  await assert.rejects(
    XmppJsClient.connect({ ...options, password: "wrong" }),
    /not-authorized/,
  );
});

Deno.test("@xmpp/client receives a named error for a wrong password", async () => {
  await using server = await RealServer.start();
  await assert.rejects(
    XmppJsClient.connect({ ...server.optionsFor("alice", "starttls"), password: "wrong" }),
    /not-authorized/,
  );
  const failures = { edge: "c2s", mechanism: "SCRAM-SHA-1", condition: "not-authorized" };
  assert.equal(server.fixture.metrics.value("xmpp_auth_failures_total", failures), 1);
});

Deno.test("@xmpp/client loses its session to a newer one of the same resource", async () => {
  await using server = await RealServer.start();
  await using older = await XmppJsClient.connect(server.optionsFor("alice", "direct"));
  await using newer = await XmppJsClient.connect(server.optionsFor("alice", "direct"));
  await assert.rejects(older.expectMessage("nothing"), /conflict|disconnected/);
  await talk(newer, newer);
});

Deno.test("@xmpp/component and a client talk to each other", async () => {
  await using server = await RealServer.start();
  await using echo = await XmppComponent.connect({
    port: server.port("component"),
    domain: "echo.example.com",
    secret: "s3cret",
  });
  await using alice = await SlixmppClient.connect(server.optionsFor("alice", "starttls"));
  await talk(alice, echo);
  await talk(echo, alice);
  await echo.disconnect();
  await alice.sendMessage("echo.example.com", "gone?");
  const error = await alice.expectStanza((stanza) => stanza.type === "error");
  assert.equal(error.errorCondition, "service-unavailable");
});
