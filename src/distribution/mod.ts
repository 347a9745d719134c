export type { EnvelopeFields, Settler } from "./envelope.ts";
export { Envelope } from "./envelope.ts";
