import { translateMongooseim } from "../from_mongooseim.ts";
import { parseToml } from "../load_config.ts";

/** Returns the paths in lines, in their order. */
export function pathsOf(lines: readonly string[]): readonly string[] {
  return lines.map((line) => line.split(": ")[1]!).sort();
}

/** Translates a configuration of MongooseIM; returns the translation, with its tables. */
export function translated(text: string) {
  const translation = translateMongooseim(text, "m.toml");
  // The parser's tables have no prototype.
  const table: Translated = JSON.parse(JSON.stringify(parseToml(translation.toml, "c.toml")));
  return { ...translation, table };
}

/** Tables of a translation that tests look at. */
export interface Translated {
  readonly auth: Readonly<Record<string, unknown>>;
  readonly modules: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
  readonly outgoing_pools: unknown;
}
