import type { ByteReader } from "./bytes.ts";
import { MESSAGE } from "./packets.ts";
import type { Session } from "./session.ts";
import { syntaxError, TdsError } from "./tds_error.ts";
import { DONE, doneToken, resultTokens, returnStatus, returnValue } from "./tokens.ts";
import type { Parameter } from "./values.ts";
import { readParameter } from "./values.ts";

/** One request of a client, and the tokens of its answer so far. */
export interface RequestContext {
  readonly reader: ByteReader;
  readonly session: Session;
  /** Prepared statements of the session, by their handles. */
  readonly prepared: Map<number, string>;
  readonly signal: AbortSignal;
  readonly parts: Uint8Array[];
}

interface RequestKind {
  run(context: RequestContext): Promise<void>;
}

/** Numbers of procedures that a request may name instead of their names. */
const PROCEDURES = new Map([
  [10, "sp_executesql"],
  [11, "sp_prepare"],
  [12, "sp_execute"],
  [13, "sp_prepexec"],
  [15, "sp_unprepare"],
]);
const MAX_PARAMETERS = 2100;
const [BEGIN, COMMIT, ROLLBACK] = [5, 7, 8];

const BATCH: RequestKind = {
  async run(context) {
    await runBatch(context, context.reader.restAsText(), [], "done");
  },
};

const TRANSACTION: RequestKind = {
  run({ reader, session, parts }) {
    const type = reader.u16();
    if (type === BEGIN) session.begin();
    else if (type === COMMIT) session.commit();
    else if (type === ROLLBACK) session.rollback();
    else throw syntaxError(`transaction request ${type}`);
    parts.push(...session.takeNews(), doneToken("done", DONE.final));
    return Promise.resolve();
  },
};

const RPC: RequestKind = {
  async run(context) {
    const { reader, parts, prepared } = context;
    const length = reader.u16();
    const procedure = length === 0xffff ? PROCEDURES.get(reader.u16()) : reader.text(length);
    reader.skip(2);
    const parameters: Parameter[] = [];
    while (!reader.isAtEnd) {
      const { name, ...rest } = readParameter(reader);
      parameters.push({ ...rest, name: name.replace(/^@/, "") });
    }
    if (parameters.length > MAX_PARAMETERS) {
      throw new TdsError(8003, "The incoming request has too many parameters.");
    }
    switch (procedure?.toLowerCase()) {
      case "sp_executesql": {
        const [sql, declarations, ...values] = parameters;
        if (declarations !== undefined) checkDeclared(textIn(declarations), values);
        await runBatch(context, textIn(sql), values, "doneInProcedure");
        break;
      }
      case "sp_prepare": {
        const handle = prepared.size + 1;
        prepared.set(handle, textIn(parameters[2]));
        parts.push(returnValue("handle", handle));
        break;
      }
      case "sp_prepexec": {
        const [, declarations, sql, ...values] = parameters;
        checkDeclared(textIn(declarations), values);
        const handle = prepared.size + 1;
        prepared.set(handle, textIn(sql));
        parts.push(returnValue("handle", handle));
        await runBatch(context, textIn(sql), values, "doneInProcedure");
        break;
      }
      case "sp_execute": {
        const [handle, ...values] = parameters;
        const sql = prepared.get(Number(handle?.value));
        if (sql === undefined) throw new TdsError(8179, "Could not find prepared statement.");
        await runBatch(context, sql, values, "doneInProcedure");
        break;
      }
      case "sp_unprepare":
        prepared.delete(Number(parameters[0]?.value));
        break;
      default:
        throw new TdsError(2812, `Could not find stored procedure '${procedure}'.`);
    }
    parts.push(returnStatus(0), doneToken("doneProcedure", DONE.final));
  },
};

/** @throws TdsError for a kind of message that no client of ours sends */
export function requestOf(type: number): RequestKind {
  if (type === MESSAGE.batch) return BATCH;
  if (type === MESSAGE.rpc) return RPC;
  if (type === MESSAGE.transaction) return TRANSACTION;
  throw new TdsError(17836, `A message of type ${type} is not known.`, 20);
}

async function runBatch(
  { session, signal, parts }: RequestContext,
  sql: string,
  parameters: readonly Parameter[],
  end: "done" | "doneInProcedure",
): Promise<void> {
  const depth = session.depth;
  let last: Uint8Array[] = [];
  const isWithin = end === "doneInProcedure";
  for await (const { columns, rows, count } of session.run(sql, parameters, signal)) {
    parts.push(...last, ...session.takeNews());
    if (columns !== undefined) parts.push(resultTokens(columns, rows ?? []));
    const status = DONE.more | (count === undefined ? 0 : DONE.count);
    last = [doneToken(end, status, count)];
  }
  parts.push(...last);
  if (!isWithin) parts.push(doneToken("done", DONE.final));
  if (isWithin && session.depth !== depth) {
    throw new TdsError(266, "Transaction count after EXECUTE indicates a mismatching number.");
  }
}

/** Compares the parameters of a request with what its text declares. */
function checkDeclared(declarations: string, values: readonly Parameter[]): void {
  const declared = [...declarations.matchAll(/@(\w+) /g)].map(([, name]) => name);
  const sent = values.map(({ name }) => name);
  if (declared.join() !== sent.join()) {
    throw new TdsError(8178, `The parameters ${sent} are not those that were declared.`);
  }
}

function textIn(parameter: Parameter | undefined): string {
  if (typeof parameter?.value === "string") return parameter.value;
  throw new TdsError(214, "The procedure expects a parameter of type 'nvarchar(max)'.");
}
