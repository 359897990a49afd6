// Goal: devices are told by MAC address whatever their address is, and have the names that hosts and
// lease files give them. Method: a service and a client at the ends of a wire (network namespaces);
// the client takes further addresses, IPv4 and IPv6, and asks by kdig.

import assert from "node:assert/strict";
import { EveryTransport } from "./every_transport.ts";
import { hasProgram, OwnDirectory, PERMISSIONS, until } from "./harness.ts";
import { HAS_NAMESPACES, Network } from "./network.ts";
import { makeAuthority, writePair } from "./certificates.ts";

const OPTIONS = {
  permissions: PERMISSIONS,
  ignore: !HAS_NAMESPACES || !hasProgram("kdig"),
} as const;
const SERVER = ["10.77.0.1/24", "fd00:77::1/64"];
const [FIRST, SECOND, SIXTH] = ["10.77.0.2", "10.77.0.3", "fd00:77::2"];
const NAME = "pc.example";
const REWRITTEN = "NOERROR 192.0.2.7";
const NO_INTERNET = "NOERROR 0.0.0.0";
const LOCALLY = "02:00:5e:10:00:09";

Deno.test(
  "A device is known by its MAC address at every address that it takes",
  OPTIONS,
  async (t) => {
    await using network = await Network.make(SERVER, [`${FIRST}/24`]);
    await using directory = await OwnDirectory.make();
    const authority = await makeAuthority();
    const names = ["dns.svc.test", "*.dns.svc.test"];
    await writePair(directory.path, "server", await authority.issue({ names }));
    const leases = `${directory.path}/leases`;
    await Deno.writeTextFile(leases, `1 ${LOCALLY} 10.77.0.9 camera *\n`);
    await Deno.writeTextFile(`${directory.path}/hosts`, `${SECOND} desk.home.arpa\n`);
    await using bench = await EveryTransport.start({
      network,
      directory: directory.path,
      ips: SERVER.map((text) => text.split("/")[0]),
      config: {
        filter: { rules: [`||${NAME}^$dnsrewrite=192.0.2.7`] },
        devices: { hosts_files: ["hosts"], lease_files: ["leases"] },
      },
    });
    const { api } = bench;
    const mac = await network.clientMac();
    const asked = (from: string) => bench.brief("udp", NAME, { from });
    const comes = (from: string, answer: string) =>
      until(`${from} gets ${answer}`, async () => await asked(from) === answer);

    await t.step("an address is written in one form, and is one client's", async () => {
      await api.create("clients", { name: "Desk", addresses: [mac.toUpperCase()], blocked: true });
      const { items } = await api.call("GET", "clients");
      assert.deepEqual(items[0].spec.addresses, [mac]);
    });
    await t.step("the device is found where it is, and where it goes", async () => {
      await comes(FIRST, NO_INTERNET);
      for (const address of [`${SECOND}/24`, `${SIXTH}/64`]) {
        await network.addClientAddress(address);
      }
      await comes(SECOND, NO_INTERNET);
      await comes(SIXTH, NO_INTERNET);
      const { client } = await api.call("GET", `explain?name=${NAME}&type=A&client=${SIXTH}`);
      assert.equal(client.name, "Desk");
    });
    await t.step("who asked has its MAC address and the names of files", async () => {
      const find = async (address: string) => {
        const { items } = await api.call("GET", "clients/seen");
        return items.find((one: { address: string }) => one.address === address);
      };
      await until("it has asked", async () => await find(SECOND) !== undefined);
      const seen = await find(SECOND);
      assert.equal(seen.mac, mac);
      assert.equal(seen.hostname, "desk.home.arpa");
      assert.equal(seen.hostname_source, "hosts");
      assert.notEqual(seen.client, null);
    });
    await t.step("without its client it is one of all", async () => {
      const { items } = await api.call("GET", "clients");
      await api.call("DELETE", `clients/${items[0].id}`);
      for (const from of [FIRST, SECOND, SIXTH]) await comes(from, REWRITTEN);
    });
  },
);
