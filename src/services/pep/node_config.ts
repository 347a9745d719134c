import { CausewayError, randomHex } from "../../base/mod.ts";
import type { FormField, FormValues } from "./data_form.ts";

/** People who may see a node and its items (XEP-0060 §4.5), besides its owner. */
export type AccessModel = "open" | "presence" | "roster" | "whitelist";

/** Affiliations that an owner gives to others (XEP-0060 §4.1). Everybody else has `none`. */
export type Affiliation = "member" | "outcast";

/** Affiliation of one account. */
interface Affiliate {
  readonly affiliation: Affiliation;
  /** Creation of the account that was made a member, where it had one. */
  readonly creation: string | undefined;
}

/** Bounds that a configuration depends on. */
export interface ConfigBounds {
  /** Items that a node may keep: the value of `max`. */
  readonly maxItemsPerNode: number;
}

/** One option of a node. */
interface Option {
  readonly type: "boolean" | "text-single" | "list-single" | "text-multi";
  readonly byDefault: readonly string[];
  readonly choices?: readonly string[];
  /** Returns the values in the form in which they are compared; undefined: they are not possible. */
  read(values: readonly string[], bounds: ConfigBounds): readonly string[] | undefined;
}

/** Longest value of an option, and longest list of values. */
const MAX_VALUE = 1_000;
const MAX_VALUES = 100;
/** Bytes of a whole configuration: it is read with every request, and MySQL keeps 65,535. */
const MAX_CONFIG_BYTES = 16_384;

/** Key of the affiliations among the values. They are no option. */
const AFFILIATIONS = "affiliations";

/** Key of the random text among the values by which a node differs from all others. It is no option. */
const MARK = "mark";

/** Name of the option with the access model. */
export const ACCESS_MODEL = "pubsub#access_model";

const ACCESS_MODELS = ["open", "presence", "roster", "whitelist"] as const;

/** Options that a node of personal eventing has. An option with one choice only says so. */
const OPTIONS: Readonly<Record<string, Option>> = {
  "pubsub#title": text(),
  "pubsub#description": text(),
  "pubsub#type": text(),
  [ACCESS_MODEL]: choice(ACCESS_MODELS, "presence"),
  "pubsub#roster_groups_allowed": {
    type: "text-multi",
    byDefault: [],
    read: (values) =>
      values.length <= MAX_VALUES && values.every(isShort)
        ? [...new Set(values)].toSorted()
        : undefined,
  },
  "pubsub#persist_items": flag(true),
  "pubsub#max_items": {
    type: "text-single",
    byDefault: ["1"],
    read: ([value, ...others], { maxItemsPerNode }) => {
      if (value === undefined || others.length > 0) return undefined;
      if (value === "max") return ["max"];
      const count = /^\d{1,9}$/.test(value) ? Number(value) : 0;
      return count >= 1 && count <= maxItemsPerNode ? [`${count}`] : undefined;
    },
  },
  "pubsub#send_last_published_item": choice(
    ["never", "on_sub", "on_sub_and_presence"],
    "on_sub_and_presence",
  ),
  "pubsub#deliver_notifications": flag(true),
  "pubsub#deliver_payloads": flag(true),
  "pubsub#notify_retract": flag(true),
  "pubsub#notify_delete": flag(true),
  "pubsub#notify_config": fixed("0", "boolean"),
  "pubsub#notify_sub": fixed("0", "boolean"),
  "pubsub#subscribe": fixed("1", "boolean"),
  "pubsub#presence_based_delivery": fixed("1", "boolean"),
  "pubsub#purge_offline": fixed("0", "boolean"),
  "pubsub#publish_model": fixed("publishers", "list-single"),
  "pubsub#notification_type": fixed("headline", "list-single"),
};

/** Nodes whose default configuration is another one (XEP-0402 §4). */
const NODE_DEFAULTS: ReadonlyMap<string, FormValues> = new Map([
  [
    "urn:xmpp:bookmarks:1",
    new Map([
      ["pubsub#max_items", ["max"]],
      ["pubsub#send_last_published_item", ["never"]],
      ["pubsub#access_model", ["whitelist"]],
    ]),
  ],
]);

