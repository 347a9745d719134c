/// <reference lib="dom" />
import { useEffect, useRef, useState } from "preact/hooks";
import type { Datacenter, DatacenterLinks, LinksTo, Rate } from "./api_types.ts";
import type { Place } from "./mesh_layout.ts";
import { chordOf, cutLabel, layoutMesh, placeLabel, shortNames } from "./mesh_layout.ts";
import type { Pair } from "./mesh_links.ts";
import { countPairs, pairsOf, sayLinks } from "./mesh_links.ts";
import { glyphOf, healthOf } from "./status_mark.tsx";
import { countOf, formatRate, formatRoundTrip } from "./text.ts";
import { NO_TRAFFIC } from "./traffic.ts";

interface MeshMapProps {
  readonly datacenters: readonly Datacenter[];
  readonly rates: ReadonlyMap<string, Rate>;
  /** Undefined until the node has asked the others for their links. */
  readonly told: readonly DatacenterLinks[] | undefined;
  readonly selected: string | undefined;
  /** Shows a datacenter in the panel. */
  readonly select: (datacenter: string) => void;
  /** Shows it there and goes to the panel. */
  readonly open: (datacenter: string) => void;
  /** Closes the panel. */
  readonly close: () => void;
}

const RADIUS = 15;
/** Up to so many links have their rates written on them. */
const MAX_LABELLED_LINKS = 8;
/** Up to so many links between other datacenters have their figures written on them. */
const MAX_LABELLED_PAIRS = 3;
/** Pixels between neighbours above which round-trip times stand below the names. */
const ROUND_TRIP_SPACING = 46;

/**
 * The datacenters as this node sees them: its own in the middle, links as lines to the others. Thin
 * lines are links between others, as those tell of them. Where there are very many, those that are
 * well show for the selected datacenter alone.
 */
export function MeshMap(props: MeshMapProps) {
  const { datacenters, rates, told, selected, select, open, close } = props;
  const box = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(720);
  useEffect(() => {
    const observer = new ResizeObserver(([entry]) => setWidth(entry!.contentRect.width));
    observer.observe(box.current!);
    return () => observer.disconnect();
  }, []);
  const own = datacenters.find(({ isOwn }) => isOwn);
  const others = datacenters.filter(({ isOwn }) => !isOwn);
  const height = mapHeight(width, others.length);
  const layout = layoutMesh(others.length, width, height);
  const names = shortNames(datacenters.map(({ datacenter }) => datacenter));
  const isCrowded = others.length > MAX_LABELLED_LINKS;
  const pairs = pairsOf(told, others.map(({ datacenter }) => datacenter));
  const isOfSelected = ({ one, other }: Pair) => one === selected || other === selected;
  const drawn = pairs.filter((pair) =>
    !isCrowded || isOfSelected(pair) || (pair.state !== "linked" && pair.state !== "unknown")
  );
  const places = new Map(others.map(({ datacenter }, i) => [datacenter, layout.places[i]!]));
  const label = (datacenter: string) => cutLabel(names.get(datacenter)!, layout.labelLength);
  const order = own === undefined ? others : [own, ...others];
  // After the panel is closed, the tabulator comes back to where it was.
  const last = useRef(selected);
  if (selected !== undefined) last.current = selected;
  const current = order.find(({ datacenter }) => datacenter === last.current) ?? order[0];

  /** Arrow keys go round; the map is one stop of the tabulator. */
  const move = (event: KeyboardEvent) => {
    if (event.key === "Escape") return close();
    const step = STEPS[event.key];
    const from = order.findIndex(({ datacenter }) =>
      datacenter === (event.target as SVGElement).dataset.datacenter // of a spot, as nothing else here
    );
    if (step === undefined || from === -1) return;
    event.preventDefault();
    const next = order[(from + step + order.length) % order.length]!;
    select(next.datacenter);
    box.current!.querySelector<SVGElement>(`[data-datacenter="${CSS.escape(next.datacenter)}"]`)
      ?.focus();
  };

  const spot = (datacenter: Datacenter, place: Place) => (
    <Spot
      key={datacenter.datacenter}
      datacenter={datacenter}
      place={place}
      label={label(datacenter.datacenter)}
      rate={rates.get(datacenter.datacenter) ?? NO_TRAFFIC}
      told={told?.find((each) => each.datacenter === datacenter.datacenter)}
      showsRoundTrip={!datacenter.isOwn && layout.spacing >= ROUND_TRIP_SPACING}
      isSelected={datacenter.datacenter === selected}
      isCurrent={datacenter === current}
      open={open}
    />
  );
  return (
    <div class="map" ref={box}>
      <svg
        width={width}
        height={height}
        viewBox={`0 0 ${width} ${height}`}
        role="group"
        aria-label={`Map of ${countOf(datacenters.length, "datacenter")}`}
        onKeyDown={move}
      >
        <g aria-hidden="true">
          {drawn.map((pair) => (
            <PairLine
              key={`${pair.one} ${pair.other}`}
              pair={pair}
              from={places.get(pair.one)!}
              to={places.get(pair.other)!}
              center={layout.center}
              isLabelled={pairs.length <= MAX_LABELLED_PAIRS}
              isSelected={isOfSelected(pair)}
            />
          ))}
          {others.map((datacenter, index) => (
            <Link
              key={datacenter.datacenter}
              datacenter={datacenter}
              from={layout.center}
              to={layout.places[index]!}
              rate={rates.get(datacenter.datacenter) ?? NO_TRAFFIC}
              isLabelled={!isCrowded || datacenter.datacenter === selected}
              isSelected={datacenter.datacenter === selected}
            />
          ))}
        </g>
        {own !== undefined && spot(own, { ...layout.center, outward: { x: 0, y: 1 } })}
        {others.map((datacenter, index) => spot(datacenter, layout.places[index]!))}
      </svg>
      {pairs.length > 0 && (
        <p class="note">
          {`Links between the other datacenters, as those tell: ${countPairs(pairs)}.`}
          {isCrowded &&
            " Thin lines show those that are not well, and those of the one in the panel."}
        </p>
      )}
    </div>
  );
}

