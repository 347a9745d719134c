import type { CompiledQuery } from "kysely";

/** A query with a name under which a connection may keep it prepared. */
export type NamedQuery<Row = unknown> = CompiledQuery<Row> & {
  /** Undefined: it is not executed often enough for that. */
  readonly name?: string | undefined;
};
