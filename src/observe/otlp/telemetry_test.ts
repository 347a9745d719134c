import assert from "node:assert/strict";
import { ManualClock } from "../../base/mod.ts";
import { TestAuthority } from "../../distribution/links/testing/kit.ts";
import { MemoryLogger } from "../log.ts";
import type { Metrics } from "../metrics.ts";
import { MetricsRegistry } from "../metrics_registry.ts";
import type { FinishedSpan } from "./finished_span.ts";
import type { TelemetryOptions } from "./telemetry.ts";
import { Telemetry } from "./telemetry.ts";

interface Posted {
  readonly path: string;
  readonly headers: Headers;
  /** Bytes of the body as Latin-1: the texts in it can be found. */
  readonly body: string;
}

/** A collector on loopback that answers as the test says. */
class TestCollector implements AsyncDisposable {
  readonly requests: Posted[] = [];
  status = 200;
  answer: Uint8Array<ArrayBuffer> = new Uint8Array(0);
  #wake = () => {};
  readonly #server: Deno.HttpServer<Deno.NetAddr>;
  readonly #scheme: string;

  /** @param tls certificate and key in PEM; plain HTTP without */
  constructor(tls?: { readonly cert: string; readonly key: string }) {
    this.#scheme = tls === undefined ? "http" : "https";
    const options = { hostname: "127.0.0.1", port: 0, onListen() {}, ...tls };
    this.#server = Deno.serve(options, (request) => this.#take(request));
  }

  async #take(request: Request): Promise<Response> {
    const body = new TextDecoder("latin1").decode(await request.bytes());
    const path = new URL(request.url).pathname;
    this.requests.push({ path, headers: request.headers, body });
    queueMicrotask(() => this.#wake());
    return new Response(this.answer, { status: this.status });
  }

  get url(): string {
    return `${this.#scheme}://127.0.0.1:${this.#server.addr.port}`;
  }

  /** Resolves once there have been so many requests. */
  async until(count: number): Promise<readonly Posted[]> {
    while (this.requests.length < count) {
      const { promise, resolve } = Promise.withResolvers<void>();
      this.#wake = resolve;
      await promise;
    }
    return this.requests;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#server.shutdown();
  }
}

class Setup implements AsyncDisposable {
  readonly clock = new ManualClock();
  readonly metrics = new MetricsRegistry(this.clock);
  readonly log = new MemoryLogger();
  readonly telemetry: Telemetry;

  constructor(endpoint: string, options: Partial<TelemetryOptions> = {}) {
    this.telemetry = new Telemetry({
      endpoint,
      headers: { authorization: "Bearer open sesame" },
      timeoutMs: 10_000,
      signals: new Set(["traces", "metrics", "logs"]),
      resource: { "service.name": "causeway", "service.instance.id": "node1@dc1.example.com" },
      version: "1.2.3",
      maxQueued: 100,
      batchIntervalMs: 5_000,
      metricsIntervalMs: 60_000,
      logLevel: "info",
      addresses: "domain",
      ...options,
    }, { metrics: this.metrics, log: this.log, clock: this.clock });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.telemetry.close(1_000);
    this.metrics.close();
  }
}

const SPAN: FinishedSpan = {
  traceId: "0af7651916cd43dd8448eb211c80319c",
  spanId: "b7ad6b7169203331",
  parentSpanId: undefined,
  hasRemoteParent: false,
  name: "send message",
  kind: "producer",
  startUs: 1_700_000_000_000_000,
  endUs: 1_700_000_000_001_000,
  attributes: { "xmpp.to": "example.com" },
  events: [{ name: "accepted", atUs: 1_700_000_000_000_500, attributes: { "causeway.lane": 1 } }],
  droppedEvents: 0,
  error: "answered: service-unavailable",
};

function counted(metrics: Metrics, name: "sent" | "dropped", signal: string): number {
  const help = name === "sent"
    ? "Spans, metrics and log events that the collector has taken"
    : "Spans, metrics and log events that were dropped: too many waited, or the collector refused them";
  return metrics.counter({ name: `causeway_telemetry_${name}_total`, help, labels: { signal } })
    .value;
}

