import type { HttpAsk } from "../../http/mod.ts";
import { Source, type SourceRequest } from "../ask_source.ts";
import {
  Access,
  BlockedServiceIds,
  BlockedServices,
  Clients,
  Dhcp,
  DnsInfo,
  Enabled,
  FilteringStatus,
  QuerylogConfig,
  Rewrites,
  SafeSearch,
  Status,
  Tls,
} from "./shapes.ts";

export type AdguardData = Awaited<ReturnType<typeof readAdguard>>;

/**
 * Reads all that is taken of an AdGuard Home; its web API takes the credentials with each request.
 *
 * @throws {SvcError} `invalid`, when it does not let in; `unavailable`.
 */
export async function readAdguard(ask: HttpAsk, request: SourceRequest, signal: AbortSignal) {
  const { user, password } = request;
  const headers = user === null && password === null
    ? {}
    : { authorization: `Basic ${base64(`${user ?? ""}:${password ?? ""}`)}` };
  const source = new Source(ask, request, headers, signal);
  const path = (name: string) => `control/${name}`;
  const { status: letIn } = await source.call("GET", path("status"));
  if (letIn === 401 || letIn === 403) {
    throw source.refusal(
      headers.authorization === undefined
        ? "it asks for a user and a password"
        : "it takes no such user with this password",
    );
  }
  if (letIn === 429) throw source.refusal("too many wrong passwords were tried: wait a while");
  const status = await source.get(path("status"), Status);
  return {
    host: source.name,
    status,
    dns: await source.get(path("dns_info"), DnsInfo),
    filtering: await source.get(path("filtering/status"), FilteringStatus),
    clients: await source.get(path("clients"), Clients),
    rewrites: await source.get(path("rewrite/list"), Rewrites),
    // The switches below are of later versions, or of some systems.
    areRewritesOn: (await source.getIfThere(path("rewrite/settings"), Enabled))?.enabled ?? true,
    services: await blockedServices(source),
    safeSearch: await source.get(path("safesearch/status"), SafeSearch),
    safeBrowsing: await source.getIfThere(path("safebrowsing/status"), Enabled),
    parental: await source.getIfThere(path("parental/status"), Enabled),
    access: await source.get(path("access/list"), Access),
    querylog: await source.getIfThere(path("querylog/config"), QuerylogConfig),
    tls: await source.getIfThere(path("tls/status"), Tls),
    dhcp: await source.getIfThere(path("dhcp/status"), Dhcp),
  };
}

async function blockedServices(source: Source) {
  const found = await source.getIfThere("control/blocked_services/get", BlockedServices);
  if (found !== null) return found;
  const ids = await source.get("control/blocked_services/list", BlockedServiceIds);
  return { ids, schedule: null };
}

function base64(text: string): string {
  return btoa(String.fromCharCode(...new TextEncoder().encode(text)));
}
