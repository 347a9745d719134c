/**
 * Columns of MongooseIM's tables of accounts, by table: those that are read, of types that all engines
 * have.
 */
export const ACCOUNT_TABLES: Readonly<Record<string, string>> = {
  users: "server varchar(250), username varchar(250), password text, pass_details text",
  rosterusers: "server varchar(250), username varchar(250), jid text, nick text, " +
    "subscription char(1), ask char(1), askmessage text",
  rostergroups: "server varchar(250), username varchar(250), jid text, grp text",
  vcard: "server varchar(250), username varchar(150), vcard text",
  private_storage: "server varchar(250), username varchar(250), namespace varchar(250), data text",
  last: "server varchar(250), username varchar(250), seconds integer, state text",
  offline_message: "id integer, timestamp bigint, expire bigint, server varchar(250), " +
    "username varchar(250), from_jid varchar(250), packet text",
  privacy_list: "server varchar(250), username varchar(250), name varchar(250), id integer",
  privacy_default_list: "server varchar(250), username varchar(250), name varchar(250)",
  privacy_list_data: "id bigint, t char(1), value text, action char(1), ord numeric, " +
    "match_all boolean, match_iq boolean, match_message boolean, match_presence_in boolean, " +
    "match_presence_out boolean",
  mam_server_user: "id integer, server varchar(250), user_name varchar(250)",
};
