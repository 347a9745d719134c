/**
 * Riak's data types (maps, sets, registers, flags and counters) as replicas keep them: each value
 * lies under the events, "dots", that made it, and an object has a clock of all events it has seen.
 * An element that a replica has seen and no longer has was removed there. So two replicas merge by
 * themselves.
 */

/** Names of data types within a map. */
export type FieldType = "counter" | "set" | "register" | "flag" | "map";
/** Names of data types of a whole object. */
export type ObjectType = "counter" | "set" | "map";

/** Number of the newest event of each actor that was seen. */
export type DotClock = Map<string, number>;

/** One event: its actor and its number. */
type Dot = string;

interface Register {
  readonly value: string;
  readonly atUs: number;
}

/** A value under its dots. */
type Value =
  | { readonly type: "flag"; dots: Set<Dot> }
  | { readonly type: "set"; readonly elements: Map<string, Set<Dot>> }
  | { readonly type: "register"; readonly versions: Map<Dot, Register> }
  | { readonly type: "counter"; readonly counts: Map<Dot, number> }
  | { readonly type: "map"; readonly fields: Map<string, Field> };

/** A field of a map: it is there while it has a dot. */
interface Field {
  dots: Set<Dot>;
  readonly value: Value;
}

/** A removal that was asked for by somebody who had seen more than this replica. */
interface Deferred {
  readonly context: DotClock;
  readonly removals: readonly Removal[];
}

/** One object of a replica. */
export interface DataObject {
  readonly clock: DotClock;
  readonly root: Value;
  readonly deferred: Deferred[];
}

/** A path of field names to what is removed: a field of a map, or an element of a set. */
interface Removal {
  readonly path: readonly string[];
  readonly what: { readonly field: string } | { readonly element: string } | "flag";
}

/** A request that Riak refuses, with the status of its answer. */
export class Refusal extends Error {
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

function emptyValue(type: FieldType): Value {
  switch (type) {
    case "flag":
      return { type, dots: new Set() };
    case "set":
      return { type, elements: new Map() };
    case "register":
      return { type, versions: new Map() };
    case "counter":
      return { type, counts: new Map() };
    case "map":
      return { type, fields: new Map() };
    default:
      return type satisfies never;
  }
}

/** Returns an object that nobody has changed. */
export function emptyObject(type: ObjectType): DataObject {
  return { clock: new Map(), root: emptyValue(type), deferred: [] };
}

/** Returns the value as JSON shows it. */
export function shownValue(value: Value): unknown {
  switch (value.type) {
    case "flag":
      return value.dots.size > 0;
    case "set":
      return [...value.elements.keys()];
    case "register": {
      const newest = [...value.versions.values()].toSorted((one, other) =>
        one.atUs - other.atUs || (one.value < other.value ? -1 : 1)
      );
      return newest.at(-1)?.value ?? "";
    }
    case "counter":
      return value.counts.values().reduce((sum, count) => sum + count, 0);
    case "map":
      return Object.fromEntries(
        [...value.fields].map(([name, field]) => [name, shownValue(field.value)]),
      );
    default:
      return value satisfies never;
  }
}

/** Actor and time of a change of an object. */
export interface Writer {
  /** Name of the replica that takes the change. */
  readonly actor: string;
  readonly nowUs: number;
}

/**
 * Applies an operation as `POST …/datatypes/KEY` has it, all of it or nothing.
 *
 * @param context what the client has seen; undefined when it does not say
 * @throws Refusal
 */
export function changedObject(
  object: DataObject,
  operation: unknown,
  context: DotClock | undefined,
  writer: Writer,
): DataObject {
  const changed = structuredClone(object);
  const number = (changed.clock.get(writer.actor) ?? 0) + 1;
  changed.clock.set(writer.actor, number);
  const change = new Change(`${writer.actor}:${number}`, writer.nowUs);
  change.apply(changed.root, operation, []);
  if (change.removals.length > 0) {
    // Riak itself takes some removals without a context, and does what its replica happens to have.
    if (context === undefined) throw new Refusal(400, "A removal needs a context");
    remove(changed, { context, removals: change.removals });
  }
  return changed;
}

/** The parts of one operation. */
class Change {
  readonly removals: Removal[] = [];
  readonly #dot: Dot;
  readonly #nowUs: number;
  #last = 0;

  constructor(dot: Dot, nowUs: number) {
    this.#dot = dot;
    this.#nowUs = nowUs;
  }

