import { messageOf, SvcError } from "../errors.ts";
import { log } from "../log.ts";
import { readWhole } from "./kept_lists.ts";
import type { ListKeeper } from "./keeper.ts";
import type { Disk } from "./ports.ts";
import { decodeServices, type Service } from "./services.ts";
import { CHECKED_BYTES_MAX, type ListSource } from "./source.ts";

/** The ID that the keeper has the catalogue under. */
export const SERVICES_ID = "services";
/** Where the catalogue comes from unless the configuration says otherwise. */
export const SERVICES_URL = "https://adguardteam.github.io/HostlistsRegistry/assets/services.json";

/** Where the catalogue comes from; `off` has no services. */
export type ServicesPlace =
  | { readonly kind: "off" }
  | { readonly kind: "file"; readonly path: string }
  | { readonly kind: "url"; readonly url: string };

/** The services that groups can block: kept by the keeper, or read from the operator's file. */
export class ServiceCatalogue {
  readonly #place: ServicesPlace;
  readonly #keeper: Pick<ListKeeper, "text">;
  readonly #disk: Disk;
  #services: readonly Service[] = [];
  /** Why the catalogue can't be read; `null` where it can, or was not fetched yet. */
  problem: string | null = null;
  /** What the keeper renews; `null` where nothing is downloaded. */
  readonly source: ListSource | null;

  constructor(place: ServicesPlace, keeper: Pick<ListKeeper, "text">, disk: Disk) {
    this.#place = place;
    this.#keeper = keeper;
    this.#disk = disk;
    this.source = place.kind !== "url" ? null : {
      id: SERVICES_ID,
      name: "catalogue of services",
      url: place.url,
      check: checkCatalogue,
    };
  }

  /** What was read last. */
  get services(): readonly Service[] {
    return this.#services;
  }

  /** Reads what is at hand; asks no server. A catalogue that can't be read leaves the former one. */
  async load(): Promise<readonly Service[]> {
    try {
      const bytes = await this.#read();
      if (bytes !== null) this.#services = decodeServices(new TextDecoder().decode(bytes));
      this.problem = null;
    } catch (error) {
      const what = this.#place.kind === "file"
        ? `filter.services_file: ${this.#place.path}`
        : "the catalogue of services";
      const rest = this.#services.length === 0
        ? "no service can be blocked"
        : "the former one holds";
      this.problem = `${what}: ${messageOf(error)}; ${rest}`;
      log.warn("the catalogue of services can't be read", { problem: this.problem });
    }
    return this.#services;
  }

  #read(): Promise<Uint8Array | null> {
    if (this.#place.kind === "file") {
      return readWhole(this.#disk, this.#place.path, CHECKED_BYTES_MAX);
    }
    return this.source === null ? Promise.resolve(null) : this.#keeper.text(this.source);
  }
}

/** @throws {SvcError} `invalid`, when the text is no catalogue or names no service. */
export function checkCatalogue(text: string): void {
  if (decodeServices(text).length === 0) {
    throw new SvcError(
      "invalid",
      "the services catalogue holds no service with a rule that is read",
    );
  }
}
