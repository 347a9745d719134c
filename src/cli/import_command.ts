import { Command, Option } from "commander";
import { timingSafeEqual } from "node:crypto";
import { setTimeout } from "node:timers/promises";
import { CausewayError, describeError } from "../base/mod.ts";
import type { Config } from "../config/mod.ts";
import { loadConfig, sqlAddressOf } from "../config/mod.ts";
import type { AccountSource, ImportCounts, TakingDeps } from "../migration/mod.ts";
import {
  importAccounts,
  MongooseimSql,
  PieFiles,
  StateFile,
  takenPrivacyOptions,
} from "../migration/mod.ts";
import { backendsOf, ForeignDatabase, Stores } from "../storage/mod.ts";
import { derivePasswordLike, deriveScramCredentials } from "../xmpp/mod.ts";
import { EXIT } from "./command_docs.ts";
import type { CommandIo } from "./command_io.ts";
import { firstLine, readNamedFile } from "./command_io.ts";

interface Options {
  readonly config: string;
  readonly mongooseimSql?: string;
  readonly passwordFile?: string;
  readonly cafile?: string;
  readonly state: string;
  readonly report: string;
  readonly json?: true;
}

/** Milliseconds between two lines about the progress. */
const PROGRESS_MS = 2000;

/** Said once: it may take a minute until the other import is known to be gone. */
const WAITING = "waiting for another import, which takes some of the same accounts";

/** Limits on private storage where the module that serves it is off. */
const PRIVATE_BOUNDS = { maxElements: 200, maxBytes: 1_048_576 };

/**
 * Makes the command `causeway import`, which takes accounts of other servers. Calls `done` with the
 * exit code.
 */
export function importCommand(io: CommandIo, done: (code: number) => void): Command {
  return new Command("import")
    .description("take accounts with their data from other servers; safe to repeat")
    .argument("[paths...]", "files of XEP-0227, or folders of such files")
    .addOption(new Option("--config <FILE>", "configuration file").makeOptionMandatory())
    .option("--mongooseim-sql <URL>", "read MongooseIM's tables: postgresql://… or mysql://…")
    .option("--password-file <FILE>", "file with the password for that database")
    .option("--cafile <FILE>", "authorities that may issue that database's certificate")
    .option("--state <FILE>", "keeps how far an import has come", "causeway-import.state")
    .option("--report <FILE>", "gets a line for all that was not taken", "causeway-import.report")
    .option("--json", "print JSON")
    .action(async (paths: readonly string[], options: Options) => {
      const config = loadConfig(options.config);
      const { report } = options;
      const print = (result: object) => io.out(JSON.stringify(result, null, 2));
      let counts: ImportCounts | undefined;
      try {
        counts = await runImport(paths, options, { config, io, counted: (now) => counts = now });
      } catch (thrown) {
        if (!options.json) throw thrown;
        done(EXIT.failure);
        return print({ ...counts, report, problem: describeError(thrown) });
      }
      if (options.json) print({ ...counts, report });
      else say(counts, report, io);
    });
}

interface ImportRun {
  readonly config: Config;
  readonly io: CommandIo;
  /** Called with what is done so far. */
  counted(counts: ImportCounts): void;
}

async function runImport(
  paths: readonly string[],
  options: Options,
  { config, io, counted }: ImportRun,
): Promise<ImportCounts> {
  using state = await StateFile.open(options.state);
  await using opened = await openSource(paths, options);
  await using stores = await Stores.open(config.storage);
  let saidMs = Date.now();
  return await importAccounts({
    source: opened.source,
    taking: takingDeps(config, stores, io),
    state,
    destination: destinationOf(config),
    reportPath: options.report,
    progress(counts) {
      counted(counts);
      if (Date.now() - saidMs < PROGRESS_MS) return;
      saidMs = Date.now();
      io.error(`causeway: ${counts.added + counts.there + counts.refused} accounts done`);
    },
  });
}

/** Returns a text that names the hosts of a configuration and the databases of their data. */
function destinationOf({ hosts, storage }: Config): string {
  return JSON.stringify([hosts.toSorted(), backendsOf(storage).map(({ place }) => place)]);
}

interface OpenSource extends AsyncDisposable {
  readonly source: AccountSource;
}

