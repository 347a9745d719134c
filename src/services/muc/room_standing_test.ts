import { deepStrictEqual, strictEqual } from "node:assert/strict";
import type { MucAffiliate } from "../../storage/mod.ts";
import {
  affiliationRefusal,
  entryRefusal,
  entryRole,
  roleAfter,
  roleRefusal,
} from "./room_standing.ts";
import type { Affiliation, Role, Standing } from "./room_standing.ts";
import {
  changeCodes,
  changeSettings,
  readSettings,
  settingsForm,
  writeSettings,
} from "./room_settings.ts";
import type { RoomSettings } from "./room_settings.ts";
import { element } from "../../xmpp/mod.ts";
import { chooseHistory } from "./history_request.ts";
import { DEFAULT_ROOM } from "./testing/muc_world.ts";

const SETTINGS: RoomSettings = { ...DEFAULT_ROOM, maxUsers: 2, isLocked: false, secret: "s" };
const BOUNDS = { maxRoomName: 5, maxRoomDescription: 10, maxUsers: 100 };

function standing(text: string): Standing {
  const [affiliation, role] = text.split("/") as [Affiliation, Role];
  return { affiliation, role };
}

Deno.test("entryRole() and roleAfter() follow affiliation and settings", () => {
  const silent = { ...SETTINGS, membersByDefault: false };
  const closed = { ...SETTINGS, membersOnly: true };
  deepStrictEqual(
    (["owner", "admin", "member", "none", "outcast"] as const).map((each) => [
      entryRole(each, SETTINGS),
      entryRole(each, silent),
      entryRole(each, { ...silent, moderated: false }),
    ]),
    [
      ["moderator", "moderator", "moderator"],
      ["moderator", "moderator", "moderator"],
      ["participant", "participant", "participant"],
      ["participant", "visitor", "participant"],
      ["none", "none", "none"],
    ],
  );
  strictEqual(roleAfter(standing("none/moderator"), "none", SETTINGS), "moderator");
  strictEqual(roleAfter(standing("admin/moderator"), "none", SETTINGS), "participant");
  strictEqual(roleAfter(standing("member/participant"), "none", closed), "none");
  strictEqual(roleAfter(standing("none/visitor"), "owner", SETTINGS), "moderator");
  strictEqual(roleAfter(standing("owner/moderator"), "outcast", SETTINGS), "none");
});

Deno.test("roleRefusal() lets moderators act on those below them alone", () => {
  const cases: readonly (readonly [string, string, Role, string | undefined])[] = [
    ["none/participant", "none/participant", "visitor", "forbidden"],
    ["none/moderator", "none/participant", "visitor", undefined],
    ["none/moderator", "member/participant", "none", undefined],
    ["none/moderator", "none/visitor", "participant", undefined],
    ["none/moderator", "none/participant", "moderator", "forbidden"],
    ["none/moderator", "none/moderator", "participant", "not-allowed"],
    ["none/moderator", "admin/moderator", "none", "not-allowed"],
    ["admin/moderator", "none/participant", "moderator", undefined],
    ["admin/moderator", "none/moderator", "participant", undefined],
    ["admin/moderator", "admin/moderator", "none", "not-allowed"],
    ["admin/moderator", "owner/moderator", "none", "not-allowed"],
    ["owner/moderator", "admin/moderator", "none", undefined],
    ["owner/moderator", "admin/moderator", "participant", "not-allowed"],
    ["owner/moderator", "owner/moderator", "none", "not-allowed"],
  ];
  for (const [actor, target, role, expected] of cases) {
    strictEqual(
      roleRefusal(standing(actor), standing(target), role),
      expected,
      `${actor} ${target}`,
    );
  }
});

Deno.test("affiliationRefusal() lets admins decide on members, and owners on everybody", () => {
  const affiliates: readonly MucAffiliate[] = ([
    ["o@x", "owner"],
    ["p@x", "owner"],
    ["a@x", "admin"],
    ["m@x", "member"],
  ] as const).map(([jid, affiliation]) => ({ jid, affiliation, reason: "" }));
  const cases: readonly (readonly [string, string, Affiliation, string | undefined])[] = [
    ["m@x", "n@x", "member", "forbidden"],
    ["n@x", "n@x", "owner", "forbidden"],
    ["a@x", "n@x", "member", undefined],
    ["a@x", "m@x", "outcast", undefined],
    ["a@x", "n@x", "admin", "forbidden"],
    ["a@x", "o@x", "none", "not-allowed"],
    ["a@x", "a@x", "none", "not-allowed"],
    ["a@x", "a@x", "outcast", "conflict"],
    ["o@x", "a@x", "none", undefined],
    ["o@x", "n@x", "owner", undefined],
    ["o@x", "p@x", "none", undefined],
    ["o@x", "o@x", "member", undefined],
  ];
  for (const [actor, jid, affiliation, expected] of cases) {
    const wishes = [{ jid, affiliation, reason: "" }];
    strictEqual(affiliationRefusal(actor, wishes, affiliates), expected, `${actor} ${jid}`);
  }
  const both = ["o@x", "p@x"].map((jid) => ({ jid, affiliation: "none" as const, reason: "" }));
  strictEqual(affiliationRefusal("o@x", both, affiliates), "conflict", "the last owner stays");
});

