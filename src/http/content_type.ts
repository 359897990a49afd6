import { SvcError } from "../errors.ts";

const PAGE_TYPE = /^(?:text\/html|application\/xhtml\+xml)\b/i;

/** Says whether a content type is that of a page for people. */
export function isPage(contentType: string | undefined): boolean {
  return contentType !== undefined && PAGE_TYPE.test(contentType);
}

/** @throws {SvcError} If the answer says that it is a page. */
export function checkContentType(contentType: string | undefined): void {
  if (isPage(contentType)) {
    throw new SvcError("invalid", "it is an HTML page, not a list");
  }
}
