/** Something that takes bytes from outside, and what must hold whatever they are. */
export interface FuzzTarget {
  readonly name: string;
  /** Pieces that mean something to it. */
  readonly tokens: readonly Uint8Array[];
  /** Valid inputs to begin with, besides what once was a finding. */
  seeds(): readonly Uint8Array[];
  /**
   * Takes one input. Throws when something does not hold; the message says what. An input that is
   * refused in the right way is no finding.
   * @param chance numbers in [0, below), for what the input does not say, such as where it is cut
   */
  run(input: Uint8Array, chance: (below: number) => number): void;
  /**
   * Holds what `run` has put aside since the last call against references in other processes, many at
   * once. Rejects when a reference is not there.
   */
  settle?(): Promise<BatchFinding | undefined>;
  /** Ends those processes; `settle` may start them anew. */
  close?(): Promise<void>;
}

/** Something that does not hold of an input that `run` has taken. */
export interface BatchFinding {
  readonly input: Uint8Array;
  readonly problem: string;
}

/** A target that is a running node: its inputs go over sockets. */
export interface LiveFuzzTarget extends AsyncDisposable {
  readonly name: string;
  readonly tokens: readonly Uint8Array[];
  /** The node is checked behind so many inputs, and behind each that it does not take as it should. */
  readonly inputsPerCheck: number;
  seeds(): readonly Uint8Array[];
  /** Sends one input; rejects when the node takes too long over it, as it may on a busy machine. */
  run(input: Uint8Array): Promise<void>;
  /**
   * Rejects with what does not hold of the node; only once for what has happened and is over, such as a
   * line in its log.
   */
  check(): Promise<void>;
}

const UTF8 = new TextEncoder();

/** Texts as bytes. */
export function bytesOf(texts: readonly string[]): Uint8Array[] {
  return texts.map((text) => UTF8.encode(text));
}
