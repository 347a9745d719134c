import type { ClusterUser, UserImport } from "../cluster/mod.ts";
import { PROJECT_DIRECTORY, runProgram } from "../process/mod.ts";

/**
 * Makes the function that adds a cluster's accounts to its database. Those of `friends` are one
 * another's contacts, with subscriptions both ways. The accounts move in as from another server
 * (XEP-0227).
 */
export function befriendedUsers(
  friends: readonly ClusterUser[],
): (users: UserImport) => Promise<void> {
  return async ({ configFile, listFile, command }) => {
    const lines = (await Deno.readTextFile(listFile)).trim().split("\n");
    const users = lines.map((line): { jid: string; password: string } => JSON.parse(line));
    const names = new Set(friends.map(({ localpart }) => localpart));
    const jids = users.map(({ jid }) => jid).filter((jid) => names.has(localpartOf(jid)));
    const pieFile = `${listFile}.xml`;
    await Deno.writeTextFile(pieFile, pieOf(users, jids), { mode: 0o600 });
    const { program, args } = command([
      "import",
      pieFile,
      "--config",
      configFile,
      "--state",
      `${listFile}.state`,
      "--report",
      `${listFile}.report`,
      "--json",
    ]);
    const outcome = await runProgram(program, args, {
      cwd: PROJECT_DIRECTORY,
      env: { NO_COLOR: "1" },
    });
    const counts = outcome?.code === 0 ? JSON.parse(outcome.output) : {};
    if (counts.added !== users.length) {
      throw new Error(`Cannot import the cluster's accounts:\n${outcome?.errors.trim()}`);
    }
  };
}

function pieOf(
  users: readonly { readonly jid: string; readonly password: string }[],
  friends: readonly string[],
): string {
  const elements = users.map(({ jid, password }) => {
    const contacts = friends.includes(jid) ? friends.filter((friend) => friend !== jid) : [];
    const items = contacts.map((contact) => `<item jid='${contact}' subscription='both'/>`);
    return `<user name='${localpartOf(jid)}' password='${password}'>` +
      `<query xmlns='jabber:iq:roster'>${items.join("")}</query></user>`;
  });
  const [domain] = users.map(({ jid }) => jid.slice(jid.indexOf("@") + 1));
  return `<server-data xmlns='urn:xmpp:pie:0'><host jid='${domain}'>${elements.join("")}` +
    `</host></server-data>\n`;
}

function localpartOf(jid: string): string {
  return jid.slice(0, jid.indexOf("@"));
}
