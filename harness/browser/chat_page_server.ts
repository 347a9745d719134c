import { runProgram } from "../process/mod.ts";

const BUILD = "@xmpp/client/dist/xmpp.min.js";

/** Serves the chat page, with the browser build of the npm package `@xmpp/client`, on loopback. */
export class ChatPageServer implements AsyncDisposable {
  readonly #server: Deno.HttpServer<Deno.NetAddr>;

  private constructor(server: Deno.HttpServer<Deno.NetAddr>) {
    this.#server = server;
  }

  static async start(): Promise<ChatPageServer> {
    const [page, script] = await Promise.all([
      Deno.readTextFile(new URL("./chat_page.html", import.meta.url)),
      browserBuild(),
    ]);
    const files = new Map([
      ["/", { type: "text/html; charset=utf-8", body: page }],
      ["/xmpp.js", { type: "text/javascript; charset=utf-8", body: script }],
    ]);
    const server = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen() {} }, ({ url }) => {
      const file = files.get(new URL(url).pathname);
      if (file === undefined) return new Response("nothing here\n", { status: 404 });
      return new Response(file.body, { headers: { "content-type": file.type } });
    });
    return new ChatPageServer(server);
  }

  get url(): string {
    return `http://127.0.0.1:${this.#server.addr.port}/`;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#server.shutdown();
  }
}

/** Read by a program of its own: it lies in Deno's cache, which this one may be forbidden to read. */
async function browserBuild(): Promise<string> {
  const code = `const path = new URL(${JSON.stringify(import.meta.resolve(BUILD))});` +
    "await Deno.stdout.write(await Deno.readFile(path));";
  const result = await runProgram(Deno.execPath(), ["eval", "--no-config", code]);
  if (result?.code !== 0) throw new Error(`Cannot read ${BUILD}: ${result?.errors}`);
  return result.output;
}
