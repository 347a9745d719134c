import { Child, type Run } from "../process/mod.ts";
import { until } from "../until.ts";

/** One series of an answer, with its value now. */
export interface Series {
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

/** State of a rule as Prometheus tells it. */
export interface RuleState {
  readonly name: string;
  /** `ok` after an evaluation without an error. */
  readonly health: string;
  readonly lastError?: string;
}

/** A Prometheus on loopback that scrapes nodes each second, with rules. */
export class PrometheusServer implements AsyncDisposable {
  readonly #child: Child;
  readonly #url: URL;

  private constructor(child: Child, url: URL) {
    this.#child = child;
    this.#url = url;
  }

  /** @param targets addresses of admin APIs, such as `127.0.0.1:8088` */
  static async start(
    run: Run,
    options: { readonly targets: readonly string[]; readonly rules: readonly string[] },
  ): Promise<PrometheusServer> {
    const file = run.path("prometheus.json"); // JSON is YAML
    await Deno.writeTextFile(
      file,
      JSON.stringify({
        global: { scrape_interval: "1s", evaluation_interval: "1s" },
        rule_files: options.rules,
        scrape_configs: [{ job_name: "causeway", static_configs: [{ targets: options.targets }] }],
      }),
    );
    const child = new Child({
      name: "prometheus",
      program: "prometheus",
      args: [
        `--config.file=${file}`,
        `--storage.tsdb.path=${run.path("prometheus")}`,
        "--web.listen-address=127.0.0.1:0",
      ],
      logFile: run.path("prometheus.log"),
      run,
    });
    try {
      const address = await until(() => listenAddress(child), {
        what: "Prometheus listens",
        evidence: () => child.log.tail(),
      });
      return new PrometheusServer(child, new URL(`http://${address}/`));
    } catch (thrown) {
      await child.kill();
      throw thrown;
    }
  }

  /** Returns the value of each series of `expression` now. @throws when Prometheus refuses it */
  async query(expression: string): Promise<readonly Series[]> {
    const answer = await this.#get(`api/v1/query?query=${encodeURIComponent(expression)}`);
    const { result } = answer as {
      result: { metric: Record<string, string>; value: [number, string] }[];
    };
    return result.map(({ metric, value }) => ({ labels: metric, value: Number(value[1]) }));
  }

  /** Returns every rule as last evaluated. */
  async rules(): Promise<readonly RuleState[]> {
    const { groups } = await this.#get("api/v1/rules") as { groups: { rules: RuleState[] }[] };
    return groups.flatMap(({ rules }) => rules);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#child[Symbol.asyncDispose]();
  }

  async #get(path: string): Promise<unknown> {
    const response = await fetch(new URL(path, this.#url));
    const answer = await response.json();
    if (answer.status === "success") return answer.data;
    throw new Error(`Prometheus refuses ${decodeURIComponent(path)}: ${answer.error}`);
  }
}

function listenAddress(child: Child): string | undefined {
  for (const { text } of child.log.lines) {
    const [, address] = /msg="Listening on" address=(\S+)/.exec(text) ?? [];
    if (address !== undefined) return address;
  }
  return undefined;
}
