import type { QuerylogEntry } from "../../api/mod.ts";
import { type Canvas, Style } from "../canvas.ts";
import { decisionForm } from "../decision.ts";
import { Input, Reader } from "../dialogs.ts";
import type { Key } from "../keys.ts";
import { LogFeed, parseFilter } from "../log_feed.ts";
import type { NodeData } from "../node_data.ts";
import { counted } from "../text.ts";
import { messageOf, SvcError } from "../../errors.ts";
import { type Area, Cursor, type Page, type Ui } from "../ui.ts";

const OUTCOME_STYLES: Readonly<Record<string, Style>> = {
  blocked: Style.Red,
  cached: Style.Green,
  forwarded: Style.Blue,
  recursed: Style.Cyan,
  local: Style.Magenta,
  rewritten: Style.Yellow,
  safe_search: Style.Magenta,
  refused: Style.Yellow,
  failed: Style.Red,
};

/** From which width each column is there; the name takes what is left. */
const COLUMNS = { ms: 80, decided: 72, type: 60, device: 52 };
const [MS, TYPE, OUTCOME, TIME] = [6, 6, 10, 9];
/** Who asked and what decided; from some width on there is room for more of both. */
const WORDS = { narrow: { device: 13, decided: 11 }, wide: { device: 20, decided: 24 } };
const WIDE_MIN = 110;

/** The log as it comes. */
export class LogPage implements Page {
  readonly title = "Log";
  readonly hints = "/ filter  Enter details  b block  a allow  c client  n name  Esc all  ? help";
  readonly #feed: LogFeed;
  readonly #cursor = new Cursor();
  readonly #node: NodeData;
  #filter = "";
  #height = 1;

  constructor(feed: LogFeed, node: NodeData) {
    this.#feed = feed;
    this.#node = node;
  }

  /** @throws {SvcError} `invalid`, for no filter. */
  setFilter(text: string): void {
    const filter = parseFilter(text);
    this.#filter = text.trim();
    this.#cursor.index = 0;
    this.#feed.start(filter);
  }

  draw(canvas: Canvas, area: Area): void {
    const { entries, waiting, way, reason, skipped } = this.#feed;
    const words = [
      reason === "" ? way : reason,
      this.#filter === "" ? "" : `filter: ${this.#filter}`,
      waiting.length === 0 ? "" : `held, ${counted(waiting.length)} new: g shows them`,
      skipped === 0 ? "" : `${counted(skipped)} came too fast`,
    ];
    const said = words.filter((word) => word !== "").join("   ");
    canvas.put(area.x, area.y, said, way === "live" ? Style.Dim : Style.Yellow, area.width);
    const rows = { ...area, y: area.y + 1, height: area.height - 1 };
    this.#height = Math.max(1, rows.height);
    const top = this.#cursor.top(entries.length, this.#height);
    for (const [i, entry] of entries.slice(top, top + rows.height).entries()) {
      this.#row(canvas, rows, rows.y + i, entry, top + i === this.#cursor.index);
    }
    if (entries.length === 0) canvas.put(rows.x, rows.y, "nothing yet", Style.Dim, rows.width);
  }

  #row(canvas: Canvas, area: Area, y: number, entry: QuerylogEntry, isChosen: boolean): void {
    const { width } = area;
    const style = isChosen ? Style.Selected : Style.Plain;
    if (isChosen) canvas.fill(area.x, y, width, style);
    canvas.put(area.x, y, isChosen ? ">" : " ", style);
    let x = area.x + 2;
    const column = (text: string, columns: number, look: Style = style) => {
      canvas.put(x, y, text, look, columns - 1);
      x += columns;
    };
    column(new Date(entry.time).toTimeString().slice(0, 8), TIME);
    column(
      entry.outcome.replace("_search", ""),
      OUTCOME,
      isChosen ? style : OUTCOME_STYLES[entry.outcome] ?? style,
    );
    const [hasMs, hasDecided, hasType, hasDevice] = Object.values(COLUMNS).map((min) =>
      width >= min
    );
    const { device, decided } = width >= WIDE_MIN ? WORDS.wide : WORDS.narrow;
    const rest = (hasMs ? MS : 0) + (hasDecided ? decided : 0) + (hasType ? TYPE : 0) +
      (hasDevice ? device : 0);
    column(entry.name, area.x + width - rest - x);
    if (hasType) column(entry.type, TYPE);
    if (hasDevice) column(entry.client_name ?? entry.client ?? entry.client_id ?? "", device);
    if (hasDecided) column(this.#decider(entry), decided);
    if (hasMs) column((entry.duration_us / 1_000).toFixed(1).padStart(MS - 1), MS);
  }

