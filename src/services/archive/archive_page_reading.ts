import type {
  ArchiveFilter,
  ArchivePage,
  ArchivePageRequest,
  ArchiveStore,
  StoredMessage,
} from "../../storage/mod.ts";

/** Bytes of the messages in one page. The first one is sent however large it is. */
const MAX_PAGE_BYTES = 1_048_576;
/** Messages that are read at once: each may be as large as a stanza. */
const READ_AT_ONCE = 50;

/**
 * Reads the messages of a page that fit into one answer, from its beginning or its end. A long page is
 * read in parts, so that large messages which do not fit are not all in memory. Undefined when the
 * archive lacks a message that the query names.
 */
export async function readFittingPage(
  store: Pick<ArchiveStore, "read">,
  archive: string,
  { filter, page }: { readonly filter: ArchiveFilter; readonly page: ArchivePageRequest },
): Promise<ArchivePage | undefined> {
  const { from, limit } = page;
  let messages: readonly StoredMessage[] = [];
  let rest = page;
  for (;;) {
    const most = Math.min(limit - messages.length, READ_AT_ONCE);
    const part = await store.read(archive, filter, { ...rest, limit: most });
    if (part === undefined) {
      // Behind the first part, its last message was removed meanwhile.
      return messages.length === 0 ? undefined : { messages, isComplete: false };
    }
    const all = from === "start"
      ? [...messages, ...part.messages]
      : [...part.messages, ...messages];
    const fitting = within(all, from);
    const isWhole = fitting.length === all.length;
    const isOver = part.isComplete || part.messages.length === 0 || all.length >= limit;
    if (isOver || !isWhole) {
      return { messages: fitting, isComplete: part.isComplete && isWhole };
    }
    messages = all;
    rest = from === "start" ? { ...page, after: all.at(-1) } : { ...page, before: all[0] };
  }
}

function within(
  messages: readonly StoredMessage[],
  from: ArchivePageRequest["from"],
): readonly StoredMessage[] {
  const ordered = from === "start" ? messages : messages.toReversed();
  let [count, bytes] = [0, 0];
  for (const { stanza } of ordered) {
    bytes += stanza.length;
    if (count > 0 && bytes > MAX_PAGE_BYTES) break;
    count++;
  }
  return from === "start" ? messages.slice(0, count) : messages.slice(messages.length - count);
}
