import assert from "node:assert/strict";
import { parseIp } from "../addr/mod.ts";
import { decodeHex } from "../bytes/mod.ts";
import type { DevicesConfig } from "../config/mod.ts";
import type { Neighbour } from "../netlink/mod.ts";
import { policyState } from "../snapshot/fakes.ts";
import { type DeviceFiles, Devices } from "./devices.ts";

const none = { permissions: "none" } as const;
const TABLET = "02:00:5e:10:00:01";
const GUEST = "02:00:5e:10:00:02";
const LEASES = "/leases";

function neighbour(address: string, mac: string): Neighbour {
  return {
    address: parseIp(address)!,
    mac: decodeHex(mac.replaceAll(":", ""))! as Uint8Array<ArrayBuffer>,
  };
}

/** Devices of a network that the test is, and how often clients were found elsewhere. */
async function network(
  files: Readonly<Record<string, string>>,
  config: Partial<DevicesConfig> = {},
) {
  let tell: (found: readonly Neighbour[]) => void = () => assert.fail("nobody listens");
  const told = { starts: 0, moves: 0 };
  const disk: DeviceFiles = {
    versionOf: (path) =>
      path in files ? Promise.resolve("1") : Promise.reject(new Deno.errors.NotFound(path)),
    read: (path, bytesMax) =>
      files[path].length > bytesMax
        ? Promise.reject(new Error("too long"))
        : Promise.resolve(files[path]),
  };
  const devices = new Devices({
    config: { hostsFiles: [], leaseFiles: Object.keys(files), neighbours: true, ...config },
    files: disk,
    neighbours: {
      start(found) {
        told.starts++;
        tell = found;
        found([neighbour("192.168.1.20", TABLET), neighbour("127.0.0.1", TABLET)]);
      },
      stop() {},
    },
  });
  devices.onMove = () => {
    told.moves++;
    return Promise.resolve();
  };
  await devices.open();
  return { devices, told, hear: (...found: Neighbour[]) => tell(found) };
}

const STATE = policyState({
  clients: { tablet: { addresses: [TABLET, "10.0.0.0/8"] }, tv: { addresses: ["192.168.1.30"] } },
});

function addressesOf(devices: Devices, id: string): readonly string[] {
  const { clients } = devices.locate(STATE).collections;
  return [...clients.values()].find(({ spec }) => spec.name === id)!.spec.addresses;
}

async function moved(told: { readonly moves: number }, count: number): Promise<void> {
  for (let i = 0; told.moves < count; i++) {
    assert.ok(i < 2_000, "nobody is told");
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

Deno.test("Devices finds a client with a MAC address wherever its device is", none, async () => {
  const { devices, told, hear } = await network({});
  assert.equal(told.starts, 0, "nobody wakes for it before it is wanted");
  assert.deepEqual(addressesOf(devices, "tablet"), [TABLET, "192.168.1.20", "10.0.0.0/8"]);
  assert.equal(
    devices.locate(STATE).collections.clients,
    devices.locate(STATE).collections.clients,
  );
  hear(neighbour("fd00::20", TABLET), neighbour("192.168.1.30", TABLET));
  hear(neighbour("192.168.1.40", GUEST));
  await moved(told, 1);
  const taken = "an address that a client is written with stays that client's";
  assert.deepEqual(
    addressesOf(devices, "tablet"),
    [TABLET, "192.168.1.20", "fd00::20", "10.0.0.0/8"],
    taken,
  );
  hear(neighbour("192.168.1.20", GUEST));
  await moved(told, 2);
  assert.deepEqual(addressesOf(devices, "tablet"), [TABLET, "fd00::20", "10.0.0.0/8"]);
  assert.equal(devices.macOf("192.168.1.20"), GUEST);
  hear(neighbour("192.168.1.41", GUEST));
  assert.equal(told.starts, 1);
  devices.stop();
});

Deno.test("Devices keeps bounds, whoever shouts", none, async () => {
  const { devices, hear } = await network({});
  addressesOf(devices, "tablet");
  for (let i = 0; i < 40_000; i++) {
    const address = `10.${i >> 16}.${(i >> 8) & 255}.${i & 255}`;
    hear(neighbour(address, i % 2 === 0 ? TABLET : `02:00:00:00:${hex(i >> 8)}:${hex(i & 255)}`));
  }
  const found = addressesOf(devices, "tablet").filter((text) => !text.includes("/"));
  assert.equal(found.length, 1 + 64, "the newest of one device");
  assert.equal(found.at(-1), "10.0.156.62");
  assert.equal(devices.macOf("10.0.0.1"), null, "the oldest of all is forgotten");
  devices.stop();
});

function hex(byte: number): string {
  return (byte & 255).toString(16).padStart(2, "0");
}

Deno.test(
  "Devices knows names and MAC addresses by files, and says what it can't read",
  none,
  async () => {
    const files = {
      [LEASES]: `1 ${TABLET} 192.168.7.2 tablet *\n1 ${GUEST} 192.168.1.20 guest *\n`,
    };
    const { devices } = await network(files, {
      hostsFiles: ["/hosts"],
      leaseFiles: [LEASES, "/gone"],
    });
    assert.deepEqual(devices.hostnameOf("192.168.7.2"), { hostname: "tablet", source: "lease" });
    assert.equal(devices.hostnameOf("192.168.7.3"), null);
    assert.deepEqual(
      addressesOf(devices, "tablet"),
      [TABLET, "192.168.1.20", "192.168.7.2", "10.0.0.0/8"],
      "a neighbour is where it is, whatever a lease says",
    );
    assert.deepEqual(devices.problems, ["devices: /gone: /gone: name another file"]);
    devices.stop();
    const off = await network(files, { neighbours: false });
    assert.deepEqual(addressesOf(off.devices, "tablet"), [TABLET, "192.168.7.2", "10.0.0.0/8"]);
    assert.equal(off.told.starts, 0);
    off.devices.stop();
  },
);
