/** A network of the test's own: two namespaces of the kernel with a wire between them. */
import assert from "node:assert/strict";
import { runProgram } from "./harness.ts";

/** What each end is called by; loopback of the machine always passes, so clients are elsewhere. */
const NAME = `svc-test-${Deno.pid}`;
let count = 0;

/** Whether namespaces can be made here; tests that need them are ignored otherwise. */
export const HAS_NAMESPACES: boolean = (() => {
  const isRoot = Deno.build.os === "linux" && Deno.uid() === 0;
  const name = `${NAME}-try`;
  const run = (...args: string[]) => {
    try {
      return new Deno.Command("ip", { args, stdout: "null", stderr: "null" }).outputSync().success;
    } catch {
      return false;
    }
  };
  const has = isRoot && run("netns", "add", name) && run("netns", "delete", name);
  if (!has) console.log("skipped: network namespaces need root and the program ip");
  return has;
})();

async function ip(args: string): Promise<void> {
  const { code, stderr } = await runProgram("ip", ...args.split(" "));
  assert.equal(code, 0, `ip ${args}: ${stderr}`);
}

async function addAddressAt(end: string, address: string): Promise<void> {
  // Nobody else has it: it is to be used at once.
  const nodad = address.includes(":") ? " nodad" : "";
  await ip(`-n ${end} address add ${address} dev wire${nodad}`);
}

/** The wire; programs run at either end by a prefix to their command. */
export class Network {
  private constructor(private readonly server: string, private readonly client: string) {}

  /** Gives each end its addresses, with the lengths of their networks. */
  static async make(server: readonly string[], client: readonly string[]): Promise<Network> {
    const name = `${NAME}-${count++}`;
    const network = new Network(`${name}-s`, `${name}-c`);
    try {
      for (const end of [network.server, network.client]) {
        await ip(`netns add ${end}`);
        await ip(`-n ${end} link set lo up`);
      }
      await ip(
        `-n ${network.server} link add wire type veth peer name wire netns ${network.client}`,
      );
      for (const end of [network.server, network.client]) await ip(`-n ${end} link set wire up`);
      for (const address of server) await network.addAddress(address);
      for (const address of client) await addAddressAt(network.client, address);
    } catch (error) {
      await network[Symbol.asyncDispose]();
      throw error;
    }
    return network;
  }

  /** Before a command that is to run where the service is. */
  get atServer(): string[] {
    return ["ip", "netns", "exec", this.server];
  }

  /** Before a command that is to run where the clients are. */
  get atClient(): string[] {
    return ["ip", "netns", "exec", this.client];
  }

  /** Gives the server one more address. */
  async addAddress(address: string): Promise<void> {
    await addAddressAt(this.server, address);
  }

  /** Gives the client one more address. */
  async addClientAddress(address: string): Promise<void> {
    await addAddressAt(this.client, address);
  }

  /** The MAC address of the client's end. */
  async clientMac(): Promise<string> {
    const args = `-n ${this.client} -o link show dev wire`.split(" ");
    const { stdout } = await runProgram("ip", ...args);
    return /link\/ether (\S+)/.exec(stdout)?.[1] ?? assert.fail(stdout);
  }

  /** Has clients reach a network, or one address, through an address of the server. */
  async clientRoute(to: string, via: string): Promise<void> {
    await ip(`-n ${this.client} route add ${to} via ${via}`);
  }

  /** The link-local address of the server, with the client's scope. */
  async linkLocal(): Promise<string> {
    const args = `-n ${this.server} -6 -o address show dev wire scope link`.split(" ");
    const { stdout } = await runProgram("ip", ...args);
    return `${/inet6 (fe80\S+)\//.exec(stdout)?.[1]}%wire`;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const end of [this.server, this.client]) await runProgram("ip", "netns", "delete", end);
  }
}
