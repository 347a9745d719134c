import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TlsFiles } from "../tls_context.ts";
import { TlsContextHolder } from "../tls_context_holder.ts";
import { openssl } from "./openssl.ts";

/** Contents of a test certificate. */
export interface TestCertificateOptions {
  /** DNS names; the first is the subject too. */
  readonly names: readonly string[];
  /** Puts the key into the certificate's file. @default false */
  readonly isCombined?: boolean;
  /** Days from now at which it ends; negative for one that has expired. @default 10 */
  readonly days?: number;
}

/** Authorities and certificates made by `openssl` in a directory that is removed at the end. */
export class TestCertificates implements AsyncDisposable {
  readonly directory: string;
  #count = 0;

  private constructor(directory: string) {
    this.directory = directory;
  }

  static async create(): Promise<TestCertificates> {
    return new TestCertificates(await mkdtemp(join(tmpdir(), "causeway-certificates-")));
  }

  /** Makes an authority; its certificate is `cafile` of the certificates that it issues. */
  async authority(name = "test authority"): Promise<TestAuthority> {
    const base = this.path(`ca${this.#count++}`);
    await openssl([
      ...["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"],
      ...["-keyout", `${base}.key`, "-out", `${base}.pem`, "-days", "30", "-subj", `/CN=${name}`],
    ]);
    return new TestAuthority(this, base);
  }

  path(name: string): string {
    return join(this.directory, name);
  }

  /** Returns a name for the next file, without its ending. */
  nextBase(): string {
    return this.path(`cert${this.#count++}`);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await rm(this.directory, { recursive: true });
  }
}

/** An authority that signs certificates for tests. */
export class TestAuthority {
  readonly cafile: string;
  readonly #certificates: TestCertificates;
  readonly #base: string;

  constructor(certificates: TestCertificates, base: string) {
    this.#certificates = certificates;
    this.#base = base;
    this.cafile = `${base}.pem`;
  }

  async issue(options: TestCertificateOptions): Promise<Required<TlsFiles>> {
    const base = this.#certificates.nextBase();
    await openssl([
      ...["req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"],
      ...["-keyout", `${base}.key`, "-out", `${base}.csr`, "-subj", `/CN=${options.names[0]}`],
    ]);
    const alternatives = options.names.map((name) => `DNS:${name}`).join(",");
    await writeFile(`${base}.ext`, `subjectAltName=${alternatives}\n`);
    await openssl([
      ...["x509", "-req", "-in", `${base}.csr`, "-extfile", `${base}.ext`, "-out", `${base}.pem`],
      ...["-CA", this.cafile, "-CAkey", `${this.#base}.key`, "-CAcreateserial"],
      ...["-days", String(options.days ?? 10)],
    ]);
    if (!options.isCombined) {
      return { certfile: `${base}.pem`, keyfile: `${base}.key`, cafile: this.cafile };
    }
    const combined = await Deno.readTextFile(`${base}.pem`) +
      await Deno.readTextFile(`${base}.key`);
    await writeFile(`${base}.both`, combined);
    return { certfile: `${base}.both`, keyfile: `${base}.both`, cafile: this.cafile };
  }

  /** Returns a holder of a new certificate with these names. */
  async holder(...names: string[]): Promise<TlsContextHolder> {
    return await TlsContextHolder.load(await this.issue({ names }));
  }
}
