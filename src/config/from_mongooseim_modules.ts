import type { DataKind } from "../storage/mod.ts";
import { CATALOGUE } from "../storage/mod.ts";
import { translateRiakNames } from "./from_mongooseim_pools.ts";
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
    "full_text_search",
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

/** Kind of data that a module keeps. */
const KINDS: Readonly<Record<string, DataKind>> = {
  mod_last: "last",
  mod_mam: "mam",
  mod_muc_light: "muc_light",
  mod_muc: "muc",
  mod_offline: "offline",
  mod_privacy: "privacy",
  mod_private: "private",
  mod_pubsub: "pep",
  mod_roster: "roster",
  mod_vcard: "vcard",
};

/** Bucket types and indices of a module in Riak, as MongooseIM names them unless told otherwise. */
const RIAK_NAMES: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  mod_last: { bucket_type: "last" },
  mod_mam: { bucket_type: "mam_yz", search_index: "mam" },
  mod_offline: { bucket_type: "offline" },
  mod_privacy: {
    defaults_bucket_type: "privacy_defaults",
    names_bucket_type: "privacy_lists_names",
    bucket_type: "privacy_lists",
  },
  mod_private: { bucket_type: "private" },
  mod_roster: { bucket_type: "rosters", version_bucket_type: "roster_versions" },
  mod_vcard: { bucket_type: "vcard", search_index: "vcard" },
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
    translateBackend(module, translated, KINDS[name]);
    translateRiakNames(module.table("riak"), RIAK_NAMES[name] ?? {});
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
  const shared = source.table("mod_shared_roster_ldap");
  if (shared !== undefined) {
    modules["mod_shared_roster_ldap"] = sameOrPrefixed(shared, SHARED_ROSTER_OPTIONS);
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
  mod_disco(_module, into) {
    into["users_can_see_hidden_services"] ??= true; // their default
  },
  mod_mam(module, into) {
    const pm = module.table("pm");
    if (pm !== undefined) {
      into["pm"] = defined({ archive_groupchats: pm.boolean("archive_groupchats") });
      for (const key of ["archive_chat_markers", "full_text_search", "no_stanzaid_element"]) {
        const own = pm.boolean(key);
        if (own !== undefined) into[key] = own;
      }
      if (pm.boolean("same_mam_id_for_peers") === false) {
        pm.note("same_mam_id_for_peers", "a message has one id in the archives of both sides here");
      }
      const own: Table = defined({ backend: pm.text("backend") });
      if (own["backend"] !== undefined) {
        translateBackend(pm, own, "mam");
        into["backend"] = own["backend"];
      }
    } else {
      // Without a section, MongooseIM archives no messages of people.
      into["pm"] = false;
    }
    into["backend"] ??= "rdbms"; // their default
    for (const table of pm === undefined ? [module] : [module, pm]) {
      table.ignore(...TUNING_OF_ARCHIVES);
      table.note("user_prefs_store", "preferences are always kept, and lie with the archives");
      table.ignore("user_prefs_store");
      for (const key of ["is_archivable_message", "send_message"]) {
        if (table.text(key) !== "mod_mam_utils") {
          table.lost(key, "not translated: no module in Erlang");
        }
      }
      if (table.boolean("message_retraction") === true) {
        table.lost("message_retraction", "not translated: messages stay as they were stored");
      }
    }
    const muc = module.table("muc");
    // There, rooms have archives only if this table is written.
    into["muc"] = muc === undefined ? false : defined({
      default_result_limit: muc.value("default_result_limit"),
      max_result_limit: muc.value("max_result_limit"),
      archive_chat_markers: muc.value("archive_chat_markers"),
    });
    muc?.ignore("host"); // all rooms have archives
    if (muc?.text("backend") !== into["backend"]) {
      muc?.lost("backend", "not translated: the archives of rooms lie with those of people");
    }
  },
  mod_muc_light(module, into) {
    module.ignore("cache_affs"); // rooms are read from their row
    for (const key of ["rooms_in_rosters", "allow_multiple_owners", "legacy_mode"]) {
      if (module.boolean(key) === true) {
        module.lost(key, "not translated: Causeway has no such option");
      }
    }
    if (module.boolean("promote_on_last_owner_leave") === false) {
      module.lost(
        "promote_on_last_owner_leave",
        "not translated: the occupant who has been there longest becomes the owner",
      );
    }
    const fields = module.tables("config_schema");
    if (fields.length > 0) into["config_schema"] = fields.flatMap(roomField);
  },
  mod_muc(module, into) {
    module.ignore(
      "hibernate_timeout",
      "hibernated_room_check_interval",
      "hibernated_room_timeout",
      "load_permanent_rooms_at_startup",
      "online_backend",
      "cache_affs",
    );
    for (
      const key of [
        "min_message_interval",
        "min_presence_interval",
        "room_shaper",
        "user_message_shaper",
        "user_presence_shaper",
      ]
    ) module.lost(key, "not translated: see max_message_rate of mod_muc");
    // Before version 5 the option had another name.
    const room = module.table("default_room") ?? module.table("default_room_options");
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
    const ldap = sameOrPrefixed(module, VCARD_LDAP_OPTIONS);
    if (into["backend"] === "ldap") into["ldap"] = ldap;
    else if (module.has("ldap")) module.ignore("ldap"); // it is for another backend
  },
  mod_roster(module) {
    module.ignore("store_current_id");
  },
};

