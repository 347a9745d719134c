import { readFileSync, writeFileSync } from "node:fs";
import { Command, InvalidArgumentError } from "commander";
import { CausewayError, describeFileError } from "../base/mod.ts";
import { MSSQL_PORT, renderOdbcEntry, withOdbcEntry } from "../config/mod.ts";
import type { CommandIo } from "./command_io.ts";

/** Directory in which Debian's FreeTDS keeps its libraries for ODBC. */
const [DRIVER, SETUP] = ["libtdsodbc.so", "libtdsS.so"]
  .map((name) => `/usr/lib/x86_64-linux-gnu/odbc/${name}`) as [string, string];

interface EntryOptions {
  readonly server: string;
  readonly port: number;
  readonly database: string;
  readonly driver: string;
  readonly setup: string;
  readonly output?: string;
}

/** Makes the command `odbc-entry`, which writes the entry that a pool of SQL Server names. */
export function odbcEntryCommand(io: CommandIo): Command {
  return new Command("odbc-entry")
    .description("print an entry of odbc.ini for SQL Server, or put it into a file")
    .argument("<dsn>", "name of the entry", single)
    .requiredOption("--server <HOST>", "host name or IP address of the server", single)
    .requiredOption("--database <NAME>", "name of the database", single)
    .option("--port <PORT>", "TCP port of the server", port, MSSQL_PORT)
    .option("--driver <FILE>", "library of the driver, for other programs", single, DRIVER)
    .option("--setup <FILE>", "library for setting it up, likewise", single, SETUP)
    .option("--output <FILE>", "file whose entry of that name is replaced or added", single)
    .action((dsn: string, { server, output, ...options }: EntryOptions) => {
      const entry = { dsn, host: server, ...options };
      if (output === undefined) io.out(renderOdbcEntry(entry).trimEnd());
      else writeFile(output, withOdbcEntry(readIfThere(output), entry));
    });
}

/**
 * Returns batches as programs print them for import: each behind a line `GO`. For the line-based
 * client of unixODBC, each batch is one line.
 */
export function dumpText(batches: readonly string[], isForOdbcClient: boolean): string {
  const dump = batches.map((batch) => `${batch}\nGO\n`).join("");
  if (!isForOdbcClient) return dump.trimEnd();
  return dump.replaceAll("\r", "").replaceAll("\n", " ").replaceAll(/ ?\bGO\b ?/g, "\n").trimEnd();
}

/** A value that stays within its line and its brackets. */
function single(value: string): string {
  if (value === "" || /[\r\n[\]]/.test(value)) throw new InvalidArgumentError("expected one line");
  return value;
}

function port(value: string): number {
  const number = Number(value);
  if (Number.isInteger(number) && number >= 1 && number <= 65_535) return number;
  throw new InvalidArgumentError("expected 1 to 65535");
}

function readIfThere(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch (thrown) {
    if (thrown instanceof Deno.errors.NotFound || codeOf(thrown) === "ENOENT") return "";
    throw failed("read", path, thrown);
  }
}

function writeFile(path: string, text: string): void {
  try {
    writeFileSync(path, text);
  } catch (thrown) {
    throw failed("write", path, thrown);
  }
}

function failed(action: string, path: string, cause: unknown): CausewayError {
  const message = `Cannot ${action} ${path}: ${describeFileError(cause)}`;
  return new CausewayError("cli/unreadable", message, { cause });
}

function codeOf(thrown: unknown): unknown {
  return typeof thrown === "object" && thrown !== null && "code" in thrown
    ? thrown.code
    : undefined;
}
