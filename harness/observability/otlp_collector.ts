import { join } from "node:path";
import { PYTHON_CHECKERS_HOME } from "../databases/mod.ts";
import { Child, type Run, runProgram } from "../process/mod.ts";
import { until } from "../until.ts";

/** A span as the collector printed it. */
export interface CollectedSpan {
  /** Attribute `service.instance.id` of its process. */
  readonly node: string;
  readonly traceId: string;
  readonly spanId: string;
  /** Empty for the first span of a trace. */
  readonly parentId: string;
  readonly name: string;
  readonly kind: string;
  readonly status: string;
  readonly statusMessage: string;
  readonly attributes: Readonly<Record<string, string>>;
  /** Names of its events. */
  readonly events: readonly string[];
}

/**
 * Rotel, an OpenTelemetry collector, on loopback: it takes OTLP over HTTP, and prints what it has got.
 * PyPI carries its program, so that no test has to compile one (`python_checkers.ts`).
 */
export class OtlpCollector implements AsyncDisposable {
  readonly endpoint: string;
  readonly #child: Child;
  readonly #file: string;

  private constructor(child: Child, file: string, port: number) {
    this.#child = child;
    this.#file = file;
    this.endpoint = `http://127.0.0.1:${port}`;
  }

  static async start(run: Run): Promise<OtlpCollector> {
    const file = run.path("collector.log");
    const child = new Child({
      name: "collector",
      program: join(PYTHON_CHECKERS_HOME, "rotel/rotel-agent"),
      args: [
        "start",
        "--otlp-http-endpoint=127.0.0.1:0",
        // It takes two free ports only of two addresses.
        "--otlp-grpc-endpoint=127.0.0.2:0",
        "--exporter=blackhole",
        ...["traces", "metrics", "logs"].map((signal) => `--debug-log=${signal}`),
        "--debug-log-verbosity=detailed",
      ],
      logFile: file,
      run,
    });
    try {
      const port = await until(() => listeningPort(child), {
        what: "the collector listens",
        evidence: () => child.log.tail(),
      });
      return new OtlpCollector(child, file, port);
    } catch (thrown) {
      await child.kill();
      throw thrown;
    }
  }

  /** Everything that it has printed. */
  async text(): Promise<string> {
    return await Deno.readTextFile(this.#file);
  }

  async spans(): Promise<readonly CollectedSpan[]> {
    return (await this.text()).split(/^ResourceSpans #\d+$/m).slice(1).flatMap((resource) => {
      const [head = "", ...spans] = resource.split(/^Span #\d+$/m);
      const node = attributesIn(head)["service.instance.id"] ?? "";
      return spans.map((span) => spanIn(span, node));
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#child.kill();
  }
}

function spanIn(text: string, node: string): CollectedSpan {
  const [head = "", ...events] = text.split(/^SpanEvent #\d+$/m);
  const field = (name: string) =>
    new RegExp(`^ *${name} *: ?(.*)$`, "m").exec(head)?.[1]?.trim() ?? "";
  return {
    node,
    traceId: field("Trace ID"),
    spanId: field("ID"),
    parentId: field("Parent ID"),
    name: field("Name"),
    kind: field("Kind"),
    status: field("Status code"),
    statusMessage: field("Status message"),
    attributes: attributesIn(head),
    events: events.map((event) => /-> Name: (.*)$/m.exec(event)?.[1] ?? ""),
  };
}

/** Reads lines such as `-> service.name: Str(causeway)`. */
function attributesIn(text: string): Record<string, string> {
  const lines = text.matchAll(/^ *-> ([^:]+): \w+\((.*)\)$/gm);
  return Object.fromEntries([...lines].map(([, name, value]) => [name!, value!]));
}

/** Returns the port on 127.0.0.1 that the process listens on, as the kernel tells it. */
async function listeningPort({ pid }: Child): Promise<number | undefined> {
  const files = await runProgram("ls", ["-l", `/proc/${pid}/fd`]);
  const own = new Set(files?.output.match(/(?<=socket:\[)\d+/g));
  const table = await runProgram("cat", ["/proc/net/tcp"]);
  for (const line of table?.output.split("\n") ?? []) {
    const [, address = "", , state, , , , , , inode = ""] = line.trim().split(/\s+/);
    // Loopback in the order of bytes of this machine; 0A is LISTEN.
    const [, port] = /^0100007F:([0-9A-F]{4})$/.exec(address) ?? [];
    if (port !== undefined && state === "0A" && own.has(inode)) return parseInt(port, 16);
  }
  return undefined;
}
