import { deepEqual } from "node:assert/strict";
import { buildStanza, element, parseJid } from "../xmpp/mod.ts";
import type { Stanza } from "../xmpp/mod.ts";
import { noteLogout } from "./node_registries.ts";

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
