/** The API of a running service, for tests that change what it does. */
import assert from "node:assert/strict";
import { runProgram, type Service } from "./harness.ts";

export const DEFAULT_GROUP = "gr_0000000000000000";

export class Api {
  private constructor(readonly base: string, private readonly prefix: readonly string[]) {}

  /** `prefix` is the command to reach it by, where the service is in a network of its own. */
  static async of(service: Service, prefix: readonly string[] = []): Promise<Api> {
    const { listen } = await service.logged("serving the API");
    return new Api(`http://${(listen as string[])[0]}/api/v1`, prefix);
  }

  /** What is answered; a refusal with its status beside it. */
  // deno-lint-ignore no-explicit-any -- answers of every shape
  async call(method: string, path: string, body?: unknown): Promise<any> {
    const { status, text } = await this.#request(method, `${this.base}/${path}`, body);
    const json = text === "" ? null : JSON.parse(text);
    return status < 300 ? json : { status, ...json };
  }

  /** What Prometheus reads. */
  async metrics(): Promise<string> {
    const { status, text } = await this.#request("GET", new URL("/metrics", this.base).href);
    assert.equal(status, 200, text);
    return text;
  }

  async #request(
    method: string,
    url: string,
    body?: unknown,
  ): Promise<{ status: number; text: string }> {
    const json = body === undefined ? undefined : JSON.stringify(body);
    if (this.prefix.length === 0) {
      const headers = { "content-type": "application/json" };
      const init = json === undefined ? { method } : { method, headers, body: json };
      const response = await fetch(url, init);
      return { status: response.status, text: await response.text() };
    }
    const data = json === undefined ? [] : ["-H", "content-type: application/json", "-d", json];
    const command = [...this.prefix, "curl", "-sS", "-w", "\n%{http_code}", "-X", method];
    const { stdout, stderr } = await runProgram(command[0], ...command.slice(1), ...data, url);
    assert.equal(stderr, "");
    const end = stdout.lastIndexOf("\n");
    return { status: Number(stdout.slice(end + 1)), text: stdout.slice(0, end) };
  }

  /** Creates a resource, which must succeed; its ID. */
  async create(collection: string, spec: unknown): Promise<string> {
    const { id, ...rest } = await this.call("POST", collection, spec);
    assert.equal(typeof id, "string", JSON.stringify(rest));
    return id;
  }

  /** Changes some of the settings. */
  async set(settings: Readonly<Record<string, unknown>>): Promise<void> {
    const all = await this.call("GET", "settings");
    const { error } = await this.call("PUT", "settings", { ...all, ...settings });
    assert.equal(error, undefined, JSON.stringify(error));
  }
}
