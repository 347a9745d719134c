import type { Config } from "../config.ts";
import { ConfigError } from "../config_error.ts";
import { parseConfig } from "../load_config.ts";
import type { ParseOptions } from "../surroundings.ts";

/** A configuration without a mistake. Text appended to it begins at line 9. */
export const SOUND = `hosts = ["example.com", "dc1.example.com"]
node_name = "node1@dc1.example.com"

[modules.mod_global_distrib]
global_host = "example.com"
local_host = "dc1.example.com"
connections.tls_opts = false
redis.replication = "external"
`;

/** Parses `text` as `/etc/causeway/c.toml`, where every file can be read and holds its own path. */
export function parse(text: string, options: Partial<ParseOptions> = {}): Config {
  return parseConfig(text, {
    file: "/etc/causeway/c.toml",
    env: (name) => name === "SET" ? "from the environment" : undefined,
    readFile: (path) => `${path}\n`,
    hostname: () => "box",
    ...options,
  });
}

/** Lists the mistakes in `text` as `LINE: path: problem`, top to bottom. */
export function findingsIn(text: string, options: Partial<ParseOptions> = {}): string[] {
  try {
    parse(text, options);
    return [];
  } catch (thrown) {
    if (!(thrown instanceof ConfigError)) throw thrown;
    return thrown.findings.map(({ line, path, problem }) => `${line ?? "-"}: ${path}: ${problem}`);
  }
}
