/** Pausing: of this node, and of a group or a client on every node. */
import type { ClientSpec, GroupSpec } from "../api/mod.ts";
import { secondsUntilMorning } from "./decide.ts";
import { Input, Menu } from "./dialogs.ts";
import { clockTime } from "./text.ts";
import type { Ui } from "./ui.ts";

/** The API takes a week at most. */
const PAUSE_MINUTES_MAX = 10_080;

const PAUSES: readonly (readonly [string, (now: Date) => number])[] = [
  ["5 minutes", () => 300],
  ["30 minutes", () => 1_800],
  ["1 hour", () => 3_600],
  ["until tomorrow, 6:00", secondsUntilMorning],
];

/** When a pause ends that is not over. */
export function pauseEnd(until: string | null, nowMs: number): string | null {
  return until !== null && Date.parse(until) > nowMs ? until : null;
}

/** Asks for how long, and has this node filter nothing. */
export function pauseNodeMenu(ui: Ui): void {
  const where = ui.node.status?.cluster.cluster === "" ? "" : " on this node only";
  const start = (seconds: number) =>
    ui.act(`paused${where}`, async () => {
      await ui.client.call("PUT pause", { body: { seconds } });
      return { undo: () => resumeNode(ui), but: null };
    });
  ui.open(
    new Menu(`Pause filtering for everybody${where}`, [
      ...PAUSES.map(([label, seconds]) => ({ label, run: () => start(seconds(ui.node.now)) })),
      {
        label: "for other minutes ...",
        run: () =>
          ui.open(
            new Input("Pause for how many minutes?", "", (text) => {
              const minutes = /^\d{1,5}$/.test(text.trim()) ? Number(text) : 0;
              if (minutes < 1 || minutes > PAUSE_MINUTES_MAX) {
                return `type a number from 1 to ${PAUSE_MINUTES_MAX}`;
              }
              start(minutes * 60);
              return null;
            }),
          ),
      },
    ]),
  );
}

async function resumeNode(ui: Ui): Promise<void> {
  await ui.client.call("DELETE pause");
}

export function resume(ui: Ui): void {
  ui.act("filtering again", async () => {
    await resumeNode(ui);
    return { undo: null, but: null };
  });
}

/** Asks for how long, and has nothing filtered for a group or a client. */
export function pauseMenu(
  collection: "groups" | "clients",
  id: string,
  { name, paused_until }: Pick<GroupSpec | ClientSpec, "name" | "paused_until">,
  ui: Ui,
): void {
  const set = (until: string | null) =>
    collection === "groups"
      ? ui.node.change("groups", id, (spec) => ({ ...spec, paused_until: until }))
      : ui.node.change("clients", id, (spec) => ({ ...spec, paused_until: until }));
  const act = (said: string, until: string | null) =>
    ui.act(`${name}: ${said}`, async () => {
      await set(until);
      return { undo: () => set(paused_until), but: null };
    });
  ui.open(
    new Menu(`Pause filtering for ${name}`, [
      ...PAUSES.map(([label, seconds]) => ({
        label,
        run: () => {
          const { now } = ui.node;
          const until = new Date(now.getTime() + seconds(now) * 1_000).toISOString();
          act(`paused until ${clockTime(until, now)}`, until);
        },
      })),
      ...paused_until === null ? [] : [{
        label: "filter again",
        run: () => act("filtering again", null),
      }],
    ]),
  );
}