  #decider({ list, upstream, cached }: QuerylogEntry): string {
    if (list !== null) return this.#node.nameOf(list);
    return cached ? "cache" : upstream ?? "";
  }

  onKey(key: Key, ui: Ui): boolean {
    const { entries } = this.#feed;
    if (this.#cursor.move(key, entries.length, this.#height)) {
      // Whoever reads further down holds the log; at the top it runs.
      this.#feed.hold(this.#cursor.index > 0);
      return true;
    }
    const entry = entries.at(this.#cursor.index);
    switch (key.name) {
      case "/":
        ui.open(this.#filterInput());
        return true;
      case "escape":
        this.setFilter("");
        return true;
      case "r":
        this.setFilter(this.#filter);
        return true;
    }
    if (entry === undefined) return false;
    switch (key.name) {
      case "enter":
        ui.open(this.#details(entry, ui));
        return true;
      case "b":
        decisionForm("block", entry, ui);
        return true;
      case "a":
        decisionForm("allow", entry, ui);
        return true;
      case "c":
        this.#onlyClient(entry, ui);
        return true;
      case "n":
        this.setFilter(`name:${entry.name}`);
        return true;
    }
    return false;
  }

  #onlyClient({ client, client_id }: QuerylogEntry, ui: Ui): void {
    const who = client ?? client_id;
    if (who === null) ui.say("the log does not tell who asked");
    else this.setFilter(`client:${who}`);
  }

  #filterInput(): Input {
    const hint = "words of a name, outcome:blocked client:tv type:AAAA";
    return new Input("Show only", this.#filter, (text) => {
      try {
        this.setFilter(text);
        return null;
      } catch (error) {
        if (error instanceof SvcError) return error.message;
        throw error;
      }
    }, hint);
  }

  /** The entry, and what the same query would come to now. */
  #details(entry: QuerylogEntry, ui: Ui): Reader {
    const node = this.#node;
    const lines = [
      `time      ${new Date(entry.time).toString().slice(0, 24)}`,
      `name      ${entry.name}`,
      `type      ${entry.type}`,
      `outcome   ${entry.outcome}, ${entry.rcode}`,
      `client    ${[entry.client_name, entry.client, entry.client_id].filter(Boolean).join(" ")}`,
      `group     ${node.nameOf(entry.group)}`,
      `decided   ${entry.rule === null ? "-" : `${entry.rule} of ${node.nameOf(entry.list)}`}`,
      `answers   ${entry.answers.join(", ") || "-"}`,
      `upstream  ${entry.upstream ?? (entry.cached ? "cache" : "-")}`,
      `dnssec    ${[entry.dnssec, entry.dnssec_reason].filter(Boolean).join(": ") || "-"}`,
      `took      ${(entry.duration_us / 1_000).toFixed(3)} ms over ${entry.protocol}`,
      `node      ${entry.node}`,
      "",
    ];
    const reader = new Reader(entry.name, [...lines, "now: asking ..."]);
    const query = { name: entry.name, type: entry.type, client: entry.client ?? undefined };
    ui.client.call("GET explain", { query }).then((now) => {
      const by = now.rule === null ? "no rule decides" : `${now.rule} of ${node.nameOf(now.list)}`;
      return [
        `now: ${now.outcome}, ${by}`,
        ...now.matches.filter(({ lost }) => lost !== null)
          .map(({ rule, list_name, lost }) => `not: ${rule} of ${list_name}: ${lost}`),
      ];
    }, (error) => [`now: ${messageOf(error)}`]).then((now) => {
      reader.lines = [...lines, ...now];
      ui.say("");
    });
    return reader;
  }
}
