import assert from "node:assert/strict";
import { createApi } from "./app.ts";
import { fakeDeps, fakeEntry, LOOPBACK } from "./fakes.ts";
import { exportLog, watchLog } from "./log_streams.ts";
import type { LogsPort, LogWatcher } from "./ports.ts";
import type { QuerylogEntry, QuerylogFilter } from "./schemas/logs.ts";
import { ApiServer } from "./server.ts";

const none = { permissions: "none" } as const;
const local = { permissions: { net: ["127.0.0.1"] } };

async function textOf(body: ReadableStream<Uint8Array<ArrayBuffer>>): Promise<string> {
  return await new Response(body).text();
}

/** Logs whose only watcher is the test's to tell. */
function watched() {
  const state = { watcher: null as LogWatcher | null, filter: {} as QuerylogFilter, ended: 0 };
  const logs: Pick<LogsPort, "search" | "watch"> = {
    search: () => Promise.reject(new Error("nobody has missed anything")),
    watch: (filter, watcher) => {
      Object.assign(state, { filter, watcher });
      return () => state.ended++;
    },
  };
  return { logs, state };
}

/** Reads pieces of a stream as text. */
function reading(body: ReadableStream<Uint8Array<ArrayBuffer>>) {
  const reader = body.getReader();
  const next = async () => {
    const { value } = await reader.read();
    return value === undefined ? null : new TextDecoder().decode(value);
  };
  return { next, cancel: () => reader.cancel() };
}

Deno.test("exportLog() writes CSV that no spreadsheet calculates", none, async () => {
  const { type, filename, body } = await exportLog(fakeDeps().deps.logs, { format: "csv" });
  assert.deepEqual([type, filename], ["text/csv; charset=utf-8", "querylog.csv"]);
  const row = (i: number) =>
    `2026-01-02T03:04:05.${678 + i}Z,192.0.2.7,"a ""large"", old TV",,gr_0000000000000000,udp,` +
    `'=sum(${i}).example,A,forwarded,NOERROR,,,cdn.example ; 192.0.2.${i},192.0.2.1:53,false,,` +
    `1234,node-1,,e${i}\r\n`;
  assert.equal(
    await textOf(body),
    "time,client,client_name,client_id,group,protocol,name,type,outcome,rcode,rule,list,answers," +
      `upstream,cached,dnssec,duration_us,node,dnssec_reason,id\r\n${row(2)}${row(1)}${row(0)}`,
  );
});

Deno.test("exportLog() writes an object a line, of every page", none, async () => {
  const { type, filename, body } = await exportLog(fakeDeps().deps.logs, { format: "ndjson" });
  assert.deepEqual([type, filename], ["application/x-ndjson", "querylog.ndjson"]);
  const lines = (await textOf(body)).trimEnd().split("\n").map((line) => JSON.parse(line));
  assert.deepEqual(lines, [fakeEntry(2), fakeEntry(1), fakeEntry(0)]);
});

Deno.test(
  "exportLog() asks for a page when it is wanted, and for none after the end",
  none,
  async () => {
    const asked: (string | undefined)[] = [];
    const search: LogsPort["search"] = ({ next, limit, client }) => {
      assert.deepEqual([limit, client], [1_000, "192.0.2.7"]);
      asked.push(next);
      const page = Number(next ?? 0);
      return Promise.resolve({ entries: [fakeEntry(page)], next: `${page + 1}` });
    };
    const stream = await exportLog({ search }, { format: "ndjson", client: "192.0.2.7" });
    const { next, cancel } = reading(stream.body);
    assert.deepEqual(asked, [undefined]);
    assert.match(await next() ?? "", /sum\(0\)/);
    assert.match(await next() ?? "", /sum\(1\)/);
    assert.deepEqual(asked, [undefined, "1", "2"]);
    await cancel();
    assert.equal(asked.length, 3);
  },
);

Deno.test("exportLog() of an empty log is its head, or nothing", none, async () => {
  const search: LogsPort["search"] = () => Promise.resolve({ entries: [], next: null });
  assert.match(
    await textOf((await exportLog({ search }, { format: "csv" })).body),
    /^time,.*\r\n$/,
  );
  assert.equal(await textOf((await exportLog({ search }, { format: "ndjson" })).body), "");
});

Deno.test("watchLog() tells of entries as they come, and what it left out", none, async () => {
  const { logs, state } = watched();
  const { type, body } = await watchLog(logs, { outcome: ["blocked"] });
  assert.equal(type, "text/event-stream");
  assert.deepEqual(state.filter, { outcome: ["blocked"] });
  const { next, cancel } = reading(body);
  assert.equal(await next(), ":\n\n");
  const waiting = next();
  state.watcher?.tell([fakeEntry(1), fakeEntry(2)], 0);
  const data = (i: number) => `id: e${i}\ndata: ${JSON.stringify(fakeEntry(i))}\n\n`;
  assert.equal(await waiting, data(1) + data(2));
  state.watcher?.tell([fakeEntry(3)], 4);
  assert.equal(await next(), `event: skipped\ndata: 4\n\n${data(3)}`);
  await cancel();
  assert.equal(state.ended, 1);
});

