import type { Balance, Split } from "./balance.ts";

/** What has to come out of a run. */
export interface Demands {
  /** "none": what was accepted has to be delivered, all of it. */
  readonly answers: "none" | "some";
}

/** The share of what was due outside the fault's own windows that has to be delivered. */
const DELIVERED_SHARE = 0.95;

/** What speaks against a run; nothing, when all went well. */
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
  if (demands.answers === "none") {
    none(
      balance.answered + balance.contradicted.allowed,
      "answered by errors, which was not allowed",
    );
  }
  const { offered, delivered } = balance.outside;
  if (delivered < DELIVERED_SHARE * offered) {
    found.push(
      `only ${delivered} of ${offered} delivered that were due outside the fault's window`,
    );
  }
  return found;
}

/** The numbers of a balance in one line. */
export function balanceLine(balance: Balance): string {
  const { unknown, doubled, reordered, contradicted, outside } = balance;
  const split = (name: string, { allowed, forbidden }: Split) =>
    `${forbidden} ${name}` + (allowed > 0 ? ` (+${allowed} allowed)` : "");
  const share = outside.offered === 0 ? 100 : 100 * outside.delivered / outside.offered;
  return [
    `${balance.sent} sent`,
    `${balance.delivered} delivered`,
    `${balance.answered} answered`,
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
