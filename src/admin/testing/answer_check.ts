import assert from "node:assert/strict";
import { Ajv2020 } from "ajv/dist/2020.js";
import type { ValidateFunction } from "ajv/dist/2020.js";
import addFormats from "ajv-formats";

type Json = { [key: string]: unknown };

/** Checks answers against the OpenAPI document that the API itself serves. */
export class AnswerCheck {
  /** Routes whose answers were checked, as `GET /health 200`. */
  readonly checked = new Set<string>();
  readonly #document: Json;
  readonly #ajv: Ajv2020;
  readonly #validators = new Map<string, ValidateFunction>();

  /** @param document as served at `/openapi.json` */
  constructor(document: Json) {
    assert.equal(document["openapi"], "3.1.0");
    this.#document = structuredClone(document);
    makeStrict(this.#document);
    this.#ajv = new Ajv2020({ strict: false, allErrors: true });
    addFormats.default(this.#ajv);
    this.#ajv.addSchema(this.#document, "api");
  }

  /** Paths of the document, with the methods of each. */
  get routes(): readonly { readonly method: string; readonly path: string }[] {
    return Object.entries(this.#document["paths"] as Json).flatMap(([path, item]) =>
      Object.keys(item as Json).map((method) => ({ method: method.toUpperCase(), path }))
    );
  }

  /**
   * Fails unless the document describes this answer.
   *
   * @param path as the document has it, such as `/api/v1/where/{jid}`
   */
  check(method: string, path: string, { status, body }: {
    readonly status: number;
    readonly body: unknown;
  }): void {
    const name = `${method} ${path} ${status}`;
    const item = (this.#document["paths"] as Json)[path] as Json | undefined;
    const operation = item?.[method.toLowerCase()] as Json | undefined;
    const answer = (operation?.["responses"] as Json | undefined)?.[String(status)] as
      | Json
      | undefined;
    assert.ok(answer !== undefined, `${name} is not described`);
    let validator = this.#validators.get(name);
    if (validator === undefined) {
      const steps = ["paths", path, method.toLowerCase(), "responses", String(status)];
      const pointer = [...steps, "content", "application/json", "schema"]
        .map((step) => encodeURIComponent(step.replaceAll("~", "~0").replaceAll("/", "~1")))
        .join("/");
      validator = this.#ajv.compile({ $ref: `api#/${pointer}` });
      this.#validators.set(name, validator);
    }
    assert.ok(
      validator(body),
      `${name}: ${this.#ajv.errorsText(validator.errors)} in ${JSON.stringify(body)}`,
    );
    this.checked.add(name);
  }
}

/** Has every object schema refuse properties that it does not name. */
function makeStrict(schema: unknown): void {
  if (typeof schema !== "object" || schema === null) return;
  if (Array.isArray(schema)) return schema.forEach(makeStrict);
  const object = schema as Json;
  for (const value of Object.values(object)) makeStrict(value);
  const isOpen = "additionalProperties" in object;
  if (object["type"] === "object" && "properties" in object && !isOpen) {
    object["additionalProperties"] = false;
  }
}
