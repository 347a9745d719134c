/** File with the entries of ODBC that a system shares. */
export const ODBC_FILE = "/etc/odbc.ini";
/** Port of SQL Server where an entry names none. */
export const MSSQL_PORT = 1433;
/** Versions of the protocol that the driver speaks. `auto`: the newest of them. */
export const TDS_VERSIONS: readonly string[] = ["7.2", "7.3", "7.4"];

/** Server and database that an entry of an ODBC configuration file names. */
export interface OdbcServer {
  readonly host: string;
  readonly port: number;
  readonly database: string;
  /** Absent: the newest. */
  readonly tdsVersion?: string;
}

/** Data source and login that a connection string names. */
export interface OdbcLogin {
  readonly dsn: string;
  readonly username: string;
  /** Absent: the string has no `PWD`. */
  readonly password?: string;
}

/** Values of an entry that `renderOdbcEntry` writes. */
export interface OdbcEntryOptions {
  readonly dsn: string;
  readonly host: string;
  readonly port: number;
  readonly database: string;
  /** Path of the library, for programs that go through ODBC. */
  readonly driver: string;
  readonly setup: string;
}

/**
 * Reads a connection string: `DSN=<name>;UID=<user>;PWD=<password>`. A value in braces may hold any
 * character, a closing brace twice. Returns undefined for a string with anything else.
 */
export function parseConnectionString(text: string): OdbcLogin | undefined {
  const values = new Map<string, string>();
  const pattern = /\s*(\w+)\s*=\s*(?:\{((?:[^}]|\}\})*)\}|([^;{}]*))\s*(?:;|$)/y;
  for (let at = 0; at < text.length; at = pattern.lastIndex) {
    pattern.lastIndex = at;
    const [, key, braced, plain] = pattern.exec(text) ?? [];
    if (key === undefined || values.has(key.toUpperCase())) return undefined;
    values.set(key.toUpperCase(), braced?.replaceAll("}}", "}") ?? plain!.trim());
  }
  const [dsn, username, password] = ["DSN", "UID", "PWD"].map((key) => values.get(key));
  if (!dsn || !username || values.size > (password === undefined ? 2 : 3)) return undefined;
  return { dsn, username, ...password === undefined ? {} : { password } };
}

/**
 * Returns the values of an entry of an ODBC configuration file, by their keys in lower case;
 * undefined when the file has no such entry.
 */
export function readOdbcEntry(file: string, dsn: string): ReadonlyMap<string, string> | undefined {
  let values: Map<string, string> | undefined;
  let isOurs = false;
  for (const line of file.split(/\r?\n/).map((each) => each.trim())) {
    if (line === "" || /^[#;]/.test(line)) continue;
    const [, section] = /^\[(.*)\]$/.exec(line) ?? [];
    if (section !== undefined) {
      isOurs = section.trim().toLowerCase() === dsn.toLowerCase();
      if (isOurs) values ??= new Map();
      continue;
    }
    const equals = line.indexOf("=");
    if (!isOurs || equals < 0) continue;
    values!.set(line.slice(0, equals).trim().toLowerCase(), line.slice(equals + 1).trim());
  }
  return values;
}

/** Returns the server that an entry names, and what is wrong with the entry. */
export function odbcServerOf(entry: ReadonlyMap<string, string>): {
  readonly server?: OdbcServer;
  readonly problems: readonly string[];
} {
  const problems: string[] = [];
  const host = entry.get("server") ?? "";
  const database = entry.get("database") ?? "";
  const port = Number(entry.get("port") ?? MSSQL_PORT);
  const tdsVersion = (entry.get("tds_version") ?? "auto").toLowerCase();
  if (!/^[^\s#/@[\],;\\]+$/.test(host)) {
    problems.push(
      entry.has("server")
        ? `expected a host name or an IP address as Server, found "${host}"`
        : "it has no Server",
    );
  }
  if (database === "") problems.push("it has no Database");
  if (!Number.isInteger(port) || port < 1 || port > 65_535) {
    problems.push(`expected a TCP port as Port, found "${entry.get("port")}"`);
  }
  if (tdsVersion !== "auto" && !TDS_VERSIONS.includes(tdsVersion)) {
    problems.push(
      `expected ${TDS_VERSIONS.join(", ")} or auto as TDS_Version, found "${tdsVersion}"`,
    );
  }
  for (
    const [key, name] of [["charset", "Charset"], ["client_charset", "client_charset"]] as const
  ) {
    const value = entry.get(key);
    if (value === undefined || /^utf-?8$/i.test(value)) continue;
    problems.push(`expected UTF-8 as ${name}, found "${value}"`);
  }
  if (problems.length > 0) return { problems };
  const version = tdsVersion === "auto" ? {} : { tdsVersion };
  return { server: { host, port, database, ...version }, problems };
}

/** Returns an entry of an ODBC configuration file. Its text ends with a line break. */
export function renderOdbcEntry(options: OdbcEntryOptions): string {
  const { dsn, host, port, database, driver, setup } = options;
  return [
    `[${dsn}]`,
    `Driver = ${driver}`,
    `Setup = ${setup}`,
    `Server = ${host}`,
    `Port = ${port}`,
    `Database = ${database}`,
    "Charset = UTF-8",
    "TDS_Version = 7.2",
    "client_charset = UTF-8",
    "",
  ].join("\n");
}

/** Returns the text of an ODBC configuration file with this entry in the place of an older one. */
export function withOdbcEntry(file: string, options: OdbcEntryOptions): string {
  const lines = file === "" ? [] : file.replace(/\n$/, "").split("\n");
  const isHead = (line: string) => /^\s*\[.*\]\s*$/.test(line);
  const start = lines.findIndex((line) =>
    isHead(line) && line.trim().slice(1, -1).trim().toLowerCase() === options.dsn.toLowerCase()
  );
  const entry = renderOdbcEntry(options).trimEnd().split("\n");
  if (start < 0) {
    const gap = lines.length === 0 || lines.at(-1)!.trim() === "" ? [] : [""];
    return [...lines, ...gap, ...entry, ""].join("\n");
  }
  const next = lines.findIndex((line, index) => index > start && isHead(line));
  const rest = next < 0 ? [] : ["", ...lines.slice(next)];
  return [...lines.slice(0, start), ...entry, ...rest, ""].join("\n");
}
