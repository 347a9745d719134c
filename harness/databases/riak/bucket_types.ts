import { Refusal } from "./data_types.ts";
import type { ObjectType } from "./data_types.ts";

/** Properties of a bucket type, those alone that matter to the double. */
export interface BucketProps {
  readonly allow_mult: boolean;
  readonly last_write_wins: boolean;
  readonly dvv_enabled: boolean;
  readonly n_val: number;
  readonly datatype?: ObjectType;
  readonly search_index?: string;
  readonly [name: string]: unknown;
}

/** Properties that a new bucket type has unless it is told otherwise. */
const DEFAULTS: BucketProps = {
  allow_mult: true,
  last_write_wins: false,
  dvv_enabled: true,
  n_val: 3,
};
const BOOLEANS = ["allow_mult", "last_write_wins", "dvv_enabled", "notfound_ok", "basic_quorum"];
const NUMBERS = ["n_val"];
const QUORUMS = ["r", "w", "pr", "pw", "dw", "rw"];

/** One bucket type: no request reaches it before it is active. */
export interface BucketType {
  readonly props: BucketProps;
  isActive: boolean;
}

/** Output of the admin command, and its exit code. */
export interface AdminAnswer {
  readonly output: string;
  readonly code: number;
}

/** The bucket types of a cluster. */
export class BucketTypes {
  readonly #types = new Map<string, BucketType>();
  readonly #hasIndex: (name: string) => boolean;

  constructor(hasIndex: (name: string) => boolean) {
    this.#hasIndex = hasIndex;
  }

  /** Returns the properties of a type that is active. @throws Refusal */
  active(name: string): BucketProps {
    const type = this.#types.get(name);
    if (type?.isActive !== true) throw new Refusal(404, `Unknown bucket type: ${name}\n`);
    return type.props;
  }

  clear(): void {
    this.#types.clear();
  }

  /** Does what the admin command does: `bucket-type create|activate|status|list …`. */
  admin(args: readonly string[]): AdminAnswer {
    const [command, verb, name, json] = args;
    if (command !== "bucket-type") return { output: `Usage: ${command}?\n`, code: 1 };
    if (verb === "list" && args.length === 2) {
      const lines = [...this.#types].map(([each, { isActive }]) =>
        `${each} (${isActive ? "active" : "not active"})\n`
      );
      return { output: `default (active)\n${lines.join("")}`, code: 0 };
    }
    if (name === undefined) return { output: `Usage: bucket-type ${verb}?\n`, code: 1 };
    const type = this.#types.get(name);
    if (verb === "status" && args.length === 3) {
      if (type === undefined) {
        return { output: `${name} is not an existing bucket type\n`, code: 1 };
      }
      const state = type.isActive ? "is active" : "has been created and may be activated";
      return { output: `${name} ${state}\n\n${shownProps(type.props)}`, code: 0 };
    }
    if (verb === "activate" && args.length === 3) {
      if (type === undefined) {
        return { output: `${name} is not an existing bucket type\n`, code: 1 };
      }
      type.isActive = true;
      return { output: `${name} has been activated\n`, code: 0 };
    }
    if ((verb === "create" || verb === "update") && args.length === 4) {
      return this.#change(verb, name, json!);
    }
    return { output: `Usage: bucket-type ${verb}?\n`, code: 1 };
  }

  #change(verb: "create" | "update", name: string, json: string): AdminAnswer {
    let props: unknown;
    try {
      props = JSON.parse(json)["props"];
    } catch {
      return { output: `Cannot ${verb} bucket type ${name}: invalid json\n`, code: 1 };
    }
    if (typeof props !== "object" || props === null) {
      const output = `Cannot create bucket type ${name}: no props field found in json\n`;
      return { output, code: 1 };
    }
    const type = this.#types.get(name);
    const problem = verb === "update" && type === undefined
      ? "undefined"
      : verb === "create" && type?.isActive === true
      ? "already_active"
      : this.#problemOf(props as Record<string, unknown>, verb === "update" ? type : undefined);
    if (problem !== undefined) {
      const doing = verb === "create" ? "creating" : "updating";
      return { output: `Error ${doing} bucket type ${name}:\n${problem}\n`, code: 1 };
    }
    const before = verb === "update" ? type!.props : DEFAULTS;
    this.#types.set(name, {
      props: { ...before, ...props },
      isActive: verb === "update" && type!.isActive,
    });
    return { output: `${name} ${verb}d\n`, code: 0 };
  }

  #problemOf(props: Record<string, unknown>, existing: BucketType | undefined): string | undefined {
    const all: Record<string, unknown> = { ...existing?.props ?? DEFAULTS, ...props };
    for (const [property, value] of Object.entries(props)) {
      if (BOOLEANS.includes(property) && typeof value !== "boolean") {
        return `${property} should be "true" or "false"`;
      }
      if (NUMBERS.includes(property) && !(Number.isInteger(value) && Number(value) > 0)) {
        return `${property} must be an integer`;
      }
      if (
        ![...BOOLEANS, ...NUMBERS, ...QUORUMS, "datatype", "search_index"].includes(property)
      ) return `${property}: the double does not know it`;
    }
    const { datatype, search_index: index } = all;
    if (existing !== undefined && existing.props.datatype !== datatype) {
      return "datatype: Cannot update datatype on existing bucket";
    }
    if (datatype !== undefined) {
      if (!["map", "set", "counter"].includes(String(datatype))) {
        return `datatype: ${datatype} not supported for bucket datatype property`;
      }
      if (all["allow_mult"] !== true) return "Data Type buckets must be allow_mult=true";
    }
    if (all["last_write_wins"] === true && all["dvv_enabled"] === true) {
      return "dvv_enabled: last_write_wins wants it to be false";
    }
    if (index !== undefined && !this.#hasIndex(String(index))) return `${index} does not exist`;
    return undefined;
  }
}

function shownProps(props: BucketProps): string {
  return Object.entries(props).map(([name, value]) => `${name}: ${JSON.stringify(value)}\n`).join(
    "",
  );
}
