import { OtherServer } from "./other_server.ts";

const CONFIGURATION = `hosts: [example.com]
loglevel: warning
auth_method: internal
auth_password_format: scram
listen: []
modules:
  mod_roster: {}
  mod_vcard: {}
  mod_private: {}
  mod_offline: {}
  mod_privacy: {}
`;

/** Folder of Erlang's libraries in Debian's packages, among them ejabberd. */
const LIBRARIES = `/usr/lib/${Deno.build.arch}-linux-gnu`;

/**
 * ejabberd with the host `example.com`, for its command line alone: it listens nowhere and takes part
 * in no cluster. Each call starts it with the data of the call before, and stops it.
 */
export class Ejabberd implements AsyncDisposable {
  readonly #server: OtherServer;

  private constructor(server: OtherServer) {
    this.#server = server;
  }

  static async make(): Promise<Ejabberd> {
    const server = await OtherServer.make("ejabberd");
    await server.write("ejabberd.yml", CONFIGURATION);
    for (const name of ["data", "export"]) await server.folder(name);
    return new Ejabberd(server);
  }

  /** Reads a document of XEP-0227, as `ejabberdctl import_piefxis` does. */
  async import(text: string): Promise<void> {
    const path = await this.#server.write("import.xml", text);
    await this.#evaluate(`ok = ejabberd_piefxis:import_file(<<"${path}">>)`);
  }

  /** Writes its accounts, as `ejabberdctl export_piefxis` does, and returns the folder. */
  async export(): Promise<string> {
    const folder = `${this.#server.directory}/export`;
    await this.#evaluate(`ok = ejabberd_piefxis:export_server("${folder}")`);
    return folder;
  }

  /** True when a login with this password succeeds. */
  async accepts(name: string, password: string): Promise<boolean> {
    const call = `ejabberd_auth:check_password(<<"${name}">>, <<>>, <<"example.com">>, ` +
      `<<"${password}">>)`;
    return (await this.#evaluate(`io:format("~nanswer ~p~n", [${call}])`)).includes("answer true");
  }

  async #evaluate(expression: string): Promise<string> {
    const { directory } = this.#server;
    const args = ["-noinput", "-mnesia", "dir", `"${directory}/data"`, "-eval"];
    const start = "{ok, _} = application:ensure_all_started(ejabberd)";
    return await this.#server.run("erl", [...args, `${start}, ${expression}, init:stop().`], {
      EJABBERD_CONFIG_PATH: `${directory}/ejabberd.yml`,
      EJABBERD_LOG_PATH: `${directory}/ejabberd.log`,
      ERL_LIBS: LIBRARIES,
      ERL_CRASH_DUMP_BYTES: "0",
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#server[Symbol.asyncDispose]();
  }
}
