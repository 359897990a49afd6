import type { ClientSpec, Envelope } from "../../api/mod.ts";
import { type Canvas, Style } from "../canvas.ts";
import { Input, Menu, putRow } from "../dialogs.ts";
import type { Key } from "../keys.ts";
import type { NodeData } from "../node_data.ts";
import { pauseEnd, pauseMenu } from "../pausing.ts";
import { ago, clockTime, counted, percent } from "../text.ts";
import { type Area, Cursor, type Page, type Ui } from "../ui.ts";

/** Columns of each part of a row; the name takes what is left. */
const [ADDRESS, GROUP, COUNTS] = [18, 16, 24];
const COUNTS_WIDTH_MIN = 72;

interface Row {
  readonly name: string;
  readonly address: string;
  readonly group: string;
  readonly queries: number;
  readonly blocked: number;
  readonly lastSeen: string | null;
  /** `null`: an address that asked and is not known. */
  readonly client: Envelope<ClientSpec> | null;
}

/** Who asks: those that are known, and addresses that are not. */
export class ClientsPage implements Page {
  readonly title = "Clients";
  readonly hints = "Enter group, log, pause, name  / search  u undo  ? help";
  readonly #cursor = new Cursor();
  readonly #node: NodeData;
  #search = "";
  #height = 1;

  constructor(node: NodeData) {
    this.#node = node;
  }

  draw(canvas: Canvas, area: Area): void {
    const rows = this.#rows();
    const search = this.#search === "" ? "" : `   search: ${this.#search}`;
    const known = rows.filter(({ client }) => client !== null).length;
    const title = `${known} known, ${rows.length - known} new in 24 hours${search}`;
    canvas.put(area.x, area.y, title, Style.Dim, area.width);
    const inside = { ...area, y: area.y + 1, height: area.height - 1 };
    this.#height = Math.max(1, inside.height);
    const top = this.#cursor.top(rows.length, this.#height);
    for (const [i, row] of rows.slice(top, top + inside.height).entries()) {
      this.#draw(canvas, inside, inside.y + i, row, top + i === this.#cursor.index);
    }
  }

  #draw(canvas: Canvas, area: Area, y: number, row: Row, isChosen: boolean): void {
    const { width } = area;
    const style = isChosen ? Style.Selected : Style.Plain;
    putRow(canvas, area, y, "", isChosen);
    const hasCounts = width >= COUNTS_WIDTH_MIN;
    const rest = ADDRESS + GROUP + (hasCounts ? COUNTS : 0);
    let x = area.x + 2;
    const column = (text: string, columns: number) => {
      if (columns > 1) canvas.put(x, y, text, style, columns - 1);
      x += Math.max(0, columns);
    };
    column(row.name, width - rest - 2);
    column(row.address, ADDRESS);
    column(row.group, GROUP);
    if (!hasCounts) return;
    const nowMs = this.#node.now.getTime();
    const seen = row.lastSeen === null ? "" : ago(nowMs - Date.parse(row.lastSeen));
    const share = percent(row.blocked, row.queries).padStart(5);
    column(`${counted(row.queries).padStart(9)} ${share}  ${seen}`, COUNTS);
  }

  #rows(): Row[] {
    const { clients, seen, groups, now } = this.#node;
    const groupName = new Map(groups.map(({ id, spec }) => [id, spec.name]));
    const seenOf = Map.groupBy(seen, ({ client }) => client);
    const known = clients.map((client): Row => {
      const { id, spec } = client;
      const times = seenOf.get(id) ?? [];
      const end = pauseEnd(spec.paused_until, now.getTime());
      return {
        name: end === null ? spec.name : `${spec.name} (paused to ${clockTime(end, now)})`,
        address: [...spec.addresses, ...spec.ids].at(0) ?? "",
        group: groupName.get(spec.group) ?? spec.group,
        queries: times.reduce((sum, { queries }) => sum + queries, 0),
        blocked: times.reduce((sum, { blocked }) => sum + blocked, 0),
        lastSeen: times.at(0)?.last_seen ?? null,
        client,
      };
    });
    const others = (seenOf.get(null) ?? []).map((one): Row => ({
      name: `New: ${one.hostname ?? one.address}`,
      address: one.address,
      group: "",
      queries: one.queries,
      blocked: one.blocked,
      lastSeen: one.last_seen,
      client: null,
    }));
    const search = this.#search.toLowerCase();
    return [...known, ...others].filter(({ name, address, group }) =>
      `${name} ${address} ${group}`.toLowerCase().includes(search)
    );
  }

  onKey(key: Key, ui: Ui): boolean {
    const rows = this.#rows();
    if (this.#cursor.move(key, rows.length, this.#height)) return true;
    const row = rows.at(this.#cursor.index);
    switch (key.name) {
      case "/":
        ui.open(
          new Input("Search clients", this.#search, (text) => {
            this.#search = text.trim();
            this.#cursor.index = 0;
            return null;
          }),
        );
        return true;
      case "escape":
        this.#search = "";
        return true;
      case "enter":
        if (row !== undefined) this.#menu(row, ui);
        return true;
    }
    return false;
  }

  #menu(row: Row, ui: Ui): void {
    const { client } = row;
    const log = { label: "show in the log", run: () => this.#showLog(row, ui) };
    if (client === null) {
      const name = { label: "name it ...", run: () => this.#nameIt(row, ui) };
      return ui.open(new Menu(row.address, [name, log]));
    }
    const { id, spec } = client;
    ui.open(
      new Menu(spec.name, [
        { label: "group ...", run: () => this.#groupMenu(client, ui) },
        log,
        { label: "pause filtering ...", run: () => pauseMenu("clients", id, spec, ui) },
      ]),
    );
  }

  #showLog({ client, address }: Row, ui: Ui): void {
    // A name with blanks would be several words.
    const name = client?.spec.name ?? "";
    ui.showLog(`client:${name === "" || /\s/.test(name) ? address : name}`);
  }

  #groupMenu({ id, spec: { name, group: before } }: Envelope<ClientSpec>, ui: Ui): void {
    const set = (group: string) => ui.node.change("clients", id, (spec) => ({ ...spec, group }));
    ui.open(
      new Menu(
        `Group of ${name}`,
        this.#node.groups.map((group) => ({
          label: `${group.spec.name}${group.id === before ? " (now)" : ""}`,
          run: () =>
            ui.act(`${name}: group ${group.spec.name}`, async () => {
              await set(group.id);
              return { undo: () => set(before), but: null };
            }),
        })),
      ),
    );
  }

  #nameIt({ address }: Row, ui: Ui): void {
    ui.open(
      new Input(`What is ${address} called?`, "", (text) => {
        const name = text.trim();
        if (name === "") return "type a name";
        ui.act(`${address} is ${name}`, async () => {
          const body = { name, addresses: [address] };
          const { id } = await ui.client.call("POST clients", { body });
          await ui.node.reload();
          return {
            undo: async () => void await ui.client.call("DELETE clients/{id}", { id }),
            but: null,
          };
        });
        return null;
      }),
    );
  }
}
