import type { Stanza, StanzaErrorCondition } from "../../xmpp/mod.ts";
import { RoomIntake } from "../rooms/mod.ts";
import type { RoomStanza } from "../rooms/mod.ts";
import { Arrivals } from "./arrivals.ts";
import { EmptyRooms } from "./empty_rooms.ts";
import { GoneSeats } from "./gone_seats.ts";
import { Handovers } from "./handovers.ts";
import { Invitations } from "./invitations.ts";
import { LeftSeats } from "./left_seats.ts";
import { LiveRooms } from "./live_rooms.ts";
import { MessageOrder } from "./message_order.ts";
import { MucAnswers } from "./muc_answers.ts";
import { declareGauges, mucMetrics } from "./muc_metrics.ts";
import type { MucMetrics } from "./muc_metrics.ts";
import type { MucServerDeps } from "./muc_ports.ts";
import { MucRequests } from "./muc_requests.ts";
import type { MucRequestsDeps } from "./muc_requests.ts";
import { OccupantRequests } from "./occupant_requests.ts";
import { Peers } from "./peers.ts";
import { RoomChanges } from "./room_changes.ts";
import { RoomEntrance } from "./room_entrance.ts";
import { RoomExit } from "./room_exit.ts";
import { RoomHistory } from "./room_history.ts";
import { RoomPosts } from "./room_posts.ts";
import { RoomRecords } from "./room_records.ts";
import { Sleepers } from "./sleepers.ts";
import { VoiceRequests } from "./voice_requests.ts";
import { WaitingLeaves } from "./waiting_leaves.ts";

/** Parts of the rooms that take stanzas and calls from outside. */
export interface MucParts<Taken extends RoomStanza> {
  readonly counters: MucMetrics;
  readonly intake: RoomIntake<Taken>;
  readonly answers: MucAnswers<Taken>;
  readonly rooms: LiveRooms;
  readonly order: MessageOrder;
  readonly handovers: Handovers;
  readonly peers: Peers;
  readonly leaves: WaitingLeaves;
  readonly arrivals: Arrivals;
  readonly entrance: RoomEntrance<Taken>;
  readonly exit: RoomExit;
  readonly posts: RoomPosts<Taken>;
  readonly requests: MucRequests;
  readonly occupantRequests: OccupantRequests<Taken>;
}

