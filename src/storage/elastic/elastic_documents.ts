import { Buffer } from "node:buffer";
import { createHash } from "node:crypto";
import type { ArchiveId } from "../archive_store.ts";
import { bareJidOfArchive } from "../archive_store.ts";
import type { StampFields } from "./elastic_dialect.ts";

/** An archive in its index. */
export interface ArchivePlace {
  readonly archive: string;
  readonly owner: string;
  readonly host: string;
  readonly bucket: number;
  /** Documents of one bucket are in one shard. */
  readonly routing: string;
}

/** A message as it is kept. */
export interface MessageDocument {
  readonly bucket: number;
  readonly archive: string;
  readonly owner: string;
  readonly host: string;
  readonly peer: readonly string[];
  readonly position: number;
  readonly sent_at: number;
  readonly text?: string;
  readonly process: number;
  readonly sequence: number;
  readonly stanza: StanzaContent;
}

/** UTF-8 is kept as text, anything else in base64. */
type StanzaContent = string | { readonly base64: string };

/** A document in an answer. */
export interface FoundDocument<T> extends StampFields {
  readonly _id: string;
  readonly found?: boolean;
  readonly _source?: T;
  readonly error?: unknown;
}

const DECODER = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
const ENCODER = new TextEncoder();

/** Returns the hash of a name: it has one length, and only letters, digits, `-` and `_`. */
export function hashOf(text: string): string {
  return createHash("sha256").update(text).digest("base64url");
}

/** Returns the place of an archive by its key. All archives of one bare JID are in one bucket. */
export function placeOf(archive: string, buckets: number): ArchivePlace {
  const bareJid = bareJidOfArchive(archive);
  const owner = createHash("sha256").update(bareJid).digest();
  const bucket = owner.readUInt32BE(0) % buckets;
  return {
    archive: hashOf(archive),
    owner: owner.toString("base64url"),
    host: hashOf(bareJid.slice(bareJid.indexOf("@") + 1)),
    bucket,
    routing: String(bucket),
  };
}

/** Returns the hashes by which the messages of somebody are found. */
export function peerTerms(
  { bare, resourcepart }: { readonly bare: string; readonly resourcepart: string },
): readonly string[] {
  return resourcepart === "" ? [hashOf(bare)] : [hashOf(bare), hashOf(`${bare}/${resourcepart}`)];
}

/** Id of the document of a message: a message is in an archive once. */
export function messageDocumentId(
  { archive }: ArchivePlace,
  { process, sequence }: ArchiveId,
): string {
  return `message:${archive}:${process}:${sequence}`;
}

/** Id of the document with the preferences of an archive. */
export function preferencesDocumentId({ archive }: ArchivePlace): string {
  return `preferences:${archive}`;
}

/** Id of the document with the head of a bucket. */
export function headDocumentId(bucket: number): string {
  return `head:${bucket}`;
}

/** Returns a stanza as documents have it. */
export function contentOf(stanza: Uint8Array): StanzaContent {
  try {
    return DECODER.decode(stanza);
  } catch {
    return { base64: Buffer.from(stanza).toString("base64") }; // no UTF-8
  }
}

/** Returns the bytes of a stanza. */
export function bytesOf(content: StanzaContent): Uint8Array {
  if (typeof content === "string") return ENCODER.encode(content);
  return new Uint8Array(Buffer.from(content.base64, "base64"));
}
