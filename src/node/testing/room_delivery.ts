import { ManualClock } from "../../base/mod.ts";
import { Envelope } from "../../distribution/mod.ts";
import type { EnvelopeFields } from "../../distribution/mod.ts";
import { Delivery } from "../../distribution/routing/delivery.ts";
import { DeliveryFixture } from "../../distribution/routing/testing/delivery_fixture.ts";
import { OWN_PROCESS, PEER_PROCESS } from "../../distribution/routing/testing/router_fixture.ts";
import { MetricsRegistry, SILENT_LOGGER } from "../../observe/mod.ts";
import type { CopyOrder } from "../../services/muc_light/mod.ts";
import type { RoomMessage, RoomStore } from "../../storage/mod.ts";
import { buildStanza, parseElement } from "../../xmpp/mod.ts";
import type { Stanza } from "../../xmpp/mod.ts";
import { LocalSide } from "../local_side.ts";
import type { LocalSideDeps } from "../local_side.ts";
import { makeCopyOrder } from "../node_rooms.ts";

const DOMAIN = "muclight.example.com";
const ROOM = `coven@${DOMAIN}`;

/** Surroundings of a `RoomDelivery` that a test plays. */
export interface RoomSurroundings extends Pick<RoomStore, "messages"> {
  readonly sessions: LocalSideDeps["sessions"];
  /** Takes a message for which no session is here any more. */
  returned(message: Envelope): void;
  /** Takes an answer, of which there should be none. */
  answer(): void;
}

/** The last step of routing at a node, for messages of a MUC Light room to bob. */
export class RoomDelivery {
  readonly clock = new ManualClock();
  readonly metrics = new MetricsRegistry(this.clock);
  readonly memory: DeliveryFixture["memory"];
  readonly order: CopyOrder<Envelope>;
  readonly #delivery: Delivery;
  #sequence = 0;

  constructor({ sessions, messages, returned, answer }: RoomSurroundings) {
    const fixture = new DeliveryFixture();
    const { clock, metrics } = this;
    this.memory = fixture.memory;
    this.order = makeCopyOrder(
      { mucLight: { domain: DOMAIN }, globalDistrib: { globalHost: "example.com" } },
      {
        stores: { rooms: () => ({ messages }) },
        local: () => local,
        router: () => ({
          memory: fixture.memory,
          returned,
          envelopCopy: (stanza) =>
            new Envelope({
              ...fieldsOf(stanza, ++this.#sequence),
              process: OWN_PROCESS,
              isCopy: true,
            }),
        }),
        metrics,
        log: SILENT_LOGGER,
        clock,
      },
    )!;
    const local = new LocalSide({
      globalHost: "example.com",
      hosts: new Set(["example.com"]),
      sessions,
      components: { find: () => undefined, deliver: () => "no-session" },
      services: { handle: () => "ignored" },
      rooms: { serves: (domain) => domain === DOMAIN, take: () => "ignored" },
      copyOrder: this.order,
      answer,
    });
    this.#delivery = new Delivery({
      ...fixture,
      process: OWN_PROCESS,
      local: { ...fixture.local, deliver: (envelope) => local.deliver(envelope) },
    });
  }

  /** Delivers a message; returns false when no session is here. */
  deliver(message: Envelope): boolean {
    return this.#delivery.deliverHere(message, true);
  }
}

/** Makes a message of the room to bob as a lane brings it. */
export function messageOverLane(
  number: number,
  fields: Partial<EnvelopeFields>,
  settle: () => void,
): Envelope {
  const xml = `<message from='${ROOM}/alice@example.com' to='bob@example.com' type='groupchat'>` +
    `<body>${number}</body>` +
    `<stanza-id xmlns='urn:xmpp:sid:0' by='${ROOM}' id='${number}'/></message>`;
  const stanza = buildStanza(parseElement(new TextEncoder().encode(xml)));
  const envelope = new Envelope({ ...fieldsOf(stanza, number), ...fields }, { settle });
  envelope.arrived("link", "dc2.example.com");
  return envelope;
}

/** Makes a message of the room as the database has it. */
export function messageInDatabase(number: number): RoomMessage {
  const stanza = `<message from='${ROOM}/alice@example.com' type='groupchat'>` +
    `<body>${number}</body></message>`;
  return { number, id: `${number}`, sentAtMs: 0, stanza };
}

/** Returns the number of a message, which is its text. */
export function numberIn({ bytes }: Stanza): number {
  return Number(/<body>(.*?)</.exec(new TextDecoder().decode(bytes))![1]);
}

function fieldsOf(stanza: Stanza, sequence: number): EnvelopeFields {
  return {
    stanza,
    process: PEER_PROCESS,
    sequence,
    origin: "dc2.example.com",
    sentAtUs: 0,
    ttl: 3,
    bounces: 0,
    mayBeRepeat: false,
  };
}
