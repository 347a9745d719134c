import type { ArchiveId, ArchivePreferences } from "../archive_store.ts";
import { chunkPlace, headPlace, parseChunk, parseHead } from "./archive_layout.ts";
import type { ArchiveHead, ListedMessage } from "./archive_layout.ts";
import { ArchivedMaps, positionIn } from "./archived_maps.ts";
import type { RiakDeps } from "./riak_user_store.ts";

/** Reads of the documents of archives (`archive_layout.ts`). */
export class ArchiveDocuments {
  readonly deps: RiakDeps;
  readonly maps: ArchivedMaps;

  constructor(deps: RiakDeps) {
    this.deps = deps;
    this.maps = new ArchivedMaps(deps);
  }

  async head(archiveName: string): Promise<ArchiveHead> {
    return parseHead(
      await this.deps.documents.read(headPlace(archiveName), "read an archive from"),
    );
  }

  /** Reads the messages of a chunk. */
  async chunk(archiveName: string, chunk: number): Promise<readonly ListedMessage[]> {
    const place = chunkPlace(archiveName, chunk);
    return parseChunk(await this.deps.documents.read(place, "read an archive from"))?.messages ??
      [];
  }

  /** Returns the position of a message that is in a chunk. */
  async positionOf(archiveName: string, id: ArchiveId): Promise<number | undefined> {
    const map = await this.maps.read(archiveName, id);
    return map && positionIn(map);
  }
}

/** Returns the preferences in a head. */
export function preferencesIn({ preferences }: ArchiveHead): ArchivePreferences | undefined {
  return preferences === undefined ? undefined : JSON.parse(preferences); // this program wrote it
}

/** Returns a text for an id, to find it by. */
export function idText({ process, sequence }: ArchiveId): string {
  return `${process} ${sequence}`;
}

/** Leaves one of messages that have the same id. */
export function distinct<I extends ArchiveId>(ids: readonly I[]): readonly I[] {
  return [...new Map(ids.map((id) => [idText(id), id])).values()];
}
