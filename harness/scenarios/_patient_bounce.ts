import type { ClusterOptions } from "../cluster/mod.ts";

/** Stanzas wait for 13 s: longer than it takes to log in or become available on a busy machine. */
export const PATIENT_BOUNCE: ClusterOptions = {
  configure({ modules }) {
    modules.mod_global_distrib["bounce"] = { resend_after_ms: 200, max_retries: 6 };
  },
};
