import type { Datacenter, DatacenterLinks, LinksTo } from "../../admin/mod.ts";
import type { NodeReport, ReportedLinks } from "../../distribution/surveys/mod.ts";

/**
 * Returns the links between datacenters, from what their nodes have told.
 *
 * @param known datacenters of the mesh. Others that a node tells of are left out: their names are
 *   that node's claim
 */
export function datacenterLinksOf(
  reports: readonly NodeReport[],
  known: readonly Datacenter[],
): readonly DatacenterLinks[] {
  const names = new Set(known.map(({ datacenter }) => datacenter));
  return known.map(({ datacenter, isOwn }) => {
    const own = reports.filter(({ host }) => host === datacenter);
    const ages = own.flatMap(({ ageMs }) => ageMs ?? []);
    const links = Map.groupBy(
      own.flatMap((report) => report.links)
        .filter(({ host }) => host !== datacenter && names.has(host)),
      ({ host }) => host,
    );
    return {
      datacenter,
      isOwn,
      nodes: own.length,
      answers: ages.length,
      ...(ages.length > 0 && { ageMs: Math.max(...ages) }),
      links: [...links].map(([host, each]) => linksTo(host, each))
        .toSorted((one, other) => one.datacenter < other.datacenter ? -1 : 1),
      troubles: own.flatMap(({ node, isRedisAway, isStopping }) => [
        ...(isRedisAway ? [{ node, trouble: "redis-away" as const }] : []),
        ...(isStopping ? [{ node, trouble: "stopping" as const }] : []),
      ]),
    };
  });
}

function linksTo(datacenter: string, each: readonly ReportedLinks[]): LinksTo {
  const sum = (read: (links: ReportedLinks) => number) =>
    each.reduce((total, links) => total + read(links), 0);
  const [links, openLinks] = [sum((one) => one.links), sum((one) => one.openLinks)];
  const roundTrips = each.flatMap(({ roundTripMs }) => roundTripMs ?? []);
  const rated = each.filter(({ sentPerSec }) => sentPerSec !== undefined);
  return {
    datacenter,
    state: openLinks === 0
      ? each.some(({ isPaused }) => isPaused) ? "paused" : "unreachable"
      : openLinks < links
      ? "degraded"
      : "linked",
    links,
    openLinks,
    ...(roundTrips.length > 0 && { roundTripMs: Math.min(...roundTrips) }),
    ...(rated.length > 0 && {
      sentPerSec: rated.reduce((total, one) => total + (one.sentPerSec ?? 0), 0),
      receivedPerSec: rated.reduce((total, one) => total + (one.receivedPerSec ?? 0), 0),
    }),
  };
}
