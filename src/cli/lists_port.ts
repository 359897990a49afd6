import type {
  Directory,
  ListsPort,
  RecommendedCatalog,
  RecommendedSizes,
  Services,
} from "../api/mod.ts";
import type { FilterConfig } from "../config/mod.ts";
import { messageOf } from "../errors.ts";
import {
  decodeServices,
  type ListKeeper,
  type ListStatus,
  PRESETS,
  RECOMMENDED,
  type Service,
} from "../lists/mod.ts";
import { log } from "../log.ts";
import type { Filtering } from "./filtering.ts";

/** Lists and catalogues, for the API. */
export class NodeLists implements ListsPort {
  readonly #keeper: ListKeeper;
  readonly #filtering: Filtering;
  readonly #services: readonly Service[];

  constructor(keeper: ListKeeper, filtering: Filtering, services: readonly Service[]) {
    this.#keeper = keeper;
    this.#filtering = filtering;
    this.#services = services;
  }

  status(id: string): ListStatus {
    return this.#keeper.status(id);
  }

  refresh(): Promise<void> {
    return this.#filtering.reload();
  }

  recommended(): RecommendedCatalog {
    return {
      items: RECOMMENDED.map((list) => ({ ...list, presets: [...list.presets] })),
      presets: [...PRESETS],
    };
  }

  /** Sizes of those that this node has fetched. */
  sizes(): Promise<RecommendedSizes> {
    return Promise.resolve({ items: [] });
  }

  directory(): Promise<Directory> {
    return Promise.resolve({ fetched_at: null, items: [] });
  }

  services(): Services {
    return { items: this.#services.map((service) => ({ ...service, rules: [...service.rules] })) };
  }
}

/** Reads `[filter] services_file`; without one, or with a bad one, there are no services. */
export async function readServices({ services, servicesFile }: FilterConfig): Promise<Service[]> {
  if (!services || servicesFile === null) return [];
  try {
    return decodeServices(await Deno.readTextFile(servicesFile));
  } catch (error) {
    log.warn("filter.services_file: no service can be blocked", {
      file: servicesFile,
      error: messageOf(error),
    });
    return [];
  }
}
