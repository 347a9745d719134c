import type { Certificate, Configuration, Database } from "./parts_schemas.ts";
import type { Page, PageRange } from "./paging.ts";
import type { Overview } from "./event_schemas.ts";
import type { Datacenter, DatacenterLinks, Endpoint, LaneState, MeshNode } from "./mesh_schemas.ts";
import type { Bounce, Component, Session, Where } from "./people_schemas.ts";
import type { Status } from "./status_schemas.ts";

/**
 * Sources of the answers under `/api/v1` in the process. Each request calls them anew: nothing is
 * collected while nobody asks. None of them rejects because a database is away.
 */
export interface AdminSource {
  status(): Status;
  overview(): Overview;
  datacenters(): Promise<readonly Datacenter[]>;
  /** Asks the other nodes first, which takes a second at most. */
  datacenterLinks(): Promise<readonly DatacenterLinks[]>;
  nodes(): Promise<readonly MeshNode[]>;
  /** @param datacenter local host. Default: all */
  endpoints(datacenter?: string): readonly Endpoint[];
  /** @param datacenter local host. Default: all */
  lanes(datacenter?: string): readonly LaneState[];
  /** @param account bare JID. Default: all */
  sessions(range: PageRange, account?: string): Page<Session>;
  components(): Promise<readonly Component[]>;
  bounces(range: PageRange): Page<Bounce> & { readonly stanzas: number };
  /** Returns undefined when `address` is no JID. */
  where(address: string): Promise<Where | undefined>;
  databases(): Promise<readonly Database[]>;
  certificates(): readonly Certificate[];
  configuration(): Configuration;
}
