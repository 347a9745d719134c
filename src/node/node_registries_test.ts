import { deepEqual } from "node:assert/strict";
import { buildStanza, element, parseJid } from "../xmpp/mod.ts";
import type { FullJid, LocalSession, SessionRegistry, Stanza } from "../xmpp/mod.ts";
import type { Config } from "../config/mod.ts";
import { makeSessions, noteLogout } from "./node_registries.ts";
import type { RegistryListeners } from "./node_registries.ts";

Deno.test("noteLogout() notes the ends of sessions, but of none that is invisible", () => {
  const noted: string[] = [];
  const parts = {
    privacy: {
      isInvisible: ({ resourcepart }: { resourcepart: string }) => resourcepart === "spy",
    },
    logouts: { loggedOut: ({ from }: Stanza) => void noted.push(from.bare.text) },
  } as unknown as Parameters<typeof noteLogout>[2]; // no other member is used
  const end = (jid: string, type?: string) => {
    const from = parseJid(jid);
    noteLogout(buildStanza(element("presence", { type }), { from, to: from.bare }), "1", parts);
  };
  end("alice@example.com/phone", "unavailable");
  end("bob@example.com/spy", "unavailable");
  end("carol@example.com/phone");
  deepEqual(noted, ["alice@example.com"]);
});

Deno.test("makeSessions() tells the order of rooms' messages of sessions that leave, and of the last one", async () => {
  const told: string[] = [];
  const nothing = { opened() {}, closed() {}, gone() {}, opening: () => Promise.resolve() };
  const parts = {
    pep: nothing,
    pressure: nothing,
    rosters: nothing,
    privacy: nothing,
    offline: nothing,
    router: { revealed() {} },
    table: {
      sessionOpened: () => Promise.resolve(),
      sessionClosed: () => Promise.resolve(),
      sessionsElsewhere: () => 0,
    },
    copyOrder: {
      leaving: ({ text }: FullJid, isLast: boolean) => void told.push(`${text} leaves, ${isLast}`),
      gone: ({ text }: FullJid) => void told.push(`${text} is gone`),
    },
    get sessions(): SessionRegistry {
      return sessions;
    },
  };
  const config = {} as Config; // it has no bounds of its own
  const sessions = makeSessions(config, parts as unknown as RegistryListeners);
  const [phone, desk] = ["phone", "desk"].map((resource) => ({
    jid: parseJid(`bob@example.com/${resource}`) as FullJid,
    isOpen: true,
    isManaged: true,
    opened() {},
    giveBack() {},
  } as LocalSession));
  for (const session of [phone!, desk!]) deepEqual(await sessions.open(session), "opened");
  for (const session of [phone!, desk!]) {
    sessions.leaving(session);
    await sessions.close(session);
  }
  deepEqual(told, [
    "bob@example.com/phone leaves, false",
    "bob@example.com/desk leaves, true",
    "bob@example.com is gone",
  ]);
});
