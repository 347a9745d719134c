/**
 * The load generator, a process of its own: logs its pairs in, then obeys one `LoadCommand` a line
 * and tells `LoadEvent`s. It shares two cores with the nodes it measures, so it never parses what
 * it receives and never writes a message alone when more are due.
 */
import { CarbonDevice } from "./carbon_device.ts";
import { jsonLine, readJsonLines } from "./json_lines.ts";
import { LatencyRecorder } from "./latency_recorder.ts";
import type { LoadCommand, LoadEvent, LoadPlan } from "./load_protocol.ts";
import { Pair } from "./pair.ts";

const PACE_TICK_MS = 1;
const DRAIN_WITHIN_MS = 15_000;
/** Milliseconds between two messages to a device that may not be known yet. */
const DEVICE_TICK_MS = 20;

class LoadGenerator implements AsyncDisposable {
  readonly #inFlight: number;
  readonly #latency = new LatencyRecorder();
  #pairs: readonly Pair[] = [];
  readonly #devicePlans: LoadPlan["devices"];
  #devices: readonly CarbonDevice[] = [];
  /** True once a carbon of every message comes to a device. */
  #isCopying = false;
  /** Messages of which carbons come, so far. */
  #arrivedWithDevices = 0;
  #mode: "idle" | "refill" = "idle";
  #stopped = Promise.withResolvers<void>();

  private constructor({ inFlight, devices }: LoadPlan) {
    this.#inFlight = inFlight;
    this.#devicePlans = devices;
  }

  static async login(plan: LoadPlan): Promise<LoadGenerator> {
    const generator = new LoadGenerator(plan);
    const options = {
      inFlight: plan.inFlight,
      messageBytes: plan.messageBytes,
      arrived: (pair: Pair, stamp: number) => generator.#arrived(pair, stamp),
      nowUs,
    };
    generator.#pairs = await Promise.all(plan.pairs.map((pair) => Pair.login(pair, options)));
    return generator;
  }

  async obey(command: LoadCommand): Promise<void> {
    if (command.do === "bring-devices") return await this.#bringDevices();
    if (command.do === "stop") return this.#stopped.resolve();
    this.#stopped = Promise.withResolvers();
    const pace = command.do === "pace" ? this.#startPacing(command.perSecond) : undefined;
    if (pace === undefined) this.#startRefilling();
    await this.#sleep(command.warmUpMs);
    this.#latency.reset();
    const startMs = performance.now();
    tell({ event: "begin" });
    await Promise.race([this.#sleep(command.measureMs), this.#stopped.promise]);
    const elapsedMs = performance.now() - startMs;
    const latency = this.#latency.summary();
    tell({ event: "end", result: { elapsedMs, received: latency.count, latency } });
    this.#mode = "idle";
    clearInterval(pace);
    await this.#drain();
    tell({ event: "drained" });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const device of this.#devices) await device[Symbol.asyncDispose]();
    for (const pair of this.#pairs) await pair[Symbol.asyncDispose]();
  }

  /** Logs the devices in, and waits until each message comes to one of them. */
  async #bringDevices(): Promise<void> {
    this.#devices = await Promise.all(this.#devicePlans.map((plan) => CarbonDevice.login(plan)));
    // The senders' nodes learn of the devices a moment later. Until then they copy nothing.
    const endMs = performance.now() + DRAIN_WITHIN_MS;
    for (const [index, device] of this.#devices.entries()) {
      while (device.carbons === 0) {
        if (performance.now() > endMs) throw new Error("No carbon came to a device");
        this.#pairs[index]!.send(1);
        await this.#sleep(DEVICE_TICK_MS);
      }
    }
    await this.#drain();
    await this.#sleep(DEVICE_TICK_MS);
    this.#arrivedWithDevices = this.#carbons();
    this.#isCopying = true;
    tell({ event: "devices" });
  }

  #carbons(): number {
    return this.#devices.reduce((sum, { carbons }) => sum + carbons, 0);
  }

  #arrived(pair: Pair, stamp: number): void {
    this.#latency.record(nowUs() - stamp);
    this.#arrivedWithDevices++;
    if (this.#mode === "refill") pair.send(1);
  }

  #startRefilling(): void {
    this.#mode = "refill";
    for (const pair of this.#pairs) pair.send(this.#inFlight);
  }

  /** Open loop: what is due is due, however long the answers take. */
  #startPacing(perSecond: number): ReturnType<typeof setInterval> {
    const startMs = performance.now();
    let sent = 0;
    return setInterval(() => {
      const due = (performance.now() - startMs) * perSecond / 1000;
      for (; sent < due; sent++) this.#pairs[sent % this.#pairs.length]!.send(1);
    }, PACE_TICK_MS);
  }

  async #sleep(forMs: number): Promise<void> {
    await new Promise((resolve) => setTimeout(resolve, forMs));
    for (const pair of this.#pairs) if (pair.failure !== undefined) throw pair.failure;
    for (const device of this.#devices) if (device.failure !== undefined) throw device.failure;
  }

  async #drain(): Promise<void> {
    const endMs = performance.now() + DRAIN_WITHIN_MS;
    for (;;) {
      await this.#sleep(PACE_TICK_MS);
      const outstanding = this.#pairs.reduce((sum, pair) => sum + pair.outstanding, 0);
      const missing = this.#isCopying ? this.#arrivedWithDevices - this.#carbons() : 0;
      if (outstanding === 0 && missing === 0) return;
      if (performance.now() > endMs) {
        throw new Error(
          `Messages did not arrive within ${DRAIN_WITHIN_MS} ms: ${outstanding}, carbons: ${missing}`,
        );
      }
    }
  }
}

function nowUs(): number {
  return Math.round(performance.now() * 1000);
}

function tell(event: LoadEvent): void {
  Deno.stdout.writeSync(jsonLine(event));
}

function die(thrown: unknown): never {
  console.error(thrown);
  Deno.exit(1);
}

if (import.meta.main) {
  const plan = JSON.parse(Deno.args[0] ?? "{}") as LoadPlan; // from our own main process
  await using generator = await LoadGenerator.login(plan);
  tell({ event: "ready" });
  for await (const command of readJsonLines<LoadCommand>(Deno.stdin.readable)) {
    // Not awaited: when the main process dies, its pipe ends, and the load ends in mid-run.
    generator.obey(command).catch(die);
  }
  Deno.exit(0);
}
