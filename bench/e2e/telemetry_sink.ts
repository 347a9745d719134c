import type { CausewayConfiguration } from "../../harness/cluster/mod.ts";

/** A collector on loopback that takes everything and looks at none of it. */
export class TelemetrySink implements AsyncDisposable {
  #bytes = 0;
  #requests = 0;
  readonly #server = Deno.serve(
    { hostname: "127.0.0.1", port: 0, onListen() {} },
    async (request) => {
      this.#bytes += (await request.bytes()).length;
      this.#requests++;
      return new Response();
    },
  );

  /** Requests so far, and their bytes. */
  get taken(): { readonly requests: number; readonly bytes: number } {
    return { requests: this.#requests, bytes: this.#bytes };
  }

  /** Makes a node tell it of everything, and of this share of the messages. */
  configure(configuration: CausewayConfiguration, ratio: number): void {
    configuration.observe = this.settings(ratio);
  }

  /** Returns the section `observe` of such a node. */
  settings(ratio: number) {
    const endpoint = `http://127.0.0.1:${this.#server.addr.port}`;
    return { otlp: { endpoint, sample_ratio: ratio, metrics_interval: 5 } };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#server.shutdown();
  }
}
