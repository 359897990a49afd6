import { FarClock } from "../../src/client/far_clock.ts";

/** What time it is for the node: times are its, and this browser's clock may be wrong by days. */
export const nodeClock = new FarClock();
