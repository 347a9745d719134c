import type { XmlElement } from "../../xmpp/mod.ts";
import { element } from "../../xmpp/mod.ts";
import { DATA_FORM } from "./namespaces.ts";

/** Values of a form's fields, by name. */
export type FormValues = ReadonlyMap<string, readonly string[]>;

/** One field of a form that the server shows. */
export interface FormField {
  readonly name: string;
  readonly type: string;
  readonly values: readonly string[];
  /** Values to choose from. */
  readonly options?: readonly string[];
  /** True for a list that takes other values than `options`, too (XEP-0122 §3). */
  readonly isOpen?: boolean;
}

/** Tells that a list takes any strings. */
const OPEN_LIST = element(
  "validate",
  { xmlns: "http://jabber.org/protocol/xdata-validate", datatype: "xs:string" },
  element("open"),
);

/**
 * Returns the values of a submitted form (XEP-0004). Undefined for a form of another type than
 * `formType` says, or one with a field twice.
 */
export function readForm(form: XmlElement, formType: string): FormValues | undefined {
  const type = form.attribute("type");
  if (type !== "submit" && type !== undefined) return undefined;
  const values = new Map<string, readonly string[]>();
  for (const field of form.elements) {
    if (field.name !== "field") continue;
    const name = field.attribute("var");
    if (name === undefined || values.has(name)) return undefined;
    values.set(
      name,
      field.elements.filter((each) => each.name === "value").map((each) => each.text),
    );
  }
  const [written] = values.get("FORM_TYPE") ?? [formType];
  values.delete("FORM_TYPE");
  return written === formType ? values : undefined;
}

/** Returns a form to fill in, or with `type` one that is filled in or the result of one. */
export function showForm(
  formType: string,
  fields: readonly FormField[],
  type: "form" | "submit" | "result" = "form",
): XmlElement {
  return element(
    "x",
    { xmlns: DATA_FORM, type },
    element("field", { var: "FORM_TYPE", type: "hidden" }, element("value", {}, formType)),
    ...fields.map(({ name, type, values, options = [], isOpen }) =>
      element(
        "field",
        { var: name, type },
        isOpen === true ? OPEN_LIST : undefined,
        ...values.map((value) => element("value", {}, value)),
        ...options.map((option) => element("option", {}, element("value", {}, option))),
      )
    ),
  );
}