Deno.test("Telemetry posts spans, log events and metrics, each to its path, with the headers", async () => {
  await using collector = await Promise.resolve(new TestCollector());
  await using setup = new Setup(`${collector.url}/`);
  const { telemetry, clock, metrics } = setup;
  metrics.counter({ name: "apples_total", help: "Apples", labels: { kind: "red" } }).inc(3);
  metrics.gauge({ name: "pears", help: "Pears" }).set(2);
  metrics.histogramUs({ name: "ripening_seconds", help: "Ripening" }).observe(1_500);
  telemetry.span(SPAN);
  telemetry.event({ level: "debug", event: "too.small", fields: {} });
  telemetry.event({
    level: "warn",
    event: "link.closed",
    fields: {
      host: "dc2.example.com",
      jid: "alice@example.com/a@b",
      password: "open sesame",
      tries: [1, 2],
    },
  });
  clock.advance(5_000);
  await collector.until(2);
  clock.advance(55_000);
  await collector.until(3);
  const byPath = (path: string) => collector.requests.find((each) => each.path === path)!;
  for (const request of collector.requests) {
    assert.equal(request.headers.get("authorization"), "Bearer open sesame");
    assert.equal(request.headers.get("content-type"), "application/x-protobuf");
    assert.ok(request.body.includes("node1@dc1.example.com"));
    assert.ok(!request.body.includes("open sesame"));
  }
  const [traces, logs, shown] = ["traces", "logs", "metrics"].map((each) => byPath(`/v1/${each}`));
  for (const text of ["send message", "accepted", "causeway.lane", SPAN.error!]) {
    assert.ok(traces!.body.includes(text), text);
  }
  assert.ok(logs!.body.includes("link.closed") && !logs!.body.includes("too.small"));
  assert.ok(logs!.body.includes("example.com") && !logs!.body.includes("alice"));
  for (const text of ["apples_total", "pears", "ripening_seconds", "red"]) {
    assert.ok(shown!.body.includes(text), text);
  }
});

Deno.test("Telemetry posts many spans as one request", async () => {
  await using collector = await Promise.resolve(new TestCollector());
  await using setup = new Setup(collector.url, { maxQueued: 200, signals: new Set(["traces"]) });
  const names = Array.from({ length: 200 }, (_, i) => `span ${i};`);
  for (const name of names) setup.telemetry.span({ ...SPAN, name });
  await until(() => counted(setup.metrics, "sent", "traces") === 200);
  assert.equal(collector.requests.length, 1);
  const { body } = collector.requests[0]!;
  assert.deepEqual(names.filter((name) => !body.includes(name)), []);
});

Deno.test("Telemetry says once that a collector is away, keeps a bounded number, and says when it is back", async () => {
  await using collector = await Promise.resolve(new TestCollector());
  await using setup = new Setup(collector.url, { maxQueued: 3, signals: new Set(["traces"]) });
  const { telemetry, clock, metrics, log } = setup;
  collector.status = 503;
  for (let i = 0; i < 5; i++) telemetry.span(SPAN);
  assert.equal(counted(metrics, "dropped", "traces"), 2);
  clock.advance(5_000);
  await until(() => log.named("telemetry.failed").length === 1);
  assert.deepEqual(log.named("telemetry.failed")[0]!.fields, {
    signal: "traces",
    endpoint: collector.url,
    outcome: "away",
    detail: "HTTP status 503",
  });
  // The next attempt is a second later, give or take a tenth.
  await until(() => tick(clock, 1_200, () => collector.requests.length >= 2));
  collector.status = 200;
  await until(() => tick(clock, 40_000, () => counted(metrics, "sent", "traces") === 3));
  assert.deepEqual(log.entries.map(({ event }) => event), [
    "telemetry.failed",
    "telemetry.resumed",
  ]);
});

Deno.test("Telemetry counts what a collector refuses, wholly or in part", async () => {
  await using collector = await Promise.resolve(new TestCollector());
  await using setup = new Setup(collector.url, { signals: new Set(["traces"]) });
  const { telemetry, clock, metrics, log } = setup;
  // ExportTraceServiceResponse{partial_success{rejected_spans: 2}}
  collector.answer = Uint8Array.of(0x0a, 0x02, 0x08, 0x02);
  for (let i = 0; i < 3; i++) telemetry.span(SPAN);
  clock.advance(5_000);
  await until(() => counted(metrics, "dropped", "traces") === 2);
  assert.equal(counted(metrics, "sent", "traces"), 1);
  collector.status = 400;
  telemetry.span(SPAN);
  clock.advance(5_000);
  await until(() => counted(metrics, "dropped", "traces") === 3);
  assert.equal(log.named("telemetry.failed")[0]!.fields.outcome, "refused");
});

