import type { Command } from "commander";
import { Option } from "commander";
import { X509Certificate } from "node:crypto";
import { isIP } from "node:net";
import type { AdminAddress } from "../admin_client/mod.ts";
import { AdminClient, parseAdminAddress } from "../admin_client/mod.ts";
import {
  belongsTo,
  CausewayError,
  certificatesIn,
  describeError,
  privateKeyIn,
} from "../base/mod.ts";
import type { Config } from "../config/mod.ts";
import { loadConfig } from "../config/mod.ts";
import { firstLine, readNamedFile } from "./command_io.ts";

/** Options of every command that talks to the admin API of a node. */
export interface AdminCommandOptions {
  readonly admin?: string;
  readonly config?: string;
  readonly tokenFile?: string;
  readonly adminCafile?: string;
  readonly adminCertfile?: string;
  readonly adminKeyfile?: string;
  readonly timeout: number;
  readonly json?: true;
}

/** Environment variables that stand for options. */
const ADDRESS_VARIABLE = "CAUSEWAY_ADMIN";
const TOKEN_VARIABLE = "CAUSEWAY_ADMIN_TOKEN";

/** The role that may do most first. */
const ROLES = ["admin", "act", "read"];

/** Characters that no bearer token has: spaces, and those that HTTP does not allow in a header. */
const NOT_IN_HEADER = /[^\x21-\x7e\x80-\xff]|\s/;

const DEFAULT_ADDRESS = "http://127.0.0.1:8088";

/** Adds the options that `connectAdmin` reads. */
export function addAdminOptions(command: Command): Command {
  return addAccessOptions(
    command
      .addOption(
        new Option("--admin <ADDRESS>", "admin API: http://HOST:PORT, or the path of its socket")
          .env(ADDRESS_VARIABLE),
      )
      .option("--config <FILE>", "configuration file that names the admin API and its token"),
  ).option("--json", "print JSON");
}

/** Adds the options about tokens, certificates and time. */
export function addAccessOptions(command: Command): Command {
  return command
    .option("--token-file <FILE>", `file with the token; or set ${TOKEN_VARIABLE}`)
    .option("--admin-cafile <FILE>", "authorities of the API's certificate")
    .option("--admin-certfile <FILE>", "certificate that the API knows you by")
    .option("--admin-keyfile <FILE>", "its key, if it is not in the same file")
    .addOption(
      new Option("--timeout <SECONDS>", "time for each answer").default(10).argParser(seconds),
    );
}

/**
 * Returns the admin API that the options name: `--admin`, else the one of `--config`, else the
 * default port on this machine.
 * @throws CausewayError for an address or file that cannot be used; ConfigError
 */
export function connectAdmin(options: AdminCommandOptions): AdminClient {
  const config = options.config === undefined ? undefined : loadConfig(options.config);
  const address = options.admin !== undefined
    ? parseAdminAddress(options.admin)
    : config !== undefined
    ? ownAddress(config)
    : parseAdminAddress(DEFAULT_ADDRESS);
  return adminClient(address, options, config);
}

/** Returns the admin API at `address`; the token comes from the options, else from `config`. */
export function adminClient(
  address: AdminAddress,
  options: Omit<AdminCommandOptions, "json">,
  config: Config | undefined,
): AdminClient {
  const { adminCafile, adminCertfile, adminKeyfile, timeout } = options;
  return new AdminClient({
    address,
    token: tokenOf(options, config),
    timeoutMs: timeout * 1000,
    tls: {
      ...(adminCafile === undefined ? {} : { ca: readPem(adminCafile, certificatesIn).join("\n") }),
      ...(adminCertfile === undefined ? {} : readIdentity(adminCertfile, adminKeyfile)),
    },
  });
}

/** Reads a certificate with its chain, and its key. @throws CausewayError `cli/unusable-file` */
function readIdentity(certfile: string, keyfile = certfile) {
  const cert = readPem(certfile, certificatesIn).join("\n");
  const key = readPem(keyfile, privateKeyIn);
  if (belongsTo(key, cert)) return { cert, key };
  throw unusable(keyfile, `it does not belong to the certificate ${certfile}`);
}

