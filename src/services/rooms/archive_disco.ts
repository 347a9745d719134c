import type { Stanza } from "../../xmpp/mod.ts";
import { isReply, onlyChild, stanzaSource } from "../../xmpp/mod.ts";
import { ARCHIVE, FULL_TEXT } from "../archive/mod.ts";
import type { RoomArchives } from "./room_archives.ts";

/** Returns the features that disco#info lists for a room with an archive (XEP-0313 §2). */
export function archiveFeatures(
  archives: Pick<RoomArchives, "searchesText"> | undefined,
): readonly string[] {
  if (archives === undefined) return [];
  return [ARCHIVE, `${ARCHIVE}#extended`, ...archives.searchesText ? [FULL_TEXT] : []];
}

/** True for a request to an archive. */
export function isArchiveRequest(stanza: Stanza): boolean {
  return stanza.kind === "iq" && !isReply(stanza) &&
    onlyChild(stanzaSource(stanza.bytes))?.namespace === ARCHIVE;
}