async function openSource(paths: readonly string[], options: Options): Promise<OpenSource> {
  const { mongooseimSql: url } = options;
  if ((url === undefined) === (paths.length === 0)) {
    const problem = "name either files of XEP-0227 or a database with --mongooseim-sql";
    throw new CausewayError("cli/import-source", `Cannot import: ${problem}`);
  }
  if (url === undefined) {
    refuseDatabaseOptions(options);
    const source = await PieFiles.open(paths);
    return { source, [Symbol.asyncDispose]: () => Promise.resolve() };
  }
  const { driver, address } = databaseOf(url, options);
  const database = await ForeignDatabase.open(driver, address);
  try {
    const source = await MongooseimSql.open(database);
    return { source, [Symbol.asyncDispose]: () => database[Symbol.asyncDispose]() };
  } catch (thrown) {
    await database[Symbol.asyncDispose]();
    throw thrown;
  }
}

/** @throws CausewayError `cli/…` for another URL, and for two passwords */
function databaseOf(url: string, { passwordFile, cafile }: Options) {
  const named = sqlAddressOf(url, { cafile });
  if (named === undefined) {
    // The URL may hold a password, so it is not shown.
    throw new CausewayError(
      "cli/import-source",
      "Cannot import: --mongooseim-sql expects postgresql://USER:PASSWORD@HOST:PORT/DATABASE or " +
        "mysql://… without further parameters",
    );
  }
  if (passwordFile === undefined) return named;
  if (named.address.password.reveal() !== "") {
    const problem = "the URL of --mongooseim-sql has a password";
    throw new CausewayError("cli/usage", `Cannot use --password-file: ${problem}`);
  }
  const password = firstLine(readNamedFile(passwordFile));
  return sqlAddressOf(url, { password, cafile })!; // it was usable
}

/** @throws CausewayError `cli/usage` for options that are about a database, where there is none */
function refuseDatabaseOptions({ passwordFile, cafile }: Options): void {
  const given = [
    ...passwordFile === undefined ? [] : ["--password-file"],
    ...cafile === undefined ? [] : ["--cafile"],
  ];
  if (given.length === 0) return;
  throw new CausewayError(
    "cli/usage",
    `Cannot use ${
      given.join(" and ")
    } with files of XEP-0227: only a database (--mongooseim-sql) ` +
      "has a password or a certificate",
  );
}

function takingDeps(config: Config, stores: Stores, io: CommandIo): TakingDeps {
  let hasSaid = false;
  return {
    stores,
    hosts: config.hosts,
    privateBoundsOf: (host) => config.modules.get(host)?.mod_private || PRIVATE_BOUNDS,
    privacyOptionsOf: (host) => takenPrivacyOptions(config.modules.get(host)),
    pepLimitsOf: (host) => config.modules.get(host)?.mod_pubsub || undefined,
    offlineOptionsOf: (host) => config.modules.get(host)?.mod_offline || undefined,
    nowMs: () => Date.now(),
    async waitForOther() {
      if (!hasSaid) io.error(`causeway: ${WAITING}`);
      hasSaid = true;
      await setTimeout(1000);
    },
    derive: (password) => deriveScramCredentials(password, config.auth.scramIterations),
    async verify(credentials, password) {
      const hash = credentials.sha256 === undefined ? "SHA-1" : "SHA-256";
      const secret = credentials.sha256 ?? credentials.sha1;
      const derived = await derivePasswordLike(secret, password, hash);
      return derived !== undefined && timingSafeEqual(derived.storedKey, secret.storedKey);
    },
  };
}

function say(counts: ImportCounts, report: string, io: CommandIo): void {
  io.out(`accounts added: ${counts.added}`);
  io.out(`accounts that existed already: ${counts.there}`);
  io.out(`accounts not taken: ${counts.refused}`);
  if (counts.findings > 0) {
    io.out(`not taken, or not as it stood: ${counts.findings}, see ${report}`);
  }
  const only = [["SHA-1", counts.onlySha1], ["SHA-256", counts.onlySha256]] as const;
  for (const [hash, accounts] of only) {
    if (accounts === 0) continue;
    io.out(
      `accounts with a key for ${hash} only: ${accounts}; see "Accounts with one key" in ` +
        "docs/operations.md",
    );
  }
}
