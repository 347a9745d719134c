/**
 * Receiver of the fates of one source's stanzas, by their numbers (docs/glossary.md, "fate"). A
 * session, a lane from another node, and everything else that waits for the end of a stanza is one.
 */
export interface Fate {
  /** True where no client would send the stanza again, whatever its fate. @default false */
  readonly isSentOnce?: boolean;
  /** The stanza is settled: its fate is final. Called once at most. */
  settle(number: number): void;
  /** Called before that, perhaps more than once: another node holds the stanza. */
  held?(number: number): void;
  /**
   * Called instead: this process ends without settling it, and the node that held it before routes
   * it.
   */
  leftOpen?(number: number): void;
  /**
   * Called instead: no session here has it for good, and the receiver, which keeps it, stays
   * responsible.
   */
  stays?(number: number): void;
  /**
   * The stanza has come from another node. Asks that node to slow its sender down, as there is no room
   * for the stanza here.
   * @returns a function that ends it
   */
  slow?(number: number): () => void;
}
