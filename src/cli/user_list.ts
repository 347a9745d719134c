import { CausewayError } from "../base/mod.ts";

/** One account as a list names it. */
export interface ListedUser {
  /** Line of the list, counted from 1. */
  readonly line: number;
  readonly jid: string;
  readonly password: string;
}

export type UserListFormat = "csv" | "json";

/**
 * Reads a list of accounts: CSV (RFC 4180) with the columns JID and password and an optional header
 * line `jid,password`; or one JSON object `{"jid": …, "password": …}` on each line.
 *
 * @throws CausewayError `cli/user-list`, which names the line and never shows a password
 */
export function parseUserList(
  text: string,
  format: UserListFormat = guessFormat(text),
): ListedUser[] {
  // Spreadsheets write a byte order mark, which would be part of the first address.
  const list = text.replace(/^\uFEFF/, "");
  return format === "json" ? parseJsonLines(list) : parseCsv(list);
}

function guessFormat(text: string): UserListFormat {
  return text.trimStart().startsWith("{") ? "json" : "csv";
}

function parseJsonLines(text: string): ListedUser[] {
  const users: ListedUser[] = [];
  for (const [index, line] of text.split(/\r?\n/).entries()) {
    if (line.trim() === "") continue;
    users.push(parseJsonLine(line, index + 1));
  }
  return users;
}

function parseJsonLine(text: string, line: number): ListedUser {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw malformed(line, "it is no JSON object"); // the parser's message would show the text
  }
  if (typeof value === "object" && value !== null && "jid" in value && "password" in value) {
    const { jid, password } = value;
    if (typeof jid === "string" && typeof password === "string") return { line, jid, password };
  }
  throw malformed(line, 'expected an object with the texts "jid" and "password"');
}

function parseCsv(text: string): ListedUser[] {
  const users: ListedUser[] = [];
  for (const { line, fields } of csvRecords(text)) {
    if (fields.length === 1 && fields[0] === "") continue;
    const [jid, password] = fields;
    if (jid === undefined || password === undefined || fields.length > 2) {
      throw malformed(line, `expected 2 columns, JID and password, found ${fields.length}`);
    }
    const isHeader = users.length === 0 && jid.toLowerCase() === "jid" &&
      password.toLowerCase() === "password";
    if (!isHeader) users.push({ line, jid, password });
  }
  return users;
}

interface CsvRecord {
  readonly line: number;
  readonly fields: readonly string[];
}

/** Parses CSV. Quoted fields may hold commas, line breaks and doubled quotes. */
function* csvRecords(text: string): Generator<CsvRecord> {
  const field = /(?:"((?:[^"]|"")*)"|([^",\r\n]*))(,|\r?\n|$)/y;
  let fields: string[] = [];
  let line = 1;
  let recordLine = 1;
  while (field.lastIndex < text.length || fields.length > 0) {
    const match = field.exec(text);
    if (match === null) throw malformed(line, "a quote stands where none may be");
    const [whole, quoted, plain, end] = match;
    fields.push(quoted?.replaceAll('""', '"') ?? plain ?? "");
    line += whole.split("\n").length - 1;
    if (end === ",") continue;
    yield { line: recordLine, fields };
    fields = [];
    recordLine = line;
  }
}

function malformed(line: number, reason: string): CausewayError {
  return new CausewayError("cli/user-list", `Cannot read line ${line} of the list: ${reason}`);
}