Deno.test("entryRefusal() names the first reason to keep somebody out", () => {
  const enter = (affiliation: Affiliation, settings: Partial<RoomSettings>, password?: string) =>
    entryRefusal(affiliation, { ...SETTINGS, ...settings }, { password, occupants: 1 });
  const secret = { passwordProtected: true, password: "x" };
  strictEqual(enter("none", {}), undefined);
  strictEqual(enter("outcast", {}), "forbidden");
  strictEqual(enter("admin", { isLocked: true }), "item-not-found");
  strictEqual(enter("owner", { isLocked: true }), undefined);
  strictEqual(enter("none", { membersOnly: true }), "registration-required");
  strictEqual(enter("member", { membersOnly: true }), undefined);
  strictEqual(enter("none", secret), "not-authorized");
  strictEqual(enter("none", secret, "x"), undefined);
  strictEqual(enter("none", { maxUsers: 1 }), "service-unavailable");
  strictEqual(enter("admin", { maxUsers: 1 }), undefined);
});

Deno.test("changeSettings() takes a form, and refuses values that a field cannot have", () => {
  const form = (...fields: readonly (readonly [string, string])[]) =>
    element(
      "x",
      { type: "submit" },
      ...fields.map(([name, value]) =>
        element("field", { var: name }, element("value", {}, value))
      ),
    );
  const changed = changeSettings(
    { ...SETTINGS, isLocked: true },
    form(
      ["muc#roomconfig_roomname", "Cave"],
      ["muc#roomconfig_whois", "anyone"],
      ["muc#roomconfig_maxusers", "5000"],
      ["muc#roomconfig_membersonly", "true"],
      ["something", "else"],
    ),
    BOUNDS,
  );
  const expected = {
    ...SETTINGS,
    title: "Cave",
    anonymous: false,
    maxUsers: 100,
    membersOnly: true,
  };
  deepStrictEqual(changed, expected);
  deepStrictEqual(changeCodes(SETTINGS, expected), ["172", "104"]);
  deepStrictEqual(changeCodes(SETTINGS, SETTINGS), []);
  for (
    const [name, value, error] of [
      ["muc#roomconfig_roomname", "too long", "not-acceptable"],
      ["muc#roomconfig_whois", "nobody", "not-acceptable"],
      ["muc#roomconfig_maxusers", "-1", "not-acceptable"],
      ["muc#roomconfig_publicroom", "perhaps", "not-acceptable"],
      ["muc#roomconfig_passwordprotectedroom", "1", "not-acceptable"],
      ["FORM_TYPE", "another", "bad-request"],
    ] as const
  ) deepStrictEqual(changeSettings(SETTINGS, form([name, value]), BOUNDS), { error }, name);
  const twice = form(["members_by_default", "1"], ["members_by_default", "1"]);
  deepStrictEqual(changeSettings(SETTINGS, twice, BOUNDS), { error: "bad-request" });
  // What the owner is shown can be sent back as it is.
  const shown = settingsForm(expected);
  deepStrictEqual(
    changeSettings(expected, shown.withAttributes({ type: "submit" }), BOUNDS),
    expected,
  );
});

Deno.test("readSettings() reads what was written, and fills in what an earlier version lacked", () => {
  const written = { ...SETTINGS, title: "Cave" };
  deepStrictEqual(readSettings(writeSettings(written), SETTINGS), written);
  deepStrictEqual(readSettings('{"title":"Cave","maxUsers":"many"}', SETTINGS), written);
});

Deno.test("chooseHistory() takes the newest messages that fit a wish", () => {
  const messages = [1, 2, 3, 4].map((number) => ({
    number,
    id: `${number}`,
    sentAtMs: number * 1_000,
    stanza: "12345",
  }));
  const numbers = (wish: Parameters<typeof chooseHistory>[1]) =>
    chooseHistory(messages, wish).map(({ number }) => number);
  deepStrictEqual(numbers({}), [1, 2, 3, 4]);
  deepStrictEqual(numbers({ maxStanzas: 2 }), [3, 4]);
  deepStrictEqual(numbers({ maxStanzas: 0 }), []);
  deepStrictEqual(numbers({ maxChars: 11 }), [3, 4]);
  deepStrictEqual(numbers({ sinceMs: 3_000 }), [3, 4]);
});
