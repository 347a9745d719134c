import { defined, type ForeignTable, type Table } from "./mongooseim_source.ts";

/** Options that have the same name, values and meaning at both servers, by module. */
const SAME_OPTIONS: Readonly<Record<string, readonly string[]>> = {
  mod_carboncopy: [],
  mod_blocking: [],
  mod_time: [],
  mod_ping: [],
  mod_version: [],
  mod_disco: ["users_can_see_hidden_services"],
  mod_last: ["backend"],
  mod_mam: [
    "backend",
    "default_result_limit",
    "max_result_limit",
    "archive_chat_markers",
    "no_stanzaid_element",
  ],
  mod_muc_light: [
    "backend",
    "host",
    "equal_occupants",
    "all_can_invite",
    "all_can_configure",
    "blocking",
    "max_occupants",
    "rooms_per_user",
    "rooms_per_page",
    "config_schema",
  ],
  mod_muc: [
    "backend",
    "host",
    "history_size",
    "max_users",
    "max_user_conferences",
    "max_room_id",
    "max_room_name",
    "max_room_desc",
  ],
  mod_offline: ["backend"],
  mod_privacy: ["backend"],
  mod_private: ["backend"],
  mod_pubsub: ["backend"],
  mod_register: ["ip_access", "registration_timeout", "password_strength"],
  mod_roster: ["backend", "versioning"],
  mod_stream_management: ["ack_freq", "resume_timeout"],
  mod_vcard: ["backend", "matches"],
};

/** Options of new rooms that have the same name, values and meaning at both servers. */
const SAME_ROOM_OPTIONS: readonly string[] = [
  "title",
  "description",
  "persistent",
  "public",
  "moderated",
  "members_only",
  "members_by_default",
  "allow_change_subj",
  "allow_user_invites",
  "allow_private_messages",
  "password_protected",
  "password",
  "anonymous",
  "max_users",
];

/** Modules that run here without being named, and that MongooseIM runs only when they are. */
const ON_BY_DEFAULT = [
  "mod_stream_management",
  "mod_disco",
  "mod_carboncopy",
  "mod_ping",
  "mod_time",
  "mod_version",
  "mod_last",
  "mod_blocking",
  "mod_privacy",
  "mod_private",
  "mod_pubsub",
  "mod_roster",
  "mod_register",
  "mod_vcard",
] as const;

/** Modules whose work Causeway does without an option. */
const BUILT_IN = ["mod_presence", "mod_caps", "mod_csi", "mod_cache_users"];

const NOT_A_NUMBER = "not translated: Causeway needs a number";

/** Translates `[modules]`, apart from `mod_global_distrib`. */
export function translateModules(source: ForeignTable): Table {
  source.ignore(...BUILT_IN);
  const modules: Table = {};
  for (const name of ON_BY_DEFAULT) if (!source.has(name)) modules[name] = false;
  if (!source.has("mod_mam") && !source.has("mod_mam_meta")) modules["mod_mam"] = false;
  for (const [name, options] of Object.entries(SAME_OPTIONS)) {
    // Before MongooseIM 5.1 the archives were those of another module.
    const module = source.table(name) ??
      (name === "mod_mam" ? source.table("mod_mam_meta") : undefined);
    if (module === undefined) continue;
    const translated: Table = defined(
      Object.fromEntries(options.map((key) => [key, module.value(key)])),
    );
    module.ignore("iqdisc"); // a matter of Erlang processes
    translateBackend(module, translated);
    for (
      const key of [
        "max_occupants",
        "rooms_per_user",
        "rooms_per_page",
        "registration_timeout",
        "matches",
        "max_room_id",
        "max_room_name",
        "max_room_desc",
      ]
    ) {
      if (translated[key] === "infinity") {
        module.lost(key, NOT_A_NUMBER);
        delete translated[key];
      }
    }
    OWN_OPTIONS[name]?.(module, translated);
    modules[name] = translated;
  }
  if (modules["mod_offline"] !== undefined) {
    delete modules["mod_offline"];
    source.lost(
      "mod_offline",
      "not translated: messages cannot wait on the global host; mod_mam keeps them for people " +
        "who are offline, and host_config may turn mod_offline on for other hosts",
    );
  }
  return modules;
}

const OWN_OPTIONS: Readonly<Record<string, (module: ForeignTable, into: Table) => void>> = {
  mod_mam(module, into) {
    const pm = module.table("pm");
    if (pm !== undefined) {
      into["pm"] = defined({ archive_groupchats: pm.boolean("archive_groupchats") });
    }
    module.lost("muc", "not translated: rooms have no archive");
  },
  mod_muc(module, into) {
    const room = module.table("default_room");
    if (room === undefined) return;
    into["default_room"] = defined(
      Object.fromEntries(SAME_ROOM_OPTIONS.map((key) => [key, room.value(key)])),
    );
  },
  mod_register(module, into) {
    into["allow_registration"] = true; // the purpose of the module there
    if (into["password_strength"] !== undefined && typeof into["password_strength"] !== "number") {
      delete into["password_strength"];
      module.lost("password_strength", NOT_A_NUMBER);
    }
  },
  mod_stream_management(module, into) {
    if (module.boolean("buffer") === false) {
      module.lost("buffer", "not translated: unacknowledged stanzas are always kept");
    }
    const max = module.value("buffer_max");
    if (typeof max === "number") into["buffer_max"] = max;
    else if (max !== undefined) module.lost("buffer_max", NOT_A_NUMBER);
    if (typeof into["ack_freq"] !== "number" && into["ack_freq"] !== undefined) {
      delete into["ack_freq"];
      module.lost("ack_freq", NOT_A_NUMBER);
    }
    const stale = module.table("stale_h");
    if (stale !== undefined) {
      stale.ignore("repeat_after"); // how often the old ones are looked for
      into["stale_h"] = defined({
        enabled: stale.boolean("enabled") ?? false,
        geriatric: stale.integer("geriatric"),
      });
    }
    module.ignore("backend");
  },
  mod_vcard(module, into) {
    if (module.has("search")) into["search"] = module.boolean("search");
  },
  mod_roster(module) {
    module.ignore("store_current_id");
  },
};

function translateBackend(module: ForeignTable, into: Table): void {
  const backend = into["backend"];
  if (backend === undefined || backend === "rdbms") return;
  delete into["backend"];
  if (backend === "mnesia") {
    module.note("backend", "data in Mnesia stays there: move it with causeway import");
  } else module.lost("backend", `not translated: no backend ${JSON.stringify(backend)} here`);
}