/** The configuration of a node. Immutable. */
export class NodeConfig {
  readonly #values: FormValues;

  private constructor(values: FormValues) {
    this.#values = values;
  }

  /** Returns the configuration that a node of that name gets when nobody says otherwise. */
  static defaultOf(node: string): NodeConfig {
    return new NodeConfig(NODE_DEFAULTS.get(node) ?? new Map());
  }

  /**
   * Returns that configuration for a node that is made now. No other node ever has the same one: whoever
   * expects it of a node has found the same node, and not one that was made again under its name.
   */
  static newOf(node: string): NodeConfig {
    return new NodeConfig(new Map(NODE_DEFAULTS.get(node)).set(MARK, [randomHex(8)]));
  }

  /** @throws CausewayError `storage/corrupt` for a text that `encode` did not write */
  static decode(text: string): NodeConfig {
    const entries = tryParseJson(text);
    const isOurs = Array.isArray(entries) &&
      entries.every((entry) =>
        Array.isArray(entry) && entry.length === 2 && typeof entry[0] === "string" &&
        Array.isArray(entry[1]) && entry[1].every((value: unknown) => typeof value === "string")
      );
    if (!isOurs) {
      throw new CausewayError(
        "storage/corrupt",
        "Cannot read the configuration of a node: damaged",
      );
    }
    return new NodeConfig(new Map(entries as [string, string[]][])); // as checked above
  }

