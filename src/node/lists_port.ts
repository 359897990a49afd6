import type {
  Directory,
  DirectoryDetails,
  ListsPort,
  RecommendedCatalog,
  RecommendedSizes as SizesAnswer,
  Services,
} from "../api/mod.ts";
import type { FilterConfig } from "../config/mod.ts";
import { SvcError } from "../errors.ts";
import type { HttpGet } from "../http/mod.ts";
import {
  DIRECTORY_URL,
  type Disk,
  ListDirectory,
  type ListKeeper,
  type ListStatus,
  PRESETS,
  RECOMMENDED,
  RecommendedSizes,
  type Refresh,
  type ServiceCatalogue,
  SERVICES_URL,
  type ServicesPlace,
} from "../lists/mod.ts";
import type { Filtering, Lists } from "./filtering.ts";

/** Where `[filter]` has the catalogue of services from. */
export function servicesPlace(config: FilterConfig): ServicesPlace {
  const { services, servicesFile, servicesUrl } = config;
  if (!services) return { kind: "off" };
  if (servicesFile !== null) return { kind: "file", path: servicesFile };
  return { kind: "url", url: servicesUrl ?? SERVICES_URL };
}

export interface NodeListsOptions {
  readonly config: Pick<FilterConfig, "directory" | "directoryUrl">;
  readonly keeper: ListKeeper;
  readonly filtering: Pick<Filtering, "reload">;
  readonly services: Pick<ServiceCatalogue, "services" | "source">;
  /** The lists that there are at the moment. */
  readonly lists: () => Lists;
  readonly get: HttpGet;
  readonly disk: Disk;
}

/** Lists and catalogues, for the API. */
export class NodeLists implements ListsPort {
  readonly #options: NodeListsOptions;
  readonly #directory: ListDirectory | null;
  readonly #sizes: RecommendedSizes;

  constructor(options: NodeListsOptions) {
    const { config, keeper, get, disk } = options;
    const clock = { nowMs: () => Date.now() };
    this.#options = options;
    this.#directory = !config.directory ? null : new ListDirectory({
      url: config.directoryUrl ?? DIRECTORY_URL,
      get,
      clock,
      disk,
      directory: keeper.directory,
    });
    this.#sizes = new RecommendedSizes(get, clock, (url) => this.#fetched(url));
  }

  status(id: string): ListStatus {
    return this.#options.keeper.status(id);
  }

  refresh(): Refresh {
    return this.#options.filtering.reload();
  }

  recommended(): RecommendedCatalog {
    return {
      items: RECOMMENDED.map(({ nonCommercial, ...list }) => ({
        ...list,
        non_commercial: nonCommercial,
        presets: [...list.presets],
      })),
      presets: [...PRESETS],
    };
  }

  async sizes(): Promise<SizesAnswer> {
    return { items: await this.#sizes.sizes() };
  }

  async directory(): Promise<Directory> {
    const { fetchedAtMs, items } = await this.#public().lists();
    return {
      fetched_at: new Date(fetchedAtMs).toISOString(),
      items: items.map((item) => ({ ...item, tags: [...item.tags] })),
    };
  }

  async directoryList(id: string): Promise<DirectoryDetails> {
    const details = await this.#public().details(id);
    return { ...details, tags: [...details.tags], urls: [...details.urls] };
  }

  services(): Services {
    const { services, source } = this.#options.services;
    return {
      items: services.map((service) => ({ ...service, rules: [...service.rules] })),
      status: source === null ? null : this.status(source.id),
    };
  }

  #public(): ListDirectory {
    if (this.#directory !== null) return this.#directory;
    throw new SvcError(
      "not_found",
      "filter.directory: this node's configuration turns the directory of lists off",
    );
  }

  /** What this node has of the list with this address. */
  #fetched(url: string): { readonly rules: number; readonly bytes: number } | null {
    const { keeper, lists } = this.#options;
    const source = lists().sources.find((one) => one.url === url);
    const bytes = source === undefined ? null : keeper.keptBytes(source.id, url);
    if (source === undefined || bytes === null) return null;
    return { rules: keeper.status(source.id).rules, bytes };
  }
}
