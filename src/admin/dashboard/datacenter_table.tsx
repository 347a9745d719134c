import { Fragment } from "preact";
import type { Datacenter, Rate } from "./api_types.ts";
import { healthOf, StatusMark } from "./status_mark.tsx";
import { formatCount, formatRate, formatRoundTrip } from "./text.ts";
import { NO_TRAFFIC } from "./traffic.ts";

/** Lets a name break before its dots, where a column is narrow. */
function breakable(name: string) {
  return name.split(".").map((label, index) =>
    index === 0 ? label : (
      <Fragment key={index}>
        <wbr />.{label}
      </Fragment>
    )
  );
}

const ORDER = { bad: 0, warning: 1, info: 2, paused: 3, own: 4, good: 5, unknown: 6 } as const;

/** All datacenters as a table, those with problems first. */
export function DatacenterTable({ datacenters, rates, selected, open }: {
  readonly datacenters: readonly Datacenter[];
  readonly rates: ReadonlyMap<string, Rate>;
  readonly selected: string | undefined;
  readonly open: (datacenter: string) => void;
}) {
  const rows = datacenters.toSorted((one, other) =>
    ORDER[healthOf(one.state)] - ORDER[healthOf(other.state)]
  );
  return (
    <div class="scroll tall" tabIndex={0} role="region" aria-label="Table of datacenters">
      <table aria-label="Datacenters">
        <thead>
          <tr>
            <th scope="col">Datacenter</th>
            <th scope="col">State</th>
            <th scope="col" class="number">Round trip</th>
            <th scope="col" class="number">Out</th>
            <th scope="col" class="number">In</th>
            <th scope="col" class="number wide">Links</th>
            <th scope="col" class="number wide">Nodes</th>
            <th scope="col" class="number wide">Waiting</th>
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => {
            const { datacenter, isOwn, state, roundTripMs, openLinks, links, nodes, heldItems } =
              row;
            const { sentPerSec, receivedPerSec } = rates.get(datacenter) ?? NO_TRAFFIC;
            return (
              <tr key={datacenter} class={datacenter === selected ? "is-selected" : undefined}>
                <th scope="row">
                  <button
                    type="button"
                    class="plain"
                    aria-pressed={datacenter === selected}
                    onClick={() => open(datacenter)}
                  >
                    {breakable(datacenter)}
                  </button>
                </th>
                <td>
                  <StatusMark state={state} text={isOwn ? "this one" : state} />
                </td>
                <td class="number">{isOwn ? "–" : formatRoundTrip(roundTripMs)}</td>
                <td class="number">{isOwn ? "–" : formatRate(sentPerSec)}</td>
                <td class="number">{isOwn ? "–" : formatRate(receivedPerSec)}</td>
                <td class="number wide">{isOwn ? "–" : `${openLinks}/${links}`}</td>
                <td class="number wide">{nodes.length}</td>
                <td class="number wide">{formatCount(heldItems)}</td>
              </tr>
            );
          })}
        </tbody>
      </table>
    </div>
  );
}
