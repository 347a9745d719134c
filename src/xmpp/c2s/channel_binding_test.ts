import assert from "node:assert/strict";
import { connect as connectPlain } from "node:net";
import { once } from "node:events";
import type { Socket } from "node:net";
import { connect as connectTls } from "node:tls";
import type { TLSSocket } from "node:tls";
// @ts-types="./testing/pg_sasl.d.ts"
import sasl from "pg/lib/crypto/sasl";
import { ScramExchange } from "../../../harness/clients/scram.ts";
import type { RawBinding } from "../../../harness/clients/scram.ts";
import { SystemClock } from "../../base/mod.ts";
import { listen } from "../../net/mod.ts";
import type { TlsContextHolder, TlsFiles } from "../../net/mod.ts";
import { TestCertificates } from "../../net/testing/certificates.ts";
import type { CredentialSource } from "../sasl/mod.ts";
import { deriveScramCredentials } from "../sasl/mod.ts";
import type { RawPeer } from "../stream/testing/raw_peer.ts";
import {
  C2sFixture,
  HEADER,
  mechanismsXml,
  passwordOf,
  SASL,
  SASL2,
} from "./testing/c2s_fixture.ts";

const END_POINT = Uint8Array.from({ length: 32 }, (_, i) => i);
const STARTTLS = "<starttls xmlns='urn:ietf:params:xml:ns:xmpp-tls'/>";
const ANNOUNCED = "<sasl-channel-binding xmlns='urn:xmpp:sasl-cb:0'>" +
  "<channel-binding type='tls-server-end-point'/></sasl-channel-binding>";
const BOUND: RawBinding = { gs2Header: "p=tls-server-end-point,,", channelData: END_POINT };

/** Opens a stream and returns its features. */
async function open(peer: RawPeer): Promise<string> {
  peer.send(HEADER);
  const match = await peer.expect(/<stream:features>(.*?)<\/stream:features>/s);
  return match[1]!;
}

interface Attempt {
  readonly mechanism: string;
  readonly binding: RawBinding;
  /** Changes the final message, as somebody between client and server might. */
  readonly tamper?: (final: string) => string;
}

/** The elements in which a profile of SASL wraps an exchange. */
interface Profile {
  readonly name: string;
  readonly namespace: string;
  /** Writes the first element of the client. */
  auth(mechanism: string, data: string): string;
}

/** RFC 6120 §6 and XEP-0388. */
const PROFILES: readonly [Profile, Profile] = [
  {
    name: "SASL",
    namespace: SASL,
    auth: (mechanism, data) => `<auth xmlns='${SASL}' mechanism='${mechanism}'>${data}</auth>`,
  },
  {
    name: "SASL2",
    namespace: SASL2,
    auth: (mechanism, data) =>
      `<authenticate xmlns='${SASL2}' mechanism='${mechanism}'>` +
      `<initial-response>${data}</initial-response></authenticate>`,
  },
];

/** Plays one SCRAM exchange as alice; returns the name of its last element and its condition. */
async function attempt(
  peer: RawPeer,
  { mechanism, binding, tamper }: Attempt,
  { namespace, auth }: Profile = PROFILES[0],
): Promise<string> {
  const hash = mechanism.startsWith("SCRAM-SHA-1") ? "SCRAM-SHA-1" : "SCRAM-SHA-256";
  const client = new ScramExchange(
    hash,
    { localpart: "alice", password: passwordOf("alice") },
    binding,
  );
  const answer = new RegExp(
    `^<(challenge|success|failure) xmlns='${namespace}'>(?:<additional-data>)?` +
      "(?:<([a-z-]+)(?: xmlns='[^']*')?/>|([^<]*))(?:</additional-data><.*?)?</\\1>",
  );
  const first = await peer.exchange(auth(mechanism, client.first()), answer);
  if (first[1] !== "challenge") return `${first[1]} ${first[2]}`;
  const final = client.final(first[3]!);
  const last = await peer.exchange(
    `<response xmlns='${namespace}'>${tamper?.(final) ?? final}</response>`,
    answer,
  );
  if (last[1] !== "success") return `${last[1]} ${last[2]}`;
  client.verify(last[3]!);
  return "success";
}

