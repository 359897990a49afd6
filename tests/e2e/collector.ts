/** A collector of OTLP over HTTP, which takes the protobuf apart by the numbers of its fields. */
import assert from "node:assert/strict";
import { until } from "./harness.ts";

export type Attributes = Readonly<Record<string, string | number | boolean>>;

export interface Point {
  readonly attributes: Attributes;
  readonly value: number;
}
export interface Histogram {
  readonly attributes: Attributes;
  readonly count: number;
  readonly sum: number;
  readonly buckets: readonly number[];
  readonly bounds: readonly number[];
}
export interface Metric {
  readonly name: string;
  readonly unit: string;
  readonly kind: "gauge" | "sum" | "histogram";
  readonly points: readonly Point[];
  readonly histograms: readonly Histogram[];
}
export interface LogRecord {
  readonly severity: string;
  readonly body: string;
  readonly attributes: Attributes;
  readonly timeMs: number;
}
export interface Span {
  readonly name: string;
  readonly attributes: Attributes;
  readonly startMs: number;
  readonly endMs: number;
  readonly hasFailed: boolean;
}

/** A message of protobuf: what stands under each number, in order. */
export class Fields {
  readonly #values = new Map<number, (bigint | Uint8Array)[]>();

  constructor(bytes: Uint8Array) {
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    let at = 0;
    const varint = (): bigint => {
      let value = 0n;
      for (let shift = 0n;; shift += 7n) {
        assert.ok(at < bytes.length && shift < 70n, "a varint ends");
        const byte = bytes[at++];
        value |= BigInt(byte & 0x7f) << shift;
        if (byte < 0x80) return value;
      }
    };
    while (at < bytes.length) {
      const tag = Number(varint());
      const [number, type] = [tag >> 3, tag & 7];
      let value: bigint | Uint8Array;
      if (type === 0) value = varint();
      else if (type === 1) {
        value = view.getBigUint64(at, true);
        at += 8;
      } else if (type === 2) {
        const length = Number(varint());
        assert.ok(at + length <= bytes.length, "a field ends within its message");
        value = bytes.subarray(at, at + length);
        at += length;
      } else {
        assert.equal(type, 5, "a type of field");
        value = BigInt(view.getUint32(at, true));
        at += 4;
      }
      this.#values.set(number, [...this.#values.get(number) ?? [], value]);
    }
  }

  messages(number: number): Fields[] {
    return this.#all(number).map((value) => {
      assert.ok(value instanceof Uint8Array, `field ${number} is a message`);
      return new Fields(value);
    });
  }

  text(number: number): string {
    const value = this.#values.get(number)?.[0] ?? new Uint8Array(0);
    assert.ok(value instanceof Uint8Array, `field ${number} is text`);
    return new TextDecoder("utf-8", { fatal: true }).decode(value);
  }

  bytes(number: number): Uint8Array {
    const value = this.#values.get(number)?.[0];
    assert.ok(value instanceof Uint8Array, `field ${number} is bytes`);
    return value;
  }

  integer(number: number): number {
    const value = this.#values.get(number)?.[0] ?? 0n;
    assert.ok(typeof value === "bigint", `field ${number} is a number`);
    return Number(value);
  }

  double(number: number): number {
    return doubleOf(BigInt(this.integerBits(number)));
  }

  integerBits(number: number): bigint {
    const value = this.#values.get(number)?.[0] ?? 0n;
    assert.ok(typeof value === "bigint", `field ${number} is a number`);
    return value;
  }

  has(number: number): boolean {
    return this.#values.has(number);
  }

  /** Numbers of eight bytes, packed or one by one. */
  packed(number: number): bigint[] {
    return this.#all(number).flatMap((value) => {
      if (typeof value === "bigint") return [value];
      const view = new DataView(value.buffer, value.byteOffset, value.byteLength);
      return Array.from({ length: value.length / 8 }, (_, i) => view.getBigUint64(i * 8, true));
    });
  }

  #all(number: number): (bigint | Uint8Array)[] {
    return this.#values.get(number) ?? [];
  }
}

function doubleOf(bits: bigint): number {
  const view = new DataView(new ArrayBuffer(8));
  view.setBigUint64(0, bits);
  return view.getFloat64(0);
}

/** `repeated KeyValue`. */
function attributesOf(fields: Fields, number: number): Attributes {
  return Object.fromEntries(
    fields.messages(number).map((pair) => {
      const [value] = pair.messages(2);
      const plain = value.has(1)
        ? value.text(1)
        : value.has(2)
        ? value.integer(2) !== 0
        : value.has(4)
        ? value.double(4)
        : value.integer(3);
      return [pair.text(1), plain];
    }),
  );
}

