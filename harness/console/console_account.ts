import type { ClientSecurity } from "../clients/mod.ts";
import type { Run } from "../process/mod.ts";

/** Account and server of a program's login. */
export interface ConsoleAccount {
  readonly run: Run;
  readonly host: string;
  readonly port: number;
  readonly domain: string;
  readonly localpart: string;
  readonly password: string;
  /** @default "console" */
  readonly resource?: string;
  readonly security: ClientSecurity;
  /** PEM file of the authority that the server's certificate is checked against. */
  readonly caFile: string;
}

let homes = 0;

/** Makes a home for one program, in which it finds the `files` and nothing else. */
export async function makeHome(
  run: Run,
  program: string,
  files: Readonly<Record<string, string>>,
): Promise<{ readonly name: string; readonly directory: string }> {
  const name = `${program}-${++homes}`;
  const directory = run.path(name);
  await Deno.mkdir(directory);
  for (const [path, text] of Object.entries(files)) {
    const file = `${directory}/${path}`;
    await Deno.mkdir(file.slice(0, file.lastIndexOf("/")), { recursive: true });
    await Deno.writeTextFile(file, text, { mode: 0o600 });
  }
  return { name, directory };
}

/** Environment in which programs find their files and the authority that they trust. */
export function environmentOf(home: string, caFile: string): Readonly<Record<string, string>> {
  return {
    HOME: home,
    XDG_CONFIG_HOME: `${home}/.config`,
    XDG_DATA_HOME: `${home}/.local/share`,
    XDG_CACHE_HOME: `${home}/.cache`,
    SSL_CERT_FILE: caFile,
  };
}
