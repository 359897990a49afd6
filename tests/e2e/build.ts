/** Builds of the checkout for tests: one for each target and all tests of a run. */
import assert from "node:assert/strict";
import { generateKeyPairSync } from "node:crypto";
import { hasProgram, OwnDirectory, ROOT, runProgram } from "./harness.ts";

/** Where `scripts/test` has the builds of its run; left out, each test makes its own. */
const SHARED = Deno.env.get("SVC_BUILDS");
const COMPLETE = "complete";

/** A self-extracting file, and for this machine a Debian package, which take releases of a key. */
export class Build implements AsyncDisposable {
  private constructor(
    readonly directory: string,
    readonly target: string,
    private readonly own: OwnDirectory | null,
  ) {}

  static async of(target: string = Deno.build.target): Promise<Build> {
    const own = SHARED === undefined ? await OwnDirectory.make("svc-built-") : null;
    const build = new Build(own?.path ?? `${SHARED}/${target}`, target, own);
    try {
      if (!build.#has(COMPLETE)) await build.#make();
      return build;
    } catch (error) {
      await own?.[Symbol.asyncDispose]();
      throw error;
    }
  }

  get file(): string {
    return `${this.directory}/svc-${this.target}`;
  }

  /** `null`: there is none. */
  get deb(): string | null {
    const names = [...Deno.readDirSync(this.directory)].map(({ name }) => name);
    const name = names.find((one) => one.endsWith(".deb"));
    return name === undefined ? null : `${this.directory}/${name}`;
  }

  /** The private key whose releases it takes, as PEM. */
  async key(): Promise<string> {
    return await Deno.readTextFile(`${this.directory}/key.pem`);
  }

  #has(name: string): boolean {
    try {
      return Deno.statSync(`${this.directory}/${name}`).isFile;
    } catch {
      return false;
    }
  }

  async #make(): Promise<void> {
    const { directory, target } = this;
    await Deno.mkdir(directory, { recursive: true });
    const { privateKey, publicKey } = generateKeyPairSync("ed25519");
    const write = async (name: string, text: string | Uint8Array) =>
      await Deno.writeTextFile(`${directory}/${name}`, text.toString());
    await write("key.pem", privateKey.export({ type: "pkcs8", format: "pem" }));
    await write("key.pub.pem", publicKey.export({ type: "spki", format: "pem" }));
    const isDebian = target === Deno.build.target && hasProgram("dpkg-deb");
    const { code, stdout, stderr } = await runProgram(
      `${ROOT}scripts/build`,
      ...["--kind", "self-extracting", "--target", target, "--output", directory],
      ...["--release-key", `${directory}/key.pub.pem`],
      ...isDebian ? ["--deb"] : [],
    );
    assert.equal(code, 0, stdout + stderr);
    await write(COMPLETE, "");
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.own?.[Symbol.asyncDispose]();
  }
}
