/// <reference lib="dom" />
import { useEffect, useState } from "preact/hooks";
import type { AdminClient } from "./admin_client.ts";
import type { ActionResult, Caller, List, Session } from "./api_types.ts";
import { JidInput } from "./jid_input.tsx";
import { StatusMark } from "./status_mark.tsx";
import { countOf } from "./text.ts";

/** Sessions on one page of the table. */
const PAGE = 10;

interface Query {
  readonly account: string;
  readonly offset: number;
}

/**
 * The clients that are connected to this node: read when somebody asks, because there may be a
 * hundred thousand.
 */
export function SessionsCard({ client, caller, trace }: {
  readonly client: AdminClient;
  readonly caller: Caller | undefined;
  readonly trace: (jid: string) => void;
}) {
  const [query, setQuery] = useState<Query>();
  const [found, setFound] = useState<List<Session>>();
  const [said, setSaid] = useState("");
  const mayAct = caller !== undefined && caller.role !== "read";

  const read = async ({ account, offset }: Query) => {
    const only = account === "" ? "" : `&account=${encodeURIComponent(account)}`;
    try {
      const path = `/api/v1/sessions?limit=${PAGE}&offset=${offset}${only}`;
      setFound(await client.read<List<Session>>(path));
    } catch (thrown) {
      setFound(undefined);
      setSaid((thrown as Error).message);
    }
  };
  useEffect(() => {
    if (query !== undefined) void read(query); // it handles its own failures
  }, [query]);
  const submit = (event: SubmitEvent) => {
    event.preventDefault();
    const form = new FormData(event.currentTarget as HTMLFormElement);
    setSaid("");
    setQuery({ account: String(form.get("account")).trim(), offset: 0 });
  };
  const end = async (jid: string) => {
    if (!confirm(`End the session ${jid}? Its client may come back at once.`)) return;
    try {
      const { text } = await client.act<ActionResult>("kick", { jid });
      setSaid(text);
    } catch (thrown) {
      setSaid((thrown as Error).message);
    }
    if (query !== undefined) await read(query);
  };
  const turn = (by: number) => query && setQuery({ ...query, offset: query.offset + by });
  const { offset = 0 } = query ?? {};
  return (
    <section class="card sessions" aria-labelledby="sessions-title">
      <h2 id="sessions-title">Sessions at this node</h2>
      <form onSubmit={submit}>
        <label for="sessions-account">Account</label>
        <JidInput id="sessions-account" name="account" placeholder="all accounts" />
        <button type="submit">List</button>
      </form>
      <p role="status">{said}</p>
      {found !== undefined && found.items.length === 0 && (
        <p class="empty">No such session is connected here.</p>
      )}
      {found !== undefined && found.items.length > 0 && (
        <>
          <ul class="rows">
            {found.items.map((session) => (
              <li key={session.jid}>
                <span class="name">{session.jid}</span>
                <StatusMark
                  state={session.state === "open" ? "good" : "waiting"}
                  text={session.state}
                />
                <span class="note">{featuresOf(session)}</span>
                {mayAct && (
                  <span class="row-actions">
                    <button
                      type="button"
                      class="plain"
                      aria-label={`Trace ${session.jid}`}
                      onClick={() => trace(session.jid)}
                    >
                      Trace
                    </button>
                    <button
                      type="button"
                      class="plain"
                      aria-label={`End the session ${session.jid}`}
                      onClick={() => end(session.jid)}
                    >
                      End
                    </button>
                  </span>
                )}
              </li>
            ))}
          </ul>
          <p class="turn">
            <span class="note">
              {offset + 1}–{offset + found.items.length} of {countOf(found.total, "session")}
            </span>
            <button type="button" class="plain" disabled={offset === 0} onClick={() => turn(-PAGE)}>
              Previous
            </button>
            <button
              type="button"
              class="plain"
              disabled={offset + found.items.length >= found.total}
              onClick={() => turn(PAGE)}
            >
              Next
            </button>
          </p>
        </>
      )}
    </section>
  );
}

function featuresOf({ isAvailable, priority, isManaged, hasCarbons, isConfidential }: Session) {
  return [
    isAvailable
      ? `available${priority === undefined ? "" : `, priority ${priority}`}`
      : "not available",
    ...(isManaged ? ["stream management"] : []),
    ...(hasCarbons ? ["carbons"] : []),
    ...(isConfidential ? [] : ["not encrypted"]),
  ].join(" · ");
}
