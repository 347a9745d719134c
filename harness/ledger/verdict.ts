import type { Balance } from "./balance.ts";
import type { Split } from "./counts.ts";
import { deviceFindings } from "./side_verdict.ts";

/** Required result of a run. */
export interface Demands {
  /** "none": every accepted stanza must be delivered. */
  readonly answers: "none" | "some";
  /** Number of stanzas due outside the fault's own windows. @default not checked */
  readonly askedOutside?: number;
}

/** Share of the stanzas due outside the fault's own windows that must be delivered. */
const DELIVERED_SHARE = 0.95;

/** Share of the due stanzas that must be sent. */
const SENT_SHARE = 0.9;

/** Smallest number of stanzas for which a share is meaningful. */
const MIN_FOR_A_SHARE = 200;

/** Lists the failures of a run. Empty when all went well. */
export function findings(balance: Balance, demands: Demands): readonly string[] {
  const found: string[] = [];
  const none = (count: number, what: string) => {
    if (count > 0) found.push(`${count} ${what}`);
  };
  if (balance.sent === 0) found.push("nothing was sent");
  none(balance.unknown.forbidden, "lost");
  none(balance.doubled.forbidden, "doubled");
  none(balance.reordered.forbidden, "reordered");
  none(balance.contradicted.forbidden, "delivered and answered by an error as well");
  none(balance.answeredAgain, "answered more than once");
  none(balance.strays, "strays");
  found.push(...deviceFindings(balance.devices));
  if (demands.answers === "none") {
    none(
      balance.answered + balance.contradicted.allowed,
      "answered by errors, which was not allowed",
    );
  }
  const { offered, sent, delivered, presence, results } = balance.outside;
  const asked = Math.floor(demands.askedOutside ?? 0);
  if (sent < SENT_SHARE * asked) {
    found.push(`only ${sent} of ${asked} sent that were asked for outside the fault's window`);
  }
  if (delivered < DELIVERED_SHARE * offered) {
    found.push(
      `only ${delivered} of ${offered} delivered that were due outside the fault's window`,
    );
  }
  for (const [what, { due, came }] of Object.entries({ presence, results })) {
    if (due >= MIN_FOR_A_SHARE && came < DELIVERED_SHARE * due) {
      found.push(`only ${came} of ${due} ${what} came that were due outside the fault's window`);
    }
  }
  return found;
}

/** The numbers of a balance in one line. */
export function balanceLine(balance: Balance): string {
  const { kinds, unknown, doubled, reordered, contradicted, results, outside } = balance;
  const split = (name: string, { allowed, forbidden }: Split) =>
    `${forbidden} ${name}` + (allowed > 0 ? ` (+${allowed} allowed)` : "");
  const share = outside.offered === 0 ? 100 : 100 * outside.delivered / outside.offered;
  return [
    `${balance.sent} sent (${kinds.iq.sent} requests, ${kinds.presence.sent} presence)`,
    `${balance.delivered} delivered` +
    (balance.elsewhere > 0 ? ` (+${balance.elsewhere} to another device alone)` : "") +
    (balance.archived > 0 ? ` (+${balance.archived} in an archive alone)` : ""),
    `${balance.answered} answered`,
    `${results.requests} results${results.again > 0 ? ` (+${results.again} again)` : ""}`,
    `${balance.vanished} presence vanished`,
    split("lost", unknown),
    split("doubled", doubled),
    split("reordered", reordered),
    split("contradicted", contradicted),
    `${balance.strays} strays`,
    `${balance.skipped} skipped`,
    `${share.toFixed(2)} % of ${outside.offered} due outside the fault`,
    `slowest ${Math.round(balance.slowestMs)} ms`,
    ...Object.entries(balance.conditions).map(([condition, count]) => `${count} ${condition}`),
  ].join(", ");
}
