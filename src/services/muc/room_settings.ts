import type { StanzaErrorCondition, XmlElement } from "../../xmpp/mod.ts";
import { element } from "../../xmpp/mod.ts";
import { DATA_FORM, ROOM_CONFIG, ROOM_INFO } from "./namespaces.ts";

/** Configuration of a room (XEP-0045 §10.2). */
export interface RoomSettings {
  readonly title: string;
  readonly description: string;
  /** True: the room stays when its last occupant has left. */
  readonly persistent: boolean;
  /** True: lists show the room, and everybody may ask what it is like. */
  readonly public: boolean;
  /** True: visitors have no voice. */
  readonly moderated: boolean;
  readonly membersOnly: boolean;
  /** True: people without an affiliation may speak in a moderated room. */
  readonly membersByDefault: boolean;
  /** True: everybody with voice may change the subject. */
  readonly allowChangeSubject: boolean;
  /** True: everybody may invite people into a members-only room. */
  readonly allowUserInvites: boolean;
  readonly allowPrivateMessages: boolean;
  readonly passwordProtected: boolean;
  readonly password: string;
  /** True: only moderators see real JIDs. */
  readonly anonymous: boolean;
  readonly maxUsers: number;
  /** True until the owner has configured a new room. */
  readonly isLocked: boolean;
  /** Random text from which the ids of occupants are made (XEP-0421). */
  readonly secret: string;
}

/** Bounds of settings that owners choose. */
export interface SettingsBounds {
  /** Characters of a title. */
  readonly maxRoomName: number;
  /** Characters of a description. */
  readonly maxRoomDescription: number;
  /** Occupants of one room. */
  readonly maxUsers: number;
}

/** Characters of a password. */
const MAX_PASSWORD = 256;

type Kind = "text" | "multi" | "secret" | "boolean" | "number" | "list";

interface Field {
  readonly name: string;
  readonly label: string;
  readonly kind: Kind;
  readonly options?: readonly string[];
  read(settings: RoomSettings): string;
  /** Undefined for a value that the field cannot have. */
  write(value: string, bounds: SettingsBounds): Partial<RoomSettings> | undefined;
}

const FIELDS: readonly Field[] = [
  text("muc#roomconfig_roomname", "Title", "title", (bounds) => bounds.maxRoomName),
  {
    ...text(
      "muc#roomconfig_roomdesc",
      "Description",
      "description",
      (bounds) => bounds.maxRoomDescription,
    ),
    kind: "multi",
  },
  flag("muc#roomconfig_persistentroom", "Keep the room when it is empty", "persistent"),
  flag("muc#roomconfig_publicroom", "Show the room in lists", "public"),
  flag("muc#roomconfig_passwordprotectedroom", "Ask for a password", "passwordProtected"),
  {
    ...text("muc#roomconfig_roomsecret", "Password", "password", () => MAX_PASSWORD),
    kind: "secret",
  },
  {
    name: "muc#roomconfig_maxusers",
    label: "Occupants at once",
    kind: "number",
    read: ({ maxUsers }) => `${maxUsers}`,
    write: (value, bounds) => {
      if (value === "" || value === "none") return { maxUsers: bounds.maxUsers };
      if (!/^[1-9]\d{0,5}$/.test(value)) return undefined;
      return { maxUsers: Math.min(Number(value), bounds.maxUsers) };
    },
  },
  {
    name: "muc#roomconfig_whois",
    label: "People who see real addresses",
    kind: "list",
    options: ["moderators", "anyone"],
    read: ({ anonymous }) => anonymous ? "moderators" : "anyone",
    write: (value) =>
      value === "moderators" || value === "anyone"
        ? { anonymous: value === "moderators" }
        : undefined,
  },
  flag("muc#roomconfig_membersonly", "Admit members only", "membersOnly"),
  flag("muc#roomconfig_moderatedroom", "Only people with voice may speak", "moderated"),
  flag("members_by_default", "Newcomers have voice", "membersByDefault"),
  flag("muc#roomconfig_changesubject", "Occupants may change the subject", "allowChangeSubject"),
  flag(
    "muc#roomconfig_allowinvites",
    "Members may invite into a members-only room",
    "allowUserInvites",
  ),
  {
    name: "muc#roomconfig_allowpm",
    label: "People who may write private messages",
    kind: "list",
    options: ["anyone", "none"],
    read: ({ allowPrivateMessages }) => allowPrivateMessages ? "anyone" : "none",
    write: (value) =>
      value === "anyone" || value === "none"
        ? { allowPrivateMessages: value === "anyone" }
        : undefined,
  },
];

const TYPES: Readonly<Record<Kind, string>> = {
  text: "text-single",
  multi: "text-multi",
  secret: "text-private",
  boolean: "boolean",
  number: "text-single",
  list: "list-single",
};

/** Returns the form by which an owner configures a room. */
export function settingsForm(settings: RoomSettings): XmlElement {
  return element(
    "x",
    { xmlns: DATA_FORM, type: "form" },
    element("title", {}, "Configuration of the room"),
    element("field", { var: "FORM_TYPE", type: "hidden" }, element("value", {}, ROOM_CONFIG)),
    ...FIELDS.map(({ name, label, kind, options = [], read }) => {
      const value = read(settings);
      const lines = kind === "multi" ? value.split("\n") : [value];
      return element(
        "field",
        { var: name, type: TYPES[kind], label },
        ...lines.map((line) => element("value", {}, line)),
        ...options.map((option) => element("option", {}, element("value", {}, option))),
      );
    }),
  );
}

