import type { ComponentChildren } from "preact";
import type { Rate } from "./api_types.ts";
import { StatusMark } from "./status_mark.tsx";
import { countOf, formatBytes, formatCount, formatRate } from "./text.ts";
import type { Facts } from "./view_state.ts";

/** The figures to look at first. */
export function SummaryTiles({ facts, total }: {
  readonly facts: Facts;
  /** Rates over all datacenters. */
  readonly total: Rate;
}) {
  const { status, datacenters, databases, certificates, bounceTotals } = facts;
  const others = datacenters.filter(({ isOwn }) => !isOwn);
  const linked = others.filter(({ state }) => state === "linked" || state === "degraded").length;
  const held = datacenters.reduce((sum, { heldItems }) => sum + heldItems, 0);
  const databasesUp = databases.filter(({ state }) => state === "up").length;
  const daysLeft = certificates.map((certificate) => certificate.daysLeft);
  const soonest = daysLeft.length === 0 ? undefined : Math.min(...daysLeft);
  const { sentPerSec, receivedPerSec } = total;
  const { waitingBytes, waitingMaxBytes, residentBytes, heapBytes } = status.memory;
  return (
    <dl class="tiles">
      <Tile name="Datacenters linked" value={`${linked} of ${others.length}`}>
        <StatusMark
          state={others.length === 0 ? "idle" : linked === others.length ? "good" : "bad"}
          text={others.length === 0
            ? "no other is known"
            : linked === others.length
            ? "all linked"
            : `${others.length - linked} missing`}
        />
      </Tile>
      <Tile name="Sessions here" value={formatCount(status.counts.sessions)}>
        {countOf(status.counts.components, "component")}
      </Tile>
      <Tile name="Stanzas out" value={formatRate(sentPerSec)}>
        <span class="swatch swatch-out" />to other datacenters
      </Tile>
      <Tile name="Stanzas in" value={formatRate(receivedPerSec)}>
        <span class="swatch swatch-in" />from other datacenters
      </Tile>
      <Tile name="Waiting" value={formatCount(held + bounceTotals.stanzas)}>
        {formatBytes(waitingBytes)} of {formatBytes(waitingMaxBytes)}
      </Tile>
      <Tile name="Memory of this node" value={formatBytes(residentBytes)}>
        heap {formatBytes(heapBytes)}
      </Tile>
      <Tile name="Databases up" value={`${databasesUp} of ${databases.length}`}>
        <StatusMark
          state={databasesUp === databases.length ? "good" : "bad"}
          text={databasesUp === databases.length ? "all up" : "see Databases"}
        />
      </Tile>
      {soonest !== undefined && (
        <Tile
          name="Next certificate ends"
          value={soonest < 0 ? "expired" : soonest < 1 ? "today" : `${soonest} d`}
        >
          <StatusMark
            state={soonest < 3 ? "bad" : soonest < 14 ? "warning" : "good"}
            text={soonest < 14 ? "renew it" : "in time"}
          />
        </Tile>
      )}
    </dl>
  );
}

function Tile({ name, value, children }: {
  readonly name: string;
  readonly value: string;
  readonly children: ComponentChildren;
}) {
  return (
    <div class="tile">
      <dt>{name}</dt>
      <dd>
        <span class="tile-value">{value}</span>
        <span class="tile-note">{children}</span>
      </dd>
    </div>
  );
}
