/**
 * A new datacenter receives a table of 100 000 sessions from a running one, while stanzas go the same
 * way; and what it costs to renew these sessions. Two processes, two Redises, one link with TLS.
 *
 *     deno run -A bench/table_transfer.ts [sessions]
 */
import { LocalRedis, RedisClient } from "../harness/redis/mod.ts";
import { CertificateAuthority, Run, writeCertificate } from "../harness/mod.ts";
import { randomIncarnation, SystemClock } from "../src/base/mod.ts";
import { Envelope } from "../src/distribution/mod.ts";
import type { EndpointAddress } from "../src/distribution/links/mod.ts";
import { LinkLayer } from "../src/distribution/links/mod.ts";
import { SessionTable } from "../src/distribution/table/mod.ts";
import { TlsContextHolder } from "../src/net/mod.ts";
import { MetricsRegistry } from "../src/observe/mod.ts";
import { BareJid, FullJid, parseJid } from "../src/xmpp/mod.ts";

interface Setup {
  readonly role: "owner" | "newcomer";
  readonly localHost: string;
  readonly redisPort: number;
  readonly certfile: string;
  readonly keyfile: string;
  readonly cafile: string;
  readonly sessions: number;
  /** Whom to call; undefined: be called. */
  readonly seed: EndpointAddress | undefined;
}

const HOSTS = { owner: "dc1.example.com", newcomer: "dc2.example.com" } as const;
const STANZAS_PER_SECOND = 500;
const TICK_MS = 10;
const REFRESH_MS = 60_000;

/** One node without clients: table, links, and stanzas that come from nowhere and go nowhere. */
async function runNode(setup: Setup): Promise<void> {
  const { localHost, seed } = setup;
  const metrics = new MetricsRegistry(new SystemClock());
  const incarnation = randomIncarnation();
  const nodeName = `node1@${localHost}`;
  const table: SessionTable = new SessionTable({
    globalHost: "example.com",
    localHost,
    nodeName,
    incarnation,
    redis: { port: setup.redisPort, refreshAfterMs: REFRESH_MS },
  }, { metrics, meshChanged: (host) => links.learn(host) });
  const tls = await TlsContextHolder.load(setup);
  const latenciesUs: number[] = [];
  const links: LinkLayer = new LinkLayer({
    identity: {
      globalHost: "example.com",
      localHost,
      nodeName,
      process: incarnation,
      datacenterId: () => table.datacenterId,
    },
    listen: [{ host: "127.0.0.1", port: 0 }],
    tls,
    endpoints: table,
    hosts: table,
    handlers: {
      received(envelope) {
        latenciesUs.push((performance.timeOrigin + performance.now()) * 1000 - envelope.sentAtUs);
        envelope.settle();
      },
      returned: (envelope) => envelope.settle(),
      pressure() {},
    },
    metrics,
    traffic: table.traffic!, // the table replicates
    seeds: seed === undefined ? [] : [seed],
    options: { hostsRefreshIntervalMs: 500 },
  });
  await links.listen();
  await table.start();
  await table.publishEndpoints(links.addresses);
  if (setup.role === "owner") {
    const opened: Promise<void>[] = [];
    for (let i = 0; i < setup.sessions; i++) {
      opened.push(
        table.sessionOpened(new FullJid(new BareJid(`user${i}`, "example.com"), "phone")),
      );
      if (opened.length === 1_000) await Promise.all(opened.splice(0));
    }
    await Promise.all(opened);
    sendStanzas(links, incarnation);
  }
  links.start();
  say({ port: links.addresses[0]!.port });
  const decoder = new TextDecoder();
  for await (const line of Deno.stdin.readable) {
    if (decoder.decode(line).trim() === "end") break;
    const cpu = Deno.build.os === "linux" ? cpuSeconds() : 0;
    say({ latenciesUs: latenciesUs.splice(0), cpu });
  }
  await links.close();
  await table.close();
  metrics.close();
}

function sendStanzas(links: LinkLayer, process: number): void {
  let sequence = 0;
  const stanza = {
    kind: "message",
    type: "chat",
    from: parseJid("alice@example.com/phone"),
    to: parseJid("bob@example.com/desk"),
    bytes: new Uint8Array(300).fill(0x61),
  } as const;
  const timer = setInterval(() => {
    if (links.snapshot().hosts.every(({ openLinks }) => openLinks === 0)) return;
    for (let i = 0; i < STANZAS_PER_SECOND * TICK_MS / 1000; i++) {
      const envelope = new Envelope({
        stanza,
        process,
        sequence: ++sequence,
        origin: HOSTS.owner,
        sentAtUs: Math.round((performance.timeOrigin + performance.now()) * 1000),
        ttl: 4,
        bounces: 0,
        mayBeRepeat: false,
      });
      links.send(HOSTS.newcomer, envelope);
    }
  }, TICK_MS);
  Deno.unrefTimer(timer);
}

