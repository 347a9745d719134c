import type { OpenLink } from "../../mod.ts";
import { changesFrame, decodePosition, leaseFrame, snapshotFrame } from "../../wire/mod.ts";
import type { LeaseFields, TableRecord } from "../../wire/mod.ts";
import { advance } from "./table.ts";
import type { TestTable } from "./table.ts";

/** A node of another datacenter, by default dc2, that sends its entries to a table over a link. */
export class TestAuthor implements OpenLink {
  readonly host: string;
  readonly nodeName: string;
  readonly process: number;
  readonly refusals: string[] = [];
  /** Frames that came from the table. */
  readonly frames: Uint8Array[] = [];
  readonly test: TestTable;

  constructor(
    test: TestTable,
    process = 0xb2,
    host = "dc2.example.com",
    nodeName = `node1@${host}`,
  ) {
    this.test = test;
    this.process = process;
    this.host = host;
    this.nodeName = nodeName;
    test.table.traffic!.accepted(this);
  }

  send(frame: Uint8Array): void {
    this.frames.push(frame.slice());
  }

  refuse(detail: string): void {
    this.refusals.push(detail);
  }

  /** Round of the last POSITION. */
  get round(): number {
    const position = this.frames.findLast((frame) => frame[4] === 0x0b);
    return position === undefined ? 0 : decodePosition(position, 0, position.length).round;
  }

  /** Passes frames to the table and lets it apply them. */
  async say(...frames: Uint8Array[]): Promise<void> {
    for (const frame of frames) {
      this.test.table.traffic!.frame(this, frame[4]!, frame, 0, frame.length);
    }
    await advance(this.test.clock, 10, 1);
  }

  lease(fields: Partial<LeaseFields> = {}): Uint8Array {
    return leaseFrame({
      process: this.process,
      startedUs: 1,
      nowUs: this.test.clock.wallUs(),
      lastNumber: 1_000,
      lifeMs: 120_000,
      localHost: this.host,
      nodeName: this.nodeName,
      endpoints: ["192.0.2.2#5555"],
      ...fields,
    });
  }

  changes(first: number, ...records: TableRecord[]): Uint8Array {
    return changesFrame({ process: this.process, round: this.round, first }, records).frame;
  }

  snapshot(number: number, ...records: TableRecord[]): Uint8Array {
    const { process } = this;
    const { round } = this;
    const piece = { process, round, number, chunk: 1, isFirst: true, isLast: true, records };
    return snapshotFrame(piece);
  }
}

/** Makes a claim with an epoch of its own. */
export function claim(sequence: number, name: string, resourcepart: string): TableRecord {
  const epoch = 1_000_000 + sequence;
  return { kind: "claim", isHidden: false, sequence, epoch, name, resourcepart };
}