/**
 * Returns the settings after an owner has submitted a form. Fields that it lacks stay as they are,
 * and unknown ones are left out. Pure.
 */
export function changeSettings(
  settings: RoomSettings,
  form: XmlElement,
  bounds: SettingsBounds,
): RoomSettings | { readonly error: StanzaErrorCondition } {
  let changed: RoomSettings = { ...settings, isLocked: false };
  const seen = new Set<string>();
  for (const field of form.elements) {
    if (field.name !== "field") continue;
    const name = field.attribute("var") ?? "";
    const values = field.elements.filter((each) => each.name === "value").map(({ text }) => text);
    if (seen.has(name)) return { error: "bad-request" };
    seen.add(name);
    if (name === "FORM_TYPE" && values[0] !== ROOM_CONFIG) return { error: "bad-request" };
    const known = FIELDS.find((each) => each.name === name);
    if (known === undefined) continue;
    if (known.kind !== "multi" && values.length > 1) return { error: "bad-request" };
    const written = known.write(values.join("\n"), bounds);
    if (written === undefined) return { error: "not-acceptable" };
    changed = { ...changed, ...written };
  }
  // A room with a password needs one (§10.2).
  if (changed.passwordProtected && changed.password === "") return { error: "not-acceptable" };
  return changed;
}

/** Returns the features that disco#info lists for a room (XEP-0045 §6.4). */
export function settingsFeatures(settings: RoomSettings): readonly string[] {
  return [
    settings.passwordProtected ? "muc_passwordprotected" : "muc_unsecured",
    settings.public ? "muc_public" : "muc_hidden",
    settings.persistent ? "muc_persistent" : "muc_temporary",
    settings.membersOnly ? "muc_membersonly" : "muc_open",
    settings.moderated ? "muc_moderated" : "muc_unmoderated",
    settings.anonymous ? "muc_semianonymous" : "muc_nonanonymous",
  ];
}

/** Returns the form with which disco#info describes a room. */
export function infoForm(
  settings: RoomSettings,
  { occupants }: { readonly occupants: number },
): XmlElement {
  const fields: readonly (readonly [string, string])[] = [
    ["muc#roominfo_description", settings.description],
    ["muc#roominfo_occupants", `${occupants}`],
    ["muc#roominfo_subjectmod", settings.allowChangeSubject ? "1" : "0"],
    ["muc#roomconfig_changesubject", settings.allowChangeSubject ? "1" : "0"],
    ["muc#roomconfig_roomname", settings.title],
  ];
  return element(
    "x",
    { xmlns: DATA_FORM, type: "result" },
    element("field", { var: "FORM_TYPE", type: "hidden" }, element("value", {}, ROOM_INFO)),
    ...fields.map(([name, value]) => element("field", { var: name }, element("value", {}, value))),
  );
}

/** Returns the status codes that tell occupants of a change (XEP-0045 §10.2.1). Pure. */
export function changeCodes(before: RoomSettings, after: RoomSettings): readonly string[] {
  const codes: string[] = [];
  if (before.anonymous !== after.anonymous) codes.push(after.anonymous ? "173" : "172");
  const isOther = FIELDS.some(({ name, read }) =>
    name !== "muc#roomconfig_whois" && read(before) !== read(after)
  );
  if (isOther) codes.push("104");
  return codes;
}

/** Writes settings as a store keeps them. */
export function writeSettings(settings: RoomSettings): string {
  return JSON.stringify(settings);
}

/** Reads what `writeSettings` has written; `defaults` stand in for what an earlier version lacked. */
export function readSettings(text: string, defaults: RoomSettings): RoomSettings {
  const written: unknown = JSON.parse(text);
  if (typeof written !== "object" || written === null) return defaults;
  const found = new Map<string, unknown>(Object.entries(written));
  const read = Object.entries(defaults).map(([key, value]) => {
    const own = found.get(key);
    return [key, typeof own === typeof value ? own : value];
  });
  return Object.fromEntries(read) as unknown as RoomSettings; // each value has the type of its default
}

/** Names of the settings that are texts, and of those that are true or false. */
type TextSetting = "title" | "description" | "password";
type FlagSetting = {
  [Name in keyof RoomSettings]: RoomSettings[Name] extends boolean ? Name : never;
}[keyof RoomSettings];

function text(
  name: string,
  label: string,
  setting: TextSetting,
  longest: (bounds: SettingsBounds) => number,
): Field {
  return {
    name,
    label,
    kind: "text",
    read: (settings) => settings[setting],
    write: (value, bounds) =>
      [...value].length > longest(bounds) ? undefined : { [setting]: value },
  };
}

function flag(name: string, label: string, setting: FlagSetting): Field {
  return {
    name,
    label,
    kind: "boolean",
    read: (settings) => settings[setting] ? "1" : "0",
    write: (value) => {
      if (value === "1" || value === "true") return { [setting]: true };
      return value === "0" || value === "false" ? { [setting]: false } : undefined;
    },
  };
}
