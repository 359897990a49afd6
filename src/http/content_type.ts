import { SvcError } from "../errors.ts";

const PAGE_TYPE = /^(?:text\/html|application\/xhtml\+xml)\b/i;

/** @throws {SvcError} If the answer says that it is a page. */
export function checkContentType(contentType: string | undefined): void {
  if (contentType !== undefined && PAGE_TYPE.test(contentType)) {
    throw new SvcError("invalid", "it is an HTML page, not a list");
  }
}
