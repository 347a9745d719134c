/** Content of a document. */
export type Source = Readonly<Record<string, unknown>>;

/** A document as the server keeps it. */
export interface Document {
  readonly id: string;
  readonly routing: string;
  readonly version: number;
  readonly source: Source;
}

/** A query that the server does not know, or not in this form. */
export class RefusedQuery extends Error {}

type Test = (document: Document) => boolean;

/** Returns a test for a query. Everything that real servers would take, but ours does not send, is refused. */
export function compile(query: unknown): Test {
  const [[kind, body] = [], ...more] = Object.entries(objectOf(query, "query"));
  if (kind === undefined || more.length > 0) throw refused(query);
  switch (kind) {
    case "bool":
      return compileBool(objectOf(body, kind));
    case "term":
      return compileTerm(objectOf(body, kind));
    case "range":
      return compileRange(objectOf(body, kind));
    case "ids":
      return compileIds(objectOf(body, kind));
    case "match":
      return compileMatch(objectOf(body, kind));
    default:
      throw refused(query);
  }
}

function compileBool(body: Source): Test {
  only(body, ["filter", "must_not", "should", "minimum_should_match"]);
  const list = (value: unknown) => (Array.isArray(value) ? value : []).map(compile);
  const [filter, not, should] = [
    list(body["filter"]),
    list(body["must_not"]),
    list(body["should"]),
  ];
  if (should.length > 0 && body["minimum_should_match"] !== 1) throw refused(body);
  return (document) =>
    filter.every((test) => test(document)) && !not.some((test) => test(document)) &&
    (should.length === 0 || should.some((test) => test(document)));
}

function compileTerm(body: Source): Test {
  const [field, value] = oneField(body);
  if (typeof value !== "string" && typeof value !== "number") throw refused(body);
  return ({ source }) => [source[field]].flat().includes(value);
}

function compileRange(body: Source): Test {
  const [field, bounds] = oneField(body);
  const { gt, gte, lt, lte } = only(objectOf(bounds, "range"), ["gt", "gte", "lt", "lte"]);
  for (const bound of [gt, gte, lt, lte]) {
    if (bound !== undefined && !Number.isSafeInteger(bound)) throw refused(body);
  }
  return ({ source }) => {
    const value = source[field];
    if (typeof value !== "number") return false;
    return (gt === undefined || value > (gt as number)) &&
      (gte === undefined || value >= (gte as number)) &&
      (lt === undefined || value < (lt as number)) &&
      (lte === undefined || value <= (lte as number));
  };
}

function compileIds(body: Source): Test {
  const { values } = only(body, ["values"]);
  if (!Array.isArray(values)) throw refused(body);
  const ids = new Set(values);
  return ({ id }) => ids.has(id);
}

function compileMatch(body: Source): Test {
  const [field, options] = oneField(body);
  const { query, operator } = only(objectOf(options, "match"), ["query", "operator"]);
  if (typeof query !== "string" || operator !== "and") throw refused(body);
  const words = wordsOf(query);
  return ({ source }) => {
    const text = source[field];
    if (typeof text !== "string" || words.size === 0) return false;
    return words.isSubsetOf(wordsOf(text));
  };
}

/** Cuts a text into words as the standard analyser does, as far as the tests tell the difference. */
function wordsOf(text: string): ReadonlySet<string> {
  return new Set(text.toLowerCase().match(/[\p{L}\p{N}\p{M}]+(?:['_][\p{L}\p{N}\p{M}]+)*/gu) ?? []);
}

function oneField(body: Source): readonly [string, unknown] {
  const [entry, ...more] = Object.entries(body);
  if (entry === undefined || more.length > 0) throw refused(body);
  return entry;
}

/** Returns an object that has none but these fields. */
export function only<K extends string>(
  body: Source,
  names: readonly K[],
): { [Name in K]?: unknown } {
  for (const name of Object.keys(body)) {
    if (!names.includes(name as K)) throw new RefusedQuery(`[${name}] is not known here`);
  }
  return body as { [Name in K]?: unknown };
}

export function objectOf(value: unknown, what: string): Source {
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    throw new RefusedQuery(`[${what}] is no object`);
  }
  return value as Source;
}

function refused(part: unknown): RefusedQuery {
  return new RefusedQuery(`cannot parse ${JSON.stringify(part).slice(0, 200)}`);
}
