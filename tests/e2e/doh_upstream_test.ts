// Goal: a DoH upstream that goes away takes nothing with it: whoever asks gets an answer, and the service
// goes on. Method: a service of several isolates, and an upstream of HTTP/2 by others that says goodbye,
// closes its connections and comes back.

import assert from "node:assert/strict";
import { Qtype } from "../../src/dns/mod.ts";
import { fakeDoh } from "../../src/transport/exchange/fakes.ts";
import { makeAuthority } from "./certificates.ts";
import { ask } from "./clients.ts";
import { address, FakeUpstream, seenInStream } from "./fake_upstream.ts";
import { OwnDirectory, PERMISSIONS, Service, until } from "./harness.ts";

/** Each isolate has connections of its own, which all end at once. */
const WORKERS = 6;
const ROUNDS = 4;
const QUESTIONS = 4 * WORKERS;
const OF = { doh: "192.0.2.2", plain: "192.0.2.3" };

Deno.test("a DoH upstream that says goodbye ends nothing", {
  permissions: PERMISSIONS,
}, async () => {
  const authority = await makeAuthority();
  const issued = await authority.issue({ names: ["dns.test"] });
  await using directory = await OwnDirectory.make();
  const ca = `${directory.path}/ca.pem`;
  await Deno.writeTextFile(ca, authority.cert);
  await using doh = await fakeDoh(issued);
  doh.script = ({ packet, reply }) => reply(address(seenInStream(packet), OF.doh));
  await using plain = await FakeUpstream.start((seen) => address(seen, OF.plain));
  await using service = await Service.start({
    config: {
      server: { workers: WORKERS },
      upstream: [
        { address: `https://127.0.0.1:${doh.port}/dns-query#dns.test`, ca },
        { address: plain.text },
      ],
    },
  });
  const died = service.ended.then(() => assert.fail(`it died:\n${service.transcript()}`));
  died.catch(() => {}); // Told by whoever waits for an answer.
  let count = 0;
  const answeredBy = async () => {
    const by: (string | undefined)[] = [];
    for (let i = 0; i < QUESTIONS; i++) {
      const answer = ask(service.address, `n${count++}.example`, Qtype.A);
      by.push((await Promise.race([answer, died])).answers.at(0)?.data);
    }
    return by;
  };
  const allBy = (data: string) =>
    until(`all by ${data}`, async () => (await answeredBy()).every((by) => by === data));
  for (let round = 0; round < ROUNDS; round++) {
    await allBy(OF.doh);
    await doh.stop();
    await allBy(OF.plain);
    await doh.restart();
  }
  service.assertCalm();
});
