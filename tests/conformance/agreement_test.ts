// Goal: svc says of an answer what unbound says: secure, insecure or bogus. Method: zones of every
// algorithm, drawn from one seed, with a bit changed in every other response; both forward to the same
// server and trust the same keys; signatures are checked by the system's library, by the runtime, and by
// that without any library at all. SVC_QUESTIONS=20000 asks so many, SVC_SEED=N repeats a run.
import assert from "node:assert/strict";
import type { HostPort } from "../../src/addr/mod.ts";
import {
  encodeQuery,
  formatName,
  type Message,
  Qtype,
  qtypeName,
  Rcode,
} from "../../src/dns/mod.ts";
import type { Question } from "../../src/dnssec/mod.ts";
import { nextId, TcpClient } from "../e2e/clients.ts";
import {
  hasProgram,
  OwnDirectory,
  PERMISSIONS,
  Service,
  type ServiceOptions,
} from "../e2e/harness.ts";
import { withoutLibcrypto } from "../e2e/without_libcrypto.ts";
import { Prng, seedFromEnv } from "../prng.ts";
import { ALGORITHMS, drawQuestion, SignedZones, signZones, zonesOf } from "./signed_zones.ts";
import { SpoilingServer } from "./spoiling_server.ts";
import { startUnbound } from "./validating_unbound.ts";

const TOOLS = ["dnssec-keygen", "dnssec-signzone", "nsd", "unbound"].map(hasProgram).every(Boolean);
const OPTIONS = { permissions: PERMISSIONS, ignore: !TOOLS } as const;
const QUESTIONS = Number(Deno.env.get("SVC_QUESTIONS") ?? 250);
/** Questions on their way at a time. */
const AT_ONCE = 8;

/** A connection on which one question follows the other. */
class Asker {
  #client: TcpClient | null = null;

  constructor(readonly server: HostPort) {}

  /** What a server says to a question with DO. */
  async ask({ name, type }: Question): Promise<Message> {
    for (let attempt = 1;; attempt++) {
      this.#client ??= await TcpClient.connect(this.server);
      try {
        await this.#client.send(
          encodeQuery(name, type, { id: nextId(), edns: { dnssecOk: true } }),
        );
        return await this.#client.message();
      } catch (error) {
        this[Symbol.dispose]();
        if (attempt === 3) throw error;
      }
    }
  }

  [Symbol.dispose](): void {
    this.#client?.[Symbol.dispose]();
    this.#client = null;
  }
}

function verdictOf({ rcode, ad }: Message): string {
  if (rcode === Rcode.ServFail) return "bogus";
  return ad ? "secure" : "insecure";
}

/** The response code and the answer without signatures, in any order. */
function contentOf({ rcode, answers }: Pick<Message, "answers" | "rcode">): string {
  const lines = answers.filter(({ type }) => type !== Qtype.RRSIG)
    .map(({ name, type, data }) => `${name} ${type} ${data}`.toLowerCase());
  return `${rcode}: ${lines.sort().join(", ")}`;
}

Deno.test("verdicts are those of unbound, over zones of every algorithm", OPTIONS, async (t) => {
  const seed = seedFromEnv();
  const prng = new Prng(seed);
  await using directory = await OwnDirectory.make("svc-agreement-");
  const specs = ALGORITHMS.flatMap((algorithm, i) => {
    const zones = zonesOf(prng, algorithm, `a${i}.test.`);
    return [{ algorithm, zones }];
  });
  for (const { algorithm, zones } of specs) await signZones(zones, algorithm, directory.path);
  const all = specs.flatMap(({ zones }) => zones);
  const anchors = `${directory.path}/anchors`;
  const texts = await Promise.all(
    specs.map((_, i) => Deno.readTextFile(`${directory.path}/dsset-a${i}.test.`)),
  );
  await Deno.writeTextFile(anchors, texts.join(""));
  await using zones = await SignedZones.serve(directory.path, all.map(({ name }) => name));
  using server = new SpoilingServer(zones, seed);
  await using unbound = await startUnbound(directory.path, server.port, anchors);
  const config = {
    upstream: [{ address: `127.0.0.1:${server.port}` }],
    recursion: { validate_forwarded: true, trust_anchor: anchors },
    server: { listen: ["127.0.0.1:0"], rate_limit: { queries_per_second: 0 } },
    security: { rebinding_protection: false },
    querylog: { enabled: false },
  };
  const questions = Array.from({ length: QUESTIONS }, () => drawQuestion(prng, all));
  const run = async (options: ServiceOptions, by: RegExp) => {
    await using service = await Service.start({ config, ...options });
    const { by: checkedBy } = await service.logged("signatures are checked");
    assert.match(checkedBy as string, by);
    await compare(service);
  };
  const compare = async (service: Service) => {
    const counts: Record<string, number> = { secure: 0, insecure: 0, bogus: 0 };
    const different: string[] = [];
    let next = 0;
    let proven = 0;
    const askAll = async () => {
      using ours = new Asker(service.address);
      using theirs = new Asker(unbound.server);
      for (let i = next++; i < questions.length; i = next++) {
        const question = questions[i];
        const [said, saidThere] = await Promise.all([ours.ask(question), theirs.ask(question)]);
        const [got, want] = [verdictOf(said), verdictOf(saidThere)];
        counts[got]++;
        if (got === want) continue;
        // What follows from what was proven before, or is proven without what was spoilt, is no worse
        // for that: it has to be true. We have proofs of absence for it, unbound single RRsets.
        const truth = contentOf(await zones.message(question));
        const change = server.changeFor(question);
        const isTrue = want === "bogus" && contentOf(said) === truth;
        const isTrueThere = got === "bogus" && change !== "" && contentOf(saidThere) === truth;
        // At an alias, unbound goes on from the one that it knows.
        const isFollowed = question.type === Qtype.NSEC &&
          saidThere.answers.some(({ type }) => type === Qtype.CNAME);
        if (isTrue || isTrueThere || isFollowed) {
          proven++;
          continue;
        }
        const text = `${formatName(question.name)} ${qtypeName(question.type)}`;
        different.push(`${text}: ${got}, unbound ${want}: ${change}`);
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, askAll));
    console.log(
      `${QUESTIONS} questions: ${
        JSON.stringify(counts)
      }; ${different.length} differ, ${proven} are ` +
        "true all the same",
    );
    assert.deepEqual(different, []);
    for (const [result, count] of Object.entries(counts)) {
      assert(count > QUESTIONS / 50, `${result}: ${count}`);
    }
  };
  const hidden = await withoutLibcrypto();
  await t.step("by the system's library", () => run({}, /^libcrypto 3\./));
  await t.step({
    name: "by the runtime",
    ignore: hidden === null,
    fn: () => run({ prefix: hidden! }, /^the runtime$/),
  });
  await t.step(
    "without any library",
    () => run({ without: ["--allow-ffi"] }, /^the runtime$/),
  );
});
