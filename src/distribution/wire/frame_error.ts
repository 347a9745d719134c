import { CausewayError } from "../../base/mod.ts";

/** Faults of a peer's frames; each ends the link that it came on and nothing else. */
export type FrameErrorCode =
  | "link/frame-too-large"
  | "link/frame-malformed"
  | "link/frame-unknown"
  | "link/hello-expected"
  | "link/hello-repeated";

/** A frame that cannot be accepted. */
export class FrameError extends CausewayError {
  override readonly name = "FrameError";
  declare readonly code: FrameErrorCode;

  // The narrower type of `code` is the reason for this constructor.
  constructor(code: FrameErrorCode, message: string) {
    super(code, message);
  }
}

/** Makes the error for a body that does not follow its layout. */
export function malformed(frame: string, what: string): FrameError {
  return new FrameError("link/frame-malformed", `Cannot read ${frame} frame: ${what}`);
}
