import { StatusMark } from "./status_mark.tsx";
import { countOf, formatBytes, formatCount, formatDuration } from "./text.ts";
import type { Facts } from "./view_state.ts";

/** The addresses that stanzas wait for, as nobody knows where they are. */
export function BounceCard({ facts }: { readonly facts: Facts }) {
  const { bounces, bounceTotals } = facts;
  return (
    <section class="card" aria-labelledby="bounce-title">
      <h2 id="bounce-title">What bounces</h2>
      {bounces.length === 0 ? <p class="empty">No stanza waits for an address.</p> : (
        <>
          <p class="note">
            {countOf(bounceTotals.stanzas, "stanza")} for{" "}
            {countOf(bounceTotals.addresses, "address", "addresses")}
            {bounceTotals.addresses > bounces.length && `; the first ${bounces.length} are below`}
          </p>
          <div class="scroll" tabIndex={0} role="region" aria-label="Table of what bounces">
            <table aria-label="What bounces">
              <thead>
                <tr>
                  <th scope="col">Address</th>
                  <th scope="col" class="number">Stanzas</th>
                  <th scope="col" class="number">Attempts</th>
                  <th scope="col" class="number">Next retry</th>
                </tr>
              </thead>
              <tbody>
                {bounces.map((bounce) => (
                  <tr key={bounce.address}>
                    <th scope="row">{bounce.address}</th>
                    <td class="number">
                      {formatCount(bounce.stanzas)} ({formatBytes(bounce.bytes)})
                    </td>
                    <td class="number">{bounce.attempts} of {bounce.maxAttempts}</td>
                    <td class="number">
                      {bounce.isLooking
                        ? "looking up"
                        : bounce.nextRetryInMs === undefined
                        ? "–"
                        : formatDuration(bounce.nextRetryInMs)}
                    </td>
                  </tr>
                ))}
              </tbody>
            </table>
          </div>
        </>
      )}
    </section>
  );
}

/** Redis, the databases and directories, and this node's connections to them. */
export function DatabaseCard({ facts: { databases } }: { readonly facts: Facts }) {
  return (
    <section class="card" aria-labelledby="databases-title">
      <h2 id="databases-title">Databases</h2>
      <ul class="rows">
        {databases.map((database) => {
          const { pool, kind, place, state, reason, connections, maxConnections, waiting } =
            database;
          return (
            <li key={pool}>
              <span class="name">{pool}</span>
              <StatusMark state={state} />
              <span class="note">
                {kind}: {place}
                {connections !== undefined &&
                  ` · ${connections}${
                    maxConnections === undefined ? "" : ` of ${maxConnections}`
                  } connections`}
                {waiting !== undefined && waiting > 0 &&
                  ` · ${countOf(waiting, "request")} waiting`}
              </span>
              {reason !== undefined && <span class="reason">{reason}</span>}
            </li>
          );
        })}
      </ul>
    </section>
  );
}

/** The certificates in use, and the days that are left. */
export function CertificateCard({ facts: { certificates } }: { readonly facts: Facts }) {
  return (
    <section class="card" aria-labelledby="certificates-title">
      <h2 id="certificates-title">Certificates</h2>
      {certificates.length === 0
        ? <p class="empty">No certificate is in use.</p>
        : (
          <ul class="rows">
            {certificates.map(({ certfile, names, daysLeft, isExpiringSoon, expiresAt }) => (
              <li key={certfile}>
                <span class="name">{names.join(", ")}</span>
                <StatusMark
                  state={daysLeft < 3 ? "bad" : isExpiringSoon ? "warning" : "good"}
                  text={daysLeft < 0 ? "expired" : `${countOf(daysLeft, "day")} left`}
                />
                <span class="note">{certfile} · until {expiresAt.slice(0, 10)}</span>
              </li>
            ))}
          </ul>
        )}
    </section>
  );
}
