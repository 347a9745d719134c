import assert from "node:assert/strict";
import type { Terminal } from "./password_prompt.ts";
import { promptPassword } from "./password_prompt.ts";

/** A terminal at which `keys` are typed. Each text arrives at once. */
class FakeTerminal implements Terminal {
  readonly modes: boolean[] = [];
  shown = "";
  readonly #chunks: Uint8Array[];

  constructor(...keys: readonly (string | Uint8Array)[]) {
    this.#chunks = keys.map((k) => typeof k === "string" ? new TextEncoder().encode(k) : k);
  }

  setRaw(isRaw: boolean): void {
    this.modes.push(isRaw);
  }

  read(buffer: Uint8Array): Promise<number | null> {
    const chunk = this.#chunks.shift();
    if (chunk === undefined) return Promise.resolve(null);
    buffer.set(chunk);
    return Promise.resolve(chunk.length);
  }

  write(text: string): void {
    this.shown += text;
  }
}

Deno.test("promptPassword() asks twice, shows nothing of what is typed, and resets the terminal", async () => {
  const terminal = new FakeTerminal("sec", "ret", "\r", "secret\r");
  assert.equal(await promptPassword("Password", terminal), "secret");
  assert.equal(terminal.shown, "Password: \nAgain: \n");
  assert.deepEqual(terminal.modes, [true, false]);
});

Deno.test("promptPassword() reads both passwords from one paste", async () => {
  assert.equal(await promptPassword("P", new FakeTerminal("secret\nsecret\n")), "secret");
});

Deno.test("promptPassword() obeys backspace and Ctrl-U and leaves out other control keys", async () => {
  const terminal = new FakeTerminal("wrong\x15sexx\x7f\bcret\x1b\t\r", "secret\r");
  assert.equal(await promptPassword("P", terminal), "secret");
});

Deno.test("promptPassword() reads characters whose bytes arrive separately", async () => {
  const bytes = new TextEncoder().encode("ü😀\r");
  const apart = Array.from(bytes, (byte) => new Uint8Array([byte]));
  assert.equal(await promptPassword("P", new FakeTerminal(...apart, ...apart)), "ü😀");
});

Deno.test("promptPassword() refuses two different passwords", async () => {
  const terminal = new FakeTerminal("one\r", "two\r");
  await assert.rejects(promptPassword("P", terminal), {
    code: "cli/passwords-differ",
    message: "Cannot take the password: the two differ",
  });
  assert.deepEqual(terminal.modes, [true, false]);
});

Deno.test("promptPassword() ends on Ctrl-C, on Ctrl-D at the beginning, and at the end of input", async () => {
  for (const keys of [["se\x03"], ["\x04"], ["secret\r", "\x04"], ["secret"], []]) {
    const terminal = new FakeTerminal(...keys);
    await assert.rejects(promptPassword("P", terminal), { code: "cli/interrupted" });
    assert.deepEqual(terminal.modes, [true, false]);
  }
});