  /** Returns a text that is the same for equal configurations. */
  encode(): string {
    return JSON.stringify([...this.#values].toSorted(([one], [other]) => one < other ? -1 : 1));
  }

  /** True for the configuration that the same node has at another time. */
  isOfSameNode(other: NodeConfig): boolean {
    return isSame(this.#values.get(MARK) ?? [], other.#values.get(MARK) ?? []);
  }

  get accessModel(): AccessModel {
    return this.#first(ACCESS_MODEL) as AccessModel; // `with` takes no other
  }

  get rosterGroups(): readonly string[] {
    return this.#all("pubsub#roster_groups_allowed");
  }

  get persists(): boolean {
    return this.#is("pubsub#persist_items");
  }

  get delivers(): boolean {
    return this.#is("pubsub#deliver_notifications");
  }

  get deliversPayloads(): boolean {
    return this.#is("pubsub#deliver_payloads");
  }

  get notifiesRetract(): boolean {
    return this.#is("pubsub#notify_retract");
  }

  get notifiesDelete(): boolean {
    return this.#is("pubsub#notify_delete");
  }

  /** Moments at which somebody is sent the last item. */
  get sendsLast(): "never" | "on_sub" | "on_sub_and_presence" {
    return this.#first("pubsub#send_last_published_item") as "never"; // or the two others
  }

  /** Returns the items that the node keeps. */
  maxItems({ maxItemsPerNode }: ConfigBounds): number {
    const value = this.#first("pubsub#max_items");
    return value === "max" ? maxItemsPerNode : Math.min(Number(value), maxItemsPerNode);
  }

  /** Returns the configuration with these values; undefined when one of them is not possible. */
  with(values: FormValues, bounds: ConfigBounds): NodeConfig | undefined {
    const all = new Map(this.#values);
    for (const [name, written] of values) {
      const option = Object.hasOwn(OPTIONS, name) ? OPTIONS[name]! : undefined;
      const value = option?.read(written, bounds);
      if (option === undefined || value === undefined) return undefined;
      if (isSame(value, option.byDefault)) all.delete(name);
      else all.set(name, value);
    }
    return new NodeConfig(all).#withinBounds();
  }

  /** Affiliations by bare JID. */
  get affiliations(): ReadonlyMap<string, Affiliation> {
    return new Map(
      [...this.#affiliates].map(([account, { affiliation }]) => [account, affiliation]),
    );
  }

  /**
   * Returns the affiliation of an account, given by its bare JID.
   * @param creation that of the account, where it is known: a member's name may have another owner
   */
  affiliationOf(account: string, creation?: string): Affiliation | undefined {
    if (!this.#values.has(AFFILIATIONS)) return undefined;
    const found = this.#affiliates.get(account);
    const isAnother = found?.creation !== undefined && creation !== undefined &&
      found.creation !== creation;
    return isAnother ? undefined : found?.affiliation;
  }

  /**
   * Returns the configuration with these affiliations changed; undefined when there are too many.
   * @param creations those of new members whose accounts have one, by bare JID
   */
  affiliate(
    changes: ReadonlyMap<string, Affiliation | "none">,
    creations: ReadonlyMap<string, string> = new Map(),
  ): NodeConfig | undefined {
    const affiliates = this.#affiliates;
    for (const [account, affiliation] of changes) {
      if (affiliation === "none") affiliates.delete(account);
      else {
        const creation = affiliation === "member" ? creations.get(account) || undefined : undefined;
        affiliates.set(account, { affiliation, creation });
      }
    }
    const all = new Map(this.#values);
    // No bare JID has a space in it.
    const entries = [...affiliates].map(([account, { affiliation, creation }]) =>
      `${affiliation} ${account}${creation === undefined ? "" : ` ${creation}`}`
    ).toSorted();
    if (entries.length === 0) all.delete(AFFILIATIONS);
    else all.set(AFFILIATIONS, entries);
    return new NodeConfig(all).#withinBounds();
  }

  get #affiliates(): Map<string, Affiliate> {
    return new Map((this.#values.get(AFFILIATIONS) ?? []).map((entry) => {
      const [affiliation, account = "", creation] = entry.split(" ");
      return [account, { affiliation: affiliation as Affiliation, creation }]; // as `affiliate` writes
    }));
  }

  #withinBounds(): NodeConfig | undefined {
    return new TextEncoder().encode(this.encode()).length > MAX_CONFIG_BYTES ? undefined : this;
  }

  /** True when each of these values is the one that the configuration has. */
  meets(values: FormValues, bounds: ConfigBounds): boolean {
    return [...values].every(([name, written]) => {
      const value = Object.hasOwn(OPTIONS, name) ? OPTIONS[name]!.read(written, bounds) : undefined;
      if (value === undefined) return false;
      if (name !== "pubsub#max_items") return isSame(value, this.#all(name));
      const count = value[0] === "max" ? bounds.maxItemsPerNode : Number(value[0]);
      return count === this.maxItems(bounds);
    });
  }

  /** Returns the fields of the form by which the owner changes the configuration. */
  fields(): readonly FormField[] {
    return Object.entries(OPTIONS).map(([name, { type, choices }]) => ({
      name,
      type,
      values: this.#all(name),
      ...choices !== undefined && { options: choices },
    }));
  }

  #is(name: string): boolean {
    return this.#first(name) === "1";
  }

  #first(name: string): string {
    return this.#all(name)[0] ?? "";
  }

  #all(name: string): readonly string[] {
    return this.#values.get(name) ?? OPTIONS[name]!.byDefault;
  }
}

function text(): Option {
  return {
    type: "text-single",
    byDefault: [""],
    read: ([value = "", ...others]) => others.length === 0 && isShort(value) ? [value] : undefined,
  };
}

function choice(choices: readonly string[], byDefault: string): Option {
  return {
    type: "list-single",
    byDefault: [byDefault],
    choices,
    read: ([value, ...others]) =>
      value !== undefined && others.length === 0 && choices.includes(value) ? [value] : undefined,
  };
}

function flag(byDefault: boolean): Option {
  return {
    type: "boolean",
    byDefault: [byDefault ? "1" : "0"],
    read: ([value = "", ...others]) => {
      if (others.length > 0) return undefined;
      if (value === "1" || value === "true") return ["1"];
      return value === "0" || value === "false" ? ["0"] : undefined;
    },
  };
}

function fixed(value: string, type: "boolean" | "list-single"): Option {
  const option = type === "boolean" ? flag(value === "1") : choice([value], value);
  return {
    ...option,
    read: (values, bounds) => {
      const written = option.read(values, bounds);
      return written?.[0] === value ? written : undefined;
    },
  };
}

function isShort(value: string): boolean {
  return value.length <= MAX_VALUE;
}

function isSame(one: readonly string[], other: readonly string[]): boolean {
  return one.length === other.length && one.every((value, index) => value === other[index]);
}

function tryParseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined; // not ours: the caller says so
  }
}
