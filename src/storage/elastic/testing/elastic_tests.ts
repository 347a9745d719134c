import type { SearchKind } from "../../../../harness/databases/mod.ts";
import { archiveStoreConformance } from "../../testing/archive_store_conformance.ts";
import { roomArchiveConformance } from "../../testing/room_archive_conformance.ts";
import { backendTests } from "./backend_tests.ts";
import { faultTests } from "./fault_tests.ts";
import { searchServerDuringTests } from "./search_servers.ts";

/**
 * Registers all tests of a server: it starts once for them.
 *
 * @param many entries of its largest archive
 */
export function elasticTests(kind: SearchKind, many = 5_000): void {
  const server = searchServerDuringTests(kind);
  const name = `${kind.name} ${kind.version}`;
  archiveStoreConformance(name, () => server().fixture());
  roomArchiveConformance(name, () => server().fixture());
  backendTests(name, server);
  faultTests(name, server, many);
}
