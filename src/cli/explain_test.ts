import assert from "node:assert/strict";
import { SvcError } from "../errors.ts";
import { explain, formatExplanation } from "./explain.ts";

const none = { permissions: "none" } as const;

const EXPLANATION = {
  name: "ads.example",
  type: "A",
  client: null,
  group: { id: "gr_0000000000000000", name: "Default" },
  querylog: true,
  statistics: true,
  outcome: "blocked",
  rule: "||ads.example^",
  list: "li_00000000000000aa",
  records: [],
  matches: [
    {
      rule: "||ads.example^",
      list: "li_00000000000000aa",
      list_name: "Ads\u001b[31m",
      effect: "block",
      lost: null,
    },
    {
      rule: "||example^",
      list: "rules",
      list_name: "rules",
      effect: "block",
      lost: "a rule of the same rank is about a longer name",
    },
  ],
  dnssec: null,
  trace: null,
};

Deno.test("formatExplanation() tells what decides, and what does not", none, () => {
  assert.deepEqual(formatExplanation(EXPLANATION).split("\n"), [
    "ads.example A: blocked",
    "client: not known",
    "group: Default (gr_0000000000000000)",
    "rule: ||ads.example^ of Ads�[31m (li_00000000000000aa)",
    "answer: no record",
    "not: ||example^ of rules: a rule of the same rank is about a longer name",
  ]);
  const local = {
    ...EXPLANATION,
    client: { id: "cl_1", name: "tv" },
    outcome: "local",
    rule: null,
    list: null,
    records: ["A 192.0.2.1"],
    matches: [],
  };
  assert.deepEqual(formatExplanation(local).split("\n"), [
    "ads.example A: local",
    "client: tv (cl_1)",
    "group: Default (gr_0000000000000000)",
    "rule: none decides",
    "answer: A 192.0.2.1",
  ]);
  assert.deepEqual(
    formatExplanation({ ...local, target: "nas.example" }).split("\n").slice(2, 5),
    ["group: Default (gr_0000000000000000)", "target: nas.example", "rule: none decides"],
  );
  const bogus = {
    ...local,
    outcome: "forwarded",
    records: [],
    dnssec: { result: "bogus", reason: "ads.example A: the signature of key 7 does not fit" },
  } as const;
  assert.deepEqual(formatExplanation(bogus).split("\n").slice(3), [
    "rule: none decides",
    "dnssec: bogus: ads.example A: the signature of key 7 does not fit",
  ]);
  const asked = [{ address: "tls://192.0.2.1", name: "family" }, {
    address: "192.0.2.2",
    name: null,
  }];
  const forwarded = { ...bogus, dnssec: null, upstreams: asked };
  assert.deepEqual(formatExplanation(forwarded).split("\n").slice(3), [
    "rule: none decides",
    "upstreams: family (tls://192.0.2.1), 192.0.2.2",
  ]);
  assert.match(formatExplanation({ ...forwarded, upstreams: [] }), /^upstreams: none that this/m);
});

/** Runs the command; what it printed to standard output and standard error. */
async function printed(args: string[]) {
  const [out, err]: [string[], string[]] = [[], []];
  const { log, error } = console;
  console.log = (line: string) => void out.push(line);
  console.error = (line: string) => void err.push(line);
  try {
    return { code: await explain(args), out, err };
  } finally {
    Object.assign(console, { log, error });
  }
}

Deno.test("explain() says how it is used", none, async (t) => {
  const rows: readonly (readonly [readonly string[], RegExp])[] = [
    [[], /it takes one NAME/],
    [["a.example", "b.example"], /it takes one NAME/],
    [["a.example", "--colour", "red"], /--colour/],
    [["a.example", "--api", "ftp://x"], /--api: ftp:\/\/x is no http or https URL/],
    [["a.example", "--api", "127.0.0.1:8053"], /--api/],
  ];
  for (const [args, want] of rows) {
    await t.step(args.join(" "), async () => {
      const { code, out, err } = await printed([...args]);
      assert.deepEqual([code, out, err.length], [2, [], 1]);
      assert.match(err[0], want);
    });
  }
  const help = await printed(["--help"]);
  assert.equal(help.code, 0);
  assert.match(help.out.join(), /^svc explain NAME/);
});

const asking = { permissions: { net: ["127.0.0.1"], read: true, write: true } };

Deno.test("explain() asks the service and tells what it says", asking, async () => {
  const asked: string[] = [];
  let answer = () => Response.json(EXPLANATION);
  const server = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen: () => {} }, (request) => {
    const { pathname, search } = new URL(request.url);
    asked.push(`${pathname}${search} ${request.headers.get("authorization")}`);
    return answer();
  });
  const api = `http://127.0.0.1:${server.addr.port}`;
  const file = await Deno.makeTempFile();
  try {
    await Deno.writeTextFile(file, "svc_token\r\n");
    const args = ["--api", api, "--type", "AAAA", "--client", "192.0.2.7", "--token-file", file];
    const { code, out } = await printed(["ads.example", ...args]);
    assert.equal(code, 0);
    assert.equal(out[0], formatExplanation(EXPLANATION));
    assert.deepEqual(asked, [
      "/api/v1/explain?name=ads.example&type=AAAA&client=192.0.2.7 Bearer svc_token",
    ]);
    const refused = async (want: RegExp) => {
      await assert.rejects(explain(["ads.example", "--api", api]), (error) => {
        assert(error instanceof SvcError);
        assert.match(error.message, want);
        return true;
      });
    };
    const error = { code: "unauthorized", message: "no session and no valid token" };
    answer = () => Response.json({ error }, { status: 401 });
    await refused(/no session and no valid token \(--token-file FILE gives the token\)$/);
    answer = () => new Response("hello", { status: 200 });
    await refused(/it answers 200, and is no svc$/);
    answer = () => Response.redirect(`${api}/elsewhere`, 302);
    await refused(/no answer/);
  } finally {
    await Deno.remove(file);
    await server.shutdown();
  }
  await assert.rejects(explain(["ads.example", "--api", api]), /no answer: is svc running/);
});

Deno.test("formatExplanation() shows a trace, what others depend on further in", () => {
  const step = { at_ms: 0, depth: 0, question: null, zone: null, server: null, detail: null };
  const trace = {
    rcode: "NOERROR",
    records: ["www.example 300 A 192.0.2.1"],
    failure: null,
    took_ms: 21.5,
    dropped: 2,
    steps: [
      {
        ...step,
        event: "asked",
        question: "example A",
        zone: ".",
        server: "a.root-servers.net (198.41.0.4)",
      },
      {
        ...step,
        at_ms: 12.3,
        depth: 1,
        event: "failed",
        detail: "it does not serve \u001bexample",
      },
    ],
  };
  const lines = formatExplanation({ ...EXPLANATION, trace }).split("\n");
  assert.deepEqual(lines.slice(lines.indexOf("trace:")), [
    "trace:",
    "       0 ms  asked: example A, zone ., server a.root-servers.net (198.41.0.4)",
    "    12.3 ms    failed: it does not serve \ufffdexample",
    "and 2 further steps",
    "result: NOERROR after 21.5 ms",
    "  www.example 300 A 192.0.2.1",
  ]);
});
