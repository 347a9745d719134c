import assert from "node:assert/strict";
import { MAX_PASSWORD_LENGTH, tryPreparePassword } from "./prepare_password.ts";

Deno.test("tryPreparePassword() follows the examples of RFC 4013 §3", () => {
  assert.equal(tryPreparePassword("I\u00adX"), "IX");
  assert.equal(tryPreparePassword("user"), "user");
  assert.equal(tryPreparePassword("USER"), "USER");
  assert.equal(tryPreparePassword("\u00aa"), "a");
  assert.equal(tryPreparePassword("\u2168"), "IX");
  assert.equal(tryPreparePassword("\u0007"), undefined);
  assert.equal(tryPreparePassword("\u06271"), undefined);
});

Deno.test("tryPreparePassword() keeps case and spaces, and maps foreign spaces", () => {
  assert.equal(tryPreparePassword("Corréct  hörse\u00a0Ω"), "Corréct  hörse Ω");
  assert.equal(tryPreparePassword("\u05e9\u05dc\u05d5\u05dd"), "\u05e9\u05dc\u05d5\u05dd");
  assert.equal(tryPreparePassword("😀"), "😀");
});

Deno.test("tryPreparePassword() refuses prohibited and mixed-direction passwords", () => {
  for (const password of ["", "\u00ad", "a\0", "a\ud800", "\ue000", "\u202ea", "\ufffe"]) {
    assert.equal(tryPreparePassword(password), undefined, escape(password));
  }
});

Deno.test("tryPreparePassword() accepts MAX_PASSWORD_LENGTH units and not one more", () => {
  const longest = "x".repeat(MAX_PASSWORD_LENGTH);
  assert.equal(tryPreparePassword(longest), longest);
  assert.equal(tryPreparePassword(longest + "x"), undefined);
});

Deno.test("tryPreparePassword() accepts 30 marks in a row and not one more", () => {
  const most = `a${"\u0316".repeat(30)}`;
  assert.equal(tryPreparePassword(most), most);
  assert.equal(tryPreparePassword(`${most}\u0316`), undefined);
});

Deno.test("tryPreparePassword() judges direction by whole characters", () => {
  assert.equal(tryPreparePassword("\u{1e900}1\u{10a00}"), "\u{1e900}1\u{10a00}");
  assert.equal(tryPreparePassword("\u{1e900}1"), undefined);
  assert.equal(tryPreparePassword("\u{1e900}a\u{10a00}"), undefined);
  assert.equal(tryPreparePassword("\u{1e900}\u{1d7d8}"), undefined);
});
