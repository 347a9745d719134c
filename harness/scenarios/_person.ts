/**
 * Somebody at an ordinary client. Each method does what people do there, and returns once the client
 * says or shows that it is so. `contact` is always an account, `device` a full JID.
 */
export interface Person {
  /** Full JID of the client. */
  readonly jid: string;
  /** Puts an account on the contact list under a name, and asks to see its presence. */
  add(contact: string, name: string): Promise<void>;
  /** Waits for a contact's request to see this person, and grants it. */
  accept(contact: string): Promise<void>;
  /** Waits until the contact list has a contact under this name, and both see each other. */
  expectFriend(contact: string, name: string): Promise<void>;
  expectOnline(device: string): Promise<void>;
  expectOffline(device: string): Promise<void>;
  /** Is offline for its contacts. */
  leave(): Promise<void>;
  /** Is online again. */
  comeBack(): Promise<void>;
  enableCarbons(): Promise<void>;
  say(device: string, body: string): Promise<void>;
  expectMessage(from: string, body: string): Promise<void>;
  /** Waits for the copy of a message that another device of this person sent or received. */
  expectCarbon(direction: "sent" | "received", contact: string, body: string): Promise<void>;
  /** True when this person can read `body` in the conversation with a contact. */
  hasRead(contact: string, body: string): Promise<boolean>;
  /** Pings a device, and waits for an error. */
  expectRefusedPing(device: string): Promise<void>;
  block(contact: string): Promise<void>;
  unblock(contact: string): Promise<void>;
  /** Waits until the block list holds these accounts and no other. */
  expectBlocked(contacts: readonly string[]): Promise<void>;
  /** Writes this person's vCard, with a full name. */
  publishName(name: string): Promise<void>;
  /** Waits until the full name in an account's vCard reads so. */
  expectName(account: string, name: string): Promise<void>;
  addBookmark(room: string): Promise<void>;
  /** Waits until the bookmarks hold this room. */
  expectBookmark(room: string): Promise<void>;
}
