import { Buffer } from "node:buffer";
import { createServer as createHttpServer } from "node:http";
import type { IncomingMessage, RequestListener, ServerResponse } from "node:http";
import { createServer as createHttpsServer } from "node:https";
import { createServer as createTcpServer } from "node:net";
import { listenOn } from "../../net/listening.ts";
import type { Listening } from "../../net/listening.ts";
import { Refusal } from "./data_types.ts";
import { answerOf } from "./riak_http.ts";
import type { RiakAnswer, RiakRequest } from "./riak_http.ts";
import { RiakSite } from "./riak_site.ts";

/** Options of the double. */
export interface RiakDoubleOptions {
  /** Clusters that replicate when they are told to. @default 1 */
  readonly sites?: number;
  /** Servers of each cluster, which all show the same data. @default 1 */
  readonly nodes?: number;
  /** PEM texts: the servers speak TLS, and want the login. @default plain HTTP */
  readonly tls?: { readonly cert: string; readonly key: string };
  /** Login that every request must have. @default none */
  readonly login?: { readonly user: string; readonly password: string };
}

/** A request as a test sees it. */
export type RequestLine = Pick<RiakRequest, "method" | "url">;

/**
 * A double of Riak KV: it speaks the documented HTTP interface as far as Causeway uses it, keeps data
 * types that merge without conflict, and refuses what Riak would refuse. It is no Riak: it knows
 * nothing of rings, vnodes and disks, and a site answers as if its quorums were always met.
 */
export class RiakDouble implements AsyncDisposable {
  readonly sites: readonly RiakSite[];
  /** Servers, site by site. */
  readonly nodes: readonly RiakNode[];

  private constructor(sites: readonly RiakSite[], nodes: readonly RiakNode[]) {
    this.sites = sites;
    this.nodes = nodes;
  }

  static async start(options: RiakDoubleOptions = {}): Promise<RiakDouble> {
    const sites = Array.from({ length: options.sites ?? 1 }, (_, i) => new RiakSite(`site${i}`));
    const nodes = sites.flatMap((site) =>
      Array.from({ length: options.nodes ?? 1 }, () => new RiakNode(site, options))
    );
    await Promise.all(nodes.map((node) => node.start()));
    return new RiakDouble(sites, nodes);
  }

  /** The one cluster, or the first. */
  get site(): RiakSite {
    return this.sites[0]!;
  }

  /** Port of the one server, or of the first. */
  get port(): number {
    return this.nodes[0]!.port;
  }

  /** Replicates between all sites, both ways. */
  merge(): void {
    for (const one of this.sites) {
      for (const other of this.sites) if (one !== other) one.mergeFrom(other);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.nodes.map((node) => node.stop()));
  }
}

/** One server of a site. Its faults are its own, and the site's data outlive it. */
export class RiakNode {
  readonly site: RiakSite;
  /** Answer to everything instead of the right one. */
  refusal: RiakAnswer | undefined;
  /** True: requests are done, and their answers lost with the connection. */
  losesAnswers = false;
  /** Called between the comparison of a conditional write and the write. */
  beforeWrite: () => Promise<void> = () => Promise.resolve();
  /** Called with each request before it is done. Its promise holds it up. */
  onRequest: (line: RequestLine) => Promise<void> | void = () => {};
  readonly #options: RiakDoubleOptions;
  #listening: Listening | undefined;
  #port = 0;

  constructor(site: RiakSite, options: RiakDoubleOptions) {
    this.site = site;
    this.#options = options;
  }

  get port(): number {
    return this.#port;
  }

  /** Listens, on the same port as before. */
  async start(): Promise<void> {
    const { tls } = this.#options;
    const listener: RequestListener = (request, response) => void this.#answer(request, response);
    const server = tls === undefined
      ? createHttpServer(listener)
      : createHttpsServer(tls, listener);
    this.#listening = await listenOn(server, this.#port);
    this.#port = this.#listening.port;
  }

  /** Ends all connections at once, as a kill does. */
  async stop(): Promise<void> {
    await this.#listening?.close();
    this.#listening = undefined;
  }

  async #answer(incoming: IncomingMessage, response: ServerResponse): Promise<void> {
    const answer = await this.#answerOf(incoming).catch((thrown): RiakAnswer => ({
      status: thrown instanceof Refusal ? thrown.status : 500,
      headers: { "Content-Type": "text/plain" },
      body: thrown instanceof Error ? thrown.message : `${thrown}`,
    }));
    if (this.losesAnswers) {
      incoming.socket.destroy();
      return;
    }
    response.writeHead(answer.status, {
      Server: "MochiWeb/1.1 WebMachine/1.10.9",
      ...answer.headers,
    });
    response.end(incoming.method === "HEAD" ? undefined : answer.body);
  }

  async #answerOf(incoming: IncomingMessage): Promise<RiakAnswer> {
    const body = Buffer.concat(await Array.fromAsync(incoming as AsyncIterable<Uint8Array>));
    const headers = new Map(
      Object.entries(incoming.headers).map(([name, value]) => [name, String(value)]),
    );
    const { method = "GET", url = "/" } = incoming;
    await this.onRequest({ method, url });
    if (this.refusal !== undefined) return this.refusal;
    const { login } = this.#options;
    if (login !== undefined) {
      const bytes = new TextEncoder().encode(`${login.user}:${login.password}`);
      if (headers.get("authorization") !== `Basic ${bytes.toBase64()}`) {
        return { status: 401, headers: { "WWW-Authenticate": 'Basic realm="Riak"' } };
      }
    }
    return await answerOf(this.site, { method, url, headers, body }, () => this.beforeWrite());
  }
}

/** End of the arguments of an admin command. */
const END = "\x04";

/**
 * The admin command of a site as a program that tests can name: a shell script that asks this process.
 */
export class AdminProgram implements AsyncDisposable {
  readonly path: string;
  /** Commands that were run, each with its arguments. */
  readonly commands: (readonly string[])[] = [];
  #listening: Listening | undefined;

  private constructor(path: string) {
    this.path = path;
  }

  static async start(site: RiakSite): Promise<AdminProgram> {
    const path = await Deno.makeTempFile({ prefix: "riak-admin", suffix: ".sh" });
    const program = new AdminProgram(path);
    const server = createTcpServer((socket) => {
      let text = "";
      socket.setEncoding("utf8");
      socket.on("error", () => {}); // the script was killed
      socket.on("data", (chunk: string) => {
        text += chunk;
        if (!text.endsWith(END)) return;
        const args = text.slice(0, -END.length).split("\0").slice(0, -1);
        program.commands.push(args);
        const { output, code } = site.types.admin(args);
        socket.end(`${code}\n${output}`);
      });
    });
    program.#listening = await listenOn(server);
    await Deno.writeTextFile(
      path,
      [
        "#!/bin/bash",
        `exec 3<>/dev/tcp/127.0.0.1/${program.#listening.port}`,
        `printf '%s\\0' "$@" >&3`,
        "printf '\\4' >&3", // it cannot end its half of the conversation
        "read -r code <&3",
        "cat <&3",
        "exit $code",
        "",
      ].join("\n"),
    );
    await Deno.chmod(path, 0o755);
    return program;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#listening?.close();
    await Deno.remove(this.path);
  }
}
