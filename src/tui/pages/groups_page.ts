import type { Envelope, GroupSpec } from "../../api/mod.ts";
import { type Canvas, Style } from "../canvas.ts";
import { endOf } from "../decide.ts";
import { pauseService } from "../decision.ts";
import { Input, putRow } from "../dialogs.ts";
import type { Key } from "../keys.ts";
import type { NodeData } from "../node_data.ts";
import { pauseEnd, pauseMenu } from "../pausing.ts";
import { clockTime } from "../text.ts";
import { type Area, Cursor, type Page, type Ui } from "../ui.ts";

/** One thing of a group that can be switched. */
interface Switch {
  readonly text: string;
  /** What it is called where it was switched. */
  readonly name: string;
  readonly isOn: boolean;
  readonly set: (spec: GroupSpec, isOn: boolean) => GroupSpec;
  /** The field that it stands in, as it is. */
  readonly fields: Partial<GroupSpec>;
  /** The service that it blocks. */
  readonly service: string | null;
}

/** Groups, and what each of them gets. */
export class GroupsPage implements Page {
  readonly title = "Groups";
  readonly #node: NodeData;
  readonly #groups = new Cursor();
  #switches = new Cursor();
  /** The group that is looked into. */
  #open: string | null = null;
  #search = "";
  #height = 1;

  constructor(node: NodeData) {
    this.#node = node;
  }

  get hints(): string {
    return this.#open === null
      ? "Enter open  h pause group  u undo  ? help"
      : "Space switch  a service for an hour  h pause  / search  Esc back";
  }

  draw(canvas: Canvas, area: Area): void {
    const group = this.#group();
    if (group !== undefined) return this.#drawSwitches(canvas, area, group);
    const { groups, clients, now } = this.#node;
    this.#height = Math.max(1, area.height);
    const top = this.#groups.top(groups.length, this.#height);
    for (const [i, { id, spec }] of groups.slice(top, top + area.height).entries()) {
      const members = clients.filter((one) => one.spec.group === id).length;
      const words = [
        spec.name,
        spec.filtering ? pausedText(spec.paused_until, now) || "filtering" : "NOT FILTERING",
        spec.safe_search ? "safe search" : "",
        `${members} clients, ${spec.lists.length} lists, ${spec.blocked_services.length} services`,
      ];
      const text = words.filter((word) => word !== "").join("   ");
      putRow(canvas, area, area.y + i, text, top + i === this.#groups.index);
    }
  }

  #group(): Envelope<GroupSpec> | undefined {
    return this.#node.groups.find(({ id }) => id === this.#open);
  }

  #drawSwitches(canvas: Canvas, area: Area, group: Envelope<GroupSpec>): void {
    const paused = pausedText(group.spec.paused_until, this.#node.now);
    const search = this.#search === "" ? "" : `   search: ${this.#search}`;
    const title = `${group.spec.name}${paused === "" ? "" : `   ${paused}`}${search}`;
    canvas.put(area.x, area.y, title, Style.Bold, area.width);
    const rows = { ...area, y: area.y + 1, height: area.height - 1 };
    const switches = this.#switchesOf(group.spec);
    this.#height = Math.max(1, rows.height);
    const top = this.#switches.top(switches.length, this.#height);
    for (const [i, { text, isOn }] of switches.slice(top, top + rows.height).entries()) {
      const isChosen = top + i === this.#switches.index;
      putRow(canvas, rows, rows.y + i, `[${isOn ? "x" : " "}] ${text}`, isChosen);
    }
  }

