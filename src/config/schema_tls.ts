import { z } from "zod";
import { filePath, withWords } from "./schema_words.ts";

/** Files with which connections to a server are encrypted. */
export const TLS_FILES = z.strictObject({
  cafile: filePath().optional().describe(
    "PEM file with the authorities that may issue the server's certificate; absent: those that " +
      "the runtime trusts",
  ),
  certfile: filePath().optional().describe(
    "PEM file with the client certificate, if the server requires one",
  ),
  keyfile: filePath().optional().describe("PEM file with its private key, if not in `certfile`"),
});

/** Encryption of connections to a server: on or off, or on with files. */
export const TLS = withWords(z.union([z.boolean(), TLS_FILES]), {
  allowed: "true, false, or a table with any of cafile, certfile and keyfile",
});
