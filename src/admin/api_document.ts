import type { AdminApp } from "./api/admin_env.ts";
import type { ApiDocument } from "./docs_page.ts";

/** Part of an operation of the OpenAPI document that decides how it may be refused. */
interface Operation {
  /** Empty where nobody needs a token. */
  readonly security?: readonly unknown[];
  readonly requestBody?: unknown;
  readonly responses: Record<string, unknown>;
}

/** A refusal that does not depend on the operation's own work. */
interface Refusal {
  readonly status: number;
  readonly description: string;
  /** Returns whether the operation may answer with it. @default always */
  readonly isOf?: (operation: Operation) => boolean;
}

const needsCaller = ({ security }: Operation) => security === undefined || security.length > 0;
const hasBody = ({ requestBody }: Operation) => requestBody !== undefined;

const REFUSALS: readonly Refusal[] = [
  { status: 400, description: "The request is malformed" },
  {
    status: 401,
    description: "The token or client certificate is missing or wrong",
    isOf: needsCaller,
  },
  { status: 403, description: "The request comes from another site, or under a foreign name" },
  { status: 413, description: "The body is too long" },
  { status: 415, description: "The content type is not application/json", isOf: hasBody },
  { status: 429, description: "Too many wrong tokens from this address", isOf: needsCaller },
  { status: 431, description: "The address and the headers are too long" },
  { status: 500, description: "The request failed; the log says why" },
];

const DESCRIPTION = "A refusal or failure is answered with a `Failure`. So is a path that does " +
  "not exist (404), and a method that its path does not have (405).";

/** Makes the OpenAPI document, with the answers that operations have in common. */
export function apiDocument(
  app: AdminApp,
  { version, security }: {
    readonly version: string;
    /** Schemes by which callers are admitted, of which one is enough; empty: all are. */
    readonly security: readonly string[];
  },
): ApiDocument {
  // The type of the standard is wider than what is read of it here.
  const document = app.getOpenAPI31Document({
    openapi: "3.1.0",
    info: { title: "Causeway admin API", version, description: DESCRIPTION },
    ...(security.length > 0 && { security: security.map((name) => ({ [name]: [] })) }),
  }) as unknown as ApiDocument;
  const schema = { $ref: "#/components/schemas/Failure" };
  for (const item of Object.values(document.paths ?? {})) {
    // Every route of the API is described by its operations alone.
    for (const operation of Object.values(item) as Operation[]) {
      for (const { status, description, isOf = () => true } of REFUSALS) {
        if (!isOf(operation)) continue;
        operation.responses[status] ??= {
          description,
          content: { "application/json": { schema } },
        };
      }
    }
  }
  return document;
}