function readPem<T>(file: string, parse: (text: string) => T): T {
  const text = readNamedFile(file);
  try {
    return parse(text);
  } catch (thrown) {
    throw unusable(file, describeError(thrown));
  }
}

function unusable(file: string, why: string): CausewayError {
  return new CausewayError("cli/unusable-file", `Cannot use ${file}: ${why}`);
}

/**
 * Returns the address at which a node with this configuration serves its admin API: its socket
 * where there is one, as that needs no token, else its port.
 */
export function ownAddress({ listen: { admin } }: Config): AdminAddress {
  if (admin.socket !== undefined) return { kind: "socket", path: admin.socket };
  const host = admin.host === "0.0.0.0" ? "127.0.0.1" : admin.host === "::" ? "::1" : admin.host;
  const scheme = admin.tls === undefined ? "http" : "https";
  const address = parseAdminAddress(
    `${scheme}://${host.includes(":") ? `[${host}]` : host}:${admin.port}`,
  );
  if (admin.tls === undefined || address.kind === "socket" || isIP(host) === 0) return address;
  return { ...address, certifiedName: nameIn(admin.tls.certfile) };
}

/**
 * Returns a name that a certificate bears. Nobody certifies the address at which a node listens.
 * Undefined for a file that cannot be read here: the certificate must name the address then.
 */
function nameIn(certfile: string): string | undefined {
  try {
    const { subjectAltName = "" } = new X509Certificate(readNamedFile(certfile));
    return /DNS:([a-z0-9.-]+)/i.exec(subjectAltName)?.[1];
  } catch {
    return undefined;
  }
}

function tokenOf(
  { tokenFile }: Pick<AdminCommandOptions, "tokenFile">,
  config: Config | undefined,
): string | undefined {
  if (tokenFile !== undefined) {
    return usableToken(firstLine(readNamedFile(tokenFile)).trim(), `token in ${tokenFile}`);
  }
  const given = Deno.env.get(TOKEN_VARIABLE);
  if (given) return usableToken(given, `token in ${TOKEN_VARIABLE}`);
  const own = ownToken(config);
  return own === undefined ? undefined : usableToken(own, "token of listen.admin");
}

/**
 * Returns a token if a request can carry it.
 * @throws CausewayError `cli/token`, which does not show the token
 */
function usableToken(token: string, name: string): string {
  if (token === "") {
    throw new CausewayError(
      "cli/token",
      `Cannot use the ${name}: its first line is empty, and should hold the token alone`,
    );
  }
  const at = token.search(NOT_IN_HEADER);
  if (at < 0) return token;
  throw new CausewayError(
    "cli/token",
    `Cannot use the ${name}: character ${at + 1} is ` +
      `U+${token.codePointAt(at)!.toString(16).toUpperCase().padStart(4, "0")}, which the header ` +
      "of a request cannot carry",
  );
}

/** Returns the token of a configuration that may do most. */
function ownToken(config: Config | undefined): string | undefined {
  if (config === undefined) return undefined;
  const { token, tokens } = config.listen.admin;
  const best = ROLES.map((role) => tokens.find((each) => each.role === role))
    .find((each) => each !== undefined);
  return (token ?? best?.token)?.reveal();
}

/**
 * Reads a time span such as `90s`, `10m` or `1h`; returns seconds.
 * @throws CausewayError for another form, and for more than an hour
 */
export function timeSpan(text: string): number {
  const [, count, unit] = /^([1-9]\d{0,5})(s|m|h)$/.exec(text) ?? [];
  const value = Number(count) * ({ s: 1, m: 60, h: 3600 }[unit ?? ""] ?? NaN);
  if (value <= 3600) return value;
  throw new CausewayError(
    "cli/usage",
    `Cannot use ${JSON.stringify(text)} as a time: expected such as 90s, 10m or 1h, at most 1h`,
  );
}

/** Reads a number of seconds. */
export function seconds(text: string): number {
  const value = Number(text);
  if (value > 0 && value <= 3600) return value;
  throw new CausewayError(
    "cli/usage",
    `Cannot wait ${JSON.stringify(text)} seconds: expected a number above 0, at most 3600`,
  );
}
