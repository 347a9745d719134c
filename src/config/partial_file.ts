import type { z } from "zod";
import type { FILE_SCHEMA } from "./file_schema.ts";

type Partially<T> = T extends readonly (infer Item)[] ? readonly Partially<Item>[]
  : T extends object ? { readonly [Key in keyof T]?: Partially<T[Key]> | undefined }
  : T;

/** The file as written, without what has a wrong shape: each value that is left is of its type. */
export type PartialFile = Partially<z.input<typeof FILE_SCHEMA>>;
