/**
 * The reader of HTTP/1.1 requests, for who serves others than DNS queries: heads and chunked bodies
 * in place, lines that end with CR and LF alone, everything within limits. RFC 9112. @module
 */
export { Chunked, ChunkedReader } from "./listen/chunked.ts";
export { appendBody } from "./listen/http.ts";
export { Head, RequestHead } from "./listen/http1_head.ts";
export { InputBuffer } from "./listen/input_buffer.ts";
