import type { Clock } from "../base/mod.ts";
import { CausewayError, describeError, integerIn, SystemClock } from "../base/mod.ts";
import type { Logger, Metrics } from "../observe/mod.ts";
import { SILENT_LOGGER } from "../observe/mod.ts";
import type {
  BareJid,
  ChildElement,
  Stanza,
  StanzaErrorCondition,
  XmlElement,
} from "../xmpp/mod.ts";
import {
  errorReply,
  hasMoreElements,
  MAX_ID_BYTES,
  onlyChild,
  parseElement,
  stanzaId,
  stanzaSource,
  Turns,
} from "../xmpp/mod.ts";
import { DiscoInfo } from "./disco_info.ts";
import type { IsOn } from "./disco_info.ts";
import type { PublicDomains } from "./disco_items.ts";
import { DiscoItems } from "./disco_items.ts";
import { EntityTime } from "./entity_time.ts";
import { iqResult } from "./iq_result.ts";
import type {
  AccountDisco,
  AccountUse,
  IqAnswer,
  IqRequest,
  IqService,
  IqTarget,
  OwnClient,
  ServiceModule,
} from "./iq_service.ts";
import { Ping } from "./ping.ts";
import type { IgnoredKind } from "./service_metrics.ts";
import { ServiceMetrics } from "./service_metrics.ts";
import type { Software } from "./software_version.ts";
import { SoftwareVersion } from "./software_version.ts";

/** Default number of requests that may wait for their answer. */
export const DEFAULT_MAX_PENDING_REQUESTS = 1000;

/** Default number of requests of one account that may wait for their answer. */
export const DEFAULT_MAX_PENDING_PER_ACCOUNT = 200;

/** Default limit on the bytes of a request's payload. */
export const DEFAULT_MAX_IQ_BYTES = 65_536;

/** Default limit on the elements and attributes of a request's payload. */
export const DEFAULT_MAX_IQ_ELEMENTS = 1000;

/** Bounds on requests to the services of a datacenter. */
export interface HostServicesOptions {
  /** Requests that may wait for their answer at once; at least 1. @default 1000 */
  readonly maxPendingRequests?: number;
  /**
   * Requests of one account, or of one address outside, that may wait for their answer at once; at
   * least 1. @default 200
   */
  readonly maxPendingPerAccount?: number;
  /** Bytes of a request's payload; one past it is refused. At least 1. @default 65536 */
  readonly maxIqBytes?: number;
  /** Elements and attributes of a request's payload, itself included; at least 1. @default 1000 */
  readonly maxIqElements?: number;
}

/** Dependencies of the services of a datacenter, with their options. */
export interface HostServicesDeps extends HostServicesOptions {
  /** Name and version that disco and software version answer with. */
  readonly software: Software;
  readonly publicDomains: PublicDomains;
  /**
   * Takes the answer to `request`, a stanza for which `handle` returned `delivered`. Called exactly
   * once for each such stanza, inside `handle` or later. `isLast`: the client's session ends next.
   */
  readonly reply: (answer: Stanza, request: Stanza, isLast?: boolean) => void;
  readonly metrics: Metrics;
  readonly logger?: Logger;
  readonly clock?: Clock;
  /** Returns true if `host` has `module` turned on. @default all are on */
  readonly hasModule?: (host: string, module: ServiceModule) => boolean;
  /** Returns features of a host that no service has, for disco#info. @default none */
  readonly hostFeatures?: (host: string) => readonly string[];
  /** Discovery of accounts and their nodes. @default accounts have no nodes */
  readonly accounts?: AccountDisco;
  /**
   * True while the account of a client still exists, asked before the client changes data of it, and
   * while data is read for the client. Never rejects. @default always
   */
  readonly isCurrent?: (
    account: BareJid,
    client: OwnClient,
    use: AccountUse,
  ) => Promise<boolean>;
  /** Services beside the built-in ones. @default [] */
  readonly services?: readonly IqService[];
}

/** Conditions of errors that say more than that the server failed. */
const CONDITIONS: ReadonlyMap<string, StanzaErrorCondition> = new Map([
  ["storage/pool-full", "resource-constraint"],
  ["storage/managed-elsewhere", "not-allowed"],
]);

/**
 * Modules whose answers show a session of a former account nothing of the name's new owner: archives
 * are of accounts, not of names.
 */