const STEPS: Readonly<Record<string, number>> = {
  ArrowRight: 1,
  ArrowDown: 1,
  ArrowLeft: -1,
  ArrowUp: -1,
};

function mapHeight(width: number, count: number): number {
  if (count <= 2) return 180; // all lie on one line
  if (width < 560) return count > 12 ? 560 : count > 5 ? 420 : 300;
  return count > 12 ? 580 : count > 5 ? 460 : 360;
}

/** The line to one datacenter. Its thickness grows with the rate, its dashes tell of its health. */
function Link({ datacenter, from, to, rate, isLabelled, isSelected }: {
  readonly datacenter: Datacenter;
  readonly from: { readonly x: number; readonly y: number };
  readonly to: Place;
  readonly rate: Rate;
  readonly isLabelled: boolean;
  readonly isSelected: boolean;
}) {
  const { sentPerSec, receivedPerSec } = rate;
  const health = healthOf(datacenter.state);
  const width = 2 + Math.min(5, Math.log10(1 + sentPerSec + receivedPerSec) * 1.4);
  const middle = { x: from.x + (to.x - from.x) * 0.52, y: from.y + (to.y - from.y) * 0.52 };
  return (
    <g class={`link link-${health}${isSelected ? " is-selected" : ""}`}>
      <line x1={from.x} y1={from.y} x2={to.x} y2={to.y} stroke-width={width} />
      {isLabelled && (
        <text class="link-label" x={middle.x} y={middle.y} text-anchor="middle">
          <tspan x={middle.x} dy="-0.6em">out {formatRate(sentPerSec)}</tspan>
          <tspan x={middle.x} dy="2.05em">in {formatRate(receivedPerSec)}</tspan>
        </text>
      )}
    </g>
  );
}

/** The line between two other datacenters, thinner than those of this node. */
function PairLine({ pair, from, to, center, isLabelled, isSelected }: {
  readonly pair: Pair;
  readonly from: Place;
  readonly to: Place;
  readonly center: { readonly x: number; readonly y: number };
  readonly isLabelled: boolean;
  readonly isSelected: boolean;
}) {
  const { control, middle } = chordOf(from, to, center);
  const path = `M${from.x} ${from.y}Q${control.x} ${control.y} ${to.x} ${to.y}`;
  const { there, back } = pair;
  const roundTrips = [there, back].flatMap((each) => each?.roundTripMs ?? []);
  const roundTrip = roundTrips.length === 0 ? undefined : Math.min(...roundTrips);
  // What both ends count is one traffic: the newer count of either end will do.
  const forth = there?.sentPerSec ?? back?.receivedPerSec;
  const reverse = back?.sentPerSec ?? there?.receivedPerSec;
  const [left, right] = from.x <= to.x ? [reverse, forth] : [forth, reverse];
  const rates = `← ${formatSaid(left)}  → ${formatSaid(right)}`;
  return (
    <g class={`link pair link-${healthOf(pair.state)}${isSelected ? " is-selected" : ""}`}>
      <path d={path} />
      {isLabelled && (
        <text class="link-label" x={middle.x} y={middle.y} text-anchor="middle">
          <tspan x={middle.x} dy="-0.6em">
            {pairLabel(pair.state, roundTrip)}
          </tspan>
          {pair.state !== "unknown" && <tspan x={middle.x} dy="2.05em">{rates}</tspan>}
        </text>
      )}
    </g>
  );
}

