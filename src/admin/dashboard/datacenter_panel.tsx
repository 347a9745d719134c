/// <reference lib="dom" />
import { useEffect, useRef } from "preact/hooks";
import type {
  Datacenter,
  DatacenterDetail,
  DatacenterLinks,
  Endpoint,
  Lane,
  LinksTo,
  MeshNode,
  Rate,
} from "./api_types.ts";
import { linksByHealth } from "./mesh_links.ts";
import { StatusMark } from "./status_mark.tsx";
import {
  countOf,
  formatBytes,
  formatCount,
  formatDuration,
  formatMoment,
  formatRate,
  formatRoundTrip,
} from "./text.ts";

/** A wish of somebody who has pressed a datacenter to be at its panel. A new object asks again. */
export interface PanelFocus {
  readonly datacenter: string;
}

/** One datacenter as this node knows it: its links, endpoints and nodes. */
export function DatacenterPanel({ datacenter, detail, told, nodes, rate, focus, close }: {
  readonly datacenter: Datacenter;
  /** Undefined until the node has answered. */
  readonly detail: DatacenterDetail | undefined;
  /** Links of its nodes, as they tell of them; undefined until this node has asked. */
  readonly told: DatacenterLinks | undefined;
  readonly nodes: readonly MeshNode[];
  readonly rate: Rate;
  readonly focus: PanelFocus | undefined;
  readonly close: () => void;
}) {
  const title = useRef<HTMLHeadingElement>(null);
  useEffect(() => {
    if (focus !== undefined) title.current?.focus();
  }, [focus]);
  const { datacenter: name, state, reason, isOwn, lastError } = datacenter;
  const own = nodes.filter((node) => node.datacenter === name);
  return (
    <section
      class="card panel"
      aria-labelledby="panel-title"
      onKeyDown={({ key }) => key === "Escape" && close()}
    >
      <div class="panel-head">
        <h2 id="panel-title" ref={title} tabIndex={-1}>{name}</h2>
        <button type="button" class="plain" aria-label={`Close ${name}`} onClick={close}>
          Close
        </button>
      </div>
      <p class="panel-state">
        <StatusMark state={state} text={isOwn ? "the datacenter of this node" : state} />
        {reason !== undefined && <span class="reason">{reason}</span>}
      </p>
      {!isOwn && <LinkFigures datacenter={datacenter} rate={rate} />}
      {lastError !== undefined && (
        <p class="last-error">
          Last failure at {formatMoment(lastError.at)}: {lastError.detail || lastError.reason}
        </p>
      )}
      <h3>Nodes</h3>
      {own.length === 0
        ? <p class="empty">No node of it is known to be alive.</p>
        : (
          <ul class="rows">
            {own.map(({ node, isSelf, hasLease }) => (
              <li key={node}>
                <span class="name">{node}</span>
                <StatusMark
                  state={hasLease ? "good" : "warning"}
                  text={isSelf ? "this node" : hasLease ? "alive" : "not listed as alive"}
                />
              </li>
            ))}
          </ul>
        )}
      <ToldLinks told={told} />
      {detail !== undefined && <Endpoints endpoints={detail.endpointList} />}
      {detail !== undefined && <Lanes lanes={detail.lanes} />}
    </section>
  );
}

function LinkFigures({ datacenter, rate }: {
  readonly datacenter: Datacenter;
  readonly rate: Rate;
}) {
  const { openLinks, links, incomingLinks, roundTripMs, senders, heldItems } = datacenter;
  const { heldBytes, parkedItems } = datacenter;
  return (
    <dl class="figures">
      <Figure name="Round trip" value={formatRoundTrip(roundTripMs)} />
      <Figure name="Out" value={formatRate(rate.sentPerSec)} />
      <Figure name="In" value={formatRate(rate.receivedPerSec)} />
      <Figure name="Links to it" value={`${openLinks} of ${links}`} />
      <Figure name="Links from it" value={String(incomingLinks)} />
      <Figure name="Senders" value={formatCount(senders)} />
      <Figure name="Held" value={`${formatCount(heldItems)} (${formatBytes(heldBytes)})`} />
      <Figure name="Parked" value={formatCount(parkedItems)} />
    </dl>
  );
}

