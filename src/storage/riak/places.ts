/**
 * Places of Causeway's data in Riak: bucket types, and the names of buckets and keys. A name begins with
 * `_`: so none is empty, and none is a dot that HTTP clients would take out of a path. Names keep the
 * order of the texts they come from.
 */

const PREFIX = "_";

/**
 * Properties of bucket types in which the last write wins. `allow_mult` is true in a new bucket type, and
 * with it Riak keeps siblings where a replica has missed a write.
 */
const LAST_WRITE_WINS = { last_write_wins: true, allow_mult: false, dvv_enabled: false } as const;

/** Bucket types, each with the properties that Causeway needs. */
export const BUCKET_TYPES = {
  users: { datatype: "map" },
  rosters: { datatype: "map" },
  roster_versions: { ...LAST_WRITE_WINS },
  private: { ...LAST_WRITE_WINS },
  vcard: { ...LAST_WRITE_WINS, search_index: "vcard" },
  mam_yz: { datatype: "map", search_index: "mam" },
  last: { ...LAST_WRITE_WINS },
  offline: { ...LAST_WRITE_WINS },
  privacy_defaults: { ...LAST_WRITE_WINS },
  privacy_lists_names: { datatype: "set" },
  privacy_lists: { ...LAST_WRITE_WINS },
  causeway: { datatype: "map" },
} as const satisfies Record<string, Readonly<Record<string, string | boolean>>>;

/** Name of a bucket type. */
export type BucketTypeName = keyof typeof BUCKET_TYPES;

/** Place of one object. */
export interface RiakPlace {
  readonly type: BucketTypeName;
  readonly bucket: string;
  readonly key: string;
}

/** Returns the name of a bucket or a key for a text. */
export function nameOf(text: string): string {
  return `${PREFIX}${text}`;
}

/** Returns the text behind a name. */
export function textOf(name: string): string {
  return name.slice(PREFIX.length);
}

/** The first name that no text has, in the order of names. */
export const BEHIND_NAMES = String.fromCharCode(PREFIX.charCodeAt(0) + 1);

/** Returns the place of an account's object. */
export function placeOf(
  type: BucketTypeName,
  { localpart, domainpart }: { readonly localpart: string; readonly domainpart: string },
): RiakPlace {
  return { type, bucket: nameOf(domainpart), key: nameOf(localpart) };
}

/** Returns the place of an object of a bare JID. */
export function placeOfJid(type: BucketTypeName, jid: string): RiakPlace {
  const at = jid.indexOf("@");
  return placeOf(type, { localpart: jid.slice(0, Math.max(at, 0)), domainpart: jid.slice(at + 1) });
}
