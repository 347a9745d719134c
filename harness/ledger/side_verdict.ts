import type { Due, Split } from "./counts.ts";
import type { DeviceBalance, WayBalance } from "./device_balance.ts";
import type { PresenceBalance } from "./presence_account.ts";
import type { RosterBalance } from "./roster_account.ts";

/** Share of what was due that must come; the rest may be allowed to be lost. */
const CAME_SHARE = 0.95;
/** Smallest number for which a share is meaningful. */
const MIN_FOR_A_SHARE = 50;

/** Lists what further devices missed, got twice or got in another order. */
export function deviceFindings({ ways }: DeviceBalance): readonly string[] {
  return Object.entries(ways).flatMap(([way, { lost, doubled, reordered }]) => [
    ...none(lost.forbidden, `${nameOf(way)} lost`),
    ...none(doubled.forbidden, `${nameOf(way)} doubled`),
    ...none(reordered.forbidden, `${nameOf(way)} reordered`),
  ]);
}

/** Lists what became of roster changes that may not. */
export function rosterFindings(balance: RosterBalance): readonly string[] {
  const { pushes } = balance;
  return [
    ...none(balance.lost, "acknowledged roster changes lost"),
    ...none(balance.unanswered, "roster changes without an answer"),
    ...none(balance.unseen, "rosters could not be compared"),
    ...tooFew(pushes, "roster pushes"),
  ];
}

/** Lists wrong views in the end of a run. */
export function presenceFindings(balance: PresenceBalance): readonly string[] {
  return [
    ...none(balance.ghosts, "ghosts seen in the end"),
    ...none(balance.missing, "resources not seen in the end"),
    ...(balance.due === 0 ? ["nobody was online in the end"] : []),
  ];
}

/** Stanzas that came to further devices, a line for each way. */
export function deviceLines({ ways }: DeviceBalance): readonly string[] {
  return Object.entries(ways).filter(([, { due }]) => due > 0).map(([way, balance]) => {
    const { due, came, lost, doubled, reordered }: WayBalance = balance;
    return [
      `${nameOf(way)}: ${due} due`,
      `${came} came`,
      split("lost", lost),
      split("doubled", doubled),
      split("reordered", reordered),
    ].join(", ");
  });
}

/** The numbers of roster changes in one line. */
export function rosterLine(balance: RosterBalance): string {
  const { changes, acknowledged, refused, abandoned, unanswered, lost, compared, pushes } = balance;
  return [
    `rosters: ${changes} changes`,
    `${acknowledged} acknowledged`,
    `${refused} refused`,
    `${abandoned} cut off`,
    `${unanswered} unanswered`,
    `${lost} of ${compared} items lost`,
    `${pushes.came} of ${pushes.due} pushes came`,
  ].join(", ");
}

/** The numbers of views in one line. */
export function presenceLine(balance: PresenceBalance): string {
  return `presence: ${balance.due} views, ${balance.ghosts} ghosts of ${balance.gone} resources ` +
    `that are gone, ${balance.missing} missing, wrong for ${
      Math.round(balance.longestWrongMs)
    } ms at most`;
}

function nameOf(way: string): string {
  return way === "bare" ? "messages to several devices" : `carbons of ${way} messages`;
}

function none(count: number, what: string): readonly string[] {
  return count > 0 ? [`${count} ${what}`] : [];
}

function tooFew({ due, came }: Due, what: string): readonly string[] {
  if (due < MIN_FOR_A_SHARE || came >= CAME_SHARE * due) return [];
  return [`only ${came} of ${due} ${what} came that were due outside the fault's window`];
}

export function split(name: string, { allowed, forbidden }: Split): string {
  return `${forbidden} ${name}` + (allowed > 0 ? ` (+${allowed} allowed)` : "");
}
