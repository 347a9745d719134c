import { join } from "node:path";
import type { Run } from "../process/mod.ts";
import { until } from "../until.ts";
import { DatabaseServer } from "./database_server.ts";
import { isFile } from "./programs.ts";
import type { CommandLine, ServerCertificate, ServerProgram } from "./server_kinds.ts";

const SLAPD = "/usr/sbin/slapd";
const SLAPADD = "/usr/sbin/slapadd";
const SLAPCAT = "/usr/sbin/slapcat";
/** Bytes of one argument of a command: the system takes 128 KB. */
const ARGUMENT_UNITS = 30_000;

/** True when OpenLDAP's server is on this machine. */
export function isSlapdThere(): boolean {
  return isFile(SLAPD) && isFile(SLAPADD);
}

/** Suffix of the directory of tests. */
export const DIRECTORY_BASE = "dc=example,dc=com";

/** Login that may read everything but passwords. */
export const DIRECTORY_READER = {
  dn: `cn=reader,${DIRECTORY_BASE}`,
  password: "reads; (all) * \\ ü",
} as const;

/** Login that may change everything. */
export const DIRECTORY_KEEPER = { dn: `cn=keeper,${DIRECTORY_BASE}`, password: "keeps" } as const;

/** Encryption that the server offers. */
type Security = "none" | "starttls" | "tls";

/** Content of a directory, and the settings of its server. */
export interface DirectoryContent {
  /**
   * Entries in LDIF, below those that every directory of tests has; or all entries, where that is a
   * backup.
   */
  readonly ldif: string;
  /** True when the entries are a backup. @default false */
  readonly isBackup?: boolean;
  /** More lines of the server's configuration. @default none */
  readonly settings?: readonly string[];
}

/** Options of the start of a directory. */
export interface DirectoryServerOptions {
  readonly run?: Run;
}

/**
 * An LDAP directory of its own on a port of loopback: Debian's slapd, with its configuration and data
 * in a directory of its own. It keeps both until it is disposed of.
 */
export class DirectoryServer implements AsyncDisposable {
  readonly #server: DatabaseServer<ServerProgram>;
  readonly #security: { mode: Security };

  private constructor(server: DatabaseServer<ServerProgram>, security: { mode: Security }) {
    this.#server = server;
    this.#security = security;
  }

  /** Makes its data and starts it. */
  static async start(
    content: DirectoryContent,
    options: DirectoryServerOptions = {},
  ): Promise<DirectoryServer> {
    const security = { mode: "none" as Security };
    const server = await DatabaseServer.start(programOf(content, security), options);
    const directory = new DirectoryServer(server, security);
    await directory.#untilItListens();
    return directory;
  }

  get port(): number {
    return this.#server.port;
  }

  get pid(): number {
    return this.#server.pid;
  }

  /** Returns the end of what it wrote. */
  log(): string {
    return this.#server.log();
  }

  /** Ends it as a crash would. */
  async kill(): Promise<void> {
    await this.#server.kill();
  }

  /** Starts it again, on the same port. */
  async launch(): Promise<void> {
    await this.#server.launch();
    await this.#untilItListens();
  }

  /** Suspends it with its connections open. Returns a function that resumes it. */
  suspend(): () => void {
    return this.#server.suspend();
  }

