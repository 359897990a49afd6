import { type Canvas, Style } from "../canvas.ts";
import { putRow } from "../dialogs.ts";
import type { Key } from "../keys.ts";
import type { NodeData } from "../node_data.ts";
import { ago, counted } from "../text.ts";
import { type Area, Cursor, type Page, type Ui } from "../ui.ts";

/** Columns of what stands behind a list's name. */
const STATE_COLUMNS = 30;

/** Lists: what they have, and whether they hold. */
export class ListsPage implements Page {
  readonly title = "Lists";
  readonly hints = "Space on/off  u undo  r refresh  ? help";
  readonly #cursor = new Cursor();
  readonly #node: NodeData;
  #height = 1;

  constructor(node: NodeData) {
    this.#node = node;
  }

  draw(canvas: Canvas, area: Area): void {
    const { lists, now } = this.#node;
    const nowMs = now.getTime();
    this.#height = Math.max(1, area.height);
    const top = this.#cursor.top(lists.length, this.#height);
    if (lists.length === 0) canvas.put(area.x, area.y, "there are no lists", Style.Dim);
    for (const [i, { spec, status }] of lists.slice(top, top + area.height).entries()) {
      const isChosen = top + i === this.#cursor.index;
      const y = area.y + i;
      putRow(canvas, area, y, `[${spec.enabled ? "x" : " "}] ${spec.name}`, isChosen);
      if (area.width <= 2 * STATE_COLUMNS) continue;
      const { state, rules, refreshed_at } = status;
      const age = refreshed_at === null ? "" : ago(nowMs - Date.parse(refreshed_at));
      const style = isChosen ? Style.Selected : state === "failed" ? Style.Red : Style.Plain;
      const x = area.x + area.width - STATE_COLUMNS;
      const text = `${counted(rules).padStart(9)} rules  ${state.padEnd(7)} ${age}`;
      canvas.fill(x - 1, y, STATE_COLUMNS + 1, style);
      canvas.put(x, y, text, style, STATE_COLUMNS);
    }
  }

  onKey(key: Key, ui: Ui): boolean {
    if (this.#cursor.move(key, this.#node.lists.length, this.#height)) return true;
    const list = this.#node.lists.at(this.#cursor.index);
    if (list === undefined || key.name !== " ") return false;
    const { id, spec: { enabled, name } } = list;
    const set = (enabled: boolean) =>
      this.#node.change("lists", id, (spec) => ({ ...spec, enabled }));
    ui.act(`${name}: ${enabled ? "off" : "on"}`, async () => {
      await set(!enabled);
      return { undo: () => set(enabled), but: null };
    });
    return true;
  }
}
