import { type Fragment, upstreamProblem } from "./fragment.ts";
import { inFile, type Item, joined, lost } from "./wishes.ts";

/** Most upstreams of the file. */
const UPSTREAMS_MAX = 64;
/** Names of one upstream that its item repeats; the rest it counts. */
const NAMED_MAX = 3;
/** Who looks up the names of upstreams where nobody says who: Quad9. */
const BOOTSTRAP_DEFAULT = ["9.9.9.9", "149.112.112.112"];

/** An upstream as the file has it, or why it has it not. */
type Converted =
  | { readonly address: string; readonly adapted: string | null }
  | { readonly problem: string };

/** Reads an upstream in the words of either product. */
function convert(written: string): Converted {
  const text = written.trim();
  const scheme = /^([a-z0-9]+):\/\//i.exec(text)?.[1].toLowerCase();
  const rest = scheme === undefined ? text : text.slice(scheme.length + 3);
  switch (scheme) {
    case undefined:
    case "udp":
      return { address: plain(rest), adapted: null };
    case "tcp":
      return { address: plain(rest), adapted: "asked over UDP, and over TCP for long answers" };
    case "h3":
      return { address: `https://${rest}`, adapted: "over HTTP/2 in place of HTTP/3" };
    case "sdns":
      return { problem: "DNS stamps are not read: write its address" };
    default:
      return { address: text, adapted: null };
  }
}

/** `127.0.0.1#5335` and `::1#5335` with a port as others write it. */
function plain(text: string): string {
  const [, address, port] = /^([^#]*)#(\d{1,5})$/.exec(text) ?? [null, text, null];
  if (port === null) return text;
  return address.includes(":") ? `[${address}]:${port}` : `${address}:${port}`;
}

/** The name that has to be looked up before an upstream can be asked; `null`: it has an address. */
function hostOf(address: string): string | null {
  const host = /^(?:tls|https|quic):\/\/([^:/#?[\]]+)/i.exec(address)?.[1];
  return host === undefined || /^[\d.]+$/.test(host) ? null : host.toLowerCase();
}

/** The upstreams of the file, gathered one by one; each is an item of what became of the source. */
export class Upstreams {
  readonly #found: { readonly address: string; readonly domains: readonly string[] }[] = [];
  readonly #items: Item[];

  constructor(items: Item[]) {
    this.#items = items;
  }

  /** Those for every name. */
  get general(): readonly string[] {
    return this.#found.filter(({ domains }) => domains.length === 0).map(({ address }) => address);
  }

  /** `domains`: only for names at or below these; none: for every name. */
  add(written: string, domains: readonly string[] = [], note: string | null = null): void {
    const more = domains.length - NAMED_MAX;
    const named = domains.slice(0, NAMED_MAX).join(", ") + (more > 0 ? ` and ${more} more` : "");
    const name = `upstream ${written}${domains.length === 0 ? "" : ` for ${named}`}`;
    const converted = convert(written);
    const problem = "problem" in converted
      ? converted.problem
      : upstreamProblem(converted.address, domains);
    if ("problem" in converted || problem !== null) {
      this.#items.push(lost("file", name, problem!));
      return;
    }
    const { address, adapted } = converted;
    const isThere = this.#found.some((one) =>
      one.address === address && one.domains.join() === domains.join()
    );
    if (!isThere && this.#found.length >= UPSTREAMS_MAX) {
      this.#items.push(lost("file", name, `the file takes ${UPSTREAMS_MAX} upstreams`));
      return;
    }
    if (!isThere) this.#found.push({ address, domains });
    this.#items.push(inFile(name, joined(adapted, note)));
  }

  /** Writes them, and behind them who looks up those that have a name. */
  write(fragment: Fragment, bootstraps: readonly string[]): void {
    for (const { address, domains } of this.#found) {
      fragment.table("[[upstream]]", { address, domains: domains.length === 0 ? null : domains });
    }
    const hosts = [...new Set(this.#found.flatMap(({ address }) => hostOf(address) ?? []))];
    if (hosts.length === 0) return;
    const usable = bootstraps.map(convert).flatMap((one) =>
      "address" in one && hostOf(one.address) === null &&
        upstreamProblem(one.address, hosts) === null
        ? [one.address]
        : []
    );
    const all = usable.length === 0 ? BOOTSTRAP_DEFAULT : usable;
    for (const [i, address] of all.entries()) {
      const note = i === 0 ? "These look up the names of the upstreams above." : null;
      fragment.table("[[upstream]]", { address, domains: hosts }, { note });
    }
  }
}
