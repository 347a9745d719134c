import { join } from "node:path";
import { InternalStore } from "./internal_store.ts";
import { userStoreConformance } from "./user_store_conformance.ts";

userStoreConformance("SqliteUserStore", async () => {
  const directory = await Deno.makeTempDir({ prefix: "causeway-users-" });
  const store = new InternalStore({ path: join(directory, "store.sqlite") });
  return {
    users: (domainpart) => store.users(domainpart),
    async [Symbol.asyncDispose]() {
      store.close();
      await Deno.remove(directory, { recursive: true });
    },
  };
});