/** Makes the parts of the rooms of one domain, and connects them. */
export function makeMucParts<Taken extends RoomStanza>(
  deps: MucServerDeps<Taken>,
): MucParts<Taken> {
  const { service, process, clock, metrics, logger } = deps;
  const counters = mucMetrics(metrics);
  const intake = new RoomIntake<Taken>({
    messagesPerSec: service.options.messagesPerSec,
    counters,
    answer: (reply, taken) => deps.answer(reply, taken),
    logNoStorage: (fields) => logger.debug("muc.no-storage", fields),
    logBug: (fields) => logger.error("muc.bug", fields),
    clock,
  });
  const inTurn = (room: string, step: () => Promise<void>) => intake.inTurn(room, step);
  const note = (thrown: unknown) => intake.note(thrown);
  const answers = new MucAnswers<Taken>({ ...deps, intake });
  const refuse = (taken: Taken, condition: StanzaErrorCondition, text?: string) =>
    answers.refuse(taken, condition, text);

  const gone = new GoneSeats(clock);
  const rooms = new LiveRooms(
    process,
    (to, stanza, { follows }) => {
      // The session has moved to another node, which will tell of it.
      if (!deps.deliver(to, stanza) && follows && !deps.isHere(to)) deps.send(stanza);
    },
    counters,
    gone,
  );
  const records = new RoomRecords({ service, rooms, counters, note });
  const history = new RoomHistory({ service, rooms, note });
  const order = new MessageOrder({ service, rooms, metrics: counters, clock, inTurn });
  const handovers = new Handovers({ service, rooms, order, clock, inTurn });
  const peers = new Peers({
    ...deps,
    rooms,
    counters,
    handOver: (seat) => handovers.handOver(seat),
    seated: (seat) => arrivals.told(seat),
    heard: (sent) => {
      if (sent.news.kind === "left") exit.leftElsewhere(sent.news);
      else if (sent.news.kind === "asleep") sleepers.heard(sent.process, sent.news);
      else if (sent.news.kind === "gone") handovers.gone(sent.process, sent.news);
      else changes.heard(sent);
    },
    mayHaveMissed: () => changes.reviewAll(),
    looked: () => {
      posts.retry();
      arrivals.look();
      leftSeats.look();
      sleepers.look();
      const nowMs = clock.monotonicMs();
      changes.look(nowMs);
      empty.look(nowMs);
      exit.look(nowMs);
    },
  });
  const { seats } = peers;

  const leaves = new WaitingLeaves();
  const sleepers = new Sleepers({ ...deps, rooms, peers });
  const leftSeats = new LeftSeats({ process, rooms, peers });
  const empty = new EmptyRooms({ ...deps, rooms, peers, records, counters, inTurn });
  const exit = new RoomExit({
    ...deps,
    rooms,
    seats,
    leaves,
    leftSeats,
    empty,
    counters,
    due: (room, session) => arrivals.due(room, session),
    left: (room, session, seat) => arrivals.left(room, session, seat),
    inTurn,
  });
  const changes = new RoomChanges({
    ...deps,
    rooms,
    order,
    peers,
    seats,
    counters,
    inTurn,
    recordOf: (stored) => records.recordOf(stored),
    remove: (seat, about) => exit.remove(seat, about),
  });
  const clear: RoomChanges["clear"] = (room, about) => changes.clear(room, about);
  const changed: MucRequestsDeps["changed"] = (room, { codes, notes }) => {
    peers.tellChange({ kind: "changed", room, codes, notes });
    return changes.review(room, { codes, notes });
  };
  const giveRole: MucRequestsDeps["giveRole"] = (room, about) => {
    peers.tell({ kind: "role", room, ...about });
    changes.giveRole(room, about);
  };

  const entrance = new RoomEntrance<Taken>({
    ...deps,
    rooms,
    gone,
    records,
    history,
    order,
    handovers,
    peers,
    seats,
    changes,
    empty,
    counters,
    refuse,
  });
  const arrivals = new Arrivals({ ...deps, rooms, gone, leftSeats, leaves, entrance, inTurn });
  const requests = new MucRequests({
    service,
    rooms,
    records,
    counters,
    changed,
    destroyed: (room, about) => {
      peers.tellChange({ kind: "destroyed", room, ...about });
      clear(room, about);
    },
    giveRole,
  });
  const occupantRequests = new OccupantRequests<Taken>({
    rooms,
    gone,
    records,
    counters,
    sleepers,
    send: (stanza, settled) => deps.send(stanza, settled),
    refuse,
    finish: (taken, answer) => answers.finish(taken, answer),
  });
  const send = (stanza: Stanza) => deps.send(stanza);
  const posts = new RoomPosts<Taken>({
    ...deps,
    rooms,
    order,
    peers,
    invitations: new Invitations({
      service,
      rooms,
      records,
      send,
      changed: (room) => changed(room, { codes: [], notes: {} }),
    }),
    voice: new VoiceRequests({ rooms, counters, clock, send, giveRole }),
    counters,
    inTurn,
    refuse,
    note,
    clear,
  });
  declareGauges(metrics, {
    pending: () => intake.pending,
    waiting_messages: () => posts.waiting,
    occupants: () => rooms.seats,
    rooms: () => rooms.size,
  });
  return {
    counters,
    intake,
    answers,
    rooms,
    order,
    handovers,
    peers,
    leaves,
    arrivals,
    entrance,
    exit,
    posts,
    requests,
    occupantRequests,
  };
}
