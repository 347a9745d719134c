import { Command, Option } from "commander";
import type { TraceBegun, TraceNode, TraceStepAnswer } from "../admin/mod.ts";
import type { SentEvent } from "../admin_client/mod.ts";
import { CausewayError } from "../base/mod.ts";
import type { AdminCommandOptions } from "./admin_options.ts";
import { addAdminOptions, connectAdmin, timeSpan } from "./admin_options.ts";
import { describe } from "./command_docs.ts";
import type { CommandIo } from "./command_io.ts";
import { durationText, plainText } from "../terminal/mod.ts";

interface Options extends AdminCommandOptions {
  readonly for: number;
}

/** Makes the command `causeway trace`. */
export function traceCommand(io: CommandIo): Command {
  const command = new Command("trace")
    .description("show what becomes of each stanza from and to an address, at every node")
    .argument("<JID>", "a bare JID, a full JID, or the domain of a component")
    .addOption(
      new Option("--for <TIME>", "time after which it ends, such as 90s, 10m or 1h; at most 1h")
        .default(600, "10m").argParser(timeSpan),
    );
  describe(addAdminOptions(command), {
    examples: [
      ["causeway trace alice@example.com --for 10m", "all devices of a person"],
      [
        "causeway trace alice@example.com/phone --json | tee trace.jsonl",
        "one device, for a program",
      ],
    ],
    exits: { 0: "the time is over, or Control-C has ended the trace" },
    more: [
      "One node is asked, and it asks all nodes that it is linked with, in every datacenter. " +
      "Each line is a step of one stanza at one node. The number in brackets stays the same for " +
      "a stanza, wherever it goes. Contents of stanzas are never shown.",
      "The trace needs the role act. It is noted in the audit log of the node that is asked, and " +
      "in the logs of the others. A datacenter may forbid to be traced from elsewhere: then its " +
      "nodes are named as such, and only their side is missing.",
      "With --json each line is an object with the name of the event and its data, as GET " +
      "/api/v1/trace/{jid} describes them.",
    ],
  });
  return command.action(async (jid: string, options: Options) => {
    const client = connectAdmin(options);
    const abort = new AbortController();
    const interrupt = () => abort.abort();
    Deno.addSignalListener("SIGINT", interrupt);
    try {
      const path = `/api/v1/trace/${encodeURIComponent(jid)}?for=${options.for}`;
      const lines = new TraceLines();
      for await (const event of client.events(path, abort.signal)) {
        if (event.name === "full") {
          throw new CausewayError("cli/trace", "Cannot trace: there are too many traces already");
        }
        if (options.json) io.out(JSON.stringify({ event: event.name, ...event.data as object }));
        else for (const line of lines.of(event)) io.out(line);
      }
    } finally {
      Deno.removeSignalListener("SIGINT", interrupt);
    }
  });
}

/** Stanzas of which the number in brackets is remembered. */
const MAX_STANZAS = 10_000;

/** Lines for people about the events of one trace. */
export class TraceLines {
  /** Number of each stanza, in the order in which they were first seen. */
  readonly #stanzas = new Map<string, number>();
  #last = 0;

  /** Returns the lines about one event. */
  of({ name, data }: SentEvent): readonly string[] {
    // The node answers by its description, which its own tests check.
    switch (name) {
      case "begun": {
        const { address, endsAt } = data as TraceBegun;
        const left = durationText(Math.max(0, Date.parse(endsAt) - Date.now()));
        return [plainText(`tracing ${address} for ${left}; Control-C ends it`)];
      }
      case "node":
        return [nodeLine(data as TraceNode)].map(plainText);
      case "step":
        return this.#step(data as TraceStepAnswer).map(plainText);
      case "missed":
        return [
          `(${(data as { readonly steps: number }).steps} steps missed: there were too many)`,
        ];
      case "ended":
        return ["the trace has ended"];
      default:
        return [];
    }
  }

  #step(step: TraceStepAnswer): readonly string[] {
    const { kind, type, from, to, bytes, at, node, text } = step;
    const lines: string[] = [];
    let number = this.#stanzas.get(step.stanza);
    if (number === undefined) {
      number = ++this.#last;
      this.#stanzas.set(step.stanza, number);
      if (this.#stanzas.size > MAX_STANZAS) {
        this.#stanzas.delete(this.#stanzas.keys().next().value!);
      }
      lines.push(`[${number}] ${kind} ${type}, ${bytes} bytes, from ${from} to ${to}`);
    }
    lines.push(`[${number}] ${at.slice(11, 23)}  ${node}  ${text}`);
    return lines;
  }
}

function nodeLine({ node, datacenter, state, missed }: TraceNode): string {
  switch (state) {
    case "asked":
      return `${node} is asked`;
    case "watching":
      return missed === 0
        ? `${node} traces too`
        : `${node} has missed ${missed} steps, as there were too many`;
    case "forbidden":
      return `${node}: ${datacenter} does not allow the trace`;
    case "busy":
      return `${node} has too many traces already`;
    case "ended":
      return missed === 0
        ? `${node} traces no longer`
        : `${node} traces no longer; it missed ${missed} steps, as there were too many`;
    default:
      return state satisfies never;
  }
}
