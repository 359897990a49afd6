/** BIND's validator as a program. */
import { formatName, qtypeName } from "../../src/dns/mod.ts";
import type { Question } from "../../src/dnssec/mod.ts";

/** What BIND's validator says of a question: `secure`, `insecure`, or `bogus`. */
export async function askDelv(
  port: number,
  anchorFile: string,
  { name, type }: Question,
): Promise<string> {
  const { stdout, stderr } = await new Deno.Command("delv", {
    args: [
      ...["@127.0.0.1", "-p", `${port}`, "-a", anchorFile, "+root=test.", "+tcp"],
      ...["-q", formatName(name), "-t", qtypeName(type)],
    ],
    stdout: "piped",
    stderr: "piped",
  }).output();
  const text = new TextDecoder().decode(stdout) + new TextDecoder().decode(stderr);
  // An answer has a line for each of its parts; the weakest counts. A resolution "fails" with an
  // absence, too, whether that is proven or not.
  if (/pending validation/.test(text)) return "bogus";
  if (/unsigned answer/.test(text)) return "insecure";
  if (/fully validated/.test(text)) return "secure";
  return /resolution failed/.test(text) ? "bogus" : `unknown: ${text}`;
}

/** DS records as BIND's configuration has them. */
export function anchorsOfBind(text: string): string {
  const lines = Array.from(
    text.matchAll(/^(\S+)\s+IN DS (\d+) (\d+) (\d+) ([0-9A-F ]+)/gm),
    ([, zone, tag, algorithm, digest, hex]) =>
      `  "${zone}" static-ds ${tag} ${algorithm} ${digest} "${hex.replaceAll(" ", "")}";`,
  );
  return `trust-anchors {\n${lines.join("\n")}\n};\n`;
}
