import assert from "node:assert/strict";
import { answerHttp } from "./proof_server.ts";

Deno.test(
  "answerHttp() tells what is at a path, or at a whole URL",
  { permissions: "none" },
  () => {
    const rows = [
      ["GET /proof HTTP/1.1", 200],
      ["GET /proof HTTP/1.0", 200],
      ["GET http://dns.example/proof HTTP/1.1", 200],
      ["GET HTTP://dns.example:80/proof HTTP/1.1", 200],
      ["GET http://[2001:db8::1]/proof HTTP/1.1", 200],
      ["GET /other HTTP/1.1", 404],
      ["GET http:///proof HTTP/1.1", 404],
      ["GET http://a@dns.example/proof HTTP/1.1", 404],
      ["GET ftp://dns.example/proof HTTP/1.1", 404],
      ["get /proof HTTP/1.1", 404],
    ] as const;
    for (const [line, status] of rows) {
      const request = new TextEncoder().encode(`${line}\r\nHost: dns.example\r\n\r\n`);
      const answer = answerHttp(request, false, (path) => path === "/proof" ? "it is me" : null);
      assert.match(new TextDecoder().decode(answer!), new RegExp(`^HTTP/1\\.1 ${status} `), line);
    }
  },
);
