/** The child of `kill_test.ts`: rewrites a list until it is killed and says each version it kept. */
import { FakeClock, FakeNetwork } from "./fakes.ts";
import { ListKeeper, type RefreshEvent } from "./keeper.ts";

const [directory, first] = Deno.args;
let version = Number(first);
const { get } = new FakeNetwork(() => ({ body: `||v${version}.example^\n`.repeat(10_000) }));
const keeper = await ListKeeper.open(directory, {
  get,
  clock: new FakeClock(),
  chance: () => 0,
  localListsDirectory: directory,
});
const source = { id: "li_a", name: "Ads", url: "https://lists.example/" };
for (;;) {
  version++;
  const onFinished = ({ outcome }: RefreshEvent) => {
    if (outcome === "updated") Deno.stdout.writeSync(new TextEncoder().encode(`${version}\n`));
  };
  await keeper.refresh([source], { intervalMs: 1, force: true, onFinished }).done;
}
