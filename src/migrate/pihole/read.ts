import type { HttpAsk } from "../../http/mod.ts";
import { parseWith } from "../../model/mod.ts";
import { Source, type SourceRequest } from "../ask_source.ts";
import { DEVICES_MAX } from "../limits.ts";
import { Clients, Config, Devices, Domains, Groups, Lists, Session, Version } from "./shapes.ts";

export type PiholeData = Awaited<ReturnType<typeof readData>>;

const SECOND_FACTOR =
  "it takes no such password without its second factor: make an app password there";
/** Addresses of one device that are asked for. */
const DEVICE_ADDRESSES_MAX = 32;

/**
 * Reads all that is taken of a Pi-hole. A session is ended whatever comes of it: there are few.
 * `farewell` makes what bounds that end.
 *
 * @throws {SvcError} `invalid`, when it does not let in; `unavailable`.
 */
export async function readPihole(
  ask: HttpAsk,
  request: SourceRequest,
  signal: AbortSignal,
  farewell: () => AbortSignal,
): Promise<PiholeData> {
  const source = new Source(ask, request, {}, signal);
  const sid = await signIn(source, request.password);
  if (sid !== null) source.headers = { "x-ftl-sid": sid };
  try {
    return await readData(source);
  } finally {
    // It ends by itself in half an hour where this fails.
    if (sid !== null) {
      await source.call("DELETE", "api/auth", undefined, farewell()).catch(() => undefined);
    }
  }
}

/** The ID of a session; `null`: it lets everybody in. */
async function signIn(source: Source, password: string | null): Promise<string | null> {
  const path = "api/auth";
  const { status, json } = password === null
    ? await source.call("GET", path)
    : await source.call("POST", path, { password });
  if (status === 429) {
    throw source.refusal("it has too many sessions or saw too many attempts: wait a while");
  }
  const parsed = parseWith(Session, json);
  if (!parsed.ok) {
    if (password !== null && status === 400) throw source.refusal(SECOND_FACTOR);
    throw source.failure(path, `it answers ${status}: is this its address, and its version 6?`);
  }
  const { valid, sid, totp } = parsed.value.session;
  if (valid) return sid ?? null;
  throw source.refusal(
    password === null
      ? "it asks for a password"
      : totp === true
      ? SECOND_FACTOR
      : "it takes no such password",
  );
}

async function readData(source: Source) {
  const version = await source.getIfThere("api/info/version", Version);
  return {
    host: source.name,
    version: version?.version.ftl?.local?.version ?? null,
    ...await source.get("api/groups", Groups),
    ...await source.get("api/lists", Lists),
    ...await source.get("api/domains", Domains),
    ...await source.get("api/clients", Clients),
    ...await source.get("api/config", Config),
    devices: (await source.getIfThere(
      `api/network/devices?max_devices=${DEVICES_MAX}&max_addresses=${DEVICE_ADDRESSES_MAX}`,
      Devices,
    ))?.devices ?? [],
  };
}
