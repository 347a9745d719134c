import { randomBytes } from "node:crypto";
import { resolve } from "node:path";
import { CausewayError } from "../base/mod.ts";
import type { AccountSource, PlacedItem } from "./account_source.ts";
import type { AwaitedAccount, ImportCounts, StateFile } from "./import_state.ts";
import type { MoveFinding } from "./moved_account.ts";
import { ReportFile } from "./report_file.ts";
import type { Taken } from "./take_account.ts";
import { hasKeys, takeAccount } from "./take_account.ts";
import type { TakingDeps, TakingImport } from "./taking_deps.ts";

/** Accounts that are taken at once. */
const BATCH = 16;

/** Waits for another import to go on with accounts, until that import is taken for gone. */
const MOST_WAITS = 60;
const ID_BYTES = 16;

/** Options of an import. */
export interface ImportOptions {
  readonly source: AccountSource;
  readonly taking: TakingDeps;
  readonly state: StateFile;
  /**
   * Text that is the same as long as the hosts and databases are, without secrets. An interrupted
   * import with another one is not continued. @default it is not compared
   */
  readonly destination?: string | undefined;
  /**
   * File that gets a line for everything that was not taken. The report of an earlier import is
   * replaced, unless this one continues that. Any other file is left alone.
   */
  readonly reportPath: string;
  /** Called at the beginning with what was done before, and after each batch. */
  progress?(counts: ImportCounts): void;
}

const NOTHING: ImportCounts = {
  added: 0,
  there: 0,
  refused: 0,
  onlySha1: 0,
  onlySha256: 0,
  findings: 0,
};

/**
 * Takes all accounts of a source. Continues an import of the same source that was interrupted,
 * however that happened. After a crash, up to a batch of accounts is taken again, which changes
 * nothing. Counts and report are those of an import without the crash: an account gets its keys only
 * after the state has a note of it.
 *
 * @throws CausewayError `migration/malformed` for a document with a mistake: what stands before it is
 * taken, and an import of the mended one begins anew. `migration/…` when the source or a file cannot be
 * used, `storage/…`; to repeat the call continues
 */
export async function importAccounts(options: ImportOptions): Promise<ImportCounts> {
  const { source, state, destination } = options;
  const reportPath = resolve(options.reportPath);
  if (reportPath === resolve(state.path)) throw sameFile(options.reportPath);
  const before = await state.read(source.id, destination);
  let counts = before?.counts ?? NOTHING;
  const isSameReport = before !== undefined && (before.report ?? reportPath) === reportPath;
  using report = await ReportFile.open(
    options.reportPath,
    isSameReport ? before.reportBytes : undefined,
  );
  let position = before?.position;
  const taken = new Set(before?.taken);
  let batch: readonly PlacedItem[] = [];
  let seen: string | undefined;
  let awaited = before?.awaited ?? [];
  const importId = before?.importId ?? randomBytes(ID_BYTES).toString("hex");
  const save = () =>
    state.write({
      source: source.id,
      destination,
      importId,
      position,
      taken: [...taken],
      awaited,
      counts,
      report: reportPath,
      reportBytes: report.bytes,
    });
  /** Takes the batch, and leaves in it what has failed, and what another import takes. */
  const takeOnce = async (takesReserved: boolean) => {
    const result = await takeBatch(batch, {
      taking: { ...options.taking, importId, takesReserved },
      awaited,
      await: async (some) => {
        awaited = some;
        await save();
      },
    });
    for (const placed of batch) if (!result.left.includes(placed)) taken.add(placed.position);
    batch = result.left;
    // Accounts that have failed may have got their keys.
    awaited = awaited.filter((each) => batch.some(({ position }) => position === each.position));
    if (batch.length === 0) {
      position = seen;
      taken.clear();
    }
    counts = sumOf(counts, result.counts);
    await report.add(result.findings);
    await save();
    options.progress?.(counts);
    if (result.failure !== undefined) throw result.failure.thrown;
  };
  const take = async () => {
    for (let waits = 0; batch.length > 0; waits++) {
      if (waits > 0) await options.taking.waitForOther();
      await takeOnce(waits >= MOST_WAITS);
    }
  };
  await save(); // when it is killed, it has to know again what it has reserved
  options.progress?.(counts);
  try {
    for await (const placed of source.items(position)) {
      // The accounts of a batch are taken at the same time, so a batch must not have one twice.
      if (batch.some((each) => isSameAccount(each, placed))) await take();
      seen = placed.position;
      if (taken.has(seen)) continue;
      batch = [...batch, placed];
      if (batch.length === BATCH) await take();
    }
  } catch (thrown) {
    await take(); // what came before the failure, and what has failed for a moment
    // Nobody mends a document without a change, and a changed source cannot be continued.
    const isMalformed = thrown instanceof CausewayError && thrown.code === "migration/malformed";
    if (isMalformed) await state.remove();
    throw thrown;
  }
  await take();
  await state.remove();
  return counts;
}

