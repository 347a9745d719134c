/** A login with one full JID at one node. */
export interface Claim<N> {
  readonly jid: string;
  readonly at: N;
  readonly epoch: number;
  readonly isLive: boolean;
}

/** Claims as one node knows them. */
export class TestTable<N> {
  readonly #claims = new Map<string, Map<N, Claim<N>>>();

  /** Takes a claim; false for one that is older than what is known. */
  apply(claim: Claim<N>): boolean {
    const claims = this.#claims.getOrInsertComputed(claim.jid, () => new Map());
    const known = claims.get(claim.at);
    const isNews = known === undefined || claim.epoch > known.epoch ||
      (claim.epoch === known.epoch && known.isLive && !claim.isLive);
    if (isNews) claims.set(claim.at, claim);
    return isNews;
  }

  /** Returns the newest live claim to a full JID. */
  newest(jid: string): Claim<N> | undefined {
    let newest: Claim<N> | undefined;
    for (const claim of this.#claims.get(jid)?.values() ?? []) {
      if (claim.isLive && claim.epoch > (newest?.epoch ?? 0)) newest = claim;
    }
    return newest;
  }

  /** Returns the newest live claim to each full JID of an account, a bare JID. */
  ofAccount(account: string): Claim<N>[] {
    const jids = [...this.#claims.keys()].filter((jid) => jid.startsWith(`${account}/`));
    return jids.flatMap((jid) => this.newest(jid) ?? []);
  }

  claimOf(jid: string, at: N): Claim<N> | undefined {
    return this.#claims.get(jid)?.get(at);
  }

  of(at: N): Claim<N>[] {
    return [...this.#claims.values()].flatMap((claims) => claims.get(at) ?? []);
  }
}
