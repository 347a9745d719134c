import { parseHandled } from "./counter.ts";

/** Content of an `<enable/>` (XEP-0198 §3). */
export interface EnableRequest {
  /** True when the client wants to be able to resume the stream. */
  readonly isResumable: boolean;
  /** Seconds that it wants to have for that; undefined when it leaves them to the server. */
  readonly maxSeconds: number | undefined;
}

/** Reads an `<enable/>` by its attributes. */
export function readEnable(attribute: (name: string) => string | undefined): EnableRequest {
  const resume = attribute("resume");
  return {
    isResumable: resume === "true" || resume === "1",
    maxSeconds: parseHandled(attribute("max")),
  };
}
