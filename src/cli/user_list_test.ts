import assert from "node:assert/strict";
import fc from "fast-check";
import { parseUserList } from "./user_list.ts";

Deno.test("parseUserList() reads CSV with quotes, a header, blank lines and any line ends", () => {
  const text = 'JID,Password\r\nalice@example.com,one\n\n"bob@example.com","t,w""o"\n' +
    'carol@example.com,"three\nlines\n"\ndave@example.com, spaced ';
  assert.deepEqual(parseUserList(text), [
    { line: 2, jid: "alice@example.com", password: "one" },
    { line: 4, jid: "bob@example.com", password: 't,w"o' },
    { line: 5, jid: "carol@example.com", password: "three\nlines\n" },
    { line: 8, jid: "dave@example.com", password: " spaced " },
  ]);
});

Deno.test("parseUserList() reads a JSON object from each line", () => {
  const text = '{"jid":"alice@example.com","password":"o,n\\"e"}\n\n' +
    ' {"password":"two","jid":"bob@example.com","note":1}\r\n';
  assert.deepEqual(parseUserList(text), [
    { line: 1, jid: "alice@example.com", password: 'o,n"e' },
    { line: 3, jid: "bob@example.com", password: "two" },
  ]);
});

Deno.test("parseUserList() reads behind a byte order mark", () => {
  const read = [{ line: 2, jid: "alice@example.com", password: "one" }];
  assert.deepEqual(parseUserList("\uFEFFjid,password\nalice@example.com,one\n"), read);
  const json = '\uFEFF{"jid":"alice@example.com","password":"one"}';
  assert.deepEqual(parseUserList(json), [{ ...read[0], line: 1 }]);
});

Deno.test("parseUserList() reads an empty list", () => {
  for (const text of ["", "\n", "jid,password\n"]) assert.deepEqual(parseUserList(text), []);
});

const MALFORMED: readonly (readonly [string, string])[] = [
  ["alice@example.com\n", "1 of the list: expected 2 columns, JID and password, found 1"],
  ["a@b,secret\nb@b,secret,x\n", "2 of the list: expected 2 columns, JID and password, found 3"],
  ['a@b,secret\nb@b,se"cret\n', "2 of the list: a quote stands where none may be"],
  ['a@b,"secret', "1 of the list: a quote stands where none may be"],
  ['{"jid":"a@b","password":"secret"}\n{"jid":', "2 of the list: it is no JSON object"],
  ['{"jid":"a@b"}', '1 of the list: expected an object with the texts "jid" and "password"'],
  [
    '{"jid":"a@b","password":1}',
    '1 of the list: expected an object with the texts "jid" and "password"',
  ],
];

for (const [text, problem] of MALFORMED) {
  Deno.test(`parseUserList() refuses ${JSON.stringify(text)} without showing the password`, () => {
    assert.throws(() => parseUserList(text), {
      code: "cli/user-list",
      message: `Cannot read line ${problem}`,
    });
  });
}

Deno.test("parseUserList() reads any CSV that follows RFC 4180", () => {
  const field = fc.string({ unit: fc.constantFrom("a", '"', ",", "\n", "\r", " ", "ü") });
  const users = fc.array(
    fc.tuple(field, field).map(([jid, password]) => ({ jid: `u${jid}`, password })),
  );
  fc.assert(fc.property(users, (list) => {
    const quote = (text: string) => `"${text.replaceAll('"', '""')}"`;
    const text = list.map(({ jid, password }) => `${quote(jid)},${quote(password)}\r\n`).join("");
    const read = parseUserList(text, "csv").map(({ jid, password }) => ({ jid, password }));
    assert.deepEqual(read, list);
  }));
});
