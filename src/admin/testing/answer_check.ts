import assert from "node:assert/strict";
import { Ajv2020 } from "ajv/dist/2020.js";
import type { ValidateFunction } from "ajv/dist/2020.js";
import addFormats from "ajv-formats";

type Json = { [key: string]: unknown };

/** Schemas of what streams have in `data`, by path and name of the event. */
const EVENT_SCHEMAS: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  "/api/v1/events": { overview: "Overview", event: "Event", missed: "EventsMissed" },
  "/api/v1/trace/{jid}": {
    begun: "TraceBegun",
    node: "TraceNode",
    step: "TraceStep",
    missed: "StepsMissed",
    ended: "TraceEnded",
  },
};

/** An answer to a request. */
interface Answer {
  readonly status: number;
  /** Media type, without parameters. @default "application/json" */
  readonly contentType?: string;
  /** The parsed JSON, or the text of another type. */
  readonly body: unknown;
}

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

  /** Operations of the document without a checked answer, as `GET /health`. */
  get unchecked(): readonly string[] {
    const checked = [...this.checked];
    return this.routes.map(({ method, path }) => `${method} ${path}`)
      .filter((operation) => !checked.some((name) => name.startsWith(`${operation} `)));
  }

  /**
   * Fails unless the document describes this answer.
   *
   * @param path as the document has it, such as `/api/v1/where/{jid}`
   */
  check(
    method: string,
    path: string,
    { status, contentType = "application/json", body }: Answer,
  ): void {
    const name = `${method} ${path} ${status}`;
    const item = (this.#document["paths"] as Json)[path] as Json | undefined;
    const operation = item?.[method.toLowerCase()] as Json | undefined;
    const answer = (operation?.["responses"] as Json | undefined)?.[String(status)] as
      | Json
      | undefined;
    assert.ok(answer !== undefined, `${name} is not described`);
    assert.ok(
      Object.hasOwn(answer["content"] as Json, contentType),
      `${name} is not described as ${contentType}`,
    );
    const steps = ["paths", path, method.toLowerCase(), "responses", String(status)];
    this.#validate(name, [...steps, "content", contentType, "schema"], body);
    this.checked.add(name);
  }

  /** Fails unless a stream of the document may have this event. */
  checkEvent(path: string, name: string, data: unknown): void {
    const schema = EVENT_SCHEMAS[path]?.[name];
    assert.ok(schema !== undefined, `${path} has no event ${name}`);
    this.#validate(`${path} ${name}`, ["components", "schemas", schema], data);
  }

  /** Fails unless this is a failure. For answers to requests that belong to no operation. */
  checkFailure(body: unknown): void {
    this.#validate("a failure", ["components", "schemas", "Failure"], body);
  }

  #validate(name: string, steps: readonly string[], value: unknown): void {
    const pointer = steps
      .map((step) => encodeURIComponent(step.replaceAll("~", "~0").replaceAll("/", "~1")))
      .join("/");
    let validator = this.#validators.get(pointer);
    if (validator === undefined) {
      validator = this.#ajv.compile({ $ref: `api#/${pointer}` });
      this.#validators.set(pointer, validator);
    }
    assert.ok(
      validator(value),
      `${name}: ${this.#ajv.errorsText(validator.errors)} in ${JSON.stringify(value)}`,
    );
  }
}

/** Makes every object schema refuse properties that it does not name. */
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
