import { z } from "zod";
import { FILE_SCHEMA } from "./file_schema.ts";

/** JSON Schema of the configuration file as it is written, for editors; options carry their meaning. */
export function configJsonSchema(): Readonly<Record<string, unknown>> {
  return {
    ...z.toJSONSchema(FILE_SCHEMA, { io: "input", unrepresentable: "any" }),
    title: "Causeway configuration",
  };
}
