// Goal: `svc tui` does its tasks on a terminal, and leaves none of it behind. Method: it runs in tmux,
// by a real pty; keys are pressed, the screen is read, and the service says what was changed.

import assert from "node:assert/strict";
import { newToken, tokenSha256 } from "../../src/auth/mod.ts";
import { Api } from "./api.ts";
import { Asker } from "./asker.ts";
import { address, FakeUpstream } from "./fake_upstream.ts";
import {
  hasProgram,
  OwnDirectory,
  PERMISSIONS,
  runProgram,
  Service,
  svcCommand,
  until,
} from "./harness.ts";
import { Screen } from "./screen.ts";
import { filterWithServices } from "./services.ts";

const HAS_TMUX = hasProgram("tmux");
const permissions = PERMISSIONS;

/** A service with a client, a list and something to ask. */
class Site implements AsyncDisposable {
  private constructor(
    readonly service: Service,
    readonly api: Api,
    readonly upstream: FakeUpstream,
    readonly own: OwnDirectory,
  ) {}

  static async start(): Promise<Site> {
    const own = await OwnDirectory.make();
    await Deno.mkdir(`${own.path}/lists`);
    await Deno.writeTextFile(`${own.path}/lists/ads.txt`, "||ads.example^\n||more.example^\n");
    const upstream = await FakeUpstream.start((query) => address(query, "192.0.2.7"));
    const service = await Service.start({
      directory: own.path,
      config: {
        upstream: [{ address: upstream.text }],
        filter: {
          ...await filterWithServices(own.path),
          lists: [{ name: "Ads", path: "lists/ads.txt" }],
        },
      },
    });
    const api = await Api.of(service);
    await until("the list", async () => (await api.call("GET", "status")).filter.rules >= 2);
    await api.create("clients", { name: "TV", addresses: ["127.0.0.1"] });
    await api.create("groups", { name: "Kids" });
    return new Site(service, api, upstream, own);
  }

  get origin(): string {
    return new URL(this.api.base).origin;
  }

  async ask(name: string, from = "127.0.0.1"): Promise<string> {
    using asker = await Asker.open(this.service.address, from);
    return (await asker.ask(name)).records.join();
  }

  /** The only one that passes. */
  // deno-lint-ignore no-explicit-any -- resources of every shape
  async spec(collection: string, passes: (spec: any) => boolean): Promise<any> {
    const { items } = await this.api.call("GET", collection);
    return items.find(({ spec }: { spec: unknown }) => passes(spec))?.spec;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.service[Symbol.asyncDispose]();
    await this.upstream[Symbol.asyncDispose]();
    await this.own[Symbol.asyncDispose]();
  }
}

