import assert from "node:assert/strict";
import { createServer } from "node:http";
import type { Server } from "node:https";
import { createServer as createSecureServer } from "node:https";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { CertificateAuthority, writeCertificate } from "../../harness/certificates.ts";
import { SOUND } from "../config/testing/config.ts";
import { main } from "./main.ts";

/** Runs `causeway ARGS` against an admin API that answers each request by `answer`. */
async function run(
  args: readonly string[],
  answer: (request: string) => readonly [status: number, body: object],
) {
  const server = createServer((request, response) => {
    const [status, body] = answer(`${request.method} ${request.url!.split("?")[0]}`);
    response.writeHead(status, { "content-type": "application/json", connection: "close" });
    response.end(JSON.stringify(body));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  const lines: string[] = [];
  try {
    const code = await main([...args, "--admin", `http://127.0.0.1:${port}`], {
      out: (line) => lines.push(line),
      error: (line) => lines.push(line),
      readInput: () => Promise.resolve(""),
      readPassword: () => Promise.resolve(""),
    });
    return { code, lines };
  } finally {
    await new Promise((resolve) => server.close(resolve));
  }
}

/** An admin API over TLS, with a certificate for its node's name, that answers all alike. */
class SecureNode implements AsyncDisposable {
  readonly requests: string[] = [];
  readonly config: string;
  readonly cafile: string;
  readonly #directory: string;
  readonly #server: Server;

  private constructor(directory: string, server: Server) {
    this.#directory = directory;
    this.#server = server;
    this.config = join(directory, "causeway.toml");
    this.cafile = join(directory, "ca.pem");
  }

  static async start(answer: object): Promise<SecureNode> {
    const directory = await Deno.makeTempDir();
    const authority = await CertificateAuthority.create();
    const issued = await authority.issue({ names: ["admin.example.com"] });
    const { certfile, keyfile } = await writeCertificate(issued, { directory, name: "admin" });
    const server = createSecureServer({
      cert: await Deno.readTextFile(certfile),
      key: await Deno.readTextFile(keyfile),
    });
    const node = new SecureNode(directory, server);
    server.on("request", (request, response) => {
      node.requests.push(`${request.method} ${request.url}`);
      response.writeHead(200, { "content-type": "application/json", connection: "close" });
      response.end(JSON.stringify(answer));
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const { port } = server.address() as AddressInfo;
    const tls = JSON.stringify({ certfile, keyfile }).replaceAll('":', '"=');
    const store = `[storage.internal]\npath = ${
      JSON.stringify(join(directory, "causeway.sqlite"))
    }\n`;
    await Deno.writeTextFile(
      node.config,
      `${SOUND}${store}[listen.admin]\nport = ${port}\ntls = ${tls}\n`,
    );
    await Deno.writeTextFile(node.cafile, authority.certificatePem);
    return node;
  }

  async run(args: readonly string[]) {
    const lines: string[] = [];
    const code = await main(args, {
      out: (line) => lines.push(line),
      error: (line) => lines.push(line),
      readInput: () => Promise.resolve(""),
      readPassword: () => Promise.resolve("secret"),
    });
    return { code, lines };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await new Promise((resolve) => this.#server.close(resolve));
    await Deno.remove(this.#directory, { recursive: true });
  }
}

Deno.test("causeway drain ends when another process answers in the node's place", async () => {
  let looks = 0;
  const { code, lines } = await run(["drain"], (request) => {
    if (request.startsWith("POST")) return [202, { text: "The node stops" }];
    assert.equal(request, "GET /api/v1/status");
    const isOld = ++looks <= 2;
    return [200, {
      startedAt: isOld ? "2026-11-26T10:00:00.000Z" : "2026-11-26T11:00:00.000Z",
      drain: { isDraining: isOld, step: "clients", sessions: 3, stanzas: 0 },
    }];
  });
  assert.deepEqual(lines, [
    "The node stops",
    "clients: 3 sessions and 0 stanzas left",
    "the node has ended",
  ]);
  assert.equal(code, 0);
});

Deno.test("commands for a node name a file that is no certificate, or a key of another one", async () => {
  const directory = await Deno.makeTempDir();
  try {
    const authority = await CertificateAuthority.create();
    const issue = async (name: string) =>
      await writeCertificate(await authority.issue({ names: ["ops"] }), { directory, name });
    const [own, other] = [await issue("own"), await issue("other")];
    const identity = ["--admin-certfile", own.certfile, "--admin-keyfile", other.keyfile];
    for (
      const [options, problem] of [
        [["--admin-cafile", own.keyfile], `${own.keyfile}: it holds no PEM certificate`],
        [identity, `${other.keyfile}: it does not belong to the certificate ${own.certfile}`],
      ] as const
    ) {
      const { code, lines } = await run(["status", ...options], () => assert.fail("it was asked"));
      assert.deepEqual([code, lines], [1, [`causeway: Cannot use ${problem}`]]);
    }
  } finally {
    await Deno.remove(directory, { recursive: true });
  }
});

Deno.test("commands with --config take the name in its certificate for that of its own node", async () => {
  await using node = await SecureNode.start({ items: [], total: 0 });
  const { config, cafile } = node;
  assert.deepEqual(await node.run(["sessions", "--config", config, "--admin-cafile", cafile]), {
    code: 0,
    lines: ["nobody is connected to this node"],
  });
});

Deno.test("causeway sessions --account says that this account is not connected, and not that nobody is", async () => {
  await using node = await SecureNode.start({ items: [], total: 0 });
  const { config, cafile } = node;
  const options = ["--account", "alice@example.com", "--config", config, "--admin-cafile", cafile];
  assert.deepEqual(await node.run(["sessions", ...options]), {
    code: 0,
    lines: ["alice@example.com has no session at this node"],
  });
});

Deno.test("causeway users remove tells a node whose certificate an authority of its own has issued", async () => {
  await using node = await SecureNode.start({ text: "1 session ends" });
  const { config, cafile } = node;
  const done = { code: 0, lines: [] };
  const add = ["users", "add", "alice@example.com", "--config", config];
  const remove = ["users", "remove", "alice@example.com", "--config", config];
  assert.deepEqual(await node.run(add), done);
  const unusable = await node.run([...remove, "--admin-cafile", config]);
  assert.deepEqual(
    unusable,
    { code: 1, lines: [`causeway: Cannot use ${config}: it holds no PEM certificate`] },
    "the account is still there",
  );
  assert.deepEqual(await node.run([...remove, "--admin-cafile", cafile]), done);
  assert.deepEqual(node.requests, ["POST /api/v1/actions/check-account"]);
});

Deno.test("causeway links fails for a datacenter that the node does not know", async () => {
  const { code, lines } = await run(
    ["links", "--datacenter", "dc9.example.com"],
    () => [200, { items: [], total: 0 }],
  );
  assert.deepEqual(lines, [
    "causeway: Cannot show the links to dc9.example.com: the node knows no such datacenter",
  ]);
  assert.equal(code, 1);
});

/** Runs `causeway status` where nothing answers, and returns its exit code and its error. */
async function failedStatus(...args: readonly string[]) {
  const errors: string[] = [];
  const code = await main(["status", ...args], {
    out: () => {},
    error: (line) => errors.push(line),
    readInput: () => Promise.resolve(""),
    readPassword: () => Promise.resolve(""),
  });
  return { code, error: errors.join("\n") };
}

Deno.test("causeway refuses an address of an admin API with parts that it would not use", async () => {
  for (
    const [address, error] of [
      [
        "http://ops:hunter2@127.0.0.1:1",
        "causeway: Cannot use a user name or password in the address of the admin API at " +
        "127.0.0.1:1: give a token with --token-file, or a certificate with --admin-certfile",
      ],
      ["ops@127.0.0.1:1/path", /^causeway: Cannot use a user name or password /],
      ["127.0.0.1:1?token=x", / what follows 127\.0\.0\.1:1 has no meaning there$/],
      ["https://node1:1/#x", / what follows node1:1 has no meaning there$/],
      ["http://node1:1/api", / expected http:\/\/HOST:PORT, /],
    ] as const
  ) {
    const failed = await failedStatus("--admin", address);
    assert.equal(failed.code, 1, address);
    if (typeof error === "string") assert.equal(failed.error, error);
    else assert.match(failed.error, error);
    assert.doesNotMatch(failed.error, /hunter2/);
  }
});

Deno.test("causeway says what is wrong with a token that no request can carry, and does not show it", async () => {
  const file = await Deno.makeTempFile();
  try {
    for (
      const [text, problem] of [
        ["", "its first line is empty, and should hold the token alone"],
        ["\nsecret\n", "its first line is empty, and should hold the token alone"],
        ["sec\u2019ret\n", "character 4 is U+2019, which the header of a request cannot carry"],
        ["sec ret", "character 4 is U+0020, which the header of a request cannot carry"],
        ["\ufeffs\u{1F511}t", "character 2 is U+1F511, which the header of a request cannot carry"],
      ] as const
    ) {
      await Deno.writeTextFile(file, text);
      const failed = await failedStatus("--admin", "127.0.0.1:1", "--token-file", file);
      assert.equal(failed.error, `causeway: Cannot use the token in ${file}: ${problem}`);
      assert.equal(failed.code, 1);
    }
  } finally {
    await Deno.remove(file);
  }
});
