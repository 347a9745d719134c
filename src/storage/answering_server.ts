import { connect } from "node:net";

/** Servers that can be told by the first bytes that they send. */
export type AnsweringServer = keyof typeof SERVERS;

/** Names of servers for messages. */
export const SERVERS = {
  pgsql: "a PostgreSQL server",
  mysql: "a MySQL or MariaDB server",
  redis: "a Redis server",
  http: "an HTTP server",
  ssh: "an SSH server",
} as const;

/** Milliseconds to wait for the first bytes. */
const PATIENCE_MS = 1_000;

/** Questions, one in each connection: nothing, as some servers begin; then in two languages. */
const QUESTIONS: readonly Uint8Array[] = [
  new Uint8Array(),
  Uint8Array.of(0, 0, 0, 8, 4, 210, 22, 47), // a request for TLS, as PostgreSQL takes it
  new TextEncoder().encode("GET / HTTP/1.0\r\n\r\n"), // a server of lines names its own language
];

/**
 * Asks which server answers at an address, within about a second. Undefined when nobody answers, or
 * nobody who is known.
 */
export async function answeringServer(
  host: string,
  port: number,
): Promise<AnsweringServer | undefined> {
  const answers = await Promise.all(QUESTIONS.map((each) => firstBytes(each, { host, port })));
  const first = answers.findIndex((answer) => answer.length > 0);
  return first < 0 ? undefined : serverOf(answers[first]!, first > 0);
}

function serverOf(answer: Uint8Array, hasAsked: boolean): AnsweringServer | undefined {
  // The number of a first packet, and version 10 of the protocol or an error.
  if (answer[3] === 0 && (answer[4] === 10 || answer[4] === 255)) return "mysql";
  const text = new TextDecoder().decode(answer);
  if (hasAsked && /^[SN]$/.test(text)) return "pgsql";
  if (text.startsWith("SSH-")) return "ssh";
  if (text.startsWith("HTTP/")) return "http";
  return /^-(ERR|NOAUTH|DENIED) /.test(text) ? "redis" : undefined;
}

/** Returns what a server says first; nothing when it is silent, or cannot be reached. */
function firstBytes(
  question: Uint8Array,
  address: { readonly host: string; readonly port: number },
): Promise<Uint8Array> {
  return new Promise((resolve) => {
    const socket = connect(address);
    const end = (answer: Uint8Array) => {
      socket.destroy();
      resolve(answer);
    };
    socket.setTimeout(PATIENCE_MS, () => end(new Uint8Array()));
    socket.on("connect", () => question.length > 0 && socket.write(question));
    socket.on("data", end);
    socket.on("error", () => end(new Uint8Array()));
    socket.on("close", () => end(new Uint8Array()));
  });
}
