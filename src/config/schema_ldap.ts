import { z } from "zod";
import { filterProblem, VCARD_FIELDS } from "../storage/mod.ts";
import { TLS_FILES } from "./schema_tls.ts";
import { absent, integer, milliseconds, seconds, secret, text, withWords } from "./schema_words.ts";

const ATTRIBUTE = () =>
  withWords(z.string().regex(/^[A-Za-z][A-Za-z0-9-]*$/), { allowed: "the name of an attribute" });

const FILTER = () =>
  withWords(z.string().refine((filter) => filter === "" || filterProblem(filter) === undefined), {
    allowed: 'an LDAP filter such as "(objectClass=person)"',
  });

const FORMAT = () =>
  withWords(z.string().regex(/^[^%]*%u[^%]*$/), { allowed: "a text with %u in it once" });

const EXPRESSION = withWords(z.string().refine(isExpression), {
  allowed: "a regular expression with a group, or an empty string",
});

const SERVER = withWords(z.string().regex(/^[^\s/#@[\]]+$/), {
  allowed: "a host name or an IP address",
});

const DEREF = z.enum(["never", "always", "finding", "searching"]).default("never").describe(
  "aliases that searches follow",
);

const POOL_TAG = absent(
  text(),
  '`"default"`',
  "pool for searches, by its name under `outgoing_pools.ldap`",
);

const BASE = "entry below which accounts are searched";

const UIDS = z.array(z.strictObject({
  attr: ATTRIBUTE().describe("attribute that holds the name of an account"),
  format: FORMAT().default("%u").describe("its value, with `%u` for the localpart of the account"),
})).min(1);

const CONNECTION = z.strictObject({
  servers: withWords(z.array(SERVER).min(1), { allowed: "a list of host names or IP addresses" })
    .default(["localhost"]).describe(
      "servers with the same content; the first one that answers is used",
    ),
  port: absent(
    z.int().min(1).max(65535),
    "636 for `tls`, otherwise 389",
    "TCP port of the servers",
  ),
  rootdn: z.string().default("").describe("entry that logs in for searches; empty: nobody does"),
  password: secret().optional().describe("its password; required with `rootdn`"),
  encrypt: absent(
    z.enum(["none", "tls", "starttls"]),
    '`"tls"`, but `"none"` for servers on loopback',
    "encryption of the connections: from the first byte, by StartTLS, or none at all, which shows " +
      "the network every password that people log in with",
  ),
  tls: TLS_FILES.prefault({}).describe(
    "the servers' certificates, each of which must name its server",
  ),
  connect_interval: milliseconds(100).default(10_000).describe(
    "longest pause in milliseconds between attempts to connect to servers that cannot be reached",
  ),
  connect_timeout: milliseconds(100).default(5000).describe(
    "milliseconds that opening a connection may take, its login included",
  ),
  query_timeout: milliseconds(100).default(5000).describe(
    "milliseconds that a server may take for a request; then its connection is replaced",
  ),
});

/** `outgoing_pools.ldap.TAG`. */
export const LDAP_POOL = z.strictObject({
  workers: integer(1, 1000).default(10).describe(
    "most connections at once for searches, and as many for the logins of people",
  ),
  max_waiting: integer(0, 1_000_000).default(1000).describe(
    "requests that may wait for a connection; one more fails at once",
  ),
  call_timeout: milliseconds(100).default(5000).describe(
    "milliseconds that a request waits for a connection before it fails",
  ),
  connection: CONNECTION.prefault({}).describe("the servers, and how to log in there"),
});

/** `auth.ldap`. */
export const AUTH_LDAP = z.strictObject({
  pool_tag: POOL_TAG,
  bind_pool_tag: absent(
    text(),
    "`bind` if there is such a pool, otherwise that of `pool_tag`",
    "pool whose servers check passwords, by connections of their own",
  ),
  base: text().describe(BASE),
  uids: UIDS.default([{ attr: "uid", format: "%u" }]).describe(
    "attributes, any of which may contain the localpart of an account",
  ),
  filter: FILTER().default("").describe(
    "further condition on accounts; the condition on their names is added to it",
  ),
  local_filter: z.strictObject({
    operation: z.enum(["equal", "notequal"]).describe(
      "`equal`: one of the values; `notequal`: none",
    ),
    attribute: ATTRIBUTE().describe("attribute that is compared"),
    values: z.array(text()).min(1).describe("values, compared exactly"),
  }).optional().describe("condition that is checked by Causeway instead of by the server"),
  deref: DEREF,
  id_attribute: ATTRIBUTE().default("entryUUID").describe(
    "attribute that tells an account from an earlier one of the same name, whose archive it does " +
      "not get: `objectGUID` in Active Directory, `nsUniqueId` in 389 Directory Server",
  ),
});

/** `mod_vcard.ldap`. */
export const VCARD_LDAP = z.strictObject({
  pool_tag: absent(text(), "as under `auth.ldap`", "pool for searches"),
  base: absent(text(), "as under `auth.ldap`", BASE),
  uids: absent(UIDS, "as under `auth.ldap`", "attributes that hold the localpart of an account"),
  filter: absent(FILTER(), "as under `auth.ldap`", "further condition on accounts"),
  deref: absent(
    z.enum(["never", "always", "finding", "searching"]),
    "as under `auth.ldap`",
    "aliases that searches follow",
  ),
  vcard_map: absent(
    z.array(z.strictObject({
      vcard_field: z.enum(VCARD_FIELDS).describe("field of the vCard"),
      ldap_pattern: withWords(z.string().regex(/^([^%]|%[sud])+$/), {
        allowed: "a text in which % stands before s, u or d only",
      }).default("%s").describe(
        "text of the field: `%s` is the value of the attribute, `%u` the localpart, `%d` the host",
      ),
      ldap_field: absent(ATTRIBUTE(), "none", "attribute; required for `%s` and for `PHOTO`"),
    })).min(1),
    "the attributes of `inetOrgPerson`",
    "sources of the fields; of several sources of one field, the first that has a value counts",
  ),
});

/** `mod_shared_roster_ldap`. */
export const MOD_SHARED_ROSTER_LDAP = z.strictObject({
  pool_tag: POOL_TAG,
  base: absent(text(), "as under `auth.ldap`", "entry below which groups and people are searched"),
  deref: DEREF,
  groupattr: ATTRIBUTE().default("cn").describe("attribute with the name of a group"),
  groupdesc: absent(
    ATTRIBUTE(),
    "`groupattr`",
    "attribute with the name of a group as people see it",
  ),
  userdesc: ATTRIBUTE().default("cn").describe(
    "attribute with the name of a person as people see it",
  ),
  useruid: ATTRIBUTE().default("cn").describe("attribute with the localpart of a person"),
  memberattr: ATTRIBUTE().default("memberUid").describe("attribute with the members of a group"),
  memberattr_format: FORMAT().default("%u").describe(
    "value of a member, with `%u` for its id, such as `uid=%u,ou=people,dc=example,dc=com`",
  ),
  memberattr_format_re: EXPRESSION.default("").describe(
    "regular expression whose first group is the id in a member's value, instead of the format",
  ),
  auth_check: z.boolean().default(true).describe("leaves out people who have no account"),
  own_roster: z.boolean().default(true).describe(
    "shows the contacts too that people add themselves; false: they cannot add any",
  ),
  user_cache_validity: seconds().default(300).describe(
    "seconds for which the groups that an account sees are kept",
  ),
  group_cache_validity: seconds().default(300).describe(
    "seconds for which the members of a group are kept",
  ),
  user_cache_size: integer(1, 1_000_000).default(1000).describe(
    "accounts whose groups are kept",
  ),
  group_cache_size: integer(1, 100_000).default(1000).describe(
    "groups whose members are kept",
  ),
  rfilter: FILTER().default("").describe(
    "filter of the groups that an account (`%u`) sees; empty: the groups that it is a member of",
  ),
  gfilter: FILTER().default("").describe(
    "filter of the entries of a group (`%g`); empty: those whose `groupattr` it is",
  ),
  ufilter: FILTER().default("").describe(
    "filter of the person with an id (`%u`); empty: the one whose `useruid` it is",
  ),
  filter: FILTER().default("").describe("further condition on groups and people"),
});

function isExpression(text: string): boolean {
  try {
    new RegExp(text, "iu");
    return text === "" || /\((?!\?)/.test(text);
  } catch {
    return false;
  }
}
