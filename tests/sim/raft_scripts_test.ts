// Goal: who reads a trace sees what members say to each other, and a change of that is seen in its
// diff. Method: lines with `>` are commands to a cluster without chance, those below what came of
// them. `-- --write=1` writes what comes of them now.
import assert from "node:assert/strict";
import { FakeCluster } from "../../src/raft/fakes.ts";
import type { Entry, Message, RaftSnapshot } from "../../src/raft/mod.ts";
import { optionOf } from "./options.ts";
import { configurationText, entryText } from "./properties.ts";

const FOLDER = new URL("scripts/", import.meta.url);
const decoder = new TextDecoder();

/** `a:2,3 b:2` as terms by member. */
function logsOf(text: string): Record<string, number[]> {
  return Object.fromEntries(
    text.split(" ").filter((part) => part !== "").map((part) => {
      const [id, terms] = part.split(":");
      return [id, terms.split(",").map(Number)];
    }),
  );
}

function showMessage(message: Message): string {
  const { from, to, type, term, ...body } = message;
  const parts = Object.entries(body).filter(([name, value]) =>
    value !== 0 && value !== false && name !== "success"
  ).map(([name, value]) => `${name}=${showValue(value)}`);
  const verdict = type === "appendEntriesResponse" && !message.success ? ["refused"] : [];
  return `${from}>${to} ${[type, `term=${term}`, ...verdict, ...parts].join(" ")}`;
}

function showValue(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(showEntry).join(" ")}]`;
  if (typeof value !== "object" || value === null) return String(value);
  return showSnapshot(value as RaftSnapshot);
}

function showEntry(entry: Entry): string {
  return entry.type === "command"
    ? `${entry.term}:${decoder.decode(entry.data)}`
    : entryText(entry).replace(/:$/, ":empty");
}

function showSnapshot({ index, term, configuration }: RaftSnapshot): string {
  return `${index}/${term}${configurationText(configuration)}`;
}

class Script {
  #cluster = new FakeCluster({ voters: ["a"] });
  #ids: string[] = [];

  run(line: string): string[] {
    const [command, id = "", ...rest] = line.split(" ");
    const cluster = this.#cluster;
    switch (command) {
      case "cluster": {
        // voters/learners/witnesses, then logs
        const [voters, learners = "", witnesses = ""] = id.split("/");
        this.#ids = [...voters, ...learners];
        const logs = logsOf(rest.join(" "));
        this.#cluster = new FakeCluster({
          ...{ voters: [...voters], learners: [...learners], witnesses: [...witnesses], logs },
        });
        return this.#members();
      }
      case "campaign":
        cluster.campaign(id);
        return this.#deliver();
      case "tick":
        cluster.tick(id, Number(rest[0]));
        return this.#deliver();
      case "propose":
        cluster.propose(id, ...rest);
        return this.#deliver();
      case "change": {
        const [voters, learners = "", witnesses = ""] = rest[0].split("/");
        const target = {
          voters: [...voters],
          learners: [...learners],
          witnesses: [...witnesses],
        };
        cluster.take(id, { type: "changeMembership", target });
        return this.#deliver();
      }
      case "cut":
        for (const way of [id, ...rest]) cluster.cuts.add(way);
        return [];
      case "mend":
        cluster.cuts.clear();
        return [];
      default:
        throw new Error(`no command ${command}`);
    }
  }

  #deliver(): string[] {
    const lines: string[] = [];
    this.#cluster.deliver((message) => {
      const { from, to } = message;
      const { cuts } = this.#cluster;
      const isLost = [from, to, `${from}>${to}`].some((way) => cuts.has(way));
      lines.push(showMessage(message) + (isLost ? "  lost" : ""));
      return true;
    });
    return [...lines, ...this.#members()];
  }

  #members(): string[] {
    return this.#ids.map((id) => {
      const { role, currentTerm, leader, commitIndex, log } = this.#cluster.state(id);
      const entries = log.slice(log.base.index + 1, log.lastIndex).map(showEntry);
      return `  ${id} ${role} term=${currentTerm} leader=${leader ?? "-"} commit=${commitIndex} ` +
        `log=${log.base.index}/${log.base.term} [${entries.join(" ")}]`;
    });
  }
}

Deno.test("members say what the scripts say", async (t) => {
  for (const { name } of Deno.readDirSync(FOLDER)) {
    await t.step(name, () => {
      const url = new URL(name, FOLDER);
      const golden = Deno.readTextFileSync(url);
      const script = new Script();
      const now = golden.split("\n").filter((line) => /^[>#]/.test(line)).flatMap((line) =>
        line.startsWith(">") ? [line, ...script.run(line.slice(2)), ""] : [line]
      ).join("\n");
      if (optionOf("write", 0) === 1) Deno.writeTextFileSync(url, now);
      else assert.equal(now, golden);
    });
  }
});
