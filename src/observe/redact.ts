/** Field names whose values never reach a log, compared without case, `_` and `-`. */
const SECRET_NAMES: ReadonlySet<string> = new Set([
  ...["password", "passwd", "passphrase", "pass", "pwd", "secret", "sharedsecret", "clientsecret"],
  ...["enumerationsecret"],
  ...["token", "accesstoken", "refreshtoken", "apikey", "authorization", "cookie", "setcookie"],
  ...["credential", "credentials", "privatekey", "keypem", "key", "keytext"],
  ...["saltedpassword", "clientkey", "storedkey", "serverkey", "handshake"],
]);

const MAX_DEPTH = 6;
const MAX_TEXT_LENGTH = 2000;

/**
 * Copies `fields` for a log: replaces secrets by name, shows errors as code and message, cuts long
 * texts, and drops or converts whatever JSON cannot express.
 */
export function redactFields(fields: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return redactEntries(Object.entries(fields), 0);
}

function redactEntries(
  entries: readonly (readonly [string, unknown])[],
  depth: number,
): Record<string, unknown> {
  return Object.fromEntries(
    entries.map(([name, value]) => [name, isSecretName(name) ? "[redacted]" : plain(value, depth)]),
  );
}

function isSecretName(name: string): boolean {
  return SECRET_NAMES.has(name.toLowerCase().replace(/[-_]/g, ""));
}

function plain(value: unknown, depth: number): unknown {
  switch (typeof value) {
    case "string":
      return cut(value);
    case "bigint":
    case "symbol":
      return String(value);
    case "function":
      return "[function]";
    case "object":
      return value === null ? null : plainObject(value, depth);
    default:
      return value;
  }
}

function plainObject(value: object, depth: number): unknown {
  if (value instanceof Error) {
    const code = "code" in value ? String(value.code) : value.name;
    return cut(`${code}: ${value.message}`);
  }
  if (value instanceof Date) return Number.isNaN(value.getTime()) ? null : value.toISOString();
  if (ArrayBuffer.isView(value)) return `[${value.byteLength} bytes]`;
  if (depth >= MAX_DEPTH) return "[deep]";
  if (Array.isArray(value)) return value.map((item) => plain(item, depth + 1));
  if (value instanceof Set) return [...value].map((item) => plain(item, depth + 1));
  if (value instanceof Map) {
    return redactEntries([...value].map(([name, item]) => [String(name), item]), depth + 1);
  }
  return redactEntries(Object.entries(value), depth + 1);
}

function cut(text: string): string {
  return text.length <= MAX_TEXT_LENGTH ? text : `${text.slice(0, MAX_TEXT_LENGTH)}…`;
}
