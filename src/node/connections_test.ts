import assert from "node:assert/strict";
import { connectionFamilies, connectionProblems } from "./connections.ts";

const none = { permissions: "none" } as const;

/** What two isolates say, of which the second has no place left over TCP. */
function reports(client: string) {
  const held = (taken: number, connections: number) => ({
    taken,
    max: 1_024,
    most: { client, connections },
  });
  const of = (tcp: ReturnType<typeof held>) => ({
    connections: { tcp, dot: { taken: 0, max: 2_048, most: null }, doh: null, doq: null },
    cutOff: { unfinished: 2, unread: 1 },
  });
  return [of(held(12, 3)), of(held(1_024, 980))];
}

Deno.test("connectionProblems() names the limit and who holds most of it", none, () => {
  const [problem, ...others] = connectionProblems(
    { reports: reports("2001:db8::/64"), api: null },
    false,
  );
  assert.match(
    problem,
    /^tcp: 1,024 of 1,024 connections are taken, 980 of them by 2001:db8::\/64:/,
  );
  assert.deepEqual(others, []);
  assert.deepEqual(
    connectionProblems({ reports: reports("192.0.2.1").slice(0, 1), api: null }, false),
    [],
  );
  const api = { taken: 64, max: 64, most: { client: "192.0.2.7", connections: 16 } };
  const [full] = connectionProblems({ reports: [], api }, false);
  assert.match(full, /^api: 64 of 64 connections are taken, 16 of them by 192\.0\.2\.7:/);
});

Deno.test("connectionProblems() shortens an address where the query log does", none, () => {
  const rows = [["192.0.2.1", "192.0.2.0/24"], ["2001:db8:0:ab12::/64", "2001:db8:0:ab00::/56"]];
  for (const [client, shown] of rows) {
    const [problem] = connectionProblems({ reports: reports(client), api: null }, true);
    assert.ok(problem.includes(` by ${shown}:`), problem);
  }
});

Deno.test("connectionFamilies() tell of the fullest listener of each protocol", none, () => {
  const families = connectionFamilies({
    reports: reports("192.0.2.1"),
    api: { taken: 3, max: 64, most: { client: "127.0.0.1", connections: 2 } },
  }, false);
  const samples = Object.fromEntries(families.map(({ name, samples }) => [name, samples]));
  assert.deepEqual(samples, {
    svc_connections: [
      { labels: { protocol: "tcp" }, value: 1_024 },
      { labels: { protocol: "dot" }, value: 0 },
      { labels: { protocol: "api" }, value: 3 },
    ],
    svc_connections_limit: [
      { labels: { protocol: "tcp" }, value: 1_024 },
      { labels: { protocol: "dot" }, value: 2_048 },
      { labels: { protocol: "api" }, value: 64 },
    ],
    svc_connections_most: [
      { labels: { protocol: "tcp", client: "192.0.2.1" }, value: 980 },
      { labels: { protocol: "api", client: "127.0.0.1" }, value: 2 },
    ],
    svc_connections_cut_off_total: [
      { labels: { held: "unfinished" }, value: 4 },
      { labels: { held: "unread" }, value: 2 },
    ],
  });
});
