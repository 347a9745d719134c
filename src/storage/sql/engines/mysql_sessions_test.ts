import assert from "node:assert/strict";
import { conformanceArchived } from "../../testing/archive_store_conformance.ts";
import { conformanceCredentials, keysOf } from "../../testing/user_store_conformance.ts";
import { preparedDatabase } from "../testing/databases.ts";
import { SERVER_KINDS, serverDuringTests } from "../testing/servers.ts";
import { sqlServerDatabase } from "../sql_server.ts";
import { SqlStores } from "../sql_stores.ts";

const NOW_MS = 1_700_000_000_000;
for (const kind of SERVER_KINDS.filter(({ driver }) => driver === "mysql")) {
  const server = serverDuringTests(kind);

  Deno.test(`${kind.name}: what a server gives to new sessions changes nothing of ours`, async () => {
    const defaults = [
      ["autocommit", "0", "1"],
      ["completion_type", "'CHAIN'", "'NO_CHAIN'"],
      ["sql_safe_updates", "1", "0"],
      ["sql_select_limit", "1", "18446744073709551615"],
      ["max_join_size", "1", "18446744073709551615"],
      ["sql_big_selects", "0", "1"],
      ["sql_mode", "'ANSI_QUOTES,NO_BACKSLASH_ESCAPES,PIPES_AS_CONCAT'", "''"],
    ] as const;
    const set = async (place: 1 | 2) => {
      const all = defaults.map((each) => `GLOBAL ${each[0]} = ${each[place]}`);
      await server().asRoot(`SET ${all.join(", ")}`);
    };
    await set(1);
    try {
      const options = await preparedDatabase(server());
      {
        await using stores = new SqlStores(sqlServerDatabase(options));
        const messages = [1, 2, 3].map((each) => conformanceArchived(each));
        await stores.archives().append(messages, NOW_MS);
        await stores.users("example.com").add("älice", conformanceCredentials(1));
      }
      await using again = new SqlStores(sqlServerDatabase(options));
      const users = again.users("example.com");
      assert.deepEqual(await keysOf(users, "älice"), conformanceCredentials(1));
      const { archive } = conformanceArchived(1);
      const page = await again.archives().read(archive, {}, { limit: 9, from: "start" });
      assert.equal(page?.messages.length, 3);
    } finally {
      await set(2);
    }
  });
}