Deno.test({
  name: "svc tui does its tasks on a terminal of 80 by 24",
  permissions,
  ignore: !HAS_TMUX,
  fn: async (t) => {
    await using site = await Site.start();
    const { api, own: { path } } = site;
    await using screen = await Screen.open(path, "tasks");
    await site.ask("ads.example");
    await site.ask("www.example");
    await screen.svc("tui", "--api", site.origin);

    await t.step("the status: what is filtered, counts, bars, upstreams", async () => {
      await screen.shows("[1 Status]", "filtering, no problems", "2 queries, 50 % blocked", "█ 2");
      await screen.shows(/ok +[\d.]+ ms +127\.0\.0\.1:\d+/, /1 +ads\.example/, "connected to");
    });

    await t.step("the log as it comes", async () => {
      await screen.press("2");
      await screen.shows("live", /> .* forwarded +www\.example/, /blocked +ads\.example .*TV +Ads/);
      await site.ask("news.example");
      await screen.shows(/> .* forwarded +news\.example/);
    });

    await t.step("a filter, and an unknown one", async () => {
      await screen.press("/");
      await screen.types("colour:red");
      await screen.press("Enter");
      await screen.shows("colour: is no field");
      await screen.press("C-u");
      await screen.types("outcome:blocked ads");
      await screen.press("Enter");
      await screen.shows("filter: outcome:blocked ads", "ads.example");
      await screen.lacks("www.example");
    });

    await t.step("details, with what it would come to now", async () => {
      await screen.press("Enter");
      await screen.shows("decided   ||ads.example^ of Ads", "now: blocked, ||ads.example^ of Ads");
      await screen.press("Escape");
      await screen.lacks("decided   ");
    });

    await t.step("allowed for the client and an hour, and taken back", async () => {
      assert.equal(await site.ask("ads.example"), "A 0.0.0.0");
      await screen.press("a");
      await screen.shows("< ads.example >", "< TV >", "< 1 hour >");
      await screen.press("Enter");
      await screen.shows(/allowed ads\.example for TV until .*\d\d:\d\d \(u: undo\)/); // A date where it is tomorrow.
      assert.equal(await site.ask("ads.example"), "A 192.0.2.7");
      const rule = await site.spec("rules", ({ rule }) => rule === "@@|ads.example^");
      assert.equal(rule.clients.length, 1);
      const leftMs = Date.parse(rule.expires_at) - Date.now();
      assert.ok(leftMs > 3_000_000 && leftMs <= 3_600_000, rule.expires_at);
      await screen.press("u");
      await screen.shows("taken back");
      assert.equal(await site.spec("rules", () => true), undefined);
      assert.equal(await site.ask("ads.example"), "A 0.0.0.0");
    });

    await t.step("blocked for everybody and for ever, with all below", async () => {
      await screen.press("Escape");
      await screen.shows("www.example");
      await site.ask("a.b.shop.example");
      await screen.shows(/> .*a\.b\.shop\.example/);
      await screen.press("b");
      await screen.shows("< everybody >", "< for ever >");
      await screen.press("Right", "Right", "Right");
      await screen.shows("< shop.example and below >");
      await screen.press("Enter");
      await screen.shows("blocked shop.example and below for everybody for ever");
      assert.equal(await site.ask("x.shop.example", "127.0.0.2"), "A 0.0.0.0");
      const { expires_at, clients, groups } = await site.spec(
        "rules",
        ({ rule }) => rule === "||shop.example^",
      );
      assert.deepEqual([expires_at, clients, groups], [null, [], []]);
    });

    await t.step("whoever reads further down holds the log", async () => {
      await screen.shows(/> .*x\.shop\.example/);
      await screen.press("j");
      await site.ask("later.example");
      await screen.shows("held, 1 new");
      await screen.press("g");
      await screen.shows(/> .*later\.example/);
    });

    await t.step("a client gets another group; a new one a name", async () => {
      await screen.press("3");
      await screen.shows(/> TV +127\.0\.0\.1 +Default/);
      await screen.press("r");
      await screen.shows("1 known, 1 new");
      await screen.press("Enter");
      await screen.shows("group ...");
      await screen.press("Enter");
      await screen.shows("Group of TV");
      await screen.press("Down", "Enter");
      await screen.shows(/> TV +127\.0\.0\.1 +Kids/);
      await screen.press("u");
      await screen.shows(/> TV +127\.0\.0\.1 +Default/);
      await screen.press("Down", "Enter");
      await screen.shows("name it ...");
      await screen.press("Enter");
      await screen.shows("What is 127.0.0.2 called?");
      await screen.types("Phone");
      await screen.press("Enter");
      await screen.shows("2 known, 0 new", /Phone +127\.0\.0\.2/);
    });

    await t.step(
      "a group: filtering, lists, services, a service for an hour, a pause",
      async () => {
        await screen.press("4");
        await screen.shows(/> Default +filtering/);
        await screen.press("Enter");
        await screen.shows(
          "[x] Filtering",
          "[ ] Safe search",
          "[x] List: Ads",
          "[ ] Block: TikTok",
        );
        await screen.press("Down", "Space");
        await screen.shows("[x] Safe search");
        await screen.press("u");
        await screen.shows("[ ] Safe search");
        await screen.press("/");
        await screen.types("tik");
        await screen.press("Enter", "Space");
        await screen.shows("> [x] Block: TikTok");
        assert.equal(await site.ask("tiktok.example"), "A 0.0.0.0");
        await screen.press("a");
        await screen.shows(/Block: TikTok +paused until/);
        assert.equal(await site.ask("tiktok.example"), "A 192.0.2.7");
        await screen.press("h");
        await screen.shows("Pause filtering for Default");
        await screen.press("Enter");
        await screen.shows(/Default +paused until/);
        assert.equal(await site.ask("ads.example"), "A 192.0.2.7");
        await screen.press("u");
        await screen.lacks(/Default +paused until/);
      },
    );

    await t.step("a list, off and on", async () => {
      await screen.press("5");
      await screen.shows(/> \[x\] Ads +2 rules +ok/);
      await screen.press("Space");
      await screen.shows("> [ ] Ads", "Ads: off");
      assert.equal(await site.ask("ads.example"), "A 192.0.2.7");
      await screen.press("Space");
      await screen.shows("> [x] Ads");
    });

    await t.step("a pause counts down, and ends", async () => {
      await screen.press("p");
      await screen.shows("> 5 minutes");
      await screen.press("Enter");
      await screen.shows(/paused 4:5\d/);
      assert.notEqual((await api.call("GET", "status")).paused_until, null);
      await screen.press("P");
      await screen.shows("filtering again");
      await screen.lacks(/paused \d/);
      await screen.press("p", "Down", "Down", "Down", "Down", "Enter");
      await screen.shows("how many minutes");
      await screen.types("0");
      await screen.press("Enter");
      await screen.shows("type a number from 1 to 10080");
      await screen.types("90");
      await screen.press("BSpace", "Enter");
      await screen.shows(/paused 8:5\d/);
      await screen.press("u");
      await screen.lacks(/paused \d/);
    });

    await t.step("what others change is seen", async () => {
      const { id } = (await api.call("GET", "lists")).items[0];
      const spec = await site.spec("lists", () => true);
      await api.call("PUT", `lists/${id}`, { ...spec, enabled: false });
      await screen.shows("> [ ] Ads");
      await api.call("PUT", `lists/${id}`, { ...spec, enabled: true });
      await screen.shows("> [x] Ads");
    });

    await t.step("nothing that a name holds acts", async () => {
      await api.create("clients", { name: "Wide 東京", addresses: ["127.0.0.3"] });
      await api.create("groups", { name: "Gäste 😀" });
      await site.ask("\\027[31m.evil.example", "127.0.0.3");
      await screen.press("2", "g");
      await screen.shows(/> .*\\027\[31m\.evil\.example/);
      await screen.press("3");
      await screen.shows(/Wide 東京 +127\.0\.0\.3 +Default/);
      await screen.press("4");
      await screen.press("Escape", "Escape");
      await screen.shows("Gäste 😀");
    });

    await t.step("any size, there and back", async () => {
      await screen.press("2");
      for (const [width, height] of [[60, 12], [40, 8], [100, 30], [80, 24]]) {
        await screen.resize(width, height);
        const text = await screen.shows("[2 Log]", /> \d\d:\d\d:\d\d/);
        assert.equal(text.split("\n").length - 1, height);
      }
      await screen.resize(39, 7);
      await screen.shows("39 x 7 is too small");
      await screen.resize(80, 24);
      await screen.shows("[2 Log]", "live");
    });

    await t.step("hundreds of entries: a few pictures, and none of them begins anew", async () => {
      const [before, count] = [await screen.written(), 600];
      {
        using asker = await Asker.open(site.service.address, "127.0.0.1");
        await asker.askAll(Array.from({ length: count }, (_, i) => ({ name: `n${i}.example` })));
        await asker.ask("last.example");
      }
      await screen.shows(/> .*last\.example/);
      const added = (await screen.written()).slice(before.length);
      assert.ok(!added.includes("\x1b[2J"), "the screen is never cleared");
      assert.ok(added.length < count * 80 * 24 / 4, `${added.length} bytes`);
      await screen.press("C-l");
      await until(
        "all anew",
        async () => (await screen.written()).slice(before.length).includes("\x1b[2J"),
      );
    });

    await t.step("q leaves the terminal clean", async () => {
      await screen.press("q");
      await screen.isClean(0);
    });
    site.service.assertCalm();
  },
});

/** What an API says that has gone mad: all is well, and nothing is there. */
function emptyApi(): Deno.HttpServer<Deno.NetAddr> {
  const options = { hostname: "127.0.0.1", port: 0, onListen: () => {} };
  return Deno.serve(options, () => Response.json({}));
}

Deno.test({
  name: "svc tui stays while the service is away, and is there again with it",
  permissions,
  ignore: !HAS_TMUX,
  fn: async () => {
    await using own = await OwnDirectory.make();
    const token = newToken();
    await Deno.writeTextFile(`${own.path}/token`, `${token}\n`);
    const start = (listen: string) =>
      Service.start({
        directory: own.path,
        config: { api: { listen: [listen], token_sha256: tokenSha256(token) } },
      });
    await using screen = await Screen.open(own.path, "away");
    let listen = "";
    {
      await using service = await start("127.0.0.1:0");
      [listen] = (await service.logged("serving the API")).listen as string[];
      await screen.svc("tui", "--api", `http://${listen}`);
      await screen.shows("ended 1", "--token-file FILE gives the token");
      await screen.svc("tui", "--api", `http://${listen}`, "--token-file", `${own.path}/token`);
      await screen.shows("[1 Status]", "filtering", "admin  connected");
      service.kill("SIGKILL");
      await screen.shows("NO ANSWER", "trying again", "[1 Status]", "0 queries");
    }
    await using service = await start(listen);
    await screen.shows("admin  connected");
    await screen.press("2");
    {
      using asker = await Asker.open(service.address, "127.0.0.1");
      await asker.ask("health.svc.test");
      await asker.ask("version.svc.test");
    }
    await screen.shows("live", /> .*version\.svc\.test/);
    await screen.press("q");
    await screen.shows("ended 0");
  },
});

/** Whatever ends it, the terminal is as it was. */
async function endsClean(t: Deno.TestContext, site: Site): Promise<void> {
  const { own: { path } } = site;
  const opened = async (name: string, base = site.origin) => {
    const screen = await Screen.open(path, name);
    await screen.svc("tui", "--api", base);
    return screen;
  };
  await t.step("Ctrl+C", async () => {
    await using screen = await opened("interrupted");
    await screen.shows("[1 Status]", "filtering");
    await screen.press("C-c");
    await screen.isClean(0);
  });
  await t.step("SIGTERM, with a dialog open", async () => {
    await using screen = await opened("terminated");
    await screen.shows("[1 Status]", "filtering");
    await screen.press("?");
    await screen.shows("Keys");
    Deno.kill(await screen.pid(), "SIGTERM");
    await screen.isClean(0);
  });
  await t.step("a failure inside, told when the screen is back", async () => {
    await using api = emptyApi();
    await using screen = await opened("failed", `http://127.0.0.1:${api.addr.port}`);
    await screen.isClean(1);
    await screen.shows("svc tui: ");
  });
  await t.step("a service that is not there", async () => {
    await using screen = await opened("nobody", "http://127.0.0.1:1");
    await screen.shows("ended 1", /no answer: is svc running/);
  });
  await t.step("the terminal goes", async () => {
    await using screen = await opened("gone");
    await screen.shows("[1 Status]", "filtering");
    const pid = await screen.pid();
    await screen.hangUp();
    await until(
      "its end",
      async () => (await runProgram("test", "-e", `/proc/${pid}`)).code !== 0,
    );
  });
  await t.step("Ctrl+Z gives the terminal back, and fg the screen", async () => {
    await using screen = await opened("stopped");
    await screen.shows("[1 Status]", "filtering");
    await screen.press("2");
    await screen.shows("[2 Log]", "live");
    await screen.press("C-z");
    await screen.shows("Stopped", /^\$ *$/m);
    await screen.lacks("[2 Log]");
    await screen.types("fg");
    await screen.press("Enter");
    await screen.shows("[2 Log]", "live", "? help");
    await screen.press("q");
    await screen.shows(/fg\n.*\n+\$ *$/m);
  });
}

/** Colours and characters are those that there are. */
async function showsWhatItCan(t: Deno.TestContext, site: Site): Promise<void> {
  const { own: { path }, api } = site;
  await api.create("groups", { name: "G\u00e4ste \u6771\u4eac" });
  await site.ask("ads.example");
  const rows: readonly (readonly [string, Readonly<Record<string, string>>, boolean, boolean])[] = [
    ["colours and UTF-8", {}, true, true],
    ["NO_COLOR", { NO_COLOR: "1" }, false, true],
    ["TERM=dumb", { TERM: "dumb" }, false, true],
    ["another locale", { LANG: "C" }, true, false],
  ];
  for (const [i, [name, env, hasColour, hasUnicode]] of rows.entries()) {
    await t.step(name, async () => {
      await using screen = await Screen.open(path, `plain${i}`, { env });
      await screen.svc("tui", "--api", site.origin);
      await screen.shows("[1 Status]", hasUnicode ? "█" : "@", "filtering, no problems");
      await screen.press("2");
      await screen.shows(/> .*blocked +ads\.example/);
      await screen.press("4");
      await screen.shows(hasUnicode ? "Gäste 東京" : "G?ste ??");
      await screen.press("p");
      await screen.shows("> 5 minutes", hasUnicode ? "┌──" : "+--");
      await screen.press("Escape", "q");
      await screen.isClean(0);
      const [, behind] = (await screen.written()).split("\x1b[?1049h");
      const [shown] = behind.split("\x1b[m\x1b[?2004l");
      assert.ok(shown.length > 500);
      assert.equal(shown.includes("\x1b[;"), hasColour);
      assert.equal([...shown].some((one) => one > "~"), hasUnicode);
    });
  }
}

/** The status as text. */
async function printsText(t: Deno.TestContext, site: Site): Promise<void> {
  await site.ask("ads.example");
  const once = async (...more: string[]) => {
    const [command, ...args] = svcCommand(["tui", "--api", site.origin, ...more]);
    return await runProgram(command, ...args);
  };
  await t.step("all is well", async () => {
    const { code, stdout, stderr } = await once("--once");
    assert.deepEqual([code, stderr], [0, ""], stdout);
    assert.match(stdout, /^node: .+\nversion: .+\nrunning: /);
    assert.match(
      stdout,
      /^state: ok\nfiltering: on\nqueries: \d+ in 24 hours, \d+ blocked \(\d+ %\)/m,
    );
  });
  await t.step("so it does where there is no terminal", async () => {
    const { code, stdout } = await once();
    assert.equal(code, 0);
    assert.match(stdout, /^state: ok$/m);
  });
  await t.step("something is wrong", async () => {
    await site.api.create("lists", { name: "Gone", path: "gone.txt" });
    await until(
      "the problem",
      async () => (await site.api.call("GET", "health")).status === "degraded",
    );
    const { code, stdout } = await once("--once");
    assert.equal(code, 1);
    assert.match(stdout, /^state: degraded$/m);
    assert.match(stdout, /^problem: lists: Gone/m);
  });
  await t.step("wrong usage", async () => {
    assert.equal((await once("--twice")).code, 2);
    assert.equal((await once("--api", "ftp://x")).code, 2);
  });
}

Deno.test("svc tui leaves terminals as they were, and needs none", { permissions }, async (t) => {
  await using site = await Site.start();
  const ignore = !HAS_TMUX;
  await t.step({
    name: "whatever ends it, the terminal is clean",
    ignore,
    fn: (t) => endsClean(t, site),
  });
  await t.step({
    name: "it shows what a terminal can show",
    ignore,
    fn: (t) => showsWhatItCan(t, site),
  });
  await t.step("svc tui --once prints the status as text", (t) => printsText(t, site));
});