function pairLabel(state: Pair["state"], roundTripMs: number | undefined): string {
  if (state === "unknown") return "not known";
  const isOpen = state === "linked" || state === "degraded";
  return isOpen && roundTripMs !== undefined ? formatRoundTrip(roundTripMs) : state;
}

function formatSaid(rate: LinksTo["sentPerSec"]): string {
  return rate === undefined ? "–" : formatRate(rate);
}

/** One datacenter of the map, which shows its panel when it is pressed. */
function Spot({
  datacenter,
  place,
  label,
  rate,
  told,
  showsRoundTrip,
  isSelected,
  isCurrent,
  open,
}: {
  readonly datacenter: Datacenter;
  readonly place: Place;
  readonly label: string;
  readonly rate: Rate;
  readonly told: DatacenterLinks | undefined;
  readonly showsRoundTrip: boolean;
  readonly isSelected: boolean;
  readonly isCurrent: boolean;
  readonly open: (datacenter: string) => void;
}) {
  const { datacenter: name, state, isOwn, roundTripMs } = datacenter;
  const health = healthOf(state);
  const radius = isOwn ? RADIUS + 7 : RADIUS;
  const { x, y } = place;
  const hasSecondLine = isOwn || showsRoundTrip;
  const text = placeLabel(place, { radius, lines: hasSecondLine ? 2 : 1 });
  const second = isOwn ? "this node" : secondLine(state, roundTripMs);
  return (
    <g
      class={`spot spot-${health}${isSelected ? " is-selected" : ""}`}
      onClick={() => open(name)}
    >
      <g
        class="spot-button"
        role="button"
        tabindex={isCurrent ? 0 : -1}
        aria-pressed={isSelected}
        aria-label={describe(datacenter, rate, told)}
        data-datacenter={name}
        data-state={state}
        onKeyDown={(event) => {
          if (event.key !== "Enter" && event.key !== " ") return;
          event.preventDefault();
          open(name);
        }}
      >
        <circle class="halo" cx={x} cy={y} r={radius + 9} />
        <circle class="disc" cx={x} cy={y} r={radius} />
      </g>
      <g aria-hidden="true">
        <text class="spot-glyph" x={x} y={y} text-anchor="middle" dominant-baseline="central">
          {glyphOf(health)}
        </text>
        <text class="spot-label" x={text.x} y={text.y} text-anchor={text.anchor}>
          {label}
          {hasSecondLine && <tspan class="spot-second" x={text.x} dy="1.25em">{second}</tspan>}
        </text>
      </g>
    </g>
  );
}

function secondLine(state: Datacenter["state"], roundTripMs: number | undefined): string {
  if (state === "unreachable") return "no link"; // short enough for a phone
  if (state === "paused") return state;
  return formatRoundTrip(roundTripMs);
}

/** Says in a sentence what the map shows of a datacenter. */
function describe(
  datacenter: Datacenter,
  { sentPerSec, receivedPerSec }: Rate,
  told: DatacenterLinks | undefined,
): string {
  const { datacenter: name, state, reason, openLinks, links, roundTripMs, isOwn } = datacenter;
  if (isOwn) return `${name}: the datacenter of this node`;
  const parts = [`${name}: ${state}`];
  if (reason !== undefined) parts.push(reason);
  parts.push(`${openLinks} of ${countOf(links, "link")} open`);
  if (roundTripMs !== undefined) parts.push(`round trip ${formatRoundTrip(roundTripMs)}`);
  parts.push(`out ${formatRate(sentPerSec)}, in ${formatRate(receivedPerSec)}`);
  parts.push(sayLinks(told));
  return parts.join(", ");
}
