import "reflect-metadata"; // @peculiar/x509 refuses to load without it
import {
  BasicConstraintsExtension,
  type JsonGeneralName,
  PemConverter,
  SubjectAlternativeNameExtension,
  X509CertificateGenerator,
} from "@peculiar/x509";
import type {
  Counter,
  Gauge,
  Histogram,
  MetricDeclaration,
  MetricLabels,
  Metrics,
} from "../../../observe/mod.ts";
import { MemoryLogger } from "../../../observe/mod.ts";
import { randomIncarnation } from "../../../base/mod.ts";
import { TlsContextHolder } from "../../../net/mod.ts";
import { parseJid } from "../../../xmpp/mod.ts";
import type { Fate } from "../../../xmpp/mod.ts";
import { Envelope } from "../../mod.ts";
import type { ReturnReason } from "../../mod.ts";
import type { LinkLayerDeps } from "../link_layer.ts";
import { LinkLayer } from "../link_layer.ts";
import type { EndpointAddress, LinkLayerEvents } from "../ports.ts";

const ALGORITHM = { name: "ECDSA", namedCurve: "P-256", hash: "SHA-256" } as const;
const DAY_MS = 86_400_000;

/** Certificates for one test, in a directory of their own that is removed with it. */
export class TestAuthority implements Disposable {
  readonly #directory: string;
  readonly #keys: CryptoKeyPair;
  #files = 0;

  private constructor(directory: string, keys: CryptoKeyPair) {
    this.#directory = directory;
    this.#keys = keys;
  }

  static async create(): Promise<TestAuthority> {
    const keys = await crypto.subtle.generateKey(ALGORITHM, true, ["sign", "verify"]);
    const authority = new TestAuthority(await Deno.makeTempDir(), keys as CryptoKeyPair);
    const certificate = await X509CertificateGenerator.createSelfSigned({
      serialNumber: "01",
      name: "CN=test authority",
      notBefore: new Date(Date.now() - DAY_MS),
      notAfter: new Date(Date.now() + DAY_MS),
      signingAlgorithm: ALGORITHM,
      keys: authority.#keys,
      extensions: [new BasicConstraintsExtension(true, 0, true)],
    });
    await Deno.writeTextFile(authority.cafile, certificate.toString("pem"));
    return authority;
  }

  get cafile(): string {
    return `${this.#directory}/ca.pem`;
  }

  /** Issues a certificate with `names`: DNS names, or other kinds of subject names. */
  async issue(
    ...names: (string | JsonGeneralName)[]
  ): Promise<{ certfile: string; keyfile: string }> {
    const keys = await crypto.subtle.generateKey(ALGORITHM, true, ["sign", "verify"]);
    const certificate = await X509CertificateGenerator.create({
      serialNumber: `0${++this.#files}`,
      subject: "CN=a node",
      issuer: "CN=test authority",
      notBefore: new Date(Date.now() - DAY_MS),
      notAfter: new Date(Date.now() + DAY_MS),
      signingAlgorithm: ALGORITHM,
      publicKey: (keys as CryptoKeyPair).publicKey,
      signingKey: this.#keys.privateKey,
      extensions: [
        new SubjectAlternativeNameExtension(
          names.map((name) =>
            typeof name === "string" ? { type: "dns" as const, value: name } : name
          ),
        ),
      ],
    });
    const key = await crypto.subtle.exportKey("pkcs8", (keys as CryptoKeyPair).privateKey);
    const base = `${this.#directory}/${this.#files}`;
    await Deno.writeTextFile(`${base}.pem`, certificate.toString("pem"));
    await Deno.writeTextFile(`${base}.key`, PemConverter.encode(key, "PRIVATE KEY"));
    return { certfile: `${base}.pem`, keyfile: `${base}.key` };
  }

  async holder(...names: (string | JsonGeneralName)[]): Promise<TlsContextHolder> {
    return await TlsContextHolder.load({ ...await this.issue(...names), cafile: this.cafile });
  }