function metricOf(fields: Fields): Metric {
  const kind = fields.has(5) ? "gauge" : fields.has(7) ? "sum" : "histogram";
  const data = fields.messages(kind === "gauge" ? 5 : kind === "sum" ? 7 : 9)[0];
  if (kind !== "gauge") assert.equal(data.integer(2), 2, "cumulative");
  if (kind === "sum") assert.equal(data.integer(3), 1, "monotonic");
  const points = kind === "histogram" ? [] : data.messages(1).map((point) => ({
    attributes: attributesOf(point, 7),
    value: point.has(4) ? point.double(4) : Number(BigInt.asIntN(64, point.integerBits(6))),
  }));
  const histograms = kind !== "histogram" ? [] : data.messages(1).map((point) => ({
    attributes: attributesOf(point, 9),
    count: point.integer(4),
    sum: point.double(5),
    buckets: point.packed(6).map(Number),
    bounds: point.packed(7).map(doubleOf),
  }));
  return { name: fields.text(1), unit: fields.text(3), kind, points, histograms };
}

const milliseconds = (fields: Fields, number: number) => fields.integer(number) / 1e6;

/** How a collector answers; `hang` never does. */
export type Mood = 200 | 401 | 500 | 503 | "hang";

export class Collector {
  readonly metrics: Metric[][] = [];
  readonly logs: LogRecord[] = [];
  readonly spans: Span[] = [];
  /** Attributes of the resource of each request. */
  readonly resources: Attributes[] = [];
  readonly headers: Headers[] = [];
  readonly paths: string[] = [];
  mood: Mood = 200;
  requests = 0;
  readonly #server: Deno.HttpServer<Deno.NetAddr>;
  readonly #hanging: (() => void)[] = [];

  constructor(options: { port?: number; tls?: { cert: string; key: string } } = {}) {
    const { port = 0, tls = {} } = options;
    const listen = { hostname: "127.0.0.1", port, onListen: () => {}, ...tls };
    this.#server = Deno.serve(listen, (request) => this.#take(request));
  }

  get port(): number {
    return this.#server.addr.port;
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  /** The newest value of a metric under these attributes. */
  value(name: string, attributes: Attributes = {}): number | undefined {
    return this.metrics.at(-1)?.find((metric) => metric.name === name)?.points.find((point) =>
      Object.entries(attributes).every(([key, value]) => point.attributes[key] === value)
    )?.value;
  }

  async logged(body: string): Promise<LogRecord> {
    await until(`the log line "${body}"`, () => this.logs.some((line) => line.body === body));
    return this.logs.find((line) => line.body === body)!;
  }

  async #take(request: Request): Promise<Response> {
    const body = await request.bytes();
    this.requests++;
    this.headers.push(request.headers);
    const { mood } = this;
    if (mood === "hang") {
      await new Promise<void>((resolve) => this.#hanging.push(resolve));
      return new Response(null, { status: 503 });
    }
    const { pathname } = new URL(request.url);
    this.paths.push(pathname);
    if (mood !== 200) return new Response("no", { status: mood });
    assert.equal(request.method, "POST");
    assert.equal(request.headers.get("content-type"), "application/x-protobuf");
    for (const part of new Fields(body).messages(1)) {
      this.resources.push(attributesOf(part.messages(1)[0], 1));
      for (const scope of part.messages(2)) {
        assert.equal(scope.messages(1)[0].text(1), "svc");
        this.#takeScope(pathname, scope);
      }
    }
    return new Response(new Uint8Array(0), {
      headers: { "content-type": "application/x-protobuf" },
    });
  }

  #takeScope(path: string, scope: Fields): void {
    const items = scope.messages(2);
    if (path.endsWith("/v1/metrics")) this.metrics.push(items.map(metricOf));
    else if (path.endsWith("/v1/logs")) {
      this.logs.push(...items.map((item) => ({
        severity: item.text(3),
        body: item.messages(5)[0].text(1),
        attributes: attributesOf(item, 6),
        timeMs: milliseconds(item, 1),
      })));
    } else {
      assert.ok(path.endsWith("/v1/traces"), path);
      this.spans.push(...items.map((item) => ({
        name: item.text(5),
        attributes: attributesOf(item, 9),
        startMs: milliseconds(item, 7),
        endMs: milliseconds(item, 8),
        hasFailed: item.messages(15)[0]?.integer(3) === 2,
      })));
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const resolve of this.#hanging) resolve();
    await this.#server.shutdown();
  }
}
