import type {
  RedisAnswers,
  RedisCommand,
  RedisCommands,
  RedisReply,
  RedisVerb,
} from "./redis_commands.ts";
import { RedisErrorReply } from "./redis_commands.ts";

/** Any answer that is no error. */
export type Answer = RedisAnswers[RedisVerb];

/** Answers to `Commands`, in order, each of the type that belongs to its verb. */
export type Answers<Commands extends readonly RedisCommand[]> = {
  readonly [I in keyof Commands]: AnswerTo<Commands[I]>;
};

type AnswerTo<Command> = Command extends RedisCommand ? RedisAnswers[Command[0]] : never;

/** Error of a Redis that is reachable and refuses a command. */
export class RedisRefusal extends Error {
  /** First word of the answer in capitals, as in `RedisErrorReply`. */
  readonly kind: string;

  constructor(reply: RedisErrorReply) {
    super(reply.message);
    this.kind = reply.kind;
  }
}

/**
 * Runs `commands` and returns their answers. A set or hash of a wrong type counts as empty, and a
 * value of a wrong type as "", which the table never writes.
 * @param foundWrongType called for each command that met a wrong type
 * @throws what `RedisCommands.run` throws, or the first `RedisRefusal` among the answers
 */
export async function ask<const Commands extends readonly RedisCommand[]>(
  redis: RedisCommands,
  commands: Commands,
  foundWrongType?: () => void,
): Promise<Answers<Commands>> {
  const replies = commands.length === 0 ? [] : await redis.run(commands);
  for (const reply of replies) {
    if (!(reply instanceof RedisErrorReply)) continue;
    if (reply.kind !== "WRONGTYPE") throw new RedisRefusal(reply);
    foundWrongType?.();
  }
  return withoutWrongTypes(commands, replies) as Answers<Commands>; // `run` has checked the types
}

/**
 * Like `ask`, for commands that have nothing to do with one another: what Redis has refused has its
 * error in the place of the answer.
 */
export async function askEach(
  redis: RedisCommands,
  commands: readonly RedisCommand[],
): Promise<readonly (Answer | RedisErrorReply)[]> {
  return withoutWrongTypes(commands, await redis.run(commands));
}

/** Returns the answer to a GET in a batch of several verbs. */
export function textIn(answer: Answer | undefined): string | null {
  return typeof answer === "string" ? answer : null;
}

/** Returns the answer to a command that reads a set or hash in a batch of several verbs. */
export function listIn(answer: Answer | undefined): readonly string[] {
  return typeof answer === "object" && answer !== null ? answer : [];
}

function withoutWrongTypes(
  commands: readonly RedisCommand[],
  replies: readonly RedisReply[],
): readonly (Answer | RedisErrorReply)[] {
  if (!replies.some(isWrongType)) return replies;
  return replies.map((reply, i) => isWrongType(reply) ? absent(commands[i]![0]) : reply);
}

function isWrongType(reply: RedisReply): boolean {
  return reply instanceof RedisErrorReply && reply.kind === "WRONGTYPE";
}

/** Answer that stands for a key of a wrong type. */
function absent(verb: RedisVerb): Answer {
  switch (verb) {
    case "GET":
      return "";
    case "HGETALL":
    case "SMEMBERS":
    case "SUNION":
      return [];
    case "SET":
      return null;
    default:
      return 0;
  }
}
