// Goal: however lists are asked for, changed and taken away, no text is renewed twice at once, no more
// than four are downloaded at once, and nothing that is wanted is forgotten. Method: calls drawn from
// a seed, which `--seed=N` repeats.
import assert from "node:assert/strict";
import { seededChance } from "./fakes.ts";
import { DOWNLOADS_MAX, Renewals } from "./renewals.ts";

const SEEDS = 50;
const CALLS = 300;
const IDS = 12;
const SEED = Number(Deno.args.find((arg) => arg.startsWith("--seed="))?.slice(7) ?? 20260103);

interface Running {
  readonly id: string;
  readonly signal: AbortSignal;
  readonly end: PromiseWithResolvers<void>;
}

Deno.test("Renewals keep their bounds and lose nothing", { permissions: "none" }, async () => {
  for (let seed = SEED; seed < SEED + SEEDS; seed++) {
    const chance = seededChance(seed);
    const pick = (count: number) => Math.floor(chance() * count);
    const renewals = new Renewals();
    const running = new Set<Running>();
    const asked: Promise<void>[] = [];
    let places = new Map(Array.from({ length: IDS }, (_, i) => [`li_${i}`, "0"]));
    const place = `seed ${seed}`;
    const work = (id: string) => async (signal: AbortSignal) => {
      const mine = { id, signal, end: Promise.withResolvers<void>() };
      assert.ok(![...running].some((other) => other.id === id), `${place}: ${id} twice at once`);
      running.add(mine);
      assert.ok(running.size <= DOWNLOADS_MAX, `${place}: ${running.size} at once`);
      signal.addEventListener("abort", () => mine.end.resolve());
      await mine.end.promise;
      running.delete(mine);
    };
    for (let call = 0; call < CALLS; call++) {
      const id = `li_${pick(IDS)}`;
      const what = chance();
      const at = places.get(id);
      if (what < 0.5 && at !== undefined) {
        const isForced = chance() < 0.5;
        const { done } = renewals.ask({
          id,
          place: at,
          isDownload: true,
          isForced,
          isUrgent: chance() < 0.3,
        }, work(id));
        asked.push(done);
      } else if (what < 0.8) {
        [...running][pick(running.size)]?.end.resolve();
      } else if (what < 0.9) {
        places = new Map(places).set(id, String(call)); // Moved, or made anew.
        renewals.keepOnly(places);
      } else if (what < 0.95) {
        places = new Map(places);
        places.delete(id);
        renewals.keepOnly(places);
      }
      for (let turns = pick(6); turns > 0; turns--) await undefined;
      for (const { id, signal } of running) {
        assert.ok(signal.aborted || places.has(id), `${place}: ${id} is gone and goes on`);
      }
    }
    let done = false;
    const all = Promise.all(asked).then(() => done = true);
    while (!done) {
      for (const { end } of running) end.resolve();
      await new Promise((resolve) => setTimeout(resolve, 0));
    }
    await all;
    for (const id of places.keys()) assert.ok(!renewals.has(id), `${place}: ${id} is left`);
    // Every place is free again.
    const ends = Array.from({ length: DOWNLOADS_MAX }, (_, i) => {
      const wanted = { id: `x${i}`, place: "0", isDownload: true, isForced: true, isUrgent: false };
      return renewals.ask(wanted, work(`x${i}`)).done;
    });
    await new Promise((resolve) => setTimeout(resolve, 0));
    assert.equal(running.size, DOWNLOADS_MAX, place);
    for (const { end } of running) end.resolve();
    await Promise.all(ends);
  }
});
