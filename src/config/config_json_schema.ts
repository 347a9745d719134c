import { z } from "zod";
import { FILE_SCHEMA } from "./file_schema.ts";

/**
 * Returns the JSON Schema of the configuration file, for editors. Each option has its meaning as
 * description.
 */
export function configJsonSchema(): Readonly<Record<string, unknown>> {
  return {
    ...z.toJSONSchema(FILE_SCHEMA, { io: "input", unrepresentable: "any" }),
    title: "Causeway configuration",
  };
}
