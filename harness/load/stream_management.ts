import type { RawSocket } from "../clients/mod.ts";

/** Namespace of stream management (XEP-0198), as an attribute. */
export const SM = "xmlns='urn:xmpp:sm:3'";

/** Answer to a request to resume. */
export interface ResumeAnswer {
  readonly isResumed: boolean;
  /** Number of stanzas that the server has handled, if it says so. */
  readonly h: number | undefined;
}

/** Asks to resume a session of which the client has handled `handled` stanzas. */
export async function requestResume(
  socket: RawSocket,
  previd: string,
  handled: number,
): Promise<ResumeAnswer> {
  await socket.send(`<resume ${SM} h='${handled}' previd='${previd}'/>`);
  const answer = await readElement(socket);
  const h = / h=['"](\d+)['"]/.exec(answer)?.[1];
  return {
    isResumed: answer.startsWith("<resumed"),
    h: h === undefined ? undefined : Number(h),
  };
}

/**
 * Turns stream management on, and gives the id to resume by.
 * @param takes called with each stanza that comes before the answer
 */
export async function requestManagement(
  socket: RawSocket,
  takes: (stanza: string) => unknown,
): Promise<string> {
  await socket.send(`<enable ${SM} resume='true'/>`);
  let answer = await readElement(socket);
  while (/^<(message|presence|iq)\b/.test(answer)) {
    takes(answer);
    answer = await readElement(socket);
  }
  const id = answer.startsWith("<enabled") ? / id=['"]([^'"]+)['"]/.exec(answer)?.[1] : undefined;
  if (id === undefined) throw new Error(`Cannot enable stream management: got ${answer}`);
  return id;
}

/** One element without children, or up to the end tag of its own name. */
async function readElement(socket: RawSocket): Promise<string> {
  const start = await socket.readUntil(">");
  if (start.endsWith("/>")) return start;
  const name = /^<([^\s>]+)/.exec(start)?.[1];
  return start + await socket.readUntil(`</${name}>`);
}
