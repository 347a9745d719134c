import { lastStoreConformance } from "../testing/last_store_conformance.ts";
import { offlineStoreConformance } from "../testing/offline_store_conformance.ts";
import { privacyStoreConformance } from "../testing/privacy_store_conformance.ts";
import { privateStoreConformance } from "../testing/private_store_conformance.ts";
import { rosterStoreConformance } from "../testing/roster_store_conformance.ts";
import { userStoreConformance } from "../testing/user_store_conformance.ts";
import { vcardStoreConformance } from "../testing/vcard_store_conformance.ts";
import { RiakFixture } from "./testing/riak.ts";

/** Each store of a test belongs to one of two nodes, which meet in the database alone. */
async function open() {
  const fixture = await RiakFixture.open();
  return {
    users: (domainpart: string) => fixture.either().users(domainpart),
    rosters: () => fixture.either().rosters(),
    privateStorage: (domainpart: string) => fixture.either().privateStorage(domainpart),
    vcards: (domainpart: string) => fixture.either().vcards(domainpart),
    lastLogouts: (domainpart: string) => fixture.either().lastLogouts(domainpart),
    privacyLists: (domainpart: string) => fixture.either().privacyLists(domainpart),
    offlineMessages: (domainpart: string) => fixture.either().offlineMessages(domainpart),
    [Symbol.asyncDispose]: () => fixture[Symbol.asyncDispose](),
  };
}

const NAME = "Riak (a double)";

userStoreConformance(NAME, open);
rosterStoreConformance(NAME, open);
privateStoreConformance(NAME, open);
vcardStoreConformance(NAME, open);
lastStoreConformance(NAME, open);
privacyStoreConformance(NAME, open);
offlineStoreConformance(NAME, open);
