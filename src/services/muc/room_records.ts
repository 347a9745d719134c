import { randomHex } from "../../base/mod.ts";
import type { StoredMucRoom } from "../../storage/mod.ts";
import type { BareJid } from "../../xmpp/mod.ts";
import { isStorageFailure } from "../rooms/mod.ts";
import type { LiveRooms, RoomRecord } from "./live_rooms.ts";
import type { Refusal } from "./muc_answers.ts";
import type { MucMetrics } from "./muc_metrics.ts";
import type { MucService } from "./muc_options.ts";
import { readSettings, writeSettings } from "./room_settings.ts";
import type { RoomSettings } from "./room_settings.ts";

/** Collaborators of `RoomRecords`. */
export interface RoomRecordsDeps {
  readonly service: {
    readonly options: Pick<MucService["options"], "defaultRoom" | "maxCreatedRooms" | "maxRoomId">;
    readonly store: Pick<MucService["store"], "read" | "create">;
  };
  readonly rooms: Pick<LiveRooms, "get">;
  readonly counters: Pick<MucMetrics, "created">;
  /** Takes note of a failure. */
  note(thrown: unknown): void;
}

/** A room that is in the database. */
export interface FoundRoom {
  readonly record: RoomRecord;
  /** True when it was made a moment ago, for the one who enters it. */
  readonly isNew: boolean;
  /** Number of the room's last message; 0 when it is not known. */
  readonly lastNumber: number;
}

/** Reads rooms from the database, and makes those that somebody is the first to enter. */
export class RoomRecords {
  readonly #deps: RoomRecordsDeps;

  constructor(deps: RoomRecordsDeps) {
    this.#deps = deps;
  }

  /** Returns the settings of a room as they are in the database. */
  settingsOf({ config }: Pick<StoredMucRoom, "config">): RoomSettings {
    const { defaultRoom } = this.#deps.service.options;
    return readSettings(config, { ...defaultRoom, isLocked: false, secret: "" });
  }

  recordOf(stored: StoredMucRoom): RoomRecord {
    const { creation, affiliates, subject } = stored;
    return { creation, affiliates, subject, settings: this.settingsOf(stored) };
  }

  /**
   * Returns a room; undefined when there is none of that name. While the database is away, the room is
   * as the sessions of this node in it know it.
   *
   * @throws CausewayError `storage/…`
   */
  async read(room: string): Promise<FoundRoom | undefined> {
    const { service: { store }, rooms, note } = this.#deps;
    try {
      const stored = await store.read(room);
      return stored === undefined
        ? undefined
        : { record: this.recordOf(stored), isNew: false, lastNumber: stored.lastNumber };
    } catch (thrown) {
      const { record } = rooms.get(room) ?? {};
      if (record === undefined || !isStorageFailure(thrown)) throw thrown;
      note(thrown);
      return { record, isNew: false, lastNumber: 0 };
    }
  }

  /**
   * Returns the room that somebody enters, as `read` does, and makes it when there is none; or what
   * keeps them from making it.
   *
   * @param account bare JID of the owner of a new room
   * @throws CausewayError `storage/…`
   */
  async findOrMake(jid: BareJid, account: string): Promise<FoundRoom | Refusal> {
    const { options } = this.#deps.service;
    const found = await this.read(jid.text);
    if (found !== undefined) return found;
    if (new TextEncoder().encode(jid.localpart).length > options.maxRoomId) {
      return { error: "not-acceptable" };
    }
    // Others may have made it since it was read.
    return await this.#make(jid.text, account) ?? await this.findOrMake(jid, account);
  }

  /** Makes a room, which is locked until its owner configures it; undefined when it is there. */
  async #make(room: string, account: string): Promise<FoundRoom | Refusal | undefined> {
    const { service: { store, options }, counters } = this.#deps;
    const settings = { ...options.defaultRoom, isLocked: true, secret: randomHex(16) };
    const affiliates = [{ jid: account, affiliation: "owner" as const, reason: "" }];
    const version = await store.create(room, {
      config: writeSettings(settings),
      isListed: settings.public,
      affiliates,
      creator: account,
      maxCreated: options.maxCreatedRooms,
    });
    if (version === "exists") return undefined;
    if (version === "too-many") {
      const text =
        `Cannot make another room: the limit for one person is ${options.maxCreatedRooms}`;
      return { error: "resource-constraint", text };
    }
    counters.created.inc();
    // Creations and numbers begin with the first version.
    const record = { creation: version, settings, affiliates, subject: "" };
    return { record, isNew: true, lastNumber: version };
  }
}
