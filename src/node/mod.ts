export type { CertificateFinding } from "./certificate_findings.ts";
export { certificateFindings } from "./certificate_findings.ts";
export { tableOptions } from "./options.ts";
export { runNode } from "./run_node.ts";
export type { NodeAddresses } from "./causeway_node.ts";
export { CausewayNode } from "./causeway_node.ts";
export type { NodeDeps } from "./node_parts.ts";