/** Options of archives about how MongooseIM writes. Nothing is lost without them. */
const TUNING_OF_ARCHIVES: readonly string[] = [
  "async_writer",
  "cache",
  "cache_users",
  "db_jid_format",
  "db_message_format",
  "delete_domain_limit",
  "enforce_simple_queries",
  "flush_interval",
  "max_batch_size",
  "rdbms_message_format",
  "simple",
];

const VCARD_LDAP_OPTIONS = ["pool_tag", "base", "uids", "filter", "deref", "vcard_map"];

const SHARED_ROSTER_OPTIONS = [
  "pool_tag",
  "base",
  "deref",
  "groupattr",
  "groupdesc",
  "userdesc",
  "useruid",
  "memberattr",
  "memberattr_format",
  "memberattr_format_re",
  "auth_check",
  "user_cache_validity",
  "group_cache_validity",
  "user_cache_size",
  "group_cache_size",
  "rfilter",
  "gfilter",
  "ufilter",
  "filter",
];

/**
 * Reads options that have the same meaning here, in each spelling: `base` in the module, `base` in its
 * table `ldap`, and the older `ldap_base`.
 */
function sameOrPrefixed(module: ForeignTable, options: readonly string[]): Table {
  const ldap = module.table("ldap");
  return defined(
    Object.fromEntries(
      options.map((
        key,
      ) => [key, ldap?.value(key) ?? module.value(`ldap_${key}`) ?? module.value(key)]),
    ),
  );
}

/** Translates a field of the configuration of MUC Light rooms, whose values are texts here. */
function roomField(field: ForeignTable): readonly Table[] {
  const name = field.text("field");
  field.ignore("internal_key");
  const keys = ["string_value", "integer_value", "float_value", "boolean_value"];
  const key = keys.find((each) => field.has(each));
  const value = key === undefined ? undefined : field.value(key);
  if (name === undefined || key === undefined) return [];
  if (name === "all_can_configure" || name === "all_can_invite") {
    field.lost(key, "not translated: it is the same for all rooms here");
    return [];
  }
  if (key !== "string_value") field.note(key, "the values of fields are texts here");
  return [{ field: name, string_value: String(value) }];
}

/** Takes a backend over that may hold a kind of data here. */
function translateBackend(module: ForeignTable, into: Table, kind: DataKind | undefined): void {
  const backend = into["backend"];
  if (backend === undefined) return;
  const row = CATALOGUE.find(({ id, poolKind }) => id === backend && poolKind !== undefined);
  if (kind !== undefined && row?.kinds.includes(kind) === true) return;
  delete into["backend"];
  if (backend === "mnesia") {
    module.note("backend", "data in Mnesia stays there: move it with causeway import");
  } else {module.lost(
      "backend",
      `not translated: no backend ${JSON.stringify(backend)} for it here`,
    );}
}
