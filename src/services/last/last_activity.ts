import type { Clock } from "../../base/mod.ts";
import type { LastStore } from "../../storage/mod.ts";
import { element } from "../../xmpp/mod.ts";
import type { BareJid, Jid, Stanza } from "../../xmpp/mod.ts";
import type { IqAnswer, IqRequest, IqService } from "../iq_service.ts";

const NAMESPACE = "jabber:iq:last";

/** Objects behind the last activity. */
export interface LastActivityDeps {
  /** Returns the last logouts of the accounts of a host. */
  storeOf(host: string): LastStore;
  /** True while the account is online, as far as the requester has been told of its presence. */
  isOnline(account: BareJid, requester: Jid): boolean;
  /**
   * True for those who may see the presence of an account, and with it its last logout. It must not
   * reveal by its time whether the account exists. @default nobody but the owner
   */
  maySee?(requester: Jid, account: BareJid): boolean | Promise<boolean>;
  readonly clock: Clock;
}

/**
 * Answers how long a host has been up, and how long ago an account has logged out (XEP-0012): to
 * its owner, and to those who may see its presence.
 */
export class LastActivity implements IqService {
  readonly namespace = NAMESPACE;
  readonly name = "query";
  readonly type = "get";
  readonly module = "mod_last";
  readonly targets = ["host", "account"] as const;
  readonly features = [NAMESPACE];
  readonly isOrdered = true;
  readonly #deps: LastActivityDeps;
  readonly #startedMs: number;

  constructor(deps: LastActivityDeps) {
    this.#deps = deps;
    this.#startedMs = deps.clock.monotonicMs();
  }

  answer({ stanza, target }: IqRequest): IqAnswer | Promise<IqAnswer> {
    if (target === "account") return this.#lastLogout(stanza);
    return secondsAgo(this.#deps.clock.monotonicMs() - this.#startedMs);
  }

  /** Answers `forbidden` for every account that the requester may not see, existing or not. */
  async answerStranger({ stanza }: IqRequest): Promise<IqAnswer> {
    const mayPass = await this.#deps.maySee?.(stanza.from, stanza.to.bare) ?? false;
    return mayPass ? await this.#lastLogout(stanza) : { error: "forbidden" };
  }

  async #lastLogout({ from, to }: Stanza): Promise<IqAnswer> {
    const { storeOf, isOnline, clock } = this.#deps;
    const account = to.bare;
    if (isOnline(account, from)) return secondsAgo(0);
    const last = await storeOf(account.domainpart).read(account.localpart);
    if (last === undefined) return { error: "item-not-found" }; // it was never online
    return secondsAgo(clock.wallMs() - last.atMs, last.status);
  }
}

function secondsAgo(ms: number, status = ""): IqAnswer {
  const seconds = `${Math.max(0, Math.floor(ms / 1000))}`;
  return {
    payload: element(
      "query",
      { xmlns: NAMESPACE, seconds },
      status === "" ? undefined : status,
    ),
  };
}
