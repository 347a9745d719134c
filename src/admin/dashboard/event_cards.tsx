import type { AdminEvent } from "./api_types.ts";
import type { Finding } from "./changes.ts";
import { markOf } from "./changes.ts";
import { StatusMark } from "./status_mark.tsx";
import { formatTime } from "./text.ts";

/** What somebody should look at now. */
export function AttentionCard({ findings, select }: {
  readonly findings: readonly Finding[];
  readonly select: (datacenter: string) => void;
}) {
  return (
    <section class="card attention" aria-labelledby="attention-title">
      <h2 id="attention-title">Needs attention</h2>
      <div role="status">
        {findings.length === 0
          ? (
            <p class="all-well">
              <StatusMark state="good" text="Nothing: all is well" />
            </p>
          )
          : (
            <ul class="rows">
              {findings.map(({ severity, subject, text, datacenter }) => (
                <li key={`${subject} ${text}`}>
                  <StatusMark state={severity} text="" />
                  {datacenter === undefined ? <span class="name">{subject}</span> : (
                    <button
                      type="button"
                      class="plain name"
                      onClick={() => select(datacenter)}
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

/** What happened, newest first. */
export function EventCard({ feed }: { readonly feed: readonly AdminEvent[] }) {
  return (
    <section class="card" aria-labelledby="events-title">
      <h2 id="events-title">Events</h2>
      {feed.length === 0
        ? <p class="empty">Nothing has happened yet.</p>
        : (
          <div class="scroll" tabIndex={0} role="log" aria-labelledby="events-title">
            <ol class="rows events">
              {feed.map((event) => (
                <li key={event.id}>
                  <time dateTime={event.at}>{formatTime(event.at)}</time>
                  <StatusMark state={markOf(event)} text={event.text} />
                </li>
              ))}
            </ol>
          </div>
        )}
    </section>
  );
}
