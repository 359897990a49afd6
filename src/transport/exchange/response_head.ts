import type { FieldSink, HeaderField } from "../listen/http2/hpack.ts";
import { FieldName, isText } from "../listen/http2/static_table.ts";

const STATUS = new TextEncoder().encode(":status");

/** Makes the head of a response out of its fields, as far as they matter here (RFC 9113 §8.3.2). */
export class ResponseHeadReader implements FieldSink {
  /** 0: there was none. */
  status = 0;
  /** The media type without its parameters, in lower case. */
  contentType = "";
  /** -1: there was none. */
  contentLength = -1;
  #isMalformed = false;

  /** What follows are the fields of another head. */
  begin(): void {
    this.status = 0;
    this.contentType = "";
    this.contentLength = -1;
    this.#isMalformed = false;
  }

  get isMalformed(): boolean {
    return this.#isMalformed || this.status < 100;
  }

  onField(field: HeaderField): void {
    const { name, nameBytes, nameStart, nameEnd } = field;
    if (!field.valid) this.#isMalformed = true;
    if (isText(nameBytes, nameStart, nameEnd, STATUS)) {
      const text = valueOf(field);
      if (this.status > 0 || !/^[1-9]\d\d$/.test(text)) this.#isMalformed = true;
      else this.status = Number(text);
    } else if (name === FieldName.ContentType) {
      this.contentType = valueOf(field).split(";", 1)[0].trim().toLowerCase();
    } else if (name === FieldName.ContentLength) {
      const text = valueOf(field);
      const length = /^\d{1,9}$/.test(text) ? Number(text) : -1;
      const differs = this.contentLength >= 0 && this.contentLength !== length;
      if (length < 0 || differs) this.#isMalformed = true;
      this.contentLength = length;
    }
  }
}

/** Fields of this kind are short; what is longer is none of them. */
const VALUE_BYTES_MAX = 256;

function valueOf({ value, valueStart, valueEnd }: HeaderField): string {
  return String.fromCharCode(
    ...value.subarray(valueStart, Math.min(valueEnd, valueStart + VALUE_BYTES_MAX)),
  );
}
