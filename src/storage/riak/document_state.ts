/**
 * A numbered document as the elements of a set. Pure: no clock, no requests.
 *
 * Riak's sets grow and merge without conflict, but cannot compare before they change. A document adds
 * that: its changes are numbered, and the processes that want to make change number n vote on it, by a
 * variant of Disk Paxos (Gafni and Lamport) in which the set is the disk. A process adds an element and
 * then reads the set. If both reach a majority of the replicas, then of two processes at least one
 * sees the element of the other.
 *
 * | element | meaning |
 * | --- | --- |
 * | `["b", n, ballot, null, null]` | a process asks for promises for change n |
 * | `["b", n, ballot, ballot, change]` | a process proposes `change` as number n |
 * | `["d", n, id]` | change n is the one with this id, and is made |
 * | `["e", n, name, id, value]` | change n gave the entry this value |
 * | `["e", n, name, id, null, time]` | change n removed the entry |
 *
 * A ballot is `[round, id]`. Of the elements of one entry the one with the largest number counts, then
 * the one with the largest id: where two clusters made change n, and merged later, each entry has the
 * value of one of them.
 */

/** Number of a proposal: rounds first, then the id of the process's attempt. */
export type Ballot = readonly [round: number, id: string];

/** One change of a document. */
export interface DocumentChange {
  readonly id: string;
  /** Entries with their new values; null removes an entry. */
  readonly entries: readonly (readonly [name: string, value: string | null])[];
}

/** A change that is proposed for the next number. */
interface Proposal {
  readonly ballot: Ballot;
  readonly change: DocumentChange;
}

/** An entry, and the number of the change that it comes from. */
export interface DocumentEntry {
  readonly version: number;
  readonly value: string;
}

/** A document as one read of its set shows it. */
export interface DocumentState {
  /** Number of the newest change that is made; 0 for none. */
  readonly version: number;
  readonly entries: ReadonlyMap<string, DocumentEntry>;
  /** The highest ballot that asks for the next number; undefined for none. */
  readonly highest: Ballot | undefined;
  /** The proposal for the next number with the highest ballot. */
  readonly proposal: Proposal | undefined;
  /** Numbers of the newest changes, by their ids. */
  readonly made: ReadonlyMap<string, number>;
  /** Wall-clock milliseconds of the server that was asked, in whole seconds. */
  readonly serverMs: number;
  /** Every element, for the next change to remove those that nobody needs. */
  readonly elements: readonly string[];
}

/** Changes whose ids are remembered: a process may still ask what became of its own. */
export const REMEMBERED = 64;
/**
 * Milliseconds after which a removed entry is forgotten. No request that could bring an older value back
 * is under way so long: a node gives up after its `query_timeout`, and Riak after a minute.
 */
export const FORGET_AFTER_MS = 180_000;

/** An element, by its tag. */
type Element =
  | readonly ["b", number, Ballot, Ballot | null, DocumentChange | null]
  | readonly ["d", number, string]
  | readonly ["e", number, string, string, string | null, number?];

/** Compares two ballots. */
export function compareBallots(one: Ballot, other: Ballot): number {
  return one[0] - other[0] || (one[1] === other[1] ? 0 : one[1] < other[1] ? -1 : 1);
}

/** Reads the elements of a set, as a server showed them at `serverMs` by its own clock. */
export function parseDocument(elements: readonly string[], serverMs: number): DocumentState {
  const parsed = elements.map((text) => JSON.parse(text) as Element); // this program wrote them
  const made = new Map<string, number>();
  let version = 0;
  for (const element of parsed) {
    if (element[0] !== "d") continue;
    made.set(element[2], element[1]);
    version = Math.max(version, element[1]);
  }
  const newest = newestEntries(parsed);
  const entries = new Map<string, DocumentEntry>();
  for (const [name, [, at, , , value]] of newest) {
    if (value !== null) entries.set(name, { version: at, value });
  }
  let highest: Ballot | undefined;
  let proposal: Proposal | undefined;
  for (const element of parsed) {
    if (element[0] !== "b" || element[1] !== version + 1) continue;
    const [, , ballot, , change] = element;
    if (highest === undefined || compareBallots(ballot, highest) > 0) highest = ballot;
    if (change === null) continue;
    if (proposal === undefined || compareBallots(ballot, proposal.ballot) > 0) {
      proposal = { ballot, change };
    }
  }
  return { version, entries, highest, proposal, made, serverMs, elements };
}

/** Returns the element that asks for promises. */
export function askingElement(number: number, ballot: Ballot): string {
  return JSON.stringify(["b", number, ballot, null, null] satisfies Element);
}

/** Returns the element that proposes a change. */
export function proposingElement(number: number, ballot: Ballot, change: DocumentChange): string {
  return JSON.stringify(["b", number, ballot, ballot, change] satisfies Element);
}

/** Elements to add and to remove. */
export interface ElementChange {
  readonly added: readonly string[];
  readonly removed: readonly string[];
}

/**
 * Returns what makes a change that is decided. To make it twice, or late, does no harm.
 *
 * @param nowMs wall-clock milliseconds
 */
export function makingElements(
  { elements }: DocumentState,
  number: number,
  change: DocumentChange,
  nowMs: number,
): ElementChange {
  const added = [
    JSON.stringify(["d", number, change.id] satisfies Element),
    ...change.entries.map(([name, value]) =>
      JSON.stringify(
        (value === null
          ? ["e", number, name, change.id, null, nowMs]
          : ["e", number, name, change.id, value]) satisfies Element,
      )
    ),
  ];
  const all = [...elements, ...added];
  const newest = newestEntries(all.map((text) => JSON.parse(text) as Element));
  const isNeeded = (text: string): boolean => {
    const element = JSON.parse(text) as Element; // this program wrote it
    if (element[0] === "b") return element[1] > number;
    if (element[0] === "d") return element[1] > number - REMEMBERED;
    const [, at, name, id, value, removedAtMs = 0] = element;
    const [, newestAt, , newestId] = newest.get(name)!; // it is among them
    return at === newestAt && id === newestId &&
      (value !== null || removedAtMs > nowMs - FORGET_AFTER_MS);
  };
  const isAdded = new Set(added);
  return { added, removed: elements.filter((text) => !isAdded.has(text) && !isNeeded(text)) };
}

type EntryElement = Extract<Element, readonly ["e", ...unknown[]]>;

function newestEntries(elements: readonly Element[]): ReadonlyMap<string, EntryElement> {
  const newest = new Map<string, EntryElement>();
  for (const element of elements) {
    if (element[0] !== "e") continue;
    const other = newest.get(element[2]);
    if (other === undefined || isNewer(element, other)) newest.set(element[2], element);
  }
  return newest;
}

function isNewer(one: EntryElement, other: EntryElement): boolean {
  return one[1] !== other[1] ? one[1] > other[1] : one[3] > other[3];
}
