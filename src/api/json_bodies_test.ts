import assert from "node:assert/strict";
import { gunzipSync } from "node:zlib";
import { createApi } from "./app.ts";
import { fakeDeps, LOOPBACK } from "./fakes.ts";
import { takesGzip } from "./json_bodies.ts";

const none = { permissions: "none" } as const;

Deno.test("takesGzip() reads what a client takes", none, async (t) => {
  const rows: readonly (readonly [string | null, boolean])[] = [
    [null, false],
    ["", false],
    ["gzip", true],
    ["br;q=1.0, GZip;q=0.5, *;q=0", true],
    ["gzip;q=0", false],
    ["gzip; q=0.000", false],
    ["x-gzip", false],
    ["br", false],
  ];
  for (const [header, want] of rows) {
    await t.step(String(header), () => assert.equal(takesGzip(header), want));
  }
});

Deno.test(
  "answers are compressed for who takes that, but for secrets and what has an ETag",
  none,
  async () => {
    const { deps, store } = fakeDeps();
    const cookie = await store.signIn("ann", "admin");
    const api = createApi(deps);
    const get = async (path: string, encoding: string | null = "gzip", method = "GET") => {
      const headers = new Headers({ host: "127.0.0.1", cookie });
      if (encoding !== null) headers.set("accept-encoding", encoding);
      return await api(
        new Request(`http://127.0.0.1/api/v1/${path}`, { method, headers }),
        LOOPBACK,
      );
    };
    const plain = await get("openapi.json", null);
    assert.equal(plain.headers.get("content-encoding"), null);
    assert.equal(plain.headers.get("vary"), "Accept-Encoding");
    const text = await plain.text();
    const small = await get("openapi.json");
    assert.equal(small.headers.get("content-encoding"), "gzip");
    const bytes = new Uint8Array(await small.arrayBuffer());
    assert.ok(bytes.length < text.length / 4, `${bytes.length} of ${text.length}`);
    assert.equal(gunzipSync(bytes).toString(), text);
    assert.equal((await get("health")).headers.get("content-encoding"), null, "too short to gain");
    const group = "groups/gr_0000000000000000";
    assert.equal((await get(group)).headers.get("content-encoding"), null);

    const clients = await get("clients");
    assert.equal(clients.headers.get("content-encoding"), null);
    const secret = await api(
      new Request("http://127.0.0.1/api/v1/auth/otp/confirm", {
        method: "POST",
        headers: {
          host: "127.0.0.1",
          cookie,
          "accept-encoding": "gzip",
          "content-type": "application/json",
        },
        body: '{"code":"000000"}',
      }),
      LOOPBACK,
    );
    assert.deepEqual([secret.status, secret.headers.get("vary")], [200, null]);
  },
);
