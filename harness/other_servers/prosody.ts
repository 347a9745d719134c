import { OtherServer } from "./other_server.ts";

/** Prosody's own program that copies data from one of its stores to another. */
const MIGRATOR = "/usr/bin/prosody-migrator";
/** Folder of its data that the program has built in. */
const BUILT_IN_FOLDER = "/var/lib/prosody";

const STORES =
  `hosts = { ["example.com"] = { "accounts", "roster", "vcard", "private", "pep-pubsub" } }`;

/** Prosody's data of the host `example.com`, in its store for XEP-0227 and in its own. */
export class Prosody implements AsyncDisposable {
  /** Folder of its files of XEP-0227: one for each account, named after its address. */
  readonly folder: string;
  readonly #server: OtherServer;

  private constructor(server: OtherServer, folder: string) {
    this.#server = server;
    this.folder = folder;
  }

  static async make(): Promise<Prosody> {
    const server = await OtherServer.make("prosody");
    const folder = await server.folder("data");
    const own = await server.folder("own");
    const program = await Deno.readTextFile(MIGRATOR);
    await server.write("migrator.lua", program.replaceAll(BUILT_IN_FOLDER, folder));
    await server.write(
      "migrator.cfg.lua",
      `files { ${STORES}; type = "xep0227" }\nown { ${STORES}; type = "internal"; path = "${own}" }\n`,
    );
    return new Prosody(server, folder);
  }

  /** Reads the files into its own store, and removes them. */
  async read(): Promise<void> {
    for await (const { name } of Deno.readDir(this.folder)) {
      await Deno.chmod(`${this.folder}/${name}`, 0o666);
    }
    await this.#copy("files", "own");
    for await (const { name } of Deno.readDir(this.folder)) {
      await Deno.remove(`${this.folder}/${name}`);
    }
  }

  /** Writes files from its own store. */
  async write(): Promise<void> {
    await this.#copy("own", "files");
  }

  async #copy(from: string, to: string): Promise<void> {
    const { directory } = this.#server;
    const config = `${directory}/migrator.cfg.lua`;
    await this.#server.run("lua5.4", ["migrator.lua", "--config", config, from, to]);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#server[Symbol.asyncDispose]();
  }
}
