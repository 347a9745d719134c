import assert from "node:assert/strict";
import { SlixmppClient } from "../clients/mod.ts";
import { ConsoleClient } from "../console/mod.ts";
import { consoleAccountOf } from "./_console_account.ts";
import { logInFully } from "./_contacts.ts";
import { LibraryPerson, SlixmppPerson } from "./_library_person.ts";
import type { Person } from "./_person.ts";
import { ProfanityPerson } from "./_profanity_person.ts";
import type { Stage } from "./_stage.ts";

/** Clients of people. */
export type ClientKind = "slixmpp" | "@xmpp" | "profanity";

/** Logs somebody in with a client of a kind, with the resource `as`. The stage logs them out. */
export async function enterPerson(
  stage: Stage,
  { kind, who, at, as: resource }: {
    readonly kind: ClientKind;
    readonly who: string;
    readonly at: string;
    readonly as: string;
  },
): Promise<Person> {
  if (kind === "profanity") {
    const account = consoleAccountOf(stage.cluster, { who, at, resource });
    return new ProfanityPerson(stage.use(await ConsoleClient.connect("profanity", account)));
  }
  const options = { library: kind, resource, streamManagement: true }; // as clients of people have it
  const client = await stage.enter(who, at, options);
  await logInFully(client);
  if (kind === "@xmpp") return new LibraryPerson(client);
  assert.ok(client instanceof SlixmppClient);
  await client.task("fetch_roster");
  return new SlixmppPerson(client);
}
