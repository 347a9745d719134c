import { createHash } from "node:crypto";
import { dirname, isAbsolute, join, relative } from "node:path";
import { CausewayError, describeError, describeFileError } from "../base/mod.ts";
import type { AccountSource, PlacedItem } from "./account_source.ts";
import { shown } from "./shown.ts";
import type { SourceItem } from "./moved_account.ts";
import type { PieContext } from "./pie_document.ts";
import { PieDocument } from "./pie_document.ts";

/** Files that may include each other: the whole, a host, an account, and one to spare. */
const MAX_INCLUSIONS = 4;
/** Bytes that are read at once. */
const CHUNK_BYTES = 65_536;

/** Files of XEP-0227: each is a document, and may have parts in other files of its folder. */
export class PieFiles implements AccountSource {
  readonly id: string;
  readonly #paths: readonly string[];

  private constructor(id: string, paths: readonly string[]) {
    this.id = id;
    this.#paths = paths;
  }

  /**
   * Finds the files. A folder stands for all its files whose names end in `.xml`: one at least.
   *
   * @throws CausewayError `migration/unreadable`
   */
  static async open(paths: readonly string[]): Promise<PieFiles> {
    const found: string[] = [];
    for (const path of paths) {
      try {
        const real = await Deno.realPath(path);
        const { isDirectory } = await Deno.stat(real);
        if (!isDirectory) found.push(real);
        else found.push(...await documentsIn(real));
      } catch (thrown) {
        throw unreadable(path, thrown);
      }
    }
    // A folder may have a file for each of very many accounts, and the state is written often.
    const hash = createHash("sha256");
    for (const path of found) {
      const { size, mtime } = await Deno.stat(path);
      hash.update(JSON.stringify([path, size, mtime?.getTime()]));
    }
    return new PieFiles(`files ${hash.digest("hex")}`, found);
  }

  /**
   * A position is a number of items with a hash of what they are about. The parts in other files do
   * not count for `id`, so that a position may no longer fit.
   */
  async *items(after: string | undefined): AsyncGenerator<PlacedItem, void> {
    const from = after === undefined ? 0 : Number.parseInt(after);
    const seen: Seen = new Map();
    let count = 0;
    let hash = "";
    for (const path of this.#paths) {
      if (seen.has(path)) continue; // it was part of another one
      const whole = { path, folder: dirname(path), context: { host: undefined }, depth: 0 };
      for await (const item of read(whole, seen)) {
        count++;
        hash = createHash("sha256").update(`${hash} ${nameOf(item)}`).digest("base64url");
        const position = `${count} ${hash}`;
        if (count > from) yield { position, item };
        else if (count === from && position !== after) throw changed();
      }
    }
    if (count < from) throw changed();
  }
}

/** The files that were read, each with the hosts that it was read for. */
type Seen = Map<string, Set<string | undefined>>;

function nameOf(item: SourceItem): string {
  if (item.kind === "account") return item.account.jid.text;
  return `${item.finding.account} ${item.finding.reason}`;
}

function changed(): CausewayError {
  return new CausewayError(
    "migration/state",
    "Cannot continue the import: the accounts in the files have changed; remove the file of " +
      "--state to begin anew, which is safe",
  );
}

/** A document that is to be read. */
interface Opened {
  readonly path: string;
  /** Folder that no file may lie outside of. */
  readonly folder: string;
  readonly context: PieContext;
  /** Documents around it. */
  readonly depth: number;
}

async function* read(document: Opened, seen: Seen): AsyncGenerator<SourceItem, void> {
  const { path, folder, context, depth } = document;
  const hosts = seen.get(path) ?? new Set();
  if (hosts.has(context.host)) return;
  seen.set(path, hosts.add(context.host));
  const pie = new PieDocument(context);
  for await (const chunk of chunksOf(path)) {
    try {
      if (chunk === undefined) pie.end();
      else pie.push(chunk);
    } catch (thrown) {
      // The accounts before the mistake are taken.
      yield* accountsIn(pie);
      throw new CausewayError(
        "migration/malformed",
        `Cannot import all of ${path}: ${describeError(thrown)}; what stands before that is ` +
          "taken, so mend the file and repeat the import",
        { cause: thrown },
      );
    }
    const items = pie.items;
    pie.items = [];
    for (const item of items) {
      if (item.kind !== "include") {
        yield item;
        continue;
      }
      const included = await includedPath(item.href, path, folder);
      if (included === undefined || depth + 1 >= MAX_INCLUSIONS) {
        const reason = `the file ${shown(item.href)} is not read: there is none, it is not below ` +
          `${folder}, or too many files include each other`;
        yield { kind: "finding", finding: { account: "", kind: "other", reason } };
        continue;
      }
      yield* read({ path: included, folder, context: item.within, depth: depth + 1 }, seen);
    }
  }
}

function* accountsIn(pie: PieDocument): Generator<SourceItem> {
  for (const item of pie.items) if (item.kind !== "include") yield item;
}

/** Yields the bytes of a file in pieces, and undefined at its end. */
async function* chunksOf(path: string): AsyncGenerator<Uint8Array | undefined, void> {
  try {
    using file = await Deno.open(path);
    for (;;) {
      const chunk = new Uint8Array(CHUNK_BYTES);
      const length = await file.read(chunk);
      if (length === null) break;
      yield chunk.subarray(0, length);
    }
  } catch (thrown) {
    throw thrown instanceof CausewayError ? thrown : unreadable(path, thrown);
  }
  yield undefined;
}

/** Returns the path of an included file, undefined when it may not be read. */
async function includedPath(
  href: string,
  from: string,
  folder: string,
): Promise<string | undefined> {
  if (href === "" || href.includes("\0") || isAbsolute(href) || URL.canParse(href)) {
    return undefined;
  }
  try {
    const real = await Deno.realPath(join(dirname(from), decodeURIComponent(href)));
    const inside = relative(folder, real);
    return inside.startsWith("..") || isAbsolute(inside) ? undefined : real;
  } catch {
    return undefined; // no such file, or no name of one
  }
}

async function documentsIn(folder: string): Promise<readonly string[]> {
  const found: string[] = [];
  for await (const { name } of Deno.readDir(folder)) {
    if (!name.endsWith(".xml")) continue;
    const path = await Deno.realPath(join(folder, name)); // it may be a link
    if ((await Deno.stat(path)).isFile) found.push(path);
  }
  if (found.length === 0) throw new Error("it has no files whose names end in .xml");
  return found.sort();
}

function unreadable(path: string, thrown: unknown): CausewayError {
  const message = `Cannot read ${path}: ${describeFileError(thrown)}`;
  return new CausewayError("migration/unreadable", message, { cause: thrown });
}
