import type { Fetching, ResumeRequest } from "./moving_session.ts";

/** Request for another node's session, of which others at this node wait to hear. */
export interface ComingSession extends Fetching {
  /** Reports that the session has its place here, or is not to get one. Called once. */
  over(): void;
}

interface Coming {
  readonly account: string;
  readonly over: Promise<void>;
  isAwaited: boolean;
}

/**
 * Sessions of other nodes that are asked for, or about to get their place here, by id. Their old nodes
 * may have given them already, and this node does not find them yet.
 */
export class ComingSessions {
  readonly #byId = new Map<string, Coming>();

  /**
   * Notes a session that is asked for. While anybody waits for it, nobody cancels the request: a session
   * whose client has gone waits here to be resumed.
   */
  add({ previd, account }: ResumeRequest, fetching: Fetching): ComingSession {
    const { promise, resolve } = Promise.withResolvers<void>();
    const coming: Coming = { account, over: promise, isAwaited: false };
    this.#byId.set(previd, coming);
    return {
      arrival: fetching.arrival,
      cancel: () => {
        if (!coming.isAwaited) fetching.cancel();
      },
      over: () => {
        if (this.#byId.get(previd) === coming) this.#byId.delete(previd);
        resolve();
      },
    };
  }

  /** Waits until it is decided whether a session is here; undefined for one that is not on its way. */
  wait({ previd, account }: ResumeRequest): Promise<void> | undefined {
    const coming = this.#byId.get(previd);
    if (coming?.account !== account) return undefined;
    coming.isAwaited = true;
    return coming.over;
  }
}