const HARMLESS_READS: ReadonlySet<ServiceModule> = new Set([
  "mod_mam",
  "mod_ping",
  "mod_register",
]);

/** Answer to a session whose account is gone: the name may belong to somebody else. */
const FORMER: IqAnswer = { error: "registration-required" };

/**
 * Fate of a stanza: `delivered` when an answer goes to `reply`, `ignored` when the stanza needs no
 * answer, else the condition of the error that its sender must get.
 */
export type ServiceOutcome = "delivered" | "ignored" | StanzaErrorCondition;

/**
 * Answers for the hosts of this datacenter and, where a server speaks for its users, for the bare
 * JIDs of accounts (RFC 6120 §10.5.3, RFC 6121 §8.5.1 and §8.5.2.1.3).
 *
 * A request to an account is answered to its owner. Other requesters get an answer that is the same
 * for every address, existing or not (XEP-0030 §8): no account is looked up for it.
 */
export class HostServices {
  readonly #services = new Map<string, IqService>();
  readonly #pending = new Set<Promise<void>>();
  /** Pending requests by the bare JID of the requester. */
  readonly #pendingOf = new Map<string, number>();
  /** Requests to ordered services run one after another for each account. */
  readonly #turns = new Turns();
  readonly #reply: HostServicesDeps["reply"];
  readonly #metrics: ServiceMetrics;
  readonly #logger: Logger;
  #maxPending = DEFAULT_MAX_PENDING_REQUESTS;
  #maxPendingPerAccount = DEFAULT_MAX_PENDING_PER_ACCOUNT;
  readonly #isOn: IsOn;
  readonly #isCurrent: HostServicesDeps["isCurrent"];
  #maxIqBytes = DEFAULT_MAX_IQ_BYTES;
  #maxIqElements = DEFAULT_MAX_IQ_ELEMENTS;

