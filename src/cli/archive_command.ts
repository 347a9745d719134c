import { Argument, Command, Option } from "commander";
import { CausewayError } from "../base/mod.ts";
import type { Config } from "../config/mod.ts";
import { loadConfig, nearestKey } from "../config/mod.ts";
import type { ArchiveStore } from "../storage/mod.ts";
import { archiveKeyOf, Stores } from "../storage/mod.ts";
import { BareJid, tryParseJid } from "../xmpp/mod.ts";
import { parseAccountAddress } from "./accounts.ts";
import type { CommandIo } from "./command_io.ts";

/** Messages that one step removes. Each is reported. */
const STEP_MESSAGES = 10_000;
/** Accounts that one query looks up. */
const ACCOUNTS_AT_ONCE = 500;
/** A day or a point in time (XEP-0082). */
const DATE_TIME = /^\d{4}-\d\d-\d\d(T\d\d:\d\d:\d\d(\.\d{1,9})?(Z|[+-]\d\d:\d\d))?$/;

interface RemoveOptions {
  readonly config: string;
  readonly before?: string;
  readonly all?: true;
}

/** Makes the command `causeway archive …` for the archives of all hosts, wherever they are kept. */
export function archiveCommand(io: CommandIo): Command {
  const archive = new Command("archive").description("manage archives of messages");
  archive.command("remove").description(
    "delete messages of an account, or of all accounts and rooms of a host",
  )
    .addArgument(new Argument("<address>", "account, or host, such as example.com"))
    .addOption(new Option("--config <FILE>", "configuration file").makeOptionMandatory())
    .addOption(
      new Option(
        "--before <DATE>",
        "those sent before, such as 2026-01-31 or 2026-01-31T12:00:00Z",
      ),
    )
    .addOption(new Option("--all", "all of them").conflicts("before"))
    .action(async (address: string, options: RemoveOptions) => {
      const sentBeforeMs = options.all === true ? Infinity : pastTimeOf(options.before);
      const config = loadConfig(options.config);
      await using stores = await Stores.open(config.storage);
      const removed = await remove(address, { config, stores, sentBeforeMs, io });
      io.out(`messages removed: ${removed}`);
    });
  return archive;
}

interface Removal {
  readonly config: Config;
  readonly stores: Stores;
  /** Infinity: all messages. */
  readonly sentBeforeMs: number;
  readonly io: CommandIo;
}

async function remove(address: string, removal: Removal): Promise<number> {
  const { config, stores } = removal;
  const jid = tryParseJid(address);
  if (jid instanceof BareJid && jid.localpart === "") {
    return await removeOfHost(servedHost(jid.domainpart, config.hosts), removal);
  }
  const { localpart, domainpart, text } = parseAccountAddress(address, config.hosts);
  const creation = (await stores.users(domainpart).existing([localpart])).get(localpart);
  if (creation === undefined) {
    throw new CausewayError(
      "cli/no-account",
      `Cannot find ${text}: there is no such account`,
    );
  }
  const archive = archiveKeyOf(text, creation);
  return await removeSteps(stores.archives(domainpart), { archive }, removal);
}

function servedHost(host: string, hosts: readonly string[]): string {
  if (hosts.includes(host)) return host;
  const nearest = nearestKey(host, hosts);
  const question = nearest === undefined ? "" : `, did you mean ${nearest}?`;
  throw new CausewayError(
    "cli/address",
    `Cannot use ${JSON.stringify(host)}: expected an account (localpart@domain), or one of hosts ` +
      `(${hosts.join(", ")})${question}`,
  );
}

async function removeOfHost(host: string, removal: Removal): Promise<number> {
  const { stores } = removal;
  const store = stores.archives(host);
  let removed = await removeSteps(store, { host }, removal);
  if (host === removal.config.globalDistrib.globalHost) removed += await removeOfRooms(removal);
  if (await store.hasUnowned?.() !== true) return removed;
  // Archives of 0.1.0 do not name their host, so they are found by the host's accounts.
  removal.io.error(`looking through the accounts of ${host} for archives of version 0.1.0`);
  const users = stores.users(host);
  let after: string | undefined;
  for (;;) {
    const page = await users.list({ limit: ACCOUNTS_AT_ONCE, ...(after && { after }) });
    for (const [localpart, creation] of await users.existing(page)) {
      const archive = archiveKeyOf(`${localpart}@${host}`, creation);
      removed += await removeSteps(store, { archive }, removal);
    }
    after = page.at(-1);
    if (page.length < ACCOUNTS_AT_ONCE) return removed;
  }
}

async function removeOfRooms(removal: Removal): Promise<number> {
  const { config: { muc, mucLight, globalDistrib: { globalHost } }, stores } = removal;
  let removed = 0;
  for (const { domain } of [muc, mucLight].filter((each) => each !== undefined)) {
    removed += await removeSteps(stores.roomArchives(globalHost), { host: domain }, removal);
  }
  return removed;
}

async function removeSteps(
  store: ArchiveStore,
  scope: { readonly host: string } | { readonly archive: string },
  { sentBeforeMs, io }: Removal,
): Promise<number> {
  // Nothing is in an archive before it was sent. The clock of a node may be ahead.
  const latestMs = Date.now() + 86_400_000;
  const age = { ...scope, sentBeforeMs: Math.min(sentBeforeMs, latestMs) };
  let removed = 0;
  for (;;) {
    const count = await store.removeBefore(age, STEP_MESSAGES);
    removed += count;
    if (count === 0) return removed;
    if (count === STEP_MESSAGES) io.error(`messages removed so far: ${removed}`);
  }
}

/**
 * Parses a date in the past. One in the future is a mistake, such as a mistyped year, and would
 * remove everything.
 */
function pastTimeOf(text: string | undefined): number {
  if (text === undefined) {
    throw new CausewayError("cli/date", "Cannot remove messages: expected --before DATE or --all");
  }
  const timeMs = DATE_TIME.test(text) ? Date.parse(text) : NaN;
  if (Number.isNaN(timeMs) || !isInCalendar(text)) {
    throw unusable(text, "expected one such as 2026-01-31");
  }
  if (timeMs > Date.now()) throw unusable(text, "it is in the future; --all removes all messages");
  return timeMs;
}

/** True when the month has the day. `Date.parse` takes the 31st of February for the 3rd of March. */
function isInCalendar(text: string): boolean {
  const day = text.slice(0, "2026-01-31".length);
  return new Date(day).toISOString().startsWith(day);
}

function unusable(text: string, why: string): CausewayError {
  return new CausewayError("cli/date", `Cannot use ${JSON.stringify(text)} as a date: ${why}`);
}
