import type { Fetching, ResumeRequest } from "./moving_session.ts";

/** Request for another node's session, of which others at this node wait to hear. */
export interface ComingSession extends Fetching {
  /** Reports that the session has its place here, or is not to get one. Called once. */
  over(): void;
}

interface Coming {
  readonly fetching: Fetching;
  readonly over: Promise<void>;
  isAwaited: boolean;
}

/**
 * Sessions of other nodes that are asked for, or about to get their place here. Their old nodes may have
 * given them already, and this node does not find them yet.
 */
export class ComingSessions {
  /** By account and id: an account that names the session of another one asks for it in vain. */
  readonly #coming = new Map<string, Coming>();

  /**
   * Notes a session that is asked for. While anybody waits for it, nobody cancels the request: a session
   * whose client has gone waits here to be resumed.
   */
  add(request: ResumeRequest, fetching: Fetching): ComingSession {
    const { promise, resolve } = Promise.withResolvers<void>();
    const coming: Coming = { fetching, over: promise, isAwaited: false };
    const key = keyOf(request);
    this.#coming.set(key, coming);
    return {
      arrival: fetching.arrival,
      get hasBegun() {
        return fetching.hasBegun;
      },
      cancel: () => {
        if (!coming.isAwaited) fetching.cancel();
      },
      over: () => {
        if (this.#coming.get(key) === coming) this.#coming.delete(key);
        resolve();
      },
    };
  }

  /** Waits until it is decided whether a session is here; undefined for one that is not asked for. */
  wait(request: ResumeRequest): Promise<void> | undefined {
    return waitFor(this.#coming.get(keyOf(request)));
  }

  /**
   * As `wait`, but undefined also for a session that no node has begun to send: two nodes that asked each
   * other for it would wait for each other.
   */
  waitElsewhere(request: ResumeRequest): Promise<void> | undefined {
    const coming = this.#coming.get(keyOf(request));
    return coming?.fetching.hasBegun === true ? waitFor(coming) : undefined;
  }
}

function waitFor(coming: Coming | undefined): Promise<void> | undefined {
  if (coming === undefined) return undefined;
  coming.isAwaited = true;
  return coming.over;
}

/** An account has no spaces; what a client gives as an id may have any. */
function keyOf({ account, previd }: ResumeRequest): string {
  return `${account} ${previd}`;
}
