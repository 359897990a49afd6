import { signal } from "@preact/signals";
import { get } from "./api.ts";
import type { Services } from "./types.ts";

/** What services are called, by their IDs; empty until the catalogue was read. */
export const serviceNames = signal<ReadonlyMap<string, string>>(new Map());

export async function readServices(signal?: AbortSignal): Promise<Services> {
  const services = await get<Services>("services", {}, signal);
  serviceNames.value = new Map(services.items.map(({ id, name }) => [id, name]));
  return services;
}
