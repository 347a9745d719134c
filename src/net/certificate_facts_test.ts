import assert from "node:assert/strict";
import { inspectTlsFiles } from "./certificate_facts.ts";
import { TestCertificates } from "./testing/certificates.ts";

/** Returns what `inspectTlsFiles` finds missing in a program that trusts `trusted`, with a node's rights. */
async function missingIn(certfile: string, trusted?: string): Promise<string> {
  const module = new URL("./certificate_facts.ts", import.meta.url);
  const code = `
    import { inspectTlsFiles } from "${module}";
    const found = await inspectTlsFiles({ certfile: Deno.args[0] });
    console.log(found.kind, found.missingIssuer ?? "nothing");
  `;
  const { stdout, stderr } = await new Deno.Command(Deno.execPath(), {
    args: [
      ...["run", "--no-prompt", "--quiet", "--no-check", "--allow-read", "--allow-env"],
      ...["--allow-sys=hostname,uid", "--allow-net=127.0.0.1", "--config=deno.json"],
      ...[`data:application/typescript,${encodeURIComponent(code)}`, certfile],
    ],
    cwd: new URL("../../", import.meta.url),
    env: trusted === undefined ? {} : { DENO_CERT: trusted },
  }).output();
  return new TextDecoder().decode(stdout).trim() || new TextDecoder().decode(stderr);
}

Deno.test("inspectTlsFiles() follows a chain to what the system trusts, with the rights of a node", async () => {
  await using certificates = await TestCertificates.create();
  const authority = await certificates.authority("the authority");
  const { certfile } = await authority.issue({ names: ["dc1.example.com"], isCombined: true });
  assert.equal(await missingIn(certfile), "readable CN=the authority");
  assert.equal(await missingIn(certfile, authority.cafile), "readable nothing");
});

Deno.test("inspectTlsFiles() says nothing about the chain of a certificate that has only expired", async () => {
  await using certificates = await TestCertificates.create();
  const authority = await certificates.authority();
  const expired = await authority.issue({ names: ["dc1.example.com"], isCombined: true, days: -1 });
  const facts = await inspectTlsFiles(expired);
  assert.ok(facts.kind === "readable");
  assert.equal(facts.missingIssuer, undefined);
});
