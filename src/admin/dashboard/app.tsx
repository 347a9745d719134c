/// <reference lib="dom" />
import { useEffect, useRef, useState } from "preact/hooks";
import type { AdminClient } from "./admin_client.ts";
import { findingsOf } from "./changes.ts";
import type { PanelFocus } from "./datacenter_panel.tsx";
import { DatacenterPanel } from "./datacenter_panel.tsx";
import { DatacenterTable } from "./datacenter_table.tsx";
import { AttentionCard, EventCard } from "./event_cards.tsx";
import type { LiveView } from "./live_view.ts";
import { MeshMap } from "./mesh_map.tsx";
import { StatusMark } from "./status_mark.tsx";
import { SessionsCard } from "./sessions_card.tsx";
import { SummaryTiles } from "./summary_tiles.tsx";
import { countOf, formatDuration, formatMoment } from "./text.ts";
import { TokenForm } from "./token_form.tsx";
import { TraceCard, type TraceWish } from "./trace_card.tsx";
import { TrafficChart } from "./traffic_chart.tsx";
import { NO_TRAFFIC } from "./traffic.ts";
import type { ViewState } from "./view_state.ts";
import { BounceCard, CertificateCard, DatabaseCard } from "./waiting_cards.tsx";
import { WhereSearch } from "./where_search.tsx";

/** The whole page. */
export function App({ view, client }: { readonly view: LiveView; readonly client: AdminClient }) {
  const [state, setState] = useState(view.state);
  useEffect(() => {
    const unwatch = view.watch(() => setState(view.state));
    view.start();
    return unwatch;
  }, []);
  useEffect(() => {
    document.title = titleOf(state);
  });
  return (
    <>
      <Header state={state} />
      <main>
        {state.phase === "locked" && (
          <TokenForm
            problem={state.problem}
            unlock={(token) => view.unlock(token)}
          />
        )}
        {state.phase === "stale" && (
          <p class="banner" role="alert">
            {hasStopped(state)
              ? "The node was stopping and no longer answers: it has ended. The page goes on when it is started again."
              : `The node does not answer (${state.problem}).`} The figures below are of{" "}
            {state.answeredAt === undefined ? "no time" : formatMoment(state.answeredAt)}.
          </p>
        )}
        {state.phase === "loading" && <p class="note">Asking the node …</p>}
        {state.facts !== undefined && <Overview view={view} client={client} state={state} />}
      </main>
    </>
  );
}

/** Title of the page, which tells of trouble in a tab that nobody looks at. */
function titleOf(state: ViewState): string {
  const { phase, facts, told } = state;
  if (phase === "stale") return `(${hasStopped(state) ? "stopped" : "no answer"}) Causeway`;
  if (facts === undefined) return "Causeway";
  const bad = findingsOf(facts, told).filter(({ severity }) => severity === "bad").length;
  return `${bad > 0 ? `(${bad}) ` : ""}${facts.status.datacenter} · Causeway`;
}

/** True when the node that does not answer was stopping when it answered last. */
function hasStopped({ phase, facts }: ViewState): boolean {
  return phase === "stale" && facts?.status.drain.isDraining === true;
}

function Header({ state: { phase, facts } }: { readonly state: ViewState }) {
  const status = facts?.status;
  return (
    <header>
      <h1>Causeway</h1>
      {status !== undefined && (
        <p class="identity">
          <strong>{status.globalHost}</strong>
          <span>node {status.node}</span>
          <span>version {status.build.version}</span>
          <span>up {formatDuration(status.uptimeMs)}</span>
        </p>
      )}
      <p class="connection" role="status">
        {phase !== "stale" && status?.drain.isDraining && (
          <StatusMark
            state="draining"
            text={`draining: ${countOf(status.drain.sessions, "session")} and ${
              countOf(status.drain.stanzas, "stanza")
            } left`}
          />
        )}
        {phase !== "stale" && status !== undefined && !status.drain.isDraining && (
          <StatusMark
            state={status.ready ? "good" : "bad"}
            text={status.ready ? "ready" : "not ready"}
          />
        )}
        <StatusMark
          state={phase === "live" ? "good" : phase === "stale" ? "bad" : "waiting"}
          text={phase}
        />
      </p>
    </header>
  );
}

function Overview({ view, client, state }: {
  readonly view: LiveView;
  readonly client: AdminClient;
  readonly state: ViewState;
}) {
  const facts = state.facts!; // the caller has checked
  const { caller, datacenters, nodes } = facts;
  const { rates, selected, detail, told } = state;
  const [wish, setWish] = useState<TraceWish>();
  const [focus, setFocus] = useState<PanelFocus>();
  const opener = useRef<Element | null>(null);
  const select = (datacenter: string) => view.select(datacenter);
  const trace = (jid: string) => setWish({ jid });
  const findings = findingsOf(facts, told);
  const shown = datacenters.find(({ datacenter }) => datacenter === selected);

  /** Shows a datacenter in the panel, and goes there. */
  const open = (datacenter: string) => {
    opener.current = document.activeElement;
    select(datacenter);
    setFocus({ datacenter });
  };
  /** Closes the panel and gives the focus back to what had opened it. */
  const close = () => {
    const hadFocus = document.querySelector(".panel")?.contains(document.activeElement);
    view.select(undefined);
    setFocus(undefined);
    if (!hadFocus) return;
    const { current } = opener;
    const goesBack = current instanceof Element && current.isConnected && current !== document.body;
    const target = goesBack ? current : document.querySelector(".map [tabindex='0']");
    if (target instanceof HTMLElement || target instanceof SVGElement) target.focus();
  };
  return (
    <>
      <SummaryTiles facts={facts} total={state.total} />
      <div class="columns">
        <AttentionCard findings={findings} open={open} />
        <div class="main-column">
          <section class="card" aria-labelledby="map-title">
            <h2 id="map-title">Datacenters</h2>
            <MeshMap {...{ datacenters, rates, told, selected, select, open, close }} />
            <Legend />
            <DatacenterTable {...{ datacenters, rates, selected, open }} />
          </section>
          <section class="card" aria-labelledby="traffic-title">
            <h2 id="traffic-title">Stanzas between datacenters</h2>
            <p class="legend">
              <span>
                <span class="swatch swatch-out" />out
              </span>
              <span>
                <span class="swatch swatch-in" />in
              </span>
              <span class="note">per second, since the page was opened</span>
            </p>
            <TrafficChart history={state.history} />
          </section>
          <TraceCard client={client} caller={caller} wish={wish} />
          <BounceCard facts={facts} />
        </div>
        <div class="side-column">
          {shown !== undefined && (
            <DatacenterPanel
              datacenter={shown}
              detail={detail}
              told={told?.find(({ datacenter }) => datacenter === shown.datacenter)}
              nodes={nodes}
              rate={rates.get(shown.datacenter) ?? NO_TRAFFIC}
              focus={focus}
              close={close}
            />
          )}
          <WhereSearch client={client} select={select} trace={trace} />
          <SessionsCard client={client} caller={caller} trace={trace} />
          <EventCard feed={state.feed} hasCaughtUp={state.history.times.length > 0} />
          <DatabaseCard facts={facts} />
          <CertificateCard facts={facts} />
        </div>
      </div>
    </>
  );
}

function Legend() {
  return (
    <p class="legend">
      <StatusMark state="own" text="this node's" />
      <StatusMark state="linked" />
      <StatusMark state="degraded" />
      <StatusMark state="unreachable" />
      <StatusMark state="paused" />
      <StatusMark state="unknown" text="not known" />
    </p>
  );
}
