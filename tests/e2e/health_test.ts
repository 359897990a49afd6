// Goal: `svc health` says whether this machine's DNS answers, and by its exit code alone. Method: it is
// run beside a service that answers, that is stopped in its tracks, and that has ended.
import assert from "node:assert/strict";
import { freePort, PERMISSIONS, runProgram, Service, svcCommand } from "./harness.ts";

function health(...args: string[]): ReturnType<typeof runProgram> {
  const [program, ...rest] = svcCommand(["health", ...args]);
  return runProgram(program, ...rest);
}

Deno.test("svc health tells by its exit code whether the service answers", {
  permissions: PERMISSIONS,
}, async (t) => {
  const listen = `127.0.0.1:${freePort()}`;
  await using service = await Service.start({ config: { server: { listen: [listen] } } });
  const file = `${service.directory}/svc.toml`;
  await t.step("0 while it does", async () => {
    const { code, stdout, stderr } = await health("--config", file);
    assert.deepEqual([code, stdout, stderr], [0, `${listen} answers\n`, ""]);
  });
  await t.step("1 while it hangs", async () => {
    service.kill("SIGSTOP");
    const { code, stderr } = await health("--config", file);
    service.kill("SIGCONT");
    assert.equal(code, 1);
    assert.match(stderr, /^svc health: 127\.0\.0\.1:\d+ does not answer .*\n$/);
  });
  await t.step("1 once it has ended", async () => {
    await service.stop();
    assert.equal((await health("--config", file)).code, 1);
  });
  await t.step("1 where there is nowhere to ask", async () => {
    await Deno.writeTextFile(file, '[server]\nlisten = ["127.0.0.1:0"]\n');
    const { code, stderr } = await health("--config", file);
    assert.equal(code, 1);
    assert.match(stderr, /server\.listen: .*add 127\.0\.0\.1:53/);
  });
  await t.step("2 for a configuration that is none, or wrong usage", async () => {
    await Deno.writeTextFile(file, "[sever]\n");
    assert.equal((await health("--config", file)).code, 2);
    assert.equal((await health("--now")).code, 2);
  });
});
