import { SaxesParser } from "saxes";
import { Refusal } from "./data_types.ts";

/** Kinds of fields; those that are `shown` are stored, and not indexed. */
export type SolrKind = "string" | "long" | "text" | "shown" | "ignored";

/** Fields of an index, as its schema declares them. */
export interface SolrSchema {
  /** Returns how a field is indexed; undefined for one that the schema does not have. */
  kindOf(name: string): SolrKind | undefined;
  /** True when documents show the field. */
  isStored(name: string): boolean;
}

type Attributes = Readonly<Record<string, string>>;

/** Fields that Riak itself needs, with what their declaration must say. */
const RIAK_FIELDS: Readonly<Record<string, Attributes>> = {
  _yz_id: { indexed: "true", stored: "true", required: "true" },
  _yz_ed: { indexed: "true" },
  _yz_pn: { indexed: "true" },
  _yz_fpn: { indexed: "true" },
  _yz_vtag: { indexed: "true" },
  _yz_rk: { indexed: "true", stored: "true" },
  _yz_rt: { indexed: "true", stored: "true" },
  _yz_rb: { indexed: "true", stored: "true" },
  _yz_err: { indexed: "true" },
};

const KINDS: Readonly<Record<string, SolrKind>> = {
  "solr.StrField": "string",
  "solr.TrieLongField": "long",
  "solr.TextField": "text",
};

/** Reads a schema. @throws Refusal for one that Riak would not take */
export function parseSchema(xml: string): SolrSchema {
  const fields = new Map<string, Attributes>();
  const dynamic: Attributes[] = [];
  const types = new Map<string, Attributes>();
  const path: string[] = [];
  let [uniqueKey, version] = ["", ""];
  const parser = new SaxesParser({ xmlns: false });
  parser.on("error", (error) => {
    throw new Refusal(400, `Error storing schema "failed to parse ${error.message}"`);
  });
  parser.on("opentag", ({ name, attributes }) => {
    path.push(name);
    const at = path.join("/");
    if (at === "schema") version = attributes["version"] ?? "";
    if (at === "schema/fields/field") fields.set(attributes["name"] ?? "", attributes);
    if (at === "schema/fields/dynamicField") dynamic.push(attributes);
    if (at === "schema/types/fieldType") types.set(attributes["name"] ?? "", attributes);
  });
  parser.on("text", (text) => {
    if (path.join("/") === "schema/uniqueKey") uniqueKey += text;
  });
  parser.on("closetag", () => void path.pop());
  parser.write(xml).close();
  if (uniqueKey !== "_yz_id") throw new Refusal(400, "Error storing schema uniqueKey");
  if (version !== "1.5") {
    throw new Refusal(400, "Error storing schema \"schema 'version' attribute must be 1.5\"");
  }
  for (const [name, wanted] of Object.entries(RIAK_FIELDS)) {
    const found = fields.get(name);
    const isRight = found?.["type"] === "_yz_str" &&
      Object.entries(wanted).every(([attribute, value]) => found[attribute] === value);
    if (!isRight) throw new Refusal(400, `Error storing schema "missing field ${name}"`);
  }
  const own = types.get("_yz_str");
  if (own?.["class"] !== "solr.StrField" || own["sortMissingLast"] !== "true") {
    throw new Refusal(400, 'Error storing schema "missing field type _yz_str"');
  }
  const kindOfField = (field: Attributes): SolrKind | undefined => {
    const type = types.get(field["type"] ?? "");
    if (type === undefined) return undefined;
    if ((field["indexed"] ?? type["indexed"]) === "false") {
      return (field["stored"] ?? type["stored"]) === "false" ? "ignored" : "shown";
    }
    return KINDS[type["class"] ?? ""];
  };
  for (const field of [...fields.values(), ...dynamic]) {
    if (kindOfField(field) === undefined) {
      throw new Refusal(400, `Error storing schema: unknown type of the field ${field["name"]}`);
    }
  }
  // Of several patterns the longest counts.
  const patterns = dynamic.toSorted((one, other) =>
    (other["name"] ?? "").length - (one["name"] ?? "").length
  );
  const fieldOf = (name: string) =>
    fields.get(name) ??
      patterns.find(({ name: pattern = "" }) =>
        pattern.startsWith("*")
          ? name.endsWith(pattern.slice(1))
          : name.startsWith(pattern.slice(0, -1))
      );
  return {
    kindOf(name) {
      const field = fieldOf(name);
      return field === undefined ? undefined : kindOfField(field);
    },
    isStored(name) {
      const field = fieldOf(name);
      return (field?.["stored"] ?? types.get(field?.["type"] ?? "")?.["stored"]) !== "false";
    },
  };
}
