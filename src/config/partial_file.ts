import type { z } from "zod";
import type { FILE_SCHEMA } from "./file_schema.ts";

type Partially<T> = T extends readonly (infer Item)[] ? readonly Partially<Item>[]
  : T extends object ? { readonly [Key in keyof T]?: Partially<T[Key]> | undefined }
  : T;

/**
 * The file as written, without the values of a wrong shape. The values that are left have their
 * types.
 */
export type PartialFile = Partially<z.input<typeof FILE_SCHEMA>>;