Deno.test("watchLog() keeps few entries for who does not read them", none, async () => {
  const { logs, state } = watched();
  const { next, cancel } = reading((await watchLog(logs, {})).body);
  await next();
  for (let i = 0; i < 30; i++) {
    const entries: QuerylogEntry[] = Array.from({ length: 100 }, () => fakeEntry(i));
    state.watcher?.tell(entries, 0);
  }
  const text = await next() ?? "";
  assert.match(text, /^event: skipped\ndata: 2000\n\nid: e20\ndata: .*sum\(20\)/);
  assert.equal(text.match(/^data: \{/gm)?.length, 1_000);
  await cancel();
});

Deno.test("watchLog() ends when the log does", none, async () => {
  const { logs, state } = watched();
  const { next } = reading((await watchLog(logs, {})).body);
  await next();
  state.watcher?.tell([fakeEntry(1)], 0);
  state.watcher?.end();
  assert.match(await next() ?? "", /^id: e1\ndata: /);
  assert.equal(await next(), null);
  assert.equal(state.ended, 1);
});

/** An API whose watchers are the test's to tell, on a port of loopback. */
async function serving(logs: Partial<LogsPort>) {
  const fakes = fakeDeps();
  const deps = { ...fakes.deps, logs: { ...fakes.deps.logs, ...logs } };
  const server = new ApiServer({
    listen: [{ ip: new Uint8Array([127, 0, 0, 1]), port: 0 }],
    tls: null,
    hasToken: false,
    handler: createApi(deps),
  });
  const [{ port }] = await server.start();
  return { server, base: `http://127.0.0.1:${port}/api/v1/querylog` };
}

async function until(condition: () => boolean): Promise<void> {
  for (let i = 0; !condition(); i++) {
    assert.ok(i < 1_000, "it does not come to be");
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

Deno.test(
  "ApiServer sends a stream piece by piece, and ends it with its reader",
  local,
  async () => {
    const { logs, state } = watched();
    const { server, base } = await serving(logs);
    try {
      const client = new AbortController();
      const response = await fetch(`${base}/stream?name=ads`, { signal: client.signal });
      assert.equal(response.status, 200);
      assert.equal(response.headers.get("content-type"), "text/event-stream");
      assert.equal(response.headers.get("cache-control"), "no-store");
      assert.ok(response.body !== null);
      const { next } = reading(response.body);
      assert.equal(await next(), ":\n\n");
      state.watcher?.tell([fakeEntry(1)], 0);
      assert.match(await next() ?? "", /^id: e1\ndata: .*sum\(1\)/);
      assert.equal(state.ended, 0);
      client.abort();
      await until(() => state.ended === 1);
    } finally {
      await server.stop(0);
    }
  },
);

Deno.test("ApiServer asks for no more of a stream than its reader takes", local, async () => {
  let pages = 0;
  const entries = Array.from({ length: 1_000 }, (_, i) => fakeEntry(i));
  const search = () => {
    pages++;
    return Promise.resolve({ entries, next: "1" });
  };
  const { server, base } = await serving({ search });
  try {
    const response = await fetch(`${base}/export`);
    assert.equal(
      response.headers.get("content-disposition"),
      'attachment; filename="querylog.csv"',
    );
    let before = -1;
    // It fills the buffers on the way, and then waits.
    await until(() => {
      const isSame = pages === before;
      before = pages;
      return isSame && pages > 0;
    });
    await new Promise((resolve) => setTimeout(resolve, 200));
    assert.ok(pages < 200, `${pages} pages are made for nobody`);
    await response.body?.cancel();
  } finally {
    await server.stop(0);
  }
});

Deno.test("ApiServer breaks a stream off whose end can't be had", local, async () => {
  let pages = 0;
  const search = () =>
    pages++ < 2
      ? Promise.resolve({ entries: [fakeEntry(1)], next: "1" })
      : Promise.reject(new Error("the disk is gone"));
  const { server, base } = await serving({ search });
  const write = Deno.stderr.writeSync;
  Deno.stderr.writeSync = (bytes) => bytes.length;
  try {
    const response = await fetch(`${base}/export?format=ndjson`);
    await assert.rejects(response.text());
  } finally {
    Deno.stderr.writeSync = write;
    await server.stop(0);
  }
});

Deno.test("HEAD of a stream opens none", none, async () => {
  const { logs, state } = watched();
  const fakes = fakeDeps();
  const api = createApi({ ...fakes.deps, logs: { ...fakes.deps.logs, ...logs } });
  const request = new Request("http://127.0.0.1/api/v1/querylog/stream", {
    method: "HEAD",
    headers: { host: "127.0.0.1" },
  });
  const response = await api(request, LOOPBACK);
  assert.deepEqual([response.status, response.body], [200, null]);
  assert.equal(state.ended, 1);
});

Deno.test(
  "watchLog() goes on behind the entry that its reader has, and doubles none",
  none,
  async () => {
    const { logs, state } = watched();
    const found = Promise.withResolvers<void>();
    const asked: unknown[] = [];
    const search: LogsPort["search"] = async (query) => {
      asked.push(query);
      await found.promise;
      return { entries: [fakeEntry(5), fakeEntry(4)], next: "e4" };
    };
    const opening = watchLog({ ...logs, search }, { name: "x" }, "e3");
    state.watcher?.tell([fakeEntry(5), fakeEntry(6)], 0);
    found.resolve();
    const { next, cancel } = reading((await opening).body);
    const event = (i: number) => `id: e${i}\ndata: ${JSON.stringify(fakeEntry(i))}\n\n`;
    assert.equal(await next(), `event: skipped\ndata: 1\n\n${event(4)}${event(5)}${event(6)}`);
    state.watcher?.tell([fakeEntry(10)], 0);
    assert.equal(await next(), event(10), "it has more digits");
    assert.deepEqual(asked, [{ name: "x", limit: 1_000, after: "e3" }]);
    await cancel();
    const failing = { ...logs, search: () => Promise.reject(new Error("no log")) };
    await assert.rejects(watchLog(failing, {}, "e1"));
    assert.equal(state.ended, 2, "who could not begin watches no more");
  },
);