  apply(value: Value, operation: unknown, path: readonly string[]): void {
    switch (value.type) {
      case "flag":
        if (operation === "enable") value.dots = new Set([this.#dot]);
        else if (operation === "disable") this.removals.push({ path, what: "flag" });
        else throw badOperation(value.type, operation);
        return;
      case "register": {
        const assigned = onlyMember(operation, "assign") ?? operation;
        if (typeof assigned !== "string") throw badOperation(value.type, operation);
        const atUs = this.#nowUs + this.#last++;
        value.versions.set(this.#dot, { value: assigned, atUs });
        return;
      }
      case "counter": {
        const by = incrementOf(operation);
        const own = [...value.counts.keys()].find((dot) => actorOf(dot) === actorOf(this.#dot));
        const before = own === undefined ? 0 : value.counts.get(own)!;
        if (own !== undefined) value.counts.delete(own);
        value.counts.set(this.#dot, before + by);
        return;
      }
      case "set":
        this.#changeSet(value.elements, operation, path);
        return;
      case "map":
        this.#changeMap(value.fields, operation, path);
        return;
      default:
        value satisfies never;
    }
  }

  #changeSet(elements: Map<string, Set<Dot>>, operation: unknown, path: readonly string[]): void {
    if (!isRecord(operation)) throw badOperation("set", operation);
    for (const [verb, given] of Object.entries(operation)) {
      const texts = verb.endsWith("_all") ? given : [given];
      if (!Array.isArray(texts) || !texts.every((each) => typeof each === "string")) {
        throw badOperation("set", operation);
      }
      for (const text of texts as string[]) {
        if (verb === "add" || verb === "add_all") elements.set(text, new Set([this.#dot]));
        else if (verb === "remove" || verb === "remove_all") {
          this.removals.push({ path, what: { element: text } });
        } else throw badOperation("set", operation);
      }
    }
  }

  #changeMap(fields: Map<string, Field>, operation: unknown, path: readonly string[]): void {
    if (!isRecord(operation)) throw badOperation("map", operation);
    for (const verb of Object.keys(operation)) {
      if (!["update", "remove"].includes(verb)) throw badOperation("map", operation);
    }
    const removed = operation["remove"] ?? [];
    const names = typeof removed === "string" ? [removed] : removed;
    if (!Array.isArray(names)) throw badOperation("map", operation);
    for (const name of names) {
      fieldTypeOf(name);
      this.removals.push({ path, what: { field: name } });
    }
    const updates = operation["update"] ?? {};
    if (!isRecord(updates)) throw badOperation("map", operation);
    for (const [name, inner] of Object.entries(updates)) {
      const type = fieldTypeOf(name);
      let field = fields.get(name);
      if (field === undefined) {
        field = { dots: new Set(), value: emptyValue(type) };
        fields.set(name, field);
      }
      field.dots = new Set([this.#dot]);
      this.apply(field.value, inner, [...path, name]);
    }
  }
}

/** Returns the type in the name of a field. The pattern is Riak's: no name holds a line break. */
function fieldTypeOf(name: unknown): FieldType {
  const match = typeof name === "string"
    ? /^(.*)_(counter|set|register|flag|map)$/.exec(name)
    : undefined;
  if (match === undefined || match === null) {
    throw new Refusal(400, `Invalid map field name '${name}'`);
  }
  return match[2] as FieldType; // one of those in the pattern
}

function incrementOf(operation: unknown): number {
  if (operation === "increment") return 1;
  if (operation === "decrement") return -1;
  if (Number.isInteger(operation)) return operation as number; // it is an integer
  const [up, down] = [onlyMember(operation, "increment"), onlyMember(operation, "decrement")];
  if (Number.isInteger(up)) return up as number; // it is an integer
  if (Number.isInteger(down)) return -(down as number); // it is an integer
  throw badOperation("counter", operation);
}

function onlyMember(operation: unknown, name: string): unknown {
  return isRecord(operation) && Object.keys(operation).length === 1 ? operation[name] : undefined;
}

function badOperation(type: string, operation: unknown): Refusal {
  return new Refusal(
    400,
    `Invalid operation on datatype '${type}': ${JSON.stringify(operation)?.slice(0, 200)}`,
  );
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function actorOf(dot: Dot): string {
  return dot.slice(0, dot.lastIndexOf(":"));
}

function hasSeen(clock: DotClock, dot: Dot): boolean {
  return (clock.get(actorOf(dot)) ?? 0) >= Number(dot.slice(dot.lastIndexOf(":") + 1));
}

/** Removes what `context` has seen. What this replica has not seen yet goes when it comes. */
function remove(object: DataObject, deferred: Deferred): void {
  for (const removal of deferred.removals) applyRemoval(object.root, removal, deferred.context);
  const isBehind = [...deferred.context].some(([actor, n]) => (object.clock.get(actor) ?? 0) < n);
  if (isBehind) object.deferred.push(deferred);
}

function applyRemoval(root: Value, { path, what }: Removal, context: DotClock): void {
  let value: Value | undefined = root;
  for (const name of path) {
    value = value?.type === "map" ? value.fields.get(name)?.value : undefined;
  }
  if (value === undefined) return;
  if (what === "flag") {
    if (value.type === "flag") value.dots = unseen(value.dots, context);
  } else if ("element" in what) {
    if (value.type !== "set") return;
    const left = unseen(value.elements.get(what.element) ?? new Set(), context);
    if (left.size === 0) value.elements.delete(what.element);
    else value.elements.set(what.element, left);
  } else if (value.type === "map") {
    const field = value.fields.get(what.field);
    if (field === undefined) return;
    field.dots = unseen(field.dots, context);
    reset(field.value, context);
    if (field.dots.size === 0) value.fields.delete(what.field);
  }
}

function unseen(dots: ReadonlySet<Dot>, context: DotClock): Set<Dot> {
  return new Set([...dots].filter((dot) => !hasSeen(context, dot)));
}

/** Removes all that `context` has seen of a value. */
function reset(value: Value, context: DotClock): void {
  if (value.type === "flag") value.dots = unseen(value.dots, context);
  else if (value.type === "set") {
    for (const [element, dots] of value.elements) {
      const left = unseen(dots, context);
      if (left.size === 0) value.elements.delete(element);
      else value.elements.set(element, left);
    }
  } else if (value.type === "map") {
    for (const [name, field] of value.fields) {
      field.dots = unseen(field.dots, context);
      reset(field.value, context);
      if (field.dots.size === 0) value.fields.delete(name);
    }
  } else {
    const kept: Map<Dot, unknown> = value.type === "register" ? value.versions : value.counts;
    for (const dot of kept.keys()) if (hasSeen(context, dot)) kept.delete(dot);
  }
}

/** Merges two replicas of one object: the order does not matter, and twice is as once. */
export function mergedObjects(one: DataObject, other: DataObject): DataObject {
  const clock = new Map(one.clock);
  for (const [actor, n] of other.clock) clock.set(actor, Math.max(n, clock.get(actor) ?? 0));
  const root = mergedValues(one.root, one.clock, other.root, other.clock);
  const merged: DataObject = { clock, root, deferred: [] };
  for (const deferred of [...one.deferred, ...other.deferred]) remove(merged, deferred);
  return merged;
}

function mergedValues(one: Value, oneClock: DotClock, other: Value, otherClock: DotClock): Value {
  const survive = (own: Iterable<Dot>, theirs: ReadonlySet<Dot>, theirClock: DotClock) =>
    [...own].filter((dot) => theirs.has(dot) || !hasSeen(theirClock, dot));
  const dotsOf = (own: ReadonlySet<Dot>, theirs: ReadonlySet<Dot>) =>
    new Set([...survive(own, theirs, otherClock), ...survive(theirs, own, oneClock)]);
  const keyed = <T>(own: ReadonlyMap<Dot, T>, theirs: ReadonlyMap<Dot, T>) =>
    new Map(
      [...dotsOf(new Set(own.keys()), new Set(theirs.keys()))]
        .map((dot): [Dot, T] => [dot, own.get(dot) ?? theirs.get(dot)!]),
    );
  if (one.type === "flag" && other.type === "flag") {
    return { type: "flag", dots: dotsOf(one.dots, other.dots) };
  }
  if (one.type === "register" && other.type === "register") {
    return { type: "register", versions: keyed(one.versions, other.versions) };
  }
  if (one.type === "counter" && other.type === "counter") {
    return { type: "counter", counts: keyed(one.counts, other.counts) };
  }
  if (one.type === "set" && other.type === "set") {
    const elements = new Map<string, Set<Dot>>();
    for (const text of new Set([...one.elements.keys(), ...other.elements.keys()])) {
      const dots = dotsOf(
        one.elements.get(text) ?? new Set(),
        other.elements.get(text) ?? new Set(),
      );
      if (dots.size > 0) elements.set(text, dots);
    }
    return { type: "set", elements };
  }
  if (one.type === "map" && other.type === "map") {
    const fields = new Map<string, Field>();
    for (const name of new Set([...one.fields.keys(), ...other.fields.keys()])) {
      const none: Field = { dots: new Set(), value: emptyValue(fieldTypeOf(name)) };
      const [own, theirs] = [one.fields.get(name) ?? none, other.fields.get(name) ?? none];
      const dots = dotsOf(own.dots, theirs.dots);
      const value = mergedValues(own.value, oneClock, theirs.value, otherClock);
      if (dots.size > 0) fields.set(name, { dots, value });
    }
    return { type: "map", fields };
  }
  throw new TypeError(`Cannot merge a ${one.type} with a ${other.type}`);
}