Deno.test("C2sListener offers SCRAM with channel binding inside TLS, and says by which type", async () => {
  await using fixture = new C2sFixture();
  const peer = fixture.connect({ serverEndPoint: END_POINT });
  assert.equal(
    await open(peer),
    mechanismsXml(
      ...["SCRAM-SHA-256-PLUS", "SCRAM-SHA-1-PLUS", "SCRAM-SHA-256", "SCRAM-SHA-1", "PLAIN"],
    ) + ANNOUNCED,
  );
});

for (const mechanism of ["SCRAM-SHA-256-PLUS", "SCRAM-SHA-1-PLUS"]) {
  Deno.test(`C2sListener lets an account in by ${mechanism}`, async () => {
    await using fixture = new C2sFixture();
    const peer = fixture.connect({ serverEndPoint: END_POINT });
    await open(peer);
    assert.equal(await attempt(peer, { mechanism, binding: BOUND }), "success");
    const labels = { edge: "c2s", mechanism };
    assert.equal(fixture.metrics.value("xmpp_auth_successes_total", labels), 1);
  });
}

const toOtherChannel = { ...BOUND, channelData: END_POINT.toReversed() };

/** Attempts to get by with less protection than both sides have. */
const DOWNGRADES: readonly [what: string, outcome: string, attempt: Attempt][] = [
  ["the -PLUS mechanisms were hidden from a client that can bind", "failure mechanism-too-weak", {
    mechanism: "SCRAM-SHA-256",
    binding: { gs2Header: "y,," },
  }],
  ["they were hidden, and the flag was changed on the way", "failure malformed-request", {
    mechanism: "SCRAM-SHA-256",
    binding: { gs2Header: "n,," },
    tamper: (final) => btoa(atob(final).replace("c=biws", "c=eSws")),
  }],
  ["another server's certificate is in between", "failure not-authorized", {
    mechanism: "SCRAM-SHA-256-PLUS",
    binding: toOtherChannel,
  }],
  ["that server puts ours into the message", "failure not-authorized", {
    mechanism: "SCRAM-SHA-256-PLUS",
    binding: toOtherChannel,
    tamper: (final) => {
      const ours = btoa(BOUND.gs2Header + String.fromCharCode(...END_POINT));
      return btoa(atob(final).replace(/^c=[^,]*/, `c=${ours}`));
    },
  }],
  ["a -PLUS mechanism is used without a binding", "failure malformed-request", {
    mechanism: "SCRAM-SHA-256-PLUS",
    binding: { gs2Header: "n,," },
  }],
  ["a -PLUS mechanism is used with flag y", "failure malformed-request", {
    mechanism: "SCRAM-SHA-1-PLUS",
    binding: { gs2Header: "y,," },
  }],
  ["the binding type is tls-unique", "failure malformed-request", {
    mechanism: "SCRAM-SHA-256-PLUS",
    binding: { ...BOUND, gs2Header: "p=tls-unique,," },
  }],
  ["the binding type is tls-exporter", "failure malformed-request", {
    mechanism: "SCRAM-SHA-256-PLUS",
    binding: { ...BOUND, gs2Header: "p=tls-exporter,," },
  }],
  ["a mechanism without -PLUS is bound", "failure malformed-request", {
    mechanism: "SCRAM-SHA-256",
    binding: BOUND,
  }],
];

for (const profile of PROFILES) {
  for (const [what, outcome, trial] of DOWNGRADES) {
    Deno.test(`C2sListener refuses a login by ${profile.name} where ${what}`, async () => {
      await using fixture = new C2sFixture();
      const peer = fixture.connect({ serverEndPoint: END_POINT });
      await open(peer);
      assert.equal(await attempt(peer, trial, profile), outcome);
      // The account is as it was: a client that tells the truth gets in.
      const honest = { mechanism: "SCRAM-SHA-256-PLUS", binding: BOUND };
      assert.equal(await attempt(peer, honest, profile), "success");
    });
  }
}

