/**
 * AdGuard Home itself, where this machine has it: the file that `SVC_ADGUARDHOME` names, or
 * `AdGuardHome` on the path, or, with `SVC_ADGUARDHOME=build`, one that is built of its Go module, which
 * takes minutes. Otherwise tests with it are skipped, and say so.
 */
import assert from "node:assert/strict";
import { freePort, OwnDirectory, runProgram, until } from "./harness.ts";

const VERSION = "v0.107.79";
const MODULE = `github.com/AdguardTeam/AdGuardHome@${VERSION}`;
const PAGES = ["index", "login", "install"];

/** The program; `null`: there is none. */
export async function findAdguardHome(): Promise<string | null> {
  const named = Deno.env.get("SVC_ADGUARDHOME");
  if (named === "build") return await build();
  const onPath = (Deno.env.get("PATH") ?? "").split(":").map((place) => `${place}/AdGuardHome`);
  for (const file of named === undefined ? onPath : [named]) {
    const found = await Deno.stat(file).catch(() => null);
    if (found?.isFile) return file;
  }
  console.log("skipped: there is no AdGuardHome (SVC_ADGUARDHOME names one, or says build)");
  return null;
}

/** Builds it from the module cache or the proxy; its pages are not in the module, and not needed. */
async function build(): Promise<string | null> {
  const folder = await Deno.makeTempDir({ prefix: "svc-adguard-" });
  const environment =
    "export CGO_ENABLED=0 GOTOOLCHAIN=local GOFLAGS='-modcacherw -buildvcs=false'";
  const stubs = PAGES.map((page) => `echo '<title>${page}</title>' >agh/build/static/${page}.html`);
  const script = [
    ...[environment, `cd ${folder}`],
    `dir=$(go mod download -json ${MODULE} | sed -n 's/.*"Dir": "\\(.*\\)",/\\1/p')`,
    ...['cp -r "$dir" agh', "chmod -R u+w agh", "mkdir -p agh/build/static", ...stubs, "cd agh"],
    `version=github.com/AdguardTeam/AdGuardHome/internal/version`,
    `go build -trimpath -ldflags "-s -w -X $version.version=${VERSION}" -o ../AdGuardHome .`,
  ].join(" && ");
  const { code, stderr } = await runProgram("sh", "-c", script);
  if (code === 0) return `${folder}/AdGuardHome`;
  console.log(`skipped: AdGuard Home can't be built here: ${stderr.slice(-300)}`);
  return null;
}

/** One that runs on loopback, set up with a user. */
export class AdguardHome {
  private constructor(
    readonly url: string,
    private readonly child: Deno.ChildProcess,
    private readonly directory: OwnDirectory,
    private readonly authorization: string,
  ) {}

  static async start(program: string, user: string, password: string): Promise<AdguardHome> {
    const directory = await OwnDirectory.make();
    const [web, dns] = [freePort(), freePort()];
    const { path } = directory;
    const child = new Deno.Command(program, {
      args: [
        ...["-w", path, "-c", `${path}/AdGuardHome.yaml`],
        ...["--web-addr", `127.0.0.1:${web}`, "--no-check-update"],
      ],
      stdin: "null",
      stdout: "null",
      stderr: "null",
    }).spawn();
    const url = `http://127.0.0.1:${web}`;
    const authorization = `Basic ${btoa(`${user}:${password}`)}`;
    const home = new AdguardHome(url, child, directory, authorization);
    try {
      await until("AdGuard Home asks to be set up", async () => {
        const answer = await fetch(`${url}/control/install/get_addresses`).catch(() => null);
        await answer?.body?.cancel();
        return answer?.status === 200;
      });
      await home.call("install/configure", {
        web: { ip: "127.0.0.1", port: web },
        dns: { ip: "127.0.0.1", port: dns },
        username: user,
        password,
      });
      await until("AdGuard Home lets its user in", async () => {
        const answer = await fetch(`${url}/control/status`, { headers: { authorization } })
          .catch(() => null);
        await answer?.body?.cancel();
        return answer?.status === 200;
      });
    } catch (error) {
      await home[Symbol.asyncDispose]();
      throw error;
    }
    return home;
  }

  /** Changes something there, which must succeed. */
  async call(path: string, body: unknown, method = "POST"): Promise<void> {
    const response = await fetch(`${this.url}/control/${path}`, {
      method,
      headers: { authorization: this.authorization, "content-type": "application/json" },
      body: JSON.stringify(body),
    });
    assert.ok(response.ok, `${path}: ${response.status} ${await response.text()}`);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.child.kill("SIGTERM");
    await this.child.status;
    await this.directory[Symbol.asyncDispose]();
  }
}
