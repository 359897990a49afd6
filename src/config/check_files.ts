/**
 * Checks what a configuration names on the disk of this machine, through a port. Apart from `mod.ts`:
 * who only reads a configuration needs none of what it takes. Scope: none. @module
 */
import { createPrivateKey, type KeyObject, X509Certificate } from "node:crypto";
import { formatIp, type HostPort } from "../addr/mod.ts";
import { parseTrustAnchors } from "../dnssec/mod.ts";
import { messageOf } from "../errors.ts";
import { findRuleProblem } from "../model/mod.ts";
import { coversClientIds, coversName, keyWeakness, memberFault } from "./certificates.ts";
import type { Config, DevicesConfig, TlsFiles, VrrpConfig } from "./config.ts";
import { HOSTS_FILE } from "./devices.ts";
import type { Source } from "./parse.ts";
import { isInside } from "./readers.ts";
import { parseHeaders } from "./headers_file.ts";
import { formatKeyPath, type KeyPath, type Problem, quote, type Severity } from "./problem.ts";
import { stubInTheWay } from "./taken_ports.ts";

/** What a check may ask about the disk and the time. */
export interface FileFacts {
  /** Rejects with the error of the platform, whose `name` says `NotFound` or `PermissionDenied`. */
  readText(path: string): Promise<string>;
  stat(path: string): Promise<FileStat>;
  /** The path with every symbolic link followed. */
  realPath(path: string): Promise<string>;
  /** This machine's network interfaces with their IPv4 addresses; `null` where nobody can tell. */
  interfaces(): Promise<readonly InterfaceFacts[] | null>;
  /** Where somebody listens on this machine, as far as that can be told. */
  listening(): Promise<readonly HostPort[]>;
  /** Throws for a text that is no catalogue of services. */
  checkServices(text: string): void;
  nowMs(): number;
}

export interface FileStat {
  readonly isFile: boolean;
  readonly isDirectory: boolean;
  /** Its permissions, where the platform has such. */
  readonly mode?: number | null;
}

export interface InterfaceFacts {
  readonly name: string;
  readonly addresses: readonly Uint8Array[];
}

/** The permission of every user of the machine to read a file. */
const OTHERS_READ = 0o004;
/** At least as long as what it is for (RFC 2104 §3), as authorities give it. */
const HMAC_KEY = /^[A-Za-z0-9_-]{22,1024}={0,2}$/;
/** Most certificates of one file; a private CA has one, the public ones together some 150. */
const CERTIFICATE_COUNT_MAX = 1_000;

/**
 * Checks every file that the configuration names: it is there and readable and holds what it
 * should, certificates go with their keys, are valid now and cover their name; and every rule, that it
 * is one. What the service can go on without is a `check`. A draft is checked as well as a whole configuration.
 */
export async function checkFiles(
  config: Config,
  facts: FileFacts,
  source: Source,
): Promise<Problem[]> {
  const checker = new Checker(facts, source);
  const { server, filter, recursion, api, store, cluster, vrrp } = config;
  const { telemetry, devices, querylog, acme } = config;
  // Its own certificate the service makes itself.
  const given = (files: TlsFiles | null) => files === acme?.files ? null : files;
  await checker.certificate(given(server.tls.files), ["server", "tls"], ["cert", "key"], {
    serverName: server.tls.serverName,
    idsByName: server.tls.dot.length + server.tls.doq.length > 0,
  });
  // Drafts have holes, which Object.entries() leaves out.
  for (const [index, upstream] of Object.entries(config.upstreams)) {
    if (upstream.kind === "udp") continue;
    await checker.authorities(upstream.caFile, ["upstream", Number(index), "ca"]);
  }
  for (const [index, list] of Object.entries(filter.lists)) {
    // A file outside of the folder is a problem of its own, and is never opened.
    if (list.kind !== "path" || !list.isInside) continue;
    const key = ["filter", "lists", Number(index), "path"];
    await checker.localList(list.path, filter.localListsDir, key);
  }
  for (const [index, rule] of Object.entries(filter.rules)) {
    checker.rule(rule, ["filter", "rules", Number(index)]);
  }
  if (filter.services) {
    await checker.services(filter.servicesFile, ["filter", "services_file"]);
  }
  await checker.records(recursion.rootHintsFile, ["recursion", "root_hints"], /\s(A|AAAA)\s/i);
  await checker.trustAnchors(recursion.trustAnchorFile, ["recursion", "trust_anchor"]);
  await checker.certificate(given(api.tls), ["api"], ["tls_cert", "tls_key"], {});
  await checker.folder(store.dir, ["store", "path"]);
  if (cluster !== null) {
    const authorities = await checker.authorities(cluster.caFile, ["cluster", "ca"]);
    const member = { node: cluster.node, authorities };
    await checker.certificate(cluster, ["cluster"], ["cert", "key"], { member });
  }
  await checker.devices(devices);
  await checker.listen(server.listen);
  if (vrrp !== null) await checker.interface(vrrp);
  await checker.authorities(querylog.dnstap?.caFile ?? null, ["querylog", "dnstap", "ca"]);
  for (
    const [one, path] of [[telemetry, ["telemetry"]], [querylog.otlp, [
      "querylog",
      "otlp",
    ]]] as const
  ) {
    await checker.headers(one?.headersFile ?? null, [...path, "headers_file"]);
    await checker.authorities(one?.caFile ?? null, [...path, "ca_file"]);
  }
  await checker.authorities(acme?.caFile ?? null, ["acme", "ca_file"]);
  await checker.hmacKey(acme?.external?.hmacKeyFile ?? null, ["acme", "eab_key_file"]);
  return checker.problems.sort((a, b) => a.line - b.line);
}

