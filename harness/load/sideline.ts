/** Client as its sidelines see it. */
export interface SidelineClient {
  /** Name in accounts: the same for all its sessions. */
  readonly name: string;
  /** Queues a stanza. @returns false when there is no connection to write it to */
  write(stanza: string): boolean;
}

/**
 * Traffic of a client beside its numbered stanzas. A stanza that a sideline has written is not sent
 * again in a new session.
 */
export interface Sideline {
  /** Notes the client whose sideline it is. */
  join?(client: SidelineClient): void;
  /**
   * A new session is bound as `jid`, and the one before is gone.
   * @returns stanzas to write before its initial presence
   */
  opened?(jid: string): readonly string[];
  /** The session has a connection: the first one, or another where it was resumed. */
  online?(): void;
  /** The connection is lost. The session may go on. */
  lost?(): void;
  /** The client stops reading. What it is owed until it reads again may find no room. */
  slept?(): void;
  /** The client reads again. */
  woke?(): void;
  /** The client has logged out for good. */
  left?(): void;
  /** Notes presence of anybody. */
  sawPresence?(stanza: string): void;
  /** Takes a message or an IQ. @returns false when it is not for this sideline */
  take?(stanza: string): boolean;
}

/** Beginning of the ids of a sideline's requests. Ids of numbered stanzas begin with `L`. */
export const SIDELINE_ID = "S";

/** Returns the value of an attribute in the first tag of `text`; undefined without it. */
export function attributeOf(text: string, name: string): string | undefined {
  const tag = text.slice(0, text.indexOf(">"));
  return new RegExp(`\\s${name}=(?:'([^']*)'|"([^"]*)")`).exec(tag)?.slice(1)
    .find((value) => value !== undefined);
}
