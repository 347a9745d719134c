import { z } from "zod";

const TRACE = z.strictObject({
  from_other_datacenters: z.boolean().default(true).describe(
    "lets operators of other datacenters follow the stanzas of one address of the global host, or of " +
      "their own datacenter, through this node (`causeway trace`); they see addresses and what " +
      "becomes of each stanza, never its content",
  ),
});

export const OBSERVE = z.strictObject({
  trace: TRACE.prefault({}).describe("traces of one address, by `causeway trace`"),
});
