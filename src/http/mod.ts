/**
 * Requests to servers elsewhere, by addresses that whoever asks looks up: the system's resolver is
 * never asked, as it may well be this service. Texts are fetched within bounds of time, pace and
 * size, redirects and content encodings included. In goes a `Lookup`. Scope: net. RFC 9110. @module
 */
export { askJson, type JsonAnswer, type JsonQuestion } from "./ask_json.ts";
export { askText, type TextAnswer } from "./ask_text.ts";
export { askLength, download, type DownloadLimits, type Validators } from "./download.ts";
export { fetchJson } from "./fetch_json.ts";
export { nodeHttpAsk, nodeHttpGet, nodeHttpPost, nodeHttpPostStatus } from "./node_http.ts";
export type { HttpAsk, HttpGet, HttpPost, HttpResponse, Lookup } from "./ports.ts";