Deno.test("C2sListener lets a client in that cannot bind, where others could", async () => {
  await using fixture = new C2sFixture();
  const peer = fixture.connect({ serverEndPoint: END_POINT });
  await open(peer);
  const outcome = await attempt(peer, {
    mechanism: "SCRAM-SHA-256",
    binding: { gs2Header: "n,," },
  });
  assert.equal(outcome, "success");
});

Deno.test("C2sListener offers no channel binding outside TLS, even where plaintext is allowed", async () => {
  await using fixture = new C2sFixture({ allowPlaintext: true });
  const peer = fixture.connect({ isEncrypted: false, serverEndPoint: END_POINT });
  const features = await open(peer);
  assert.match(features, /<mechanism>SCRAM-SHA-256<\/mechanism>/);
  assert.doesNotMatch(features, /PLUS|channel-binding/);
  const refused = { mechanism: "SCRAM-SHA-256-PLUS", binding: BOUND };
  assert.equal(await attempt(peer, refused), "failure encryption-required");
  // Flag y tells the truth here: there is nothing to bind to.
  const truthful = { mechanism: "SCRAM-SHA-256", binding: { gs2Header: "y,," } };
  assert.equal(await attempt(peer, truthful), "success");
});

Deno.test("C2sListener offers channel binding once STARTTLS is done", async () => {
  await using fixture = new C2sFixture();
  const peer = fixture.connect({ isEncrypted: false, serverEndPoint: END_POINT });
  assert.doesNotMatch(await open(peer), /PLUS|channel-binding/);
  await peer.exchange(STARTTLS, /^<proceed [^>]*>/);
  assert.match(await open(peer), /SCRAM-SHA-256-PLUS.*channel-binding/);
  const bound = { mechanism: "SCRAM-SHA-256-PLUS", binding: BOUND };
  assert.equal(await attempt(peer, bound), "success");
});

for (
  const [what, options, listener] of [
    ["a certificate without a binding", {}, {}],
    ["channelBinding off", { serverEndPoint: END_POINT }, { channelBinding: false }],
  ] as const
) {
  Deno.test(`C2sListener offers no channel binding with ${what}, and takes flag y for true`, async () => {
    await using fixture = new C2sFixture(listener);
    const peer = fixture.connect(options);
    assert.doesNotMatch(await open(peer), /PLUS|channel-binding/);
    const refused = { mechanism: "SCRAM-SHA-256-PLUS", binding: BOUND };
    assert.equal(await attempt(peer, refused), "failure invalid-mechanism");
    const truthful = { mechanism: "SCRAM-SHA-256", binding: { gs2Header: "y,," } };
    assert.equal(await attempt(peer, truthful), "success");
  });
}

