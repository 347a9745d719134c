import assert from "node:assert/strict";
import { join } from "node:path";
import { CertificateAuthority, writeCertificate } from "../../harness/certificates.ts";
import { parseConfig } from "../config/mod.ts";
import { loadTlsContext } from "../net/mod.ts";
import { certificateFindings } from "./certificate_findings.ts";

const NAME = "dc1.example.com";
const DAY_MS = 86_400_000;

Deno.test("certificateFindings() reads every certificate, and names the file and the problem", async () => {
  const directory = await Deno.makeTempDir();
  try {
    const authority = await CertificateAuthority.create();
    const issue = async (name: string, names: string[], days = 1) =>
      await writeCertificate(
        await authority.issue({
          names,
          validFromMs: -2 * DAY_MS,
          validUntilMs: days * DAY_MS,
        }),
        { directory, name },
      );
    const path = (name: string) => join(directory, name);
    await Deno.writeTextFile(path("ca.pem"), authority.certificatePem);
    await Deno.writeTextFile(path("text.pem"), "hello\n");
    const right = await issue("right", [NAME, "example.com"]);
    const other = await issue("other", ["dc2.example.com"]);
    const old = await issue("old", [NAME], -1);
    const wildcard = await issue("wildcard", ["*.example.com"]);
    const notes: { readonly path: string; readonly text: string }[] = [];
    const find = async (files: {
      readonly c2s?: string;
      readonly websocket?: string;
      readonly component?: string;
      readonly links?: string;
      readonly key?: string;
      readonly ca?: string;
      /** Authorities for databases and Redis. */
      readonly servers?: string;
    }) => {
      const { c2s, websocket, component, links = right.certfile } = files;
      const key = files.key ?? right.keyfile;
      const tls = (certfile = right.certfile) => `{ certfile = "${certfile}", keyfile = "${key}" }`;
      const config = parseConfig(
        `hosts = ["example.com", "${NAME}"]
[[listen.c2s]]
tls = { mode = "direct", certfile = "${c2s ?? right.certfile}", keyfile = "${key}" }
[[listen.websocket]]
tls = ${tls(websocket)}
[[listen.component]]
domains = [{ name = "echo.example.com", secret = "secret" }]
tls = ${tls(component)}
[modules.mod_global_distrib]
global_host = "example.com"
local_host = "${NAME}"
[modules.mod_global_distrib.connections.tls_opts]
certfile = "${links}"
keyfile = "${links === right.certfile ? key : links.replace(/pem$/, "key")}"
cafile = "${files.ca ?? path("ca.pem")}"
[modules.mod_global_distrib.redis]
tls = { cafile = "${files.servers ?? path("ca.pem")}" }
[outgoing_pools.rdbms.default.connection]
url = "postgresql://a@db.example.com/b"
tls = { cafile = "${files.servers ?? path("ca.pem")}" }
[outgoing_pools.ldap.default.connection]
tls = { cafile = "${files.servers ?? path("ca.pem")}" }
[outgoing_pools.elastic.default.connection]
tls = { cafile = "${files.servers ?? path("ca.pem")}" }
`,
        { file: path("c.toml"), env: () => undefined, readFile: () => "", hostname: () => "box" },
      );
      const { problems, notes: found } = await certificateFindings(config, Date.now());
      notes.push(...found);
      return problems;
    };
    assert.deepEqual(await find({}), []);
    assert.deepEqual(notes, []);
    const text = path("text.pem");
    const isNone = `Cannot use TLS file ${text}: it holds no PEM certificate`;
    assert.deepEqual(await find({ c2s: text, websocket: text, component: text }), [
      { path: "listen.c2s[0].tls", problem: isNone },
      { path: "listen.websocket[0].tls", problem: isNone },
      { path: "listen.component[0].tls", problem: isNone },
    ]);
    const [authorities, ...rest] = await find({ ca: text });
    assert.deepEqual([authorities!.problem, rest], [isNone, []]);
    assert.equal(authorities!.path, "modules.mod_global_distrib.connections.tls_opts");
    assert.equal(
      (await find({ key: other.keyfile })).length,
      4,
      "the key belongs to another certificate",
    );
    assert.match((await find({ links: old.certfile }))[0]!.problem, /expired/);
    assert.deepEqual((await find({ links: other.certfile })).map(({ problem }) => problem), [
      `expected a certificate that names ${NAME}, found dc2.example.com`,
    ]);
    assert.deepEqual(
      await find({ servers: text }),
      [
        "outgoing_pools.rdbms.default.connection.tls",
        "outgoing_pools.ldap.default.connection.tls",
        "outgoing_pools.elastic.default.connection.tls",
        "modules.mod_global_distrib.redis.tls",
      ].map((path) => ({ path, problem: isNone })),
    );
    assert.deepEqual(notes, []);
    const { certfile: links } = await issue("again", [NAME]);
    for (const { certfile, keyfile: key } of [wildcard, other]) {
      const files = { c2s: certfile, websocket: certfile, component: certfile, key, links };
      assert.deepEqual(await find(files), []);
    }
    const ofOther = "the certificate names none of hosts, found dc2.example.com: most clients " +
      "refuse it";
    assert.deepEqual(notes, [
      { path: "listen.c2s[0].tls", text: ofOther },
      { path: "listen.websocket[0].tls", text: ofOther },
    ]);

    // A certificate writes an internationalised name as A-labels, and the configuration does not.
    const ascii = await issue("idn", ["dc1.xn--bcher-kva.example", "xn--bcher-kva.example"]);
    const international = configOf(["bücher.example", "dc1.bücher.example"], {
      ...ascii,
      cafile: path("ca.pem"),
    });
    assert.deepEqual(await certificateFindings(international, Date.now()), {
      problems: [],
      notes: [],
    });
  } finally {
    await Deno.remove(directory, { recursive: true });
  }
});

