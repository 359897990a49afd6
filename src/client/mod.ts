/**
 * Asks the API of a running service. In goes what a request line, a query and a body say; out comes
 * JSON of the type that the API's own schema has, or an error with the API's code. Of the API there are
 * types here and nothing that runs. Scope: net. RFC 9110. @module
 */
export {
  ANSWER_BYTES_MAX,
  type Answers,
  ApiClient,
  type ClientOptions,
  type ListEnvelope,
  type Question,
} from "./api_client.ts";
export {
  type Decided,
  ELSEWHERE,
  type Elsewhere,
  type Remedy,
  remedyFor,
  ruleText,
} from "./remedy.ts";
export type { ServerEvent } from "./read_events.ts";
