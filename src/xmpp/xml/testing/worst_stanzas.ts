/** A legal stanza that makes a reader work as hard as it can, named by its means. */
export interface WorstStanza {
  readonly what: string;
  /** Attributes and namespaces of the stream header around it. */
  readonly header?: string;
  /** Returns its text, of `bytes` bytes or a few less. */
  text(bytes: number): string;
}

const LETTERS = "abcdefghijklmnopqrstuvwxyz";

/** Returns a name of four letters, different for each number below 456 976. */
function nameOf(number: number): string {
  let name = "";
  for (let i = 0; i < 4; i++) {
    name = LETTERS[number % 26] + name;
    number = Math.floor(number / 26);
  }
  return name;
}

/** Returns `open`, as many units as fit, and `close`. */
function filled(
  bytes: number,
  open: string,
  unit: string | ((index: number) => string),
  close: string,
): string {
  const pieces = [open];
  let room = bytes - open.length - close.length;
  for (let i = 0;; i++) {
    const piece = typeof unit === "string" ? unit : unit(i);
    room -= piece.length;
    if (room < 0) break;
    pieces.push(piece);
  }
  return pieces.join("") + close;
}

/** Returns nested elements with `inTag` in each, in half of `bytes`, around as many `unit`s as fit. */
function nested(
  bytes: number,
  inTag: (depth: number) => string,
  unit: string,
  root = "",
): string {
  let open = `<message to='b@example.com'${root}>`;
  let depth = 0;
  while (depth < 61) {
    const tag = `<e${inTag(depth)}>`;
    if (open.length + tag.length > bytes / 2) break;
    open += tag;
    depth++;
  }
  return filled(bytes, open, unit, `${"</e>".repeat(depth)}</message>`);
}

function attributes(count: number, attribute: (index: number) => string): string {
  return Array.from({ length: count }, (_, index) => ` ${attribute(index)}`).join("");
}

/** The worst stanzas. Each is within the default limits at any size up to `max_stanza_bytes`. */
export const WORST_STANZAS: readonly WorstStanza[] = [
  {
    what: "prefixed elements inside many declarations",
    text: (bytes) =>
      nested(
        bytes,
        (depth) => attributes(60, (i) => `xmlns:${nameOf(depth * 60 + i)}='u'`),
        "<zzzz:b/>",
        " xmlns:zzzz='u'",
      ),
  },
  {
    what: "prefixed attributes inside many declarations",
    text: (bytes) =>
      nested(
        bytes,
        (depth) => attributes(60, (i) => `xmlns:${nameOf(depth * 60 + i)}='u'`),
        `<b${attributes(60, (i) => `zzzz:${nameOf(i)}=''`)}/>`,
        " xmlns:zzzz='u'",
      ),
  },
  {
    what: "one prefix declared again at each depth",
    text: (bytes) => nested(bytes, (depth) => ` xmlns:a='u${depth}'`, "<a:b xmlns:a='v'/>"),
  },
  {
    what: "prefixed attributes of the longest namespace",
    text: (bytes) =>
      filled(
        bytes,
        `<message to='b@example.com' xmlns:a='${"x".repeat(1000)}'>`,
        "<b a:c='' a:d=''/>",
        "</message>",
      ),
  },
  {
    what: "many prefixes of equal namespaces",
    text: (bytes) =>
      filled(
        bytes,
        `<message to='b@example.com'${attributes(60, (i) => `xmlns:a${i}='u'`)}>`,
        `<b${attributes(60, (i) => `a${i}:b${i}=''`)}/>`,
        "</message>",
      ),
  },
  {
    what: "prefixes of the stream header",
    header: attributes(60, (i) => `xmlns:a${i}='u${i}'`),
    text: (bytes) =>
      filled(bytes, "<message to='b@example.com'>", (i) => `<a${i % 60}:b/>`, "</message>"),
  },
  {
    what: "many attributes",
    text: (bytes) =>
      filled(
        bytes,
        "<message to='b@example.com'>",
        `<b${attributes(64, (i) => `${nameOf(i)}=''`)}/>`,
        "</message>",
      ),
  },
  {
    what: "elements at the greatest depth",
    text: (bytes) => nested(bytes, () => "", "<b></b>"),
  },
  {
    what: "references in text",
    text: (bytes) => filled(bytes, "<message to='b@example.com'>", "&amp;&#65;", "</message>"),
  },
  {
    what: "references in a value",
    text: (bytes) => filled(bytes, "<message to='b@example.com' a='", "&lt;\n", "'/>"),
  },
  {
    what: "brackets in a CDATA section",
    text: (bytes) => filled(bytes, "<message to='b@example.com'><![CDATA[", "]]", "x]]></message>"),
  },
  {
    what: "a content namespace under another name",
    text: (bytes) =>
      filled(
        bytes,
        "<c:message xmlns:c='jabber:client' to='b@example.com'>",
        "<c:b/>",
        "</c:message>",
      ),
  },
];
