/// <reference lib="dom" />
import { useState } from "preact/hooks";
import type { AdminClient } from "./admin_client.ts";
import type { Where } from "./api_types.ts";
import { JidInput } from "./jid_input.tsx";
import { StatusMark } from "./status_mark.tsx";
import { countOf, formatDuration } from "./text.ts";

type Search =
  | { readonly kind: "none" }
  | { readonly kind: "asking"; readonly jid: string }
  | { readonly kind: "found"; readonly where: Where }
  | { readonly kind: "failed"; readonly message: string };

/** A search box for a JID, and the way of a stanza to it. */
export function WhereSearch({ client, select, trace }: {
  readonly client: AdminClient;
  readonly select: (datacenter: string) => void;
  readonly trace: (jid: string) => void;
}) {
  const [search, setSearch] = useState<Search>({ kind: "none" });
  const ask = async (event: SubmitEvent) => {
    event.preventDefault();
    const jid = String(new FormData(event.currentTarget as HTMLFormElement).get("jid")).trim();
    if (jid === "") return;
    setSearch({ kind: "asking", jid });
    try {
      const where = await client.read<Where>(`/api/v1/where/${encodeURIComponent(jid)}`);
      setSearch({ kind: "found", where });
      if (where.verdict.datacenter !== undefined) select(where.verdict.datacenter);
    } catch (thrown) {
      setSearch({ kind: "failed", message: (thrown as Error).message });
    }
  };
  return (
    <section class="card where" aria-labelledby="where-title">
      <h2 id="where-title">Where is …?</h2>
      <form role="search" aria-labelledby="where-title" onSubmit={ask}>
        <label for="where-jid">JID</label>
        <JidInput id="where-jid" />
        <button type="submit">Find</button>
      </form>
      <div aria-live="polite">
        {search.kind === "asking" && <p class="note">Asking for {search.jid} …</p>}
        {search.kind === "failed" && <p class="failure">{search.message}</p>}
        {search.kind === "found" && (
          <Way
            where={search.where}
            trace={trace}
            close={() => setSearch({ kind: "none" })}
          />
        )}
      </div>
    </section>
  );
}

/** The places that this node asks, in their order, and the verdict. */
function Way({ where, trace, close }: {
  readonly where: Where;
  readonly trace: (jid: string) => void;
  readonly close: () => void;
}) {
  const { verdict, local, cache, redis } = where;
  const isFound = verdict.place === "here" || verdict.place === "datacenter";
  const state = isFound ? "good" : verdict.place === "nowhere" ? "warning" : "bad";
  return (
    <div class="way">
      <p class="verdict">
        <StatusMark state={state} text={verdict.text} />
      </p>
      <ol>
        <li>
          <h3>This node</h3>
          {local.sessions.map(({ jid, state, priority }) => (
            <p key={jid}>
              {jid}: {state}
              {priority !== undefined && `, priority ${priority}`}
            </p>
          ))}
          {local.isComponentHere && <p>A component serves it here.</p>}
          {local.sessions.length === 0 && !local.isComponentHere && <p>Not connected here.</p>}
          {local.bouncingStanzas > 0 && (
            <p>{countOf(local.bouncingStanzas, "stanza")} for it bounce here.</p>
          )}
        </li>
        <li>
          <h3>Cache</h3>
          {cache.length === 0 && <p>Nothing is cached.</p>}
          {cache.map(({ address, datacenter, ageMs, expiresInMs }) => (
            <p key={address}>
              {address}: {datacenter ?? "nowhere"}, {formatDuration(ageMs)} old, {expiresInMs < 0
                ? "counts only while Redis is away"
                : `expires in ${formatDuration(expiresInMs)}`}
            </p>
          ))}
        </li>
        <li>
          <h3>Redis</h3>
          {!redis.isReachable && <p>Cannot be asked: {redis.reason}</p>}
          {redis.isReachable && redis.claims.length === 0 && <p>Knows no login of it.</p>}
          {redis.claims.map(({ datacenter, node, resource, priority, ageMs, isLive }) => (
            <p key={`${datacenter} ${node} ${resource}`}>
              {resource === "" ? "component" : `/${resource}`} at {datacenter} ({node}), since{" "}
              {formatDuration(ageMs)}
              {priority !== undefined && `, priority ${priority}`}
              {!isLive && "; its node is gone"}
            </p>
          ))}
        </li>
      </ol>
      <p class="row-actions">
        <button type="button" onClick={() => trace(where.jid)}>Trace it</button>
        <button type="button" onClick={close}>Clear</button>
      </p>
    </div>
  );
}