/** A configuration with one certificate for clients and links. */
function configOf(
  [globalHost, localHost]: readonly [string, string],
  { certfile, keyfile, cafile }: Readonly<Record<"certfile" | "keyfile" | "cafile", string>>,
) {
  return parseConfig(
    `hosts = ["${globalHost}", "${localHost}"]
[[listen.c2s]]
tls = { mode = "direct", certfile = "${certfile}", keyfile = "${keyfile}" }
[modules.mod_global_distrib]
global_host = "${globalHost}"
local_host = "${localHost}"
[modules.mod_global_distrib.connections.tls_opts]
certfile = "${certfile}"
keyfile = "${keyfile}"
cafile = "${cafile}"
`,
    { file: "c.toml", env: () => undefined, readFile: () => "", hostname: () => "box" },
  );
}

Deno.test("certificateFindings() refuses a certificate that is not valid yet, unless a clock may be behind", async () => {
  const directory = await Deno.makeTempDir();
  try {
    const authority = await CertificateAuthority.create();
    const cafile = join(directory, "ca.pem");
    await Deno.writeTextFile(cafile, authority.certificatePem);
    const { certfile, keyfile } = await writeCertificate(
      await authority.issue({ names: [NAME], validFromMs: DAY_MS, validUntilMs: 2 * DAY_MS }),
      { directory, name: "early" },
    );
    const config = configOf(["example.com", NAME], { certfile, keyfile, cafile });
    const { validFromMs } = await loadTlsContext({ certfile, keyfile }, Date.now());
    const problemsAt = async (nowMs: number) => (await certificateFindings(config, nowMs)).problems;
    const from = new Date(validFromMs).toISOString();
    const problem = `certificate ${certfile} is not valid before ${from}`;
    assert.deepEqual(await problemsAt(validFromMs - 300_001), [
      { path: "listen.c2s[0].tls", problem },
      { path: "modules.mod_global_distrib.connections.tls_opts", problem },
    ]);
    assert.deepEqual(await problemsAt(validFromMs - 300_000), []);
  } finally {
    await Deno.remove(directory, { recursive: true });
  }
});
