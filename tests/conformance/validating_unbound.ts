/** Debian's unbound as a validator that forwards to somebody else. */
import type { HostPort } from "../../src/addr/mod.ts";
import { freePort, until } from "../e2e/harness.ts";

export interface ValidatingUnbound extends AsyncDisposable {
  readonly server: HostPort;
}

/**
 * Starts one in a directory of the caller's, with the anchors of a file; resolves once it answers.
 * `upstream` is a port of loopback.
 */
export async function startUnbound(
  directory: string,
  upstream: number,
  anchors: string,
): Promise<ValidatingUnbound> {
  const port = freePort();
  const config = `server:
  interface: 127.0.0.1@${port}
  directory: "${directory}"
  chroot: ""
  username: ""
  pidfile: ""
  use-syslog: no
  num-threads: 1
  module-config: "validator iterator"
  trust-anchor-file: "${anchors}"
  do-not-query-localhost: no
  local-zone: "test." nodefault
  qname-minimisation: no
  aggressive-nsec: no
  harden-algo-downgrade: no
  val-sig-skew-min: 0
  val-sig-skew-max: 0
  val-max-restart: 1
  incoming-num-tcp: 50
  tcp-idle-timeout: 30000
forward-zone:
  name: "."
  forward-addr: 127.0.0.1@${upstream}
remote-control:
  control-enable: no
`;
  const file = `${directory}/unbound.conf`;
  await Deno.writeTextFile(file, config);
  const child = new Deno.Command("unbound", {
    args: ["-d", "-c", file],
    stdin: "null",
    stdout: "null",
    stderr: "null",
  }).spawn();
  let hasEnded = false;
  void child.status.then(() => hasEnded = true);
  await until("unbound, listening", async () => {
    if (hasEnded) throw new Error(`unbound ended: see ${file}`);
    try {
      (await Deno.connect({ hostname: "127.0.0.1", port })).close();
      return true;
    } catch {
      return false;
    }
  });
  return {
    server: { ip: Uint8Array.of(127, 0, 0, 1), port },
    async [Symbol.asyncDispose](): Promise<void> {
      if (!hasEnded) child.kill("SIGKILL");
      await child.status;
    },
  };
}