  /** Returns all entries with their ids, while it runs or not, as an operator backs them up. */
  async backUp(): Promise<string> {
    const { success, stdout, stderr } = await new Deno.Command(SLAPCAT, {
      args: ["-f", join(this.#server.directory, "slapd.conf")],
    }).output();
    const text = new TextDecoder();
    if (!success) throw new Error(`slapcat failed: ${text.decode(stderr)}`);
    return text.decode(stdout);
  }

  /** Starts it again with a certificate: for StartTLS, or for TLS from the first byte. */
  async launchWithTls(
    certificate: ServerCertificate,
    mode: "starttls" | "tls",
  ): Promise<void> {
    await this.#server.kill();
    await this.#server.install(certificate);
    this.#security.mode = mode;
    await this.launch();
  }

  /** It says that it starts before it listens. */
  async #untilItListens(): Promise<void> {
    await until(
      async () => {
        try {
          (await Deno.connect({ hostname: "127.0.0.1", port: this.port })).close();
          return true;
        } catch (thrown) {
          if (!(thrown instanceof Deno.errors.ConnectionRefused)) throw thrown;
          return false;
        }
      },
      { what: "slapd listens", withinMs: 60_000, everyMs: 25, evidence: () => this.log() },
    );
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#server[Symbol.asyncDispose]();
  }
}

function programOf(
  { ldif, isBackup = false, settings = [] }: DirectoryContent,
  security: { readonly mode: Security },
): ServerProgram {
  return {
    name: "slapd",
    prepare: (directory) => [
      ["/bin/mkdir", "data"],
      writing("slapd.conf", configurationOf(directory, settings)),
      writing("tls.conf", tlsOf(directory) + configurationOf(directory, settings)),
      ...chunksOf(isBackup ? ldif : `${FIRST_ENTRIES}\n${ldif}`).map((part) =>
        writing("data.ldif", part)
      ),
      [SLAPADD, "-q", "-f", "slapd.conf", "-l", "data.ldif"],
    ],
    // A message for each request, so that a failed test shows what was asked.
    run: (directory, port) => [
      SLAPD,
      ...["-d", "stats"],
      ...["-f", join(directory, security.mode === "none" ? "slapd.conf" : "tls.conf")],
      ...["-h", `${security.mode === "tls" ? "ldaps" : "ldap"}://127.0.0.1:${port}/`],
    ],
    readyText: "slapd starting",
    killSignal: "SIGKILL",
  };
}

/** A command that adds a text to a file. */
function writing(file: string, text: string): CommandLine {
  return ["/bin/sh", "-c", 'printf %s "$2" >>"$1"', "sh", file, text];
}

function chunksOf(text: string): readonly string[] {
  const chunks: string[] = [];
  for (let at = 0; at < text.length; at += ARGUMENT_UNITS) {
    chunks.push(text.slice(at, at + ARGUMENT_UNITS));
  }
  return chunks;
}

const FIRST_ENTRIES = `dn: ${DIRECTORY_BASE}
objectClass: dcObject
objectClass: organization
dc: example
o: Example

dn: ${DIRECTORY_READER.dn}
objectClass: organizationalRole
objectClass: simpleSecurityObject
cn: reader
userPassword:: ${base64(DIRECTORY_READER.password)}

dn: ou=people,${DIRECTORY_BASE}
objectClass: organizationalUnit
ou: people

dn: ou=groups,${DIRECTORY_BASE}
objectClass: organizationalUnit
ou: groups
`;

function tlsOf(directory: string): string {
  return [
    `TLSCertificateFile ${directory}/cert.pem`,
    `TLSCertificateKeyFile ${directory}/key.pem`,
    "",
  ].join("\n");
}

function configurationOf(directory: string, settings: readonly string[]): string {
  const schemas = ["core", "cosine", "inetorgperson", "nis"];
  return [
    ...schemas.map((name) => `include /etc/ldap/schema/${name}.schema`),
    "modulepath /usr/lib/ldap",
    "moduleload back_mdb",
    `pidfile ${directory}/slapd.pid`,
    // As careless as a server can be: a login without a password succeeds as nobody.
    "allow bind_anon_cred bind_anon_dn",
    "sizelimit size.soft=600 size.hard=600 size.prtotal=unlimited",
    ...settings,
    "access to attrs=userPassword by anonymous auth by * none",
    `access to * by dn.exact="${DIRECTORY_READER.dn}" read by * none`,
    "database mdb",
    `suffix "${DIRECTORY_BASE}"`,
    `rootdn "${DIRECTORY_KEEPER.dn}"`,
    `rootpw ${DIRECTORY_KEEPER.password}`,
    `directory ${directory}/data`,
    "maxsize 67108864",
    "dbnosync",
    "index objectClass,uid,cn,memberUid eq",
    "",
  ].join("\n");
}

/** Returns a text as LDIF writes it after two colons. */
export function base64(text: string): string {
  return btoa(String.fromCharCode(...new TextEncoder().encode(text)));
}

/** One person of a directory. */
export interface DirectoryPerson {
  readonly uid: string;
  readonly password?: string;
  /** Further attributes. `cn` and `sn` are made up unless they are given. */
  readonly attributes?: Readonly<Record<string, string | readonly string[]>>;
}

/** Returns the entry of a person, whose name there has nothing to do with the account's. */
export function personLdif({ uid, password, attributes = {} }: DirectoryPerson): string {
  const id = Array.from(new TextEncoder().encode(uid), (byte) => byte.toString(16)).join("");
  const all = { cn: uid, sn: uid, ...attributes, uid };
  const lines = Object.entries(all).flatMap(([name, values]) =>
    [values].flat().map((value) => `${name}:: ${base64(value)}`)
  );
  if (password !== undefined) lines.push(`userPassword:: ${base64(password)}`);
  return [
    `dn: employeeNumber=${id},ou=people,${DIRECTORY_BASE}`,
    "objectClass: inetOrgPerson",
    `employeeNumber: ${id}`,
    ...lines,
    "",
    "",
  ].join("\n");
}

/** Returns the entry of a group of people, by their uids. */
export function groupLdif(name: string, description: string, members: readonly string[]): string {
  const id = Array.from(new TextEncoder().encode(name), (byte) => byte.toString(16)).join("");
  return [
    `dn: gidNumber=${Number.parseInt(id.slice(0, 12), 16)},ou=groups,${DIRECTORY_BASE}`,
    "objectClass: posixGroup",
    `gidNumber: ${Number.parseInt(id.slice(0, 12), 16)}`,
    `cn:: ${base64(name)}`,
    `description:: ${base64(description)}`,
    ...members.map((member) => `memberUid:: ${base64(member)}`),
    "",
    "",
  ].join("\n");
}