Deno.test("Telemetry.close() sends what waits, and gives a collector that does not answer up in time", async () => {
  await using collector = await Promise.resolve(new TestCollector());
  const setup = new Setup(collector.url);
  setup.telemetry.span(SPAN);
  await setup[Symbol.asyncDispose]();
  assert.deepEqual(
    collector.requests.map(({ path }) => path).sort(),
    ["/v1/metrics", "/v1/traces"],
  );

  using silent = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const accepted = silent.accept();
  const stuck = new Setup(`http://127.0.0.1:${silent.addr.port}`, { signals: new Set(["traces"]) });
  stuck.telemetry.span(SPAN);
  const closed = stuck.telemetry.close(700);
  using _connection = await accepted;
  stuck.clock.advance(700);
  await closed;
  assert.equal(counted(stuck.metrics, "dropped", "traces"), 1);
  stuck.metrics.close();
});

Deno.test("Telemetry trusts a collector over TLS whose authority it is given, and no other", async () => {
  using authority = await TestAuthority.create();
  const files = await authority.issue({ type: "ip", value: "127.0.0.1" });
  const [cert, key, ca] = await Promise.all(
    [files.certfile, files.keyfile, authority.cafile].map((file) => Deno.readTextFile(file)),
  );
  await using collector = await Promise.resolve(new TestCollector({ cert: cert!, key: key! }));
  for (const trusted of [ca, undefined]) {
    await using setup = new Setup(collector.url, { ca: trusted, signals: new Set(["traces"]) });
    setup.telemetry.span(SPAN);
    setup.clock.advance(5_000);
    const { metrics, log } = setup;
    if (trusted === undefined) await until(() => log.named("telemetry.failed").length === 1);
    else await until(() => counted(metrics, "sent", "traces") === 1);
  }
  assert.equal(collector.requests.length, 1);
});

Deno.test("Telemetry survives a metric that cannot be read", async () => {
  await using collector = await Promise.resolve(new TestCollector());
  await using setup = new Setup(collector.url, { signals: new Set(["metrics"]) });
  setup.metrics.gauge({ name: "broken", help: "Broken" }, () => {
    throw new TypeError("it is broken");
  });
  setup.clock.advance(60_000);
  await until(() => setup.log.named("telemetry.failed").length === 1);
  assert.match(String(setup.log.named("telemetry.failed")[0]!.fields.detail), /it is broken/);
  assert.equal(collector.requests.length, 0);
});

Deno.test("Telemetry counts a collector that nobody runs as away", async () => {
  const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const { port } = listener.addr;
  listener.close();
  await using setup = new Setup(`http://127.0.0.1:${port}`, { signals: new Set(["logs"]) });
  setup.telemetry.event({ level: "info", event: "node.ready", fields: {} });
  setup.clock.advance(5_000);
  await until(() => setup.log.named("telemetry.failed").length === 1);
  assert.equal(setup.log.named("telemetry.failed")[0]!.fields.outcome, "away");
});

/** Moves the clock, so that a planned attempt comes. */
function tick(clock: ManualClock, byMs: number, isMet: () => boolean): boolean {
  if (isMet()) return true;
  clock.advance(byMs);
  return false;
}

/** Waits for requests on loopback. */
async function until(isMet: () => boolean): Promise<void> {
  const deadline = performance.now() + 60_000;
  while (!isMet()) {
    assert.ok(performance.now() < deadline, "waited for a minute");
    await new Promise<void>((resolve) => setTimeout(resolve, 2));
  }
}

Deno.test("Telemetry.changeLogLevel() holds for the next event", async () => {
  await using setup = new Setup("http://127.0.0.1:1");
  const { telemetry, metrics } = setup;
  const waiting = async () =>
    /causeway_telemetry_waiting\{signal="logs"\} (\d+)/.exec(await metrics.prometheus())?.[1];
  const entry = { level: "debug", event: "test.event", fields: {} } as const;
  telemetry.event(entry);
  assert.equal(await waiting(), "0");
  telemetry.changeLogLevel("debug");
  telemetry.event(entry);
  assert.equal(await waiting(), "1");
});
