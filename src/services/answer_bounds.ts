import type { IqRequest } from "./iq_service.ts";

/** Bytes of what an answer lists to a client of this node. */
const MAX_OWN_BYTES = 1_048_576;
/** Bytes of what it lists to others over links, whose frames have to hold it. */
const MAX_DISTANT_BYTES = 131_072;

/** Returns how many bytes the answer to a request may list. */
export function listedBytes({ client }: Pick<IqRequest, "client">): number {
  return client === undefined ? MAX_DISTANT_BYTES : MAX_OWN_BYTES;
}