function Figure({ name, value }: { readonly name: string; readonly value: string }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{value}</dd>
    </div>
  );
}

/** The links of a datacenter as its own nodes tell of them, the worst first. */
function ToldLinks({ told }: { readonly told: DatacenterLinks | undefined }) {
  return (
    <>
      <h3>Links, as its nodes tell</h3>
      {told === undefined || told.answers === 0
        ? <p class="empty">Not known: none of its nodes has answered in the last 15 seconds.</p>
        : (
          <>
            {told.answers < told.nodes && (
              <p class="note">{told.answers} of {countOf(told.nodes, "node")} have answered.</p>
            )}
            {told.links.length === 0 && <p class="empty">It has no links to others.</p>}
            <div class="scroll" tabIndex={0} role="region" aria-label="Links, as its nodes tell">
              <ul class="rows">
                {linksByHealth(told.links).map((links) => (
                  <li key={links.datacenter}>
                    <span class="name">{links.datacenter}</span>
                    <StatusMark state={links.state} />
                    <span class="note">{toldNote(links)}</span>
                  </li>
                ))}
              </ul>
            </div>
          </>
        )}
    </>
  );
}

function toldNote(told: LinksTo): string {
  const { openLinks, links, roundTripMs, sentPerSec, receivedPerSec } = told;
  const parts = [`${openLinks} of ${countOf(links, "link")} open`];
  if (roundTripMs !== undefined) parts.push(formatRoundTrip(roundTripMs));
  if (sentPerSec !== undefined) parts.push(`out ${formatRate(sentPerSec)}`);
  if (receivedPerSec !== undefined) parts.push(`in ${formatRate(receivedPerSec)}`);
  return parts.join(" · ");
}

function Endpoints({ endpoints }: { readonly endpoints: readonly Endpoint[] }) {
  if (endpoints.length === 0) return null;
  return (
    <>
      <h3>Endpoints</h3>
      <ul class="rows">
        {endpoints.map(({ endpoint, state, reason, openLinks, links }) => (
          <li key={endpoint}>
            <span class="name">{endpoint}</span>
            <StatusMark state={state} />
            <span class="note">{openLinks} of {countOf(links, "link")} open</span>
            {reason !== undefined && <span class="reason">{reason}</span>}
          </li>
        ))}
      </ul>
    </>
  );
}

function Lanes({ lanes }: { readonly lanes: readonly Lane[] }) {
  if (lanes.length === 0) return null;
  return (
    <>
      <h3>Lanes</h3>
      <ul class="rows">
        {lanes.map((lane) => (
          <li key={`${lane.endpoint} ${lane.lane}`}>
            <span class="name">Lane {lane.lane}</span>
            <StatusMark state={lane.state} />
            <span class="note">{laneNote(lane)}</span>
            {lane.lastError !== undefined && lane.state !== "open" && (
              <span class="reason">{lane.lastError.detail || lane.lastError.reason}</span>
            )}
          </li>
        ))}
      </ul>
    </>
  );
}

function laneNote(lane: Lane): string {
  const { roundTripMs, uptimeMs, queuedItems, unacknowledgedItems, unacknowledgedBytes } = lane;
  const { unacknowledgedForMs, nextAttemptInMs } = lane;
  const parts: string[] = [];
  if (lane.state === "open" && roundTripMs !== undefined) parts.push(formatRoundTrip(roundTripMs));
  if (uptimeMs !== undefined) parts.push(`up ${formatDuration(uptimeMs)}`);
  if (queuedItems > 0) parts.push(`${formatCount(queuedItems)} queued`);
  if (unacknowledgedItems > 0) {
    const age = unacknowledgedForMs === undefined
      ? ""
      : `, oldest ${formatDuration(unacknowledgedForMs)}`;
    parts.push(
      `${formatCount(unacknowledgedItems)} unacknowledged (${
        formatBytes(unacknowledgedBytes)
      }${age})`,
    );
  }
  if (nextAttemptInMs !== undefined) {
    parts.push(`next attempt in ${formatDuration(nextAttemptInMs)}`);
  }
  return parts.join(" · ");
}
