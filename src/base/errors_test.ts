import assert from "node:assert/strict";
import { describeFileError } from "./errors.ts";

Deno.test("describeFileError() says the same of a problem, however the file was opened", () => {
  const errorOf = (code: string, message: string) => Object.assign(new Error(message), { code });
  for (
    const [thrown, expected] of [
      [errorOf("EACCES", "EACCES: permission denied, open 'a'"), "permission denied"],
      [errorOf("EACCES", "Permission denied (os error 13): open 'a'"), "permission denied"],
      [errorOf("ENOENT", "No such file or directory (os error 2): readfile 'a'"), undefined],
      [errorOf("ENOSPC", "No space left on device"), "No space left on device"],
      [new Error("the file exists"), "the file exists"],
      ["odd", "odd"],
    ] as const
  ) {
    assert.equal(describeFileError(thrown), expected ?? "there is no such file or folder");
  }
});
