/** The program: hands its arguments to the command line. @module */
import { main } from "./src/cli/mod.ts";

if (import.meta.main) Deno.exit(await main(Deno.args));