  [Symbol.dispose](): void {
    Deno.removeSync(this.#directory, { recursive: true });
  }
}

/** Metrics by name and labels, as numbers; a histogram counts its observations. */
export class TestMetrics implements Metrics {
  readonly #values = new Map<string, { value: number }>();
  readonly #sums = new Map<string, number>();

  #cell(declaration: MetricDeclaration): { value: number } {
    const key = declaration.name + Object.values(declaration.labels ?? {}).map((l) => ` ${l}`);
    let cell = this.#values.get(key);
    if (cell === undefined) this.#values.set(key, cell = { value: 0 });
    return cell;
  }

  /**
   * Value of `name` without its prefix, then its label's value, as in `outgoing_messages_total
   * dc2`.
   */
  value(name: string): number {
    return this.#values.get(`mod_global_distrib_${name}`)?.value ?? 0;
  }

  /** The sum of what a histogram has observed; `name` as for `value`. */
  sum(name: string): number {
    return this.#sums.get(`mod_global_distrib_${name}`) ?? 0;
  }

  counter(declaration: MetricDeclaration): Counter {
    const cell = this.#cell(declaration);
    return {
      inc(by = 1) {
        cell.value += by;
      },
      get value() {
        return cell.value;
      },
    };
  }

  gauge(declaration: MetricDeclaration, read?: () => number): Gauge {
    const cell = this.#cell(declaration);
    return {
      set(value) {
        cell.value = value;
      },
      add(by) {
        cell.value += by;
      },
      get value() {
        return read?.() ?? cell.value;
      },
    };
  }

  histogramUs(declaration: MetricDeclaration): Histogram {
    const cell = this.#cell(declaration);
    const sums = this.#sums;
    const key = declaration.name + Object.values(declaration.labels ?? {}).map((l) => ` ${l}`);
    return {
      observe(value: number, times = 1) {
        cell.value += times;
        sums.set(key, (sums.get(key) ?? 0) + value * times);
      },
    };
  }

  histogram(declaration: MetricDeclaration): Histogram {
    return this.histogramUs(declaration);
  }

  /** Names of the metrics that have that label, without their prefix. */
  shownOf(label: string): readonly string[] {
    return [...this.#values.keys()].filter((key) => key.endsWith(` ${label}`));
  }

  remove(name: string, labels: MetricLabels): void {
    this.#values.delete(name + Object.values(labels).map((label) => ` ${label}`));
  }
}

/** A settler that records settled numbers. */
export class TestSettler implements Fate {
  readonly settled: number[] = [];

  readonly heldNumbers: number[] = [];

  settle(number: number): void {
    this.settled.push(number);
  }

  held(number: number): void {
    this.heldNumbers.push(number);
  }
}

/** Makes stanza number `sequence` of `from`, which carries the number in its body too. */
export function testEnvelope(
  sequence: number,
  options: {
    from?: string;
    to?: string;
    origin?: string;
    settler?: Fate;
    padding?: number;
    process?: number;
    isOwed?: boolean;
    kind?: "message" | "presence";
  } = {},
): Envelope {
  const from = parseJid(options.from ?? "alice@example.com/phone");
  const to = parseJid(options.to ?? "bob@example.com/desk");
  const kind = options.kind ?? "message";
  const attributes = `${
    kind === "message" ? "type='chat' " : ""
  }from='${from.text}' to='${to.text}'`;
  const body = `<${kind} ${attributes}><body>${sequence}</body>` +
    `${"x".repeat(options.padding ?? 0)}</${kind}>`;
  const type = kind === "message" ? "chat" : "available";
  return new Envelope(
    {
      stanza: { kind, type, from, to, bytes: new TextEncoder().encode(body) },
      process: options.process ?? 77,
      sequence,
      origin: options.origin ?? "dc1.example.com",
      sentAtUs: 1_700_000_000_000_000,
      ttl: 4,
      bounces: 0,
      mayBeRepeat: false,
      entry: options.isOwed === true ? "owed" : "ordinary",
    },
    options.settler,
    sequence,
  );
}

/** One node's links, with a record of its router's calls. */
export class TestNode {
  readonly host: string;
  readonly process = randomIncarnation();
  readonly links: LinkLayer;
  readonly metrics = new TestMetrics();
  readonly log = new MemoryLogger();
  readonly received: Envelope[] = [];
  readonly returned: { sequence: number; reason: ReturnReason; mayBeRepeat: boolean }[] = [];
  readonly pressure: [string, boolean][] = [];
  /** Endpoints in the session table, by host. */
  readonly endpoints = new Map<string, readonly EndpointAddress[]>();
  /** True to settle each stanza as it is received; otherwise the test settles. */
  settlesAtOnce = true;
  /** Datacenter id in HELLO. */
  datacenterId: string;
  /** Number of times that a peer took its datacenter for another. */
  doubts = 0;
  readonly #waiters: { isMet: () => boolean; resolve: () => void }[] = [];

