import type { AdminEvent } from "./api_types.ts";
import type { Finding } from "./changes.ts";
import { markOf } from "./changes.ts";
import { StatusMark } from "./status_mark.tsx";
import { formatMoment } from "./text.ts";

/** Faults that somebody should look at now. */
export function AttentionCard({ findings, open }: {
  readonly findings: readonly Finding[];
  readonly open: (datacenter: string) => void;
}) {
  return (
    <section class="card attention" aria-labelledby="attention-title">
      <h2 id="attention-title">Needs attention</h2>
      <div role="status" aria-atomic={false}>
        {findings.length === 0
          ? (
            <p class="all-well">
              <StatusMark state="good" text="Nothing: all is well" />
            </p>
          )
          : (
            <ul class="rows scroll" tabIndex={0} aria-label="Findings">
              {findings.map(({ severity, subject, text, datacenter }) => (
                <li key={`${subject} ${text}`}>
                  <StatusMark state={severity} text="" />
                  {datacenter === undefined ? <span class="name">{subject}</span> : (
                    <button
                      type="button"
                      class="plain name"
                      onClick={() => open(datacenter)}
                    >
                      {subject}
                    </button>
                  )}
                  <span class="reason">{text}</span>
                </li>
              ))}
            </ul>
          )}
      </div>
    </section>
  );
}

/** Events, newest first. Screen readers announce those that come while the page is open. */
export function EventCard({ feed, hasCaughtUp }: {
  readonly feed: readonly AdminEvent[];
  /** False while events come that are older than the page. */
  readonly hasCaughtUp: boolean;
}) {
  return (
    <section class="card" aria-labelledby="events-title">
      <h2 id="events-title">Events</h2>
      <div
        class="scroll"
        tabIndex={0}
        role="log"
        aria-live={hasCaughtUp ? "polite" : "off"}
        aria-labelledby="events-title"
      >
        {feed.length === 0
          ? <p class="empty">Nothing has happened yet.</p>
          : (
            <ol class="rows events">
              {feed.map((event) => (
                <li key={event.id}>
                  <time dateTime={event.at}>{formatMoment(event.at)}</time>
                  <StatusMark state={markOf(event)} text={event.text} />
                </li>
              ))}
            </ol>
          )}
      </div>
    </section>
  );
}