class Checker {
  readonly problems: Problem[] = [];
  readonly #facts: FileFacts;
  readonly #source: Source;

  constructor(facts: FileFacts, source: Source) {
    this.#facts = facts;
    this.#source = source;
  }

  #problem(path: KeyPath, message: string, severity: Severity = "error"): null {
    const line = this.#source.lineOf(path);
    this.problems.push({
      file: this.#source.file,
      line,
      key: formatKeyPath(path),
      message,
      severity,
    });
    return null;
  }

  /** The text of a file, or `null` if there is none to read; that is reported. */
  async text(
    file: string | null,
    key: KeyPath,
    severity: Severity = "error",
  ): Promise<string | null> {
    if (file === null) return null;
    try {
      return await this.#facts.readText(file);
    } catch (error) {
      return this.#problem(key, unreadable(file, error), severity);
    }
  }

  /** A rule that is left out where the others are taken. */
  rule(rule: string, key: KeyPath): void {
    const problem = findRuleProblem(rule.trim());
    if (problem !== null) this.#problem(key, problem, "check");
  }

  /** The interface of the floating address, and the peer, as far as this machine is the one. */
  async interface({ interface: device, peer }: VrrpConfig): Promise<void> {
    const all = await this.#facts.interfaces();
    if (all === null) return;
    const own = all.find(({ addresses }) => addresses.some((a) => formatIp(a) === formatIp(peer)));
    if (own !== undefined) {
      const message = `is this machine's own address on ${quote(own.name)}: write the other node's`;
      this.#problem(["vrrp", "peer"], message, "check");
    }
    if (all.some(({ name }) => name === device)) return;
    const names = all.map(({ name }) => name).join(", ");
    const message = `is ${quote(device)}, which this machine does not have now; there are ${names}`;
    this.#problem(["vrrp", "interface"], message, "note");
  }

  /** Addresses of plain DNS that another resolver of this machine has at the moment. */
  async listen(listen: readonly HostPort[]): Promise<void> {
    const taken = stubInTheWay(listen, await this.#facts.listening());
    if (taken !== null) this.#problem(["server", "listen", taken.index], taken.message, "note");
  }

  /** A file of request headers. */
  async headers(file: string | null, key: KeyPath): Promise<void> {
    const text = await this.text(file, key);
    if (file === null || text === null) return;
    await this.#secret(file, key);
    const parsed = parseHeaders(text);
    if (parsed.kind === "headers") return;
    this.#problem(key, `${quote(file)}: line ${parsed.line} ${parsed.message}`);
  }

  /** A file of a key in base64url, which is never repeated. */
  async hmacKey(file: string | null, key: KeyPath): Promise<void> {
    const text = await this.text(file, key);
    if (file === null || text === null) return;
    await this.#secret(file, key);
    if (HMAC_KEY.test(text.trim())) return;
    this.#problem(key, `${quote(file)} holds no key in base64url: write the one of the authority`);
  }

  /** What a file holds is nobody else's: it was read, and others may read it as well. */
  async #secret(file: string, key: KeyPath): Promise<void> {
    const { mode } = await this.#facts.stat(file);
    if (((mode ?? 0) & OTHERS_READ) === 0) return;
    const message = `${quote(file)} may be read by every user of this machine: chmod o-r it`;
    this.#problem(key, message, "note");
  }

  /** Files about devices: without one the service goes on, with fewer names. */
  async devices({ hostsFiles, leaseFiles }: DevicesConfig): Promise<void> {
    for (const [index, file] of Object.entries(hostsFiles)) {
      if (file === HOSTS_FILE) continue;
      await this.text(file, ["devices", "hosts_files", Number(index)], "check");
    }
    for (const [index, file] of Object.entries(leaseFiles)) {
      await this.text(file, ["devices", "lease_files", Number(index)], "check");
    }
  }

  /** A list in the folder of local lists, which no link may lead out of. */
  async localList(file: string, dir: string, key: KeyPath): Promise<void> {
    try {
      const real = await this.#facts.realPath(file);
      const realDir = await this.#facts.realPath(dir);
      const { isFile } = await this.#facts.stat(real);
      if (!isInside(real, realDir)) {
        this.#problem(
          key,
          `${quote(file)} is a link out of filter.local_lists_dir, so the list is skipped: put ` +
            "the file itself there",
          "check",
        );
      } else if (!isFile) {
        this.#problem(key, `${quote(file)} is not a file: name one`, "check");
      }
    } catch (error) {
      this.#problem(key, unreadable(file, error), "check");
    }
  }

  /** A folder that the service makes itself if there is none. */
  async folder(dir: string, key: KeyPath): Promise<void> {
    try {
      const { isDirectory } = await this.#facts.stat(dir);
      if (!isDirectory) this.#problem(key, `${quote(dir)} is not a folder: name one`);
    } catch (error) {
      if (!isNamed(error, "NotFound")) this.#problem(key, unreadable(dir, error));
    }
  }

  /** The services catalog: without it the service goes on, with no service to block. */
  async services(file: string | null, key: KeyPath): Promise<void> {
    const text = await this.text(file, key, "check");
    if (text === null) return;
    try {
      this.#facts.checkServices(text);
    } catch (error) {
      const mend = "name one in the shape of HostlistsRegistry's services.json";
      this.#problem(key, `${quote(file ?? "")}: ${oneLine(error)}: ${mend}`, "check");
    }
  }

  /** A file of resource records in presentation form, with at least one of the type it is for. */
  async records(file: string | null, key: KeyPath, wanted: RegExp): Promise<void> {
    const text = await this.text(file, key);
    if (text === null) return;
    const lines = text.split("\n").map((line) => line.replace(/;.*/, ""));
    if (lines.some((line) => wanted.test(line))) return;
    const types = /\((.*)\)/.exec(wanted.source)?.[1].replace("|", " or ");
    this.#problem(key, `${quote(file ?? "")} holds no ${types} record: name a file that does`);
  }

  /** A file of DS and DNSKEY records. */
  async trustAnchors(file: string | null, key: KeyPath): Promise<void> {
    const text = await this.text(file, key);
    if (text === null) return;
    for (const { line, message } of parseTrustAnchors(text).problems) {
      this.#problem(key, `${quote(file ?? "")}: line ${line} ${message}`);
    }
  }

  /** A file of CA certificates; none where there is a problem. */
  async authorities(file: string | null, key: KeyPath): Promise<X509Certificate[]> {
    const text = await this.text(file, key);
    if (text === null) return [];
    const found = this.#certificates(text, file ?? "", key);
    for (const certificate of found ?? []) this.#validity(certificate, file ?? "", key);
    return found ?? [];
  }

  /** A certificate and its key: they match, hold now, and cover a name or come from a CA. */
  async certificate(
    files: TlsFiles | null,
    table: KeyPath,
    [certKey, keyKey]: readonly [string, string],
    expected: {
      serverName?: string | null;
      /** Clients put their ID before the server name. */
      idsByName?: boolean;
      /** The member of the cluster that it is of, and who may have made it. */
      member?: { node: string; authorities: readonly X509Certificate[] };
    },
  ): Promise<void> {
    if (files === null) return;
    const { certFile, keyFile } = files;
    const at = [...table, certKey];
    const certText = await this.text(certFile, at);
    const keyText = await this.text(keyFile, [...table, keyKey]);
    if (keyText !== null) await this.#secret(keyFile, [...table, keyKey]);
    const certificate = certText === null
      ? null
      : this.#certificates(certText, certFile, at)?.[0] ?? null;
    const key = keyText === null ? null : this.#privateKey(keyText, keyFile, [...table, keyKey]);
    if (certificate === null) return;
    if (key !== null && !certificate.checkPrivateKey(key)) {
      this.#problem(
        [...table, keyKey],
        `${quote(keyFile)} is not the key of ${quote(certFile)}: name the files of one pair`,
      );
    }
    this.#validity(certificate, certFile, at);
    const { serverName, member } = expected;
    if (serverName) this.#names(certificate, certFile, at, serverName, expected.idsByName === true);
    // Without an authority there is a problem already.
    if (member === undefined || member.authorities.length === 0) return;
    const fault = memberFault(certificate, member.authorities, member.node);
    if (fault !== null) this.#problem(at, `${quote(certFile)} ${fault}`);
  }

  #certificates(text: string, file: string, key: KeyPath): X509Certificate[] | null {
    const blocks = text.match(/-----BEGIN CERTIFICATE-----[^-]*-----END CERTIFICATE-----/g) ?? [];
    if (blocks.length === 0) {
      return this.#problem(key, `${quote(file)} holds no PEM certificate: name a file that does`);
    }
    if (blocks.length > CERTIFICATE_COUNT_MAX) {
      return this.#problem(
        key,
        `${quote(file)} holds ${blocks.length} certificates, more than ${CERTIFICATE_COUNT_MAX}`,
      );
    }
    const found: X509Certificate[] = [];
    for (const [index, block] of blocks.entries()) {
      try {
        found.push(new X509Certificate(block));
      } catch (error) {
        return this.#problem(
          key,
          `certificate ${index + 1} of ${quote(file)} can't be read: ${oneLine(error)}`,
        );
      }
    }
    return found;
  }

  #privateKey(text: string, file: string, key: KeyPath): KeyObject | null {
    if (/-----BEGIN ENCRYPTED|Proc-Type: 4,ENCRYPTED/.test(text)) {
      return this.#problem(
        key,
        `${quote(file)} has a password, which nobody types at start: write the key without one`,
      );
    }
    try {
      const privateKey = createPrivateKey(text);
      const weakness = keyWeakness(privateKey);
      if (weakness !== null) {
        this.#problem(key, `${quote(file)}: ${weakness}: make one of ECDSA P-256`);
      }
      return privateKey;
    } catch (error) {
      // The message names what was expected, never a byte of the key.
      return this.#problem(key, `${quote(file)} is no PEM private key: ${oneLine(error)}`);
    }
  }

  #names(
    certificate: X509Certificate,
    file: string,
    key: KeyPath,
    name: string,
    idsByName: boolean,
  ): void {
    const hasIds = coversClientIds(certificate, name);
    if (!hasIds && !coversName(certificate, name)) {
      this.#problem(
        key,
        `${quote(file)} covers neither ${name} nor *.${name}: clients would refuse it, get one ` +
          "for that name",
        "check",
      );
    } else if (!hasIds && idsByName) {
      this.#problem(
        key,
        `${quote(file)} does not cover *.${name}: clients that tell their ID by that name would ` +
          "refuse it; get one that does if there are any",
        "note",
      );
    }
  }

  /** A certificate out of its time is a `check`: it can be renewed while the service runs. */
  #validity(certificate: X509Certificate, file: string, key: KeyPath): void {
    const nowMs = this.#facts.nowMs();
    if (nowMs < certificate.validFromDate.getTime()) {
      const from = certificate.validFromDate.toISOString();
      this.#problem(key, `${quote(file)} is not valid before ${from}: check the clock`, "check");
    } else if (nowMs > certificate.validToDate.getTime()) {
      const until = certificate.validToDate.toISOString();
      this.#problem(key, `${quote(file)} expired at ${until}: renew it`, "check");
    }
  }
}

function isNamed(error: unknown, name: string): boolean {
  return error instanceof Error && error.name === name;
}

function unreadable(file: string, error: unknown): string {
  if (isNamed(error, "NotFound")) return `${quote(file)} is not there: make it or name another`;
  if (isNamed(error, "PermissionDenied")) {
    return `${quote(file)} may not be read: give this user the right to`;
  }
  return `${quote(file)} can't be read: ${oneLine(error)}`;
}

function oneLine(error: unknown): string {
  return messageOf(error).split("\n", 1)[0];
}
