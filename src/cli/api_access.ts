import { ApiClient, type ClientOptions } from "../client/mod.ts";
import { SvcError } from "../errors.ts";
import { wrongUsage } from "./options.ts";
import { readSecretFile } from "./secret_file.ts";

const DEFAULT_API = "http://127.0.0.1:8053";

/** Of every command that asks a running service. */
export const API_OPTIONS = { api: { type: "string" }, "token-file": { type: "string" } } as const;
export const API_HELP = `  --api URL          the service's API (default ${DEFAULT_API})
  --token-file FILE  its first line is the API's token`;

/**
 * The service that the options name; the exit code where they name none. `option` is what names it.
 *
 * @throws {SvcError} When the token can't be read.
 */
export async function apiClient(
  command: string,
  values: { readonly api?: string; readonly "token-file"?: string },
  limits: Pick<ClientOptions, "timeoutMs"> = {},
  option = "--api",
): Promise<ApiClient | number> {
  const base = URL.parse(values.api ?? DEFAULT_API);
  if (base === null || !/^https?:$/.test(base.protocol)) {
    return wrongUsage(command, `${option}: ${values.api} is no http or https URL`);
  }
  const tokenFile = values["token-file"];
  const token = tokenFile === undefined ? null : await readSecretFile(tokenFile);
  return new ApiClient({ base, token, ...limits });
}

/** What is asked of the API; who is not let in is told how to be. */
export async function asked<T>(answer: Promise<T>): Promise<T> {
  try {
    return await answer;
  } catch (error) {
    if (!(error instanceof SvcError) || error.code !== "unauthorized") throw error;
    throw new SvcError(error.code, `${error.message} (--token-file FILE gives the token)`);
  }
}