/** Each new state would take the place of the report, and remove it at the end. */
function sameFile(path: string): CausewayError {
  return new CausewayError(
    "migration/unwritable",
    `Cannot write ${path}: it cannot be both the state of the import and its report`,
  );
}

function isSameAccount({ item: one }: PlacedItem, { item: other }: PlacedItem): boolean {
  return one.kind === "account" && other.kind === "account" &&
    one.account.jid.text === other.account.jid.text;
}

/** Collaborators of `takeBatch`. */
interface BatchDeps {
  readonly taking: TakingImport;
  /** Accounts that may have got their keys before the process was killed. */
  readonly awaited: readonly AwaitedAccount[];
  /** Notes durably which accounts get their keys next. */
  await(accounts: readonly AwaitedAccount[]): Promise<void>;
}

/** The fate of an item. */
interface Outcome {
  readonly findings: readonly MoveFinding[];
  /** Undefined for an item that is no account. */
  readonly taken: Pick<Taken, "outcome" | "onlyKey"> | undefined;
}

/** An account that waits for its keys. */
interface Waiting {
  readonly awaited: AwaitedAccount;
  finish(): Promise<Outcome>;
}

/**
 * Takes items, and returns what became of them, with those that are left: because of a failure, or
 * because another import takes them. The keys of all others do not wait for these, as that import may
 * wait for them.
 */
async function takeBatch(batch: readonly PlacedItem[], deps: BatchDeps) {
  const findings: MoveFinding[] = [];
  const left: PlacedItem[] = [];
  let failure: { readonly thrown: unknown } | undefined;
  let counts = NOTHING;
  const firsts = await Promise.allSettled(batch.map((placed) => takeItem(placed, deps)));
  const next = [];
  for (const [index, first] of firsts.entries()) {
    if (first.status === "fulfilled") {
      if (first.value !== undefined && "finish" in first.value) next.push(first.value.awaited);
    } else {
      // An earlier note may hold: nobody could look.
      const { position } = batch[index]!;
      next.push(...deps.awaited.filter((each) => each.position === position));
    }
  }
  if (next.length > 0) await deps.await(next);
  const outcomes = await Promise.allSettled(firsts.map(async (first) => {
    if (first.status === "rejected") throw first.reason;
    const { value } = first;
    return value !== undefined && "finish" in value ? await value.finish() : value;
  }));
  for (const [index, outcome] of outcomes.entries()) {
    if (outcome.status === "rejected") failure ??= { thrown: outcome.reason };
    if (outcome.status === "rejected" || outcome.value === undefined) {
      left.push(batch[index]!);
      continue;
    }
    const { taken } = outcome.value;
    findings.push(...outcome.value.findings);
    counts = sumOf(counts, {
      ...NOTHING,
      // An account whose address cannot be used is a finding of its source.
      added: Number(taken?.outcome === "added"),
      there: Number(taken?.outcome === "there"),
      refused: Number(
        taken === undefined
          ? outcome.value.findings.some(({ kind, account }) => kind === "account" && account !== "")
          : taken.outcome === "refused",
      ),
      onlySha1: Number(taken?.onlyKey === "SHA-1"),
      onlySha256: Number(taken?.onlyKey === "SHA-256"),
      findings: outcome.value.findings.length,
    });
  }
  return { counts, findings, left, failure };
}

/** Takes an item, up to the keys of a new account; undefined when another import takes it. */
async function takeItem(
  { position, item }: PlacedItem,
  { taking, awaited }: BatchDeps,
): Promise<Outcome | Waiting | undefined> {
  if (item.kind === "finding") return { findings: [item.finding], taken: undefined };
  const noted = awaited.find((each) => each.position === position);
  if (noted !== undefined && await hasKeys(item.account, noted.creation, taking)) {
    const { findings, onlyKey } = noted;
    return { findings, taken: { outcome: "added", ...onlyKey !== undefined && { onlyKey } } };
  }
  const account = item.account.jid.text;
  const outcomeOf = (taken: Taken): Outcome => ({
    findings: [...item.findings, ...taken.findings.map((finding) => ({ account, ...finding }))],
    taken,
  });
  const first = await takeAccount(item.account, taking);
  if (first === undefined) return undefined;
  if (!("finish" in first)) return outcomeOf(first);
  const { creation, taken: { onlyKey } } = first;
  const { findings } = outcomeOf(first.taken);
  return {
    awaited: { position, creation, onlyKey, findings },
    finish: async () => outcomeOf(await first.finish()),
  };
}

function sumOf(one: ImportCounts, other: ImportCounts): ImportCounts {
  return {
    added: one.added + other.added,
    there: one.there + other.there,
    refused: one.refused + other.refused,
    onlySha1: one.onlySha1 + other.onlySha1,
    onlySha256: one.onlySha256 + other.onlySha256,
    findings: one.findings + other.findings,
  };
}