  constructor(
    host: string,
    { whereabouts, ...config }:
      & Partial<LinkLayerDeps>
      & Pick<LinkLayerDeps, "tls">
      & Pick<LinkLayerEvents, "whereabouts">,
  ) {
    this.host = host;
    this.datacenterId = `id of ${host}`;
    const process = this.process;
    this.links = new LinkLayer({
      identity: {
        globalHost: "example.com",
        localHost: host,
        hosts: new Set(["example.com", host]),
        nodeName: `node1@${host}`,
        process,
        datacenterId: () => this.datacenterId,
      },
      listen: [{ host: "127.0.0.1", port: 0 }],
      endpoints: { endpoints: (remote) => Promise.resolve(this.endpoints.get(remote) ?? []) },
      hosts: { hosts: () => Promise.resolve([...this.endpoints.keys()]) },
      events: {
        received: (envelope) => {
          this.received.push(envelope);
          if (this.settlesAtOnce) envelope.settle();
          this.#check();
        },
        returned: (envelope, reason) => {
          const { sequence, mayBeRepeat } = envelope;
          this.returned.push({ sequence, reason, mayBeRepeat });
          this.#check();
        },
        ...(whereabouts === undefined ? {} : { whereabouts }),
        identityDoubted: () => {
          this.doubts++;
          this.#check();
        },
        pressure: (sender, isOver) => {
          this.pressure.push([sender, isOver]);
          this.#check();
        },
      },
      metrics: this.metrics,
      log: this.log,
      ...config,
      options: {
        tickMs: 20,
        reconnectFirstMs: 5,
        reconnectMaxMs: 50,
        rerouteFirstMs: 600_000, // waiting stanzas stay where a test expects them
        rehomeAfterMs: 600_000,
        ...config.options,
      },
    });
  }

  get address(): EndpointAddress {
    return this.links.addresses[0]!;
  }

  get sequences(): number[] {
    return this.received.map((envelope) => envelope.sequence);
  }

  /** Resolves when `isMet` holds. It is checked after each event, and every few milliseconds. */
  async until(isMet: () => boolean, what: string, withinMs = 60_000): Promise<void> {
    const deadline = performance.now() + withinMs;
    while (!isMet()) {
      if (performance.now() > deadline) {
        throw new Error(
          `Cannot wait any longer until ${what}; log: ${
            JSON.stringify(this.log.entries.slice(-6))
          }`,
        );
      }
      const { promise, resolve } = Promise.withResolvers<void>();
      this.#waiters.push({ isMet, resolve });
      const timer = setTimeout(resolve, 5);
      await promise;
      clearTimeout(timer);
    }
  }

  #check(): void {
    for (const waiter of this.#waiters.splice(0)) {
      if (waiter.isMet()) waiter.resolve();
      else this.#waiters.push(waiter);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.links.close();
  }
}