/** The text that comes from a socket. */
class SocketText {
  readonly #socket: Socket;
  #unread = "";
  #isOver = false;
  #wake: () => void = () => {};
  readonly #onData = (chunk: Uint8Array): void => {
    this.#unread += new TextDecoder().decode(chunk); // what a server says here is ASCII
    this.#wake();
  };

  constructor(socket: Socket) {
    this.#socket = socket;
    socket.on("error", () => {}); // The end of the socket follows.
    socket.on("data", this.#onData);
    socket.once("close", () => {
      this.#isOver = true;
      this.#wake();
    });
  }

  /** Waits for a pattern, and takes everything up to its end. */
  async until(pattern: RegExp): Promise<RegExpExecArray> {
    for (;;) {
      const match = pattern.exec(this.#unread);
      if (match !== null) {
        this.#unread = this.#unread.slice(match.index + match[0].length);
        return match;
      }
      if (this.#isOver) assert.fail(`Closed while waiting for ${pattern}: ${this.#unread}`);
      await new Promise<void>((resolve) => this.#wake = resolve);
    }
  }

  /** Leaves the rest to somebody else. */
  stop(): void {
    this.#socket.off("data", this.#onData);
    this.#socket.pause();
  }
}

/** A client whose SCRAM is the PostgreSQL driver's, over real TLS. */
class PgClient {
  readonly socket: TLSSocket;
  readonly #text: SocketText;

  private constructor(socket: TLSSocket) {
    this.socket = socket;
    this.#text = new SocketText(socket);
  }

  static async connect(port: number, security: "direct" | "starttls"): Promise<PgClient> {
    const plain = connectPlain({ host: "127.0.0.1", port });
    await once(plain, "connect");
    if (security === "starttls") {
      const text = new SocketText(plain);
      plain.write(HEADER + STARTTLS);
      await text.until(/<proceed [^>]*>/);
      text.stop();
    }
    const socket = connectTls({ socket: plain, rejectUnauthorized: false });
    await once(socket, "secureConnect");
    return new PgClient(socket);
  }

  /**
   * Logs in as `*`, the only name that the driver sends.
   * @param hide changes the features, as somebody in between might
   */
  async logIn(hide = (features: string): string => features): Promise<string> {
    const { socket } = this;
    socket.write(HEADER);
    const [features] = await this.#text.until(/<stream:features>.*<\/stream:features>/s);
    const offered = [...hide(features!).matchAll(/<mechanism>([^<]*)</g)].map(([, name]) => name!);
    const session = sasl.startSession(offered, socket);
    const { mechanism } = session;
    socket.write(`<auth xmlns='${SASL}' mechanism='${mechanism}'>${btoa(session.response)}</auth>`);
    const [, challenge, refusal] = await this.#text.until(
      /<challenge [^>]*>([^<]*)<\/challenge>|<failure [^>]*><([a-z-]+)\/>/,
    );
    if (challenge === undefined) return `${refusal} by ${mechanism}`;
    await sasl.continueSession(session, PG_PASSWORD, atob(challenge), socket);
    socket.write(`<response xmlns='${SASL}'>${btoa(session.response)}</response>`);
    const [, success] = await this.#text.until(/<success [^>]*>([^<]*)<\/success>/);
    sasl.finalizeSession(session, atob(success!));
    return `success by ${mechanism}`;
  }

  async close(): Promise<void> {
    const closed = once(this.socket, "close");
    this.socket.end("</stream:stream>");
    await closed;
  }
}

const PG_PASSWORD = "s3cret";

async function replace(context: TlsContextHolder, by: Required<TlsFiles>): Promise<void> {
  await Deno.copyFile(by.certfile, context.files.certfile);
  await Deno.copyFile(by.keyfile, context.files.keyfile!);
  await context.reload();
}

for (const security of ["direct", "starttls"] as const) {
  Deno.test(`a foreign client binds to the certificate that it was shown, by ${security} TLS and after a reload`, async () => {
    await using certificates = await TestCertificates.create();
    const authority = await certificates.authority();
    const context = await authority.holder("example.com");
    const account = await deriveScramCredentials(PG_PASSWORD, 16);
    const accounts: CredentialSource = {
      credentials: (localpart) => Promise.resolve(localpart === "*" ? account : undefined),
    };
    await using fixture = new C2sFixture({
      clock: new SystemClock(),
      hosts: new Map([["example.com", accounts]]),
    });
    const tls = { mode: security, context };
    const listener = await listen({ host: "127.0.0.1", port: 0, tls }, {
      accepted: (connection) => fixture.listener.accept(connection),
    });
    const { port } = listener;
    const bound = "success by SCRAM-SHA-256-PLUS";
    const before = await PgClient.connect(port, security);
    const overlapping = await PgClient.connect(port, security);
    assert.equal(await before.logIn(), bound);

    await replace(context, await authority.issue({ names: ["example.com"] }));
    assert.equal(await overlapping.logIn(), bound, "connected before the reload");
    const after = await PgClient.connect(port, security);
    assert.equal(await after.logIn(), bound, "connected after the reload");
    const deceived = await PgClient.connect(port, security);
    const hide = (features: string) => features.replace(/<mechanism>[^<]*-PLUS<\/mechanism>/g, "");
    assert.equal(await deceived.logIn(hide), "mechanism-too-weak by SCRAM-SHA-256");
    for (const client of [before, overlapping, after, deceived]) await client.close();
    await listener.close();
  });
}
