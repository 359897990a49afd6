import assert from "node:assert/strict";
import { SvcError } from "../errors.ts";
import { FakeClock, FakeNetwork, MemoryDisk } from "./fakes.ts";
import { ListKeeper } from "./keeper.ts";
import { checkCatalogue, ServiceCatalogue, type ServicesPlace } from "./service_catalogue.ts";

const none = { permissions: "none" } as const;

const catalogue = (...rules: string[]) =>
  JSON.stringify({ blocked_services: [{ id: "chat", name: "Chat", rules }] });

async function open(place: ServicesPlace, disk = new MemoryDisk()) {
  const network = new FakeNetwork(() => ({ body: catalogue("||chat.example^") }));
  const keeper = await ListKeeper.open("/kept", {
    get: network.get,
    clock: new FakeClock(),
    chance: () => 0,
    disk,
    localListsDirectory: "/local",
  });
  return { network, keeper, disk, services: new ServiceCatalogue(place, keeper, disk) };
}

Deno.test("ServiceCatalogue has no services where they are off", none, async () => {
  const { services } = await open({ kind: "off" });
  assert.deepEqual(await services.load(), []);
  assert.deepEqual([services.source, services.problem], [null, null]);
});

Deno.test(
  "ServiceCatalogue reads the operator's file again and keeps the former one",
  none,
  async () => {
    const { services, disk } = await open({ kind: "file", path: "/etc/services.json" });
    assert.equal(services.source, null, "nothing is downloaded");
    assert.deepEqual(await services.load(), []);
    assert.match(
      services.problem ?? "",
      /^filter\.services_file: \/etc\/services\.json: .*; no service can be blocked$/,
    );
    disk.put("/etc/services.json", catalogue("||chat.example^"));
    assert.deepEqual((await services.load()).map(({ id, rules }) => [id, ...rules]), [
      ["chat", "||chat.example^"],
    ]);
    assert.equal(services.problem, null);
    disk.put("/etc/services.json", "{");
    assert.equal((await services.load()).length, 1);
    assert.match(services.problem ?? "", /is no JSON; the former one holds$/);
  },
);

Deno.test("ServiceCatalogue reads what the keeper has fetched", none, async () => {
  const place = { kind: "url", url: "https://lists.example/services.json" } as const;
  const { services, keeper, network, disk } = await open(place);
  assert.deepEqual(await services.load(), []);
  assert.equal(services.problem, null, "it was not fetched yet");
  const refresh = async () => {
    const { source } = services;
    assert.ok(source !== null);
    await keeper.refresh([source], { intervalMs: 0, force: true }).done;
    return keeper.status(source.id).state;
  };
  assert.equal(await refresh(), "ok");
  assert.equal((await services.load()).length, 1);
  network.answer = () => ({ body: catalogue("@@||chat.example^") });
  assert.equal(await refresh(), "failed", "a catalogue without services is none");
  assert.equal((await services.load()).length, 1);
  const restarted = await open(place, disk.afterKill());
  assert.equal((await restarted.services.load()).length, 1, "asks no server");
  assert.equal(restarted.network.asked.length, 0);
});

Deno.test("checkCatalogue() takes what names a service", none, () => {
  checkCatalogue(catalogue("||chat.example^"));
  for (const text of [catalogue("/chat/"), '{"blocked_services":[]}', "[]", ""]) {
    assert.throws(() => checkCatalogue(text), SvcError, text);
  }
});
