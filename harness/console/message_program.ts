import assert from "node:assert/strict";
import { withDeadline } from "../deadline.ts";
import { Child } from "../process/mod.ts";
import { until } from "../until.ts";
import type { ConsoleAccount } from "./console_account.ts";
import { environmentOf, makeHome } from "./console_account.ts";

/** Programs that send one message from a script: Perl's Net::XMPP and go-xmpp. */
export type MessageProgram = "sendxmpp" | "go-sendxmpp";

const WITHIN_MS = 30_000;

/** Sends one message and waits for the program to end. @throws when it says that it could not */
export async function sendWith(
  program: MessageProgram,
  account: ConsoleAccount,
  message: { readonly to: string; readonly body: string },
): Promise<void> {
  const { run, caFile } = account;
  const { name, directory } = await makeHome(run, program, { message: message.body });
  await using child = new Child({
    name,
    program,
    args: [...argumentsOf(program, account), "-m", `${directory}/message`, message.to],
    env: environmentOf(directory, caFile),
    run,
  });
  const { code } = await withDeadline(child.exited, {
    what: `${program} to send a message`,
    withinMs: WITHIN_MS,
    seen: () => child.log.tail(),
  });
  assert.equal(code, 0, child.log.tail());
}

/** Somebody who has go-sendxmpp print what comes. */
export class MessagePrinter implements AsyncDisposable {
  readonly #child: Child;

  private constructor(child: Child) {
    this.#child = child;
  }

  static async connect(account: ConsoleAccount): Promise<MessagePrinter> {
    const { run, caFile } = account;
    const { name, directory } = await makeHome(run, "go-sendxmpp", {});
    return new MessagePrinter(
      new Child({
        name,
        program: "go-sendxmpp",
        args: [...argumentsOf("go-sendxmpp", account), "-l"],
        env: environmentOf(directory, caFile),
        run,
      }),
    );
  }

  async expectMessage(from: string, body: string): Promise<void> {
    const { log } = this.#child;
    await until(() => log.lines.some(({ text }) => text.endsWith(` ${from}: ${body}`)), {
      what: `go-sendxmpp to print ${body} of ${from}`,
      withinMs: WITHIN_MS,
      evidence: () => log.tail(),
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#child.stop();
  }
}

function argumentsOf(program: MessageProgram, account: ConsoleAccount): readonly string[] {
  const { host, port, domain, localpart, password, security, caFile } = account;
  const server = ["-p", password, "-j", `${host}:${port}`];
  switch (program) {
    case "go-sendxmpp":
      return ["-u", `${localpart}@${domain}`, ...server, ...security === "direct" ? ["-t"] : []];
    case "sendxmpp": {
      const tls = { starttls: ["-t"], direct: ["-e"], none: [] }[security];
      return ["-u", localpart, "-o", domain, ...server, ...tls, "-a", caFile];
    }
    default:
      return program satisfies never;
  }
}