  /** All that can be switched, or what was searched for of it. */
  #switchesOf(spec: GroupSpec): Switch[] {
    const { lists, services, now } = this.#node;
    const kinds: Switch[][] = [
      [
        {
          text: "Filtering",
          name: "filtering",
          isOn: spec.filtering,
          set: (spec, filtering) => ({ ...spec, filtering }),
          fields: { filtering: spec.filtering },
          service: null,
        },
        {
          text: "Safe search",
          name: "safe search",
          isOn: spec.safe_search,
          set: (spec, safe_search) => ({ ...spec, safe_search }),
          fields: { safe_search: spec.safe_search },
          service: null,
        },
      ],
      lists.map(({ id, spec: { name, enabled } }) => ({
        text: `List: ${name}${enabled ? "" : " (off)"}`,
        name,
        isOn: spec.lists.some(({ list }) => list === id),
        set: (spec, isOn) => ({
          ...spec,
          lists: [...spec.lists.filter(({ list }) => list !== id), ...isOn ? [{ list: id }] : []],
        }),
        fields: { lists: spec.lists },
        service: null,
      })),
      services.map(({ id, name }) => {
        const blocked = spec.blocked_services.find(({ service }) => service === id);
        const paused = pausedText(blocked?.paused_until ?? null, now);
        return {
          text: `Block: ${name}${paused === "" ? "" : `   ${paused}`}`,
          name: `block ${name}`,
          isOn: blocked !== undefined,
          set: (spec, isOn) => ({
            ...spec,
            blocked_services: [
              ...spec.blocked_services.filter(({ service }) => service !== id),
              ...isOn ? [{ service: id }] : [],
            ],
          }),
          fields: { blocked_services: spec.blocked_services },
          service: id,
        };
      }),
    ];
    const search = this.#search.toLowerCase();
    return kinds.flat().filter(({ text }) => text.toLowerCase().includes(search));
  }

  onKey(key: Key, ui: Ui): boolean {
    const group = this.#group();
    if (group !== undefined) return this.#onSwitchKey(key, group, ui);
    const { groups } = this.#node;
    if (this.#groups.move(key, groups.length, this.#height)) return true;
    const chosen = groups.at(this.#groups.index);
    if (chosen === undefined) return false;
    if (key.name === "enter") {
      this.#open = chosen.id;
      this.#switches = new Cursor();
      this.#search = "";
      return true;
    }
    return pauseKey(key, chosen, ui);
  }

  #onSwitchKey(key: Key, group: Envelope<GroupSpec>, ui: Ui): boolean {
    const switches = this.#switchesOf(group.spec);
    if (this.#switches.move(key, switches.length, this.#height)) return true;
    const chosen = switches.at(this.#switches.index);
    switch (key.name) {
      case "escape":
        if (this.#search === "") this.#open = null;
        else this.#search = "";
        return true;
      case "/":
        ui.open(
          new Input("Search lists and services", this.#search, (text) => {
            this.#search = text;
            this.#switches = new Cursor();
            return null;
          }),
        );
        return true;
      case " ":
        if (chosen !== undefined) this.#turn(group, chosen, ui);
        return true;
      case "a":
        if (chosen?.service !== null && chosen?.isOn === true) {
          allowAnHour(group, chosen.service, ui);
        } else ui.say("choose a blocked service first: it is allowed for an hour");
        return true;
    }
    return pauseKey(key, group, ui);
  }

  #turn({ id, spec: before }: Envelope<GroupSpec>, { name, isOn, set, fields }: Switch, ui: Ui) {
    ui.act(`${before.name}: ${name} ${isOn ? "off" : "on"}`, async () => {
      await this.#node.change("groups", id, (spec) => set(spec, !isOn));
      // What was there goes back as it was, its schedule included.
      const undo = () =>
        this.#node.change("groups", id, (spec) => isOn ? { ...spec, ...fields } : set(spec, false));
      return { undo, but: null };
    });
  }
}

function allowAnHour(group: Envelope<GroupSpec>, service: string, ui: Ui): void {
  const until = endOf("1 hour", ui.node.now);
  ui.act(`${group.spec.name}: ${service} allowed for 1 hour`, async () => {
    await pauseService(ui, group.id, service, until);
    return { undo: () => pauseService(ui, group.id, service, null), but: null };
  });
}

function pauseKey({ name }: Key, { id, spec }: Envelope<GroupSpec>, ui: Ui): boolean {
  if (name !== "h") return false;
  pauseMenu("groups", id, spec, ui);
  return true;
}

function pausedText(until: string | null, now: Date): string {
  const end = pauseEnd(until, now.getTime());
  return end === null ? "" : `paused until ${clockTime(end, now)}`;
}
