import type { ArchivedMessage, ArchiveId } from "../archive_store.ts";
import { bareJidOfArchive } from "../archive_store.ts";
import { digestOf, messagePlace } from "./archive_layout.ts";
import type { RiakPlace } from "./places.ts";
import type { RiakDeps } from "./riak_user_store.ts";

/** Characters that no text for Solr may have. */
// deno-lint-ignore no-control-regex -- they are what is meant
const CONTROLS = /[\0-\x08\x0b\x0c\x0e-\x1f]/g;
const READ = { r: "quorum", pr: "quorum", include_context: "false" };
const WRITE = { w: "quorum", pw: "quorum", dw: "quorum" };

/** A message as its map has it. */
export interface MessageMap {
  /** In Base64. */
  readonly stanza_register?: string;
  readonly sent_register?: string;
  /** Its position, once it is in a chunk. */
  readonly position_register?: string;
}

/** The maps of archived messages: one for each message of each archive, in the index `mam`. */
export class ArchivedMaps {
  readonly #deps: Pick<RiakDeps, "client" | "objects">;

  constructor(deps: Pick<RiakDeps, "client" | "objects">) {
    this.#deps = deps;
  }

  /**
   * Writes a message, which does no harm where it is there already.
   *
   * @returns its position, if it is in a chunk
   */
  async put(
    archiveName: string,
    { archive, peer, stanza, text = "", ...message }: ArchivedMessage,
    sentAtMs: number,
  ): Promise<number | undefined> {
    const bareJid = bareJidOfArchive(archive);
    const searched = text.replaceAll(CONTROLS, " ");
    const { body } = await this.#post(messagePlace(archiveName, message), {
      archive_register: archiveName,
      host_register: bareJid.slice(bareJid.indexOf("@") + 1).toWellFormed(),
      peer_register: digestOf(peer.bare),
      resource_register: digestOf(peer.resourcepart),
      sent_register: `${sentAtMs}`,
      stanza_register: stanza.toBase64(),
      ...(searched === "" ? {} : { text_register: searched.toWellFormed() }),
    }, { returnbody: "true", include_context: "false" });
    const { value } = JSON.parse(new TextDecoder().decode(body)) as { readonly value: MessageMap };
    return positionIn(value);
  }

  /** Notes the position of a message that goes into a chunk. */
  async place(archiveName: string, id: ArchiveId, position: number): Promise<void> {
    await this.#post(messagePlace(archiveName, id), { position_register: `${position}` }, {});
  }

  /** Reads a message; undefined when there is none. */
  async read(archiveName: string, id: ArchiveId): Promise<MessageMap | undefined> {
    const { status, body } = await this.#deps.client.request({
      method: "GET",
      path: pathOf(messagePlace(archiveName, id)),
      query: READ,
      accepts: [200, 404],
      action: "read an archive from",
    });
    if (status === 404) return undefined;
    return (JSON.parse(new TextDecoder().decode(body)) as { readonly value: MessageMap }).value;
  }

  async remove(archiveName: string, ids: readonly ArchiveId[]): Promise<void> {
    await this.#deps.client.forEach(
      ids,
      (id) => this.#deps.objects.remove(messagePlace(archiveName, id), "remove messages from"),
    );
  }

  async #post(
    place: RiakPlace,
    registers: Readonly<Record<string, string>>,
    query: Readonly<Record<string, string>>,
  ) {
    return await this.#deps.client.request({
      method: "POST",
      path: pathOf(place),
      query: { ...WRITE, ...query },
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ update: registers }),
      accepts: [200, 204],
      action: "archive messages in",
    });
  }
}

/** Returns the position of a message that is in a chunk. */
export function positionIn({ position_register: position }: MessageMap): number | undefined {
  return position === undefined ? undefined : Number(position);
}

function pathOf({ type, bucket, key }: RiakPlace): readonly string[] {
  return ["types", type, "buckets", bucket, "datatypes", key];
}