/** CPU time of this process so far. */
function cpuSeconds(): number {
  const fields = Deno.readTextFileSync("/proc/self/stat").split(") ")[1]!.split(" ");
  return (Number(fields[11]) + Number(fields[12])) / 100; // user and system, in hundredths
}

function say(line: unknown): void {
  console.log(JSON.stringify(line));
}

interface Report {
  readonly latenciesUs: readonly number[];
  readonly cpu: number;
}

/** A node as the bench drives it. */
class Child {
  readonly #process: Deno.ChildProcess;
  readonly #stdin: WritableStreamDefaultWriter<Uint8Array>;
  readonly #lines: ReadableStreamDefaultReader<string>;
  #rest = "";

  constructor(setup: Setup) {
    this.#process = new Deno.Command(Deno.execPath(), {
      args: ["run", "-A", import.meta.filename!, JSON.stringify(setup)],
      stdin: "piped",
      stdout: "piped",
      stderr: "inherit",
    }).spawn();
    this.#stdin = this.#process.stdin.getWriter();
    this.#lines = this.#process.stdout.pipeThrough(new TextDecoderStream()).getReader();
  }

  async line<T>(): Promise<T> {
    while (!this.#rest.includes("\n")) {
      const { value, done } = await this.#lines.read();
      if (done) throw new Error("a node of the bench has ended");
      this.#rest += value;
    }
    const at = this.#rest.indexOf("\n");
    const line = this.#rest.slice(0, at);
    this.#rest = this.#rest.slice(at + 1);
    return JSON.parse(line);
  }

  async report(): Promise<Report> {
    await this.#stdin.write(new TextEncoder().encode("report\n"));
    return await this.line<Report>();
  }

  async end(): Promise<void> {
    await this.#stdin.write(new TextEncoder().encode("end\n"));
    await this.#stdin.close();
    while (!(await this.#lines.read()).done); // until it has closed
    await this.#process.status;
  }
}

const wait = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

function p99(values: readonly number[]): number {
  return values.toSorted((one, other) => one - other)[Math.floor(values.length * 0.99)] ?? NaN;
}

async function bench(sessions: number): Promise<void> {
  await using run = await Run.start();
  const authority = await CertificateAuthority.create();
  const cafile = run.path("ca.pem");
  await Deno.writeTextFile(cafile, authority.certificatePem);
  const setups = await Promise.all((["owner", "newcomer"] as const).map(async (role) => {
    const localHost = HOSTS[role];
    const certificate = await authority.issue({ names: [localHost], addresses: ["127.0.0.1"] });
    const files = await writeCertificate(certificate, { directory: run.directory, name: role });
    const redis = new LocalRedis({ name: role, run, password: "" });
    await redis.start();
    return { role, localHost, redis, cafile, sessions, ...files };
  }));
  const [owner, newcomer] = setups;
  const setupOf = ({ redis, ...rest }: typeof setups[number], seed?: EndpointAddress): Setup => ({
    ...rest,
    redisPort: redis.address.port,
    seed,
  });
  const first = new Child(setupOf(owner!));
  const startMs = performance.now();
  const { port } = await first.line<{ port: number }>();
  const openedMs = performance.now() - startMs;

  await wait(8_000); // reading back of the logins is over
  const before = await first.report();
  await wait(10_000);
  const renewed = await first.report();
  const refreshCpu = (renewed.cpu - before.cpu) / 10;

  const second = new Child(setupOf(newcomer!, { host: "127.0.0.1", port }));
  await second.line();
  const joinedMs = performance.now();
  const client = new RedisClient(newcomer!.redis.address);
  let applied: unknown;
  while (applied === null || applied === undefined) {
    await wait(20);
    applied = await client.call("GET", `causeway:applied:${HOSTS.owner}#node1@${HOSTS.owner}`);
  }
  const tookMs = performance.now() - joinedMs;
  const [during, keys] = [await second.report(), await client.call("DBSIZE")];
  await wait(2_000);
  await second.report();
  await wait(8_000);
  const idle = await second.report();
  const ratio = p99(during.latenciesUs) / p99(idle.latenciesUs);
  console.log(JSON.stringify({
    sessions,
    loginsPerSecond: Math.round(sessions / openedMs * 1000),
    transferSeconds: Math.round(tookMs) / 1000,
    keysAtNewcomer: keys,
    p99DuringUs: Math.round(p99(during.latenciesUs)),
    p99IdleUs: Math.round(p99(idle.latenciesUs)),
    p99Ratio: Math.round(ratio * 100) / 100,
    stanzas: [during.latenciesUs.length, idle.latenciesUs.length],
    refreshShareOfCore: Math.round(refreshCpu * 1000) / 1000,
    cores: navigator.hardwareConcurrency,
  }));
  await client[Symbol.asyncDispose]();
  await Promise.all([first.end(), second.end()]);
  for (const { redis } of setups) await redis[Symbol.asyncDispose]();
}

const [argument = "100000"] = Deno.args;
if (argument.startsWith("{")) await runNode(JSON.parse(argument));
else await bench(Number(argument));