  constructor(deps: HostServicesDeps) {
    const { hasModule } = deps;
    this.#isCurrent = deps.isCurrent;
    this.#isOn = ({ module }, host) =>
      module === undefined || hasModule === undefined || hasModule(host, module);
    const others = [
      new DiscoItems(deps.publicDomains, deps.accounts),
      new Ping(),
      new SoftwareVersion(deps.software),
      new EntityTime(deps.clock ?? new SystemClock()),
      ...deps.services ?? [],
    ];
    const info = new DiscoInfo(others, deps.software.name, this.#isOn, deps);
    for (const service of [info, ...others]) {
      const key = serviceKey(service.type, service.name, service.namespace);
      if (this.#services.has(key)) throw new TypeError(`Cannot have two services for ${key}`);
      this.#services.set(key, service);
    }
    this.#reply = deps.reply;
    this.#metrics = new ServiceMetrics(deps.metrics);
    this.#logger = deps.logger ?? SILENT_LOGGER;
    this.change(deps);
  }

  /** Takes other bounds for requests that come from now on. */
  change(options: HostServicesOptions): void {
    this.#maxPending = integerIn(
      "maxPendingRequests",
      options.maxPendingRequests ?? DEFAULT_MAX_PENDING_REQUESTS,
      { min: 1 },
    );
    this.#maxPendingPerAccount = integerIn(
      "maxPendingPerAccount",
      options.maxPendingPerAccount ?? DEFAULT_MAX_PENDING_PER_ACCOUNT,
      { min: 1 },
    );
    this.#maxIqBytes = integerIn("maxIqBytes", options.maxIqBytes ?? DEFAULT_MAX_IQ_BYTES, {
      min: 1,
    });
    this.#maxIqElements = integerIn(
      "maxIqElements",
      options.maxIqElements ?? DEFAULT_MAX_IQ_ELEMENTS,
      { min: 1 },
    );
  }

  /** Requests that wait for their answer. */
  get pendingRequests(): number {
    return this.#pending.size;
  }

  /**
   * Takes a stanza for a host, or an IQ for the bare JID of an account. Never throws.
   *
   * @param client the client that sent it, if that is connected to this node
   */
  handle(stanza: Stanza, client?: OwnClient): ServiceOutcome {
    switch (stanza.kind) {
      case "presence":
        return this.#ignore("presence");
      case "message":
        return stanza.type === "error" ? this.#ignore("message-error") : this.#refuse();
      case "iq":
        // The services here send no requests, so no answer can be for them.
        if (stanza.type === "result" || stanza.type === "error") return this.#ignore("iq-reply");
        return this.#handleRequest(stanza, stanza.type === "set" ? "set" : "get", client);
      default:
        return stanza.kind satisfies never;
    }
  }

  /**
   * Runs `task` behind all requests of an account to ordered services that were taken by now. A
   * failure is logged. `close` waits for it.
   */
  runInTurn(bareJid: string, run: () => Promise<void>): void {
    const task = this.#turns.run(bareJid, run)
      .catch((thrown) =>
        this.#logger.warn("services.task-failed", { error: describeError(thrown) })
      )
      .finally(() => this.#pending.delete(task));
    this.#pending.add(task);
  }

  /** Waits until every request that was taken has its answer. */
  async close(): Promise<void> {
    while (this.#pending.size > 0) await Promise.all(this.#pending);
  }

  #handleRequest(
    stanza: Stanza,
    type: "get" | "set",
    client: OwnClient | undefined,
  ): ServiceOutcome {
    const target: IqTarget = stanza.to.localpart === "" ? "host" : "account";
    const isStranger = target === "account" && stanza.from.bare.text !== stanza.to.text;
    const found = this.#findPayload(stanza);
    if (found === undefined) return this.#count("bad-request");
    const service = this.#services.get(serviceKey(type, found.name, found.namespace));
    if (service === undefined || !service.targets.includes(target)) return this.#refuse();
    if (!this.#isOn(service, stanza.to.domainpart)) return this.#refuse();
    const maxBytes = service.maxBytes?.(stanza.to.domainpart) ?? this.#maxIqBytes;
    if (this.#isTooLarge(found, maxBytes)) return this.#count("policy-violation");
    if (!this.#hasRoomFor(stanza)) return this.#count("resource-constraint");
    const payload = this.#tryParse(found);
    if (payload === undefined) return this.#count("bad-request");
    const id = stanzaId(stanza);
    // Our own streams refuse longer ids. Another datacenter's streams might not.
    if (id !== undefined && id.length > MAX_ID_BYTES) return this.#count("bad-request");
    const request = { stanza, id, target, payload, client };
    const ask = isStranger ? service.answerStranger?.bind(service) : service.answer.bind(service);
    if (ask === undefined) return this.#refuse();
    this.#ask(service, request, ask);
    return "delivered";
  }

  #hasRoomFor({ from }: Stanza): boolean {
    return this.#pending.size < this.#maxPending &&
      (this.#pendingOf.get(from.bare.text) ?? 0) < this.#maxPendingPerAccount;
  }

  #ask(service: IqService, request: IqRequest, ask: IqService["answer"]): void {
    const use = this.#useOf(service, request);
    if (service.isOrdered === true) {
      const key = request.stanza.from.bare.text;
      const answering = this.#turns.run(key, () => this.#answerChecked(request, ask, use));
      return this.#wait(request, service, answering);
    }
    if (use !== undefined) {
      return this.#wait(request, service, this.#answerChecked(request, ask, use));
    }
    let answer;
    try {
      answer = ask(request);
    } catch (thrown) {
      return this.#fail(request, service, thrown);
    }
    if (answer instanceof Promise) this.#wait(request, service, answer);
    else this.#finish(request, answer);
  }

  /**
   * Answers a request, unless it is of a session of a former account. A change waits for the lookup. A
   * read goes on beside it, so that its answer comes no later.
   */
  async #answerChecked(
    request: IqRequest,
    ask: IqService["answer"],
    use: AccountUse | undefined,
  ): Promise<IqAnswer> {
    if (use === undefined) return await ask(request);
    const checked = this.#isFormer(request, use); // never rejects
    if (use === "change") {
      if (await checked) return FORMER;
      return await ask({ ...request, isCurrent: async () => !await this.#isFormer(request, use) });
    }
    // A function that is async: what the service throws at once becomes a rejection.
    const answer = (async () => await ask({ ...request, checked }))();
    answer.catch(() => {}); // it counts below, unless the session is refused, and ends, before it comes
    return await checked ? FORMER : await answer;
  }

  /** Returns the use for which the account of the client is looked up; undefined: it is not. */
  #useOf(
    { module, type, isOrdered, isForFormerOwners }: IqService,
    { client, target }: IqRequest,
  ): AccountUse | undefined {
    if (this.#isCurrent === undefined || client === undefined) return undefined;
    if (type === "set") {
      return isOrdered === true && isForFormerOwners !== true ? "change" : undefined;
    }
    const isHarmless = module !== undefined && HARMLESS_READS.has(module);
    return target === "account" && !isHarmless ? "read" : undefined;
  }

  /** True when the account of the client is gone. */
  async #isFormer({ client, stanza: { from } }: IqRequest, use: AccountUse): Promise<boolean> {
    return client !== undefined && await this.#isCurrent?.(from.bare, client, use) === false;
  }

  /** Undefined unless the IQ holds exactly one element (RFC 6120 §8.2.3). */
  #findPayload({ bytes }: Stanza): ChildElement | undefined {
    return this.#tryRead(() => onlyChild(stanzaSource(bytes)));
  }

  /**
   * Returns true for a payload too large to parse into a tree: parsing costs a hundred times as
   * much as finding it.
   */
  #isTooLarge(payload: ChildElement, maxBytes: number): boolean {
    return payload.end - payload.start > maxBytes ||
      hasMoreElements(payload, this.#maxIqElements);
  }

  #tryParse({ bytes, start, end, defaultNamespace, prefixes }: ChildElement) {
    const payload = bytes.subarray(start, end);
    return this.#tryRead(() => parseElement(payload, defaultNamespace, prefixes));
  }

  #tryRead<Result>(read: () => Result | undefined): Result | undefined {
    try {
      return read();
    } catch (thrown) {
      // Our own streams refuse such stanzas. Another datacenter's streams might not.
      this.#logger.warn("services.unreadable", { error: describeError(thrown) });
      return undefined;
    }
  }

  /** Answers later; `close` waits for it. */
  #wait(request: IqRequest, service: IqService, answering: Promise<IqAnswer>): void {
    const requester = request.stanza.from.bare.text;
    this.#pendingOf.set(requester, (this.#pendingOf.get(requester) ?? 0) + 1);
    const task = answering
      .then(
        (answer) => this.#finish(request, answer),
        (thrown) => this.#fail(request, service, thrown),
      )
      .catch((thrown) => this.#logger.error("services.lost", { error: describeError(thrown) }))
      .finally(() => {
        this.#pending.delete(task);
        const left = this.#pendingOf.get(requester)! - 1; // set above
        if (left === 0) this.#pendingOf.delete(requester);
        else this.#pendingOf.set(requester, left);
      });
    this.#pending.add(task);
  }

  #finish(request: IqRequest, answer: IqAnswer): void {
    if (answer !== "empty" && "error" in answer) {
      return this.#answerError(request, answer.error, answer.detail);
    }
    const { stanza, id } = request;
    const result = iqResult(answer, { id, from: stanza.to, to: stanza.from });
    this.#metrics.answered.inc();
    if (answer === "empty" || !("farewell" in answer)) return this.#reply(result, stanza);
    this.#reply(result, stanza, true);
    answer.farewell.endSessions();
    this.runInTurn(stanza.from.bare.text, () => answer.farewell.cleanUp());
  }

  #fail(request: IqRequest, service: IqService, thrown: unknown): void {
    const { namespace } = service;
    const code = thrown instanceof CausewayError ? thrown.code : "";
    const fields = { namespace, error: describeError(thrown) };
    // The database reports its own failures, once and not for each request.
    if (code.startsWith("storage/")) this.#logger.debug("services.no-storage", fields);
    else this.#logger.error("services.failed", fields);
    this.#answerError(request, CONDITIONS.get(code) ?? "internal-server-error");
  }

  #answerError(
    { stanza }: IqRequest,
    condition: StanzaErrorCondition,
    detail?: XmlElement,
  ): void {
    const error = errorReply(stanza, condition, { ...detail !== undefined && { detail } });
    if (error === undefined) throw new TypeError("A request can always be answered with an error");
    this.#metrics.refused.inc();
    this.#reply(error, stanza);
  }

  #refuse(): StanzaErrorCondition {
    return this.#count("service-unavailable");
  }

  #count(condition: StanzaErrorCondition): StanzaErrorCondition {
    this.#metrics.refused.inc();
    return condition;
  }

  #ignore(what: IgnoredKind): "ignored" {
    this.#metrics.ignored[what].inc();
    return "ignored";
  }
}

function serviceKey(type: string, name: string, namespace: string): string {
  return `${type} {${namespace}}${name}`;
}
