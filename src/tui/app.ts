import type { ApiClient } from "../client/mod.ts";
import { messageOf, rethrowInvariant, SvcError } from "../errors.ts";
import { type Abilities, Canvas, Style } from "./canvas.ts";
import { Reader } from "./dialogs.ts";
import { isCharacter, type Key } from "./keys.ts";
import { LogFeed } from "./log_feed.ts";
import { NodeData } from "./node_data.ts";
import { ClientsPage } from "./pages/clients_page.ts";
import { GroupsPage } from "./pages/groups_page.ts";
import { ListsPage } from "./pages/lists_page.ts";
import { LogPage } from "./pages/log_page.ts";
import { StatusPage } from "./pages/status_page.ts";
import { pauseNodeMenu, resume } from "./pausing.ts";
import { filteringText } from "./status_text.ts";
import { type End, Terminal } from "./terminal.ts";
import { ago } from "./text.ts";
import { type Area, type Dialog, type Done, type Page, type Ui } from "./ui.ts";

/** Smaller screens have no room for anything. */
const SIZE_MIN = { width: 40, height: 8 };
/** From this height there is a line of hints. */
const HINTS_HEIGHT_MIN = 12;
/** How long what was done is told. */
const NOTE_MS = 10_000;
/** Changes on their way; each waits for the one before. */
const WORK_MAX = 8;
/** Changes that can be taken back, the last one first. */
const UNDO_MAX = 20;
/** Counts down, and ages what is shown. */
const TICK_MS = 1_000;

const HELP = [
  "1-5, Tab      the pages",
  "arrows, j k   one up or down; PgUp, PgDn a page; g G the ends",
  "Enter, Esc    in and out",
  "/             filter or search",
  "Space         switch on or off",
  "b, a          in the log: block, allow (asks for whom and how long)",
  "c, n          in the log: only this client, only this name",
  "h             in a group: pause it",
  "p, P          pause this node, resume",
  "u             take the last change back",
  "r             read everything again",
  "Ctrl+L        draw anew; Ctrl+Z stop, fg comes back",
  "q, Ctrl+C     leave",
  "",
  "Filters of the log: words of a name, and field:value of outcome, client, type,",
  "protocol, group, list, upstream, since, until: outcome:blocked,refused client:tv",
];

/** The screen: pages, what stands over them, and what is said in the last line. */
export class App implements Ui {
  readonly node: NodeData;
  readonly #terminal: Terminal;
  readonly #feed: LogFeed;
  readonly #log: LogPage;
  readonly #pages: readonly Page[];
  readonly #stopped = new AbortController();
  readonly #undos: { readonly said: string; readonly run: () => Promise<void> }[] = [];
  #dialogs: readonly Dialog[] = [];
  /** Changes one after another: what is taken back is the last one, also when it is under way. */
  #work: Promise<void> = Promise.resolve();
  #working = 0;
  #page = 0;
  #note = "";
  #noteEndsAtMs = 0;

  constructor(readonly client: ApiClient, readonly abilities: Abilities) {
    const changed = () => this.#terminal.requestDraw();
    this.node = new NodeData(client, changed);
    this.#feed = new LogFeed(client, changed);
    this.#log = new LogPage(this.#feed, this.node);
    this.#pages = [
      new StatusPage(this.node),
      this.#log,
      new ClientsPage(this.node),
      new GroupsPage(this.node),
      new ListsPage(this.node),
    ];
    this.#terminal = new Terminal({
      abilities,
      draw: (width, height) => this.draw(width, height),
      onKey: (key) => this.onKey(key),
    });
  }

  /**
   * Runs until it is left.
   *
   * @throws {SvcError} What the service says at first; later it is tried again.
   */
  async run(): Promise<End> {
    await this.node.load();
    this.#log.setFilter("");
    const tick = setInterval(() => this.#terminal.requestDraw(), TICK_MS);
    this.node.follow(this.#stopped.signal).catch((error) => this.#terminal.fail(error));
    try {
      return await this.#terminal.run();
    } finally {
      clearInterval(tick);
      this.#stopped.abort();
      this.#feed.stop();
    }
  }

  open(dialog: Dialog): void {
    this.#dialogs = [...this.#dialogs, dialog];
  }

  close(): void {
    this.#dialogs = this.#dialogs.slice(0, -1);
  }

  say(text: string): void {
    this.#note = text;
    this.#noteEndsAtMs = Date.now() + NOTE_MS;
    this.#terminal.requestDraw();
  }

  showLog(filter: string): void {
    this.#log.setFilter(filter);
    this.#page = this.#pages.indexOf(this.#log);
  }

  act(said: string, work: () => Promise<Done>): void {
    this.#queue(`${said} ...`, async () => {
      const { undo, but } = await work();
      if (undo !== null) {
        this.#undos.push({ said, run: undo });
        this.#undos.splice(0, this.#undos.length - UNDO_MAX);
      }
      await this.node.reload();
      const back = undo === null ? "" : " (u: undo)";
      this.say(but === null ? `${said}${back}` : `${said}, but ${but}${back}`);
    });
  }

  /** Does it in its turn and says what fails; what our own reasoning rules out ends the program. */
  #queue(said: string, work: () => Promise<void>): void {
    if (this.#working >= WORK_MAX) return this.say("failed: still at work, try again in a moment");
    this.#working++;
    this.say(said);
    this.#work = this.#work.then(work).catch((error) => {
      rethrowInvariant(error);
      if (!(error instanceof SvcError)) throw error;
      this.say(`failed: ${messageOf(error)}`);
    }).catch((error) => this.#terminal.fail(error)).finally(() => this.#working--);
  }

  #undo(): void {
    this.#queue("taking back ...", async () => {
      const last = this.#undos.pop();
      if (last === undefined) return this.say("there is nothing to take back");
      try {
        await last.run();
      } catch (error) {
        // Nobody was there to do it: it can be tried again.
        if (error instanceof SvcError && error.code === "unavailable") this.#undos.push(last);
        throw error;
      }
      await this.node.reload();
      this.say(`taken back: ${last.said}`);
    });
  }

  #refresh(): void {
    this.#queue("reading ...", async () => {
      await this.node.load();
      this.say("read again");
    });
  }

  onKey(key: Key): void {
    const { name } = key;
    if (name === "ctrl+c") return this.#terminal.end("key");
    if (name === "ctrl+z") return this.#terminal.suspend();
    if (name === "ctrl+l") return this.#terminal.redraw();
    const dialog = this.#dialogs.at(-1);
    if (dialog !== undefined) {
      // What was pasted into no input is no command.
      if (key.isPasted && !(isCharacter(key) && "hint" in dialog)) return;
      if (dialog.onKey(key, this) === "closes") {
        this.#dialogs = this.#dialogs.filter((one) => one !== dialog);
      }
      return;
    }
    if (key.isPasted) return;
    const page = this.#pages[this.#page];
    const count = this.#pages.length;
    if (name >= "1" && name <= String(count)) this.#page = Number(name) - 1;
    else if (name === "tab") this.#page = (this.#page + 1) % count;
    else if (name === "shift+tab") this.#page = (this.#page + count - 1) % count;
    else if (name === "q") this.#terminal.end("key");
    else if (name === "?") this.open(new Reader("Keys", HELP));
    else if (name === "u") this.#undo();
    else if (name === "p") pauseNodeMenu(this);
    else if (name === "P") resume(this);
    else if (!page.onKey(key, this) && name === "r") this.#refresh();
  }

  draw(width: number, height: number): Canvas {
    const canvas = new Canvas(width, height, this.abilities);
    if (width < SIZE_MIN.width || height < SIZE_MIN.height) {
      canvas.put(0, 0, `${width} x ${height} is too small`);
      canvas.put(0, 1, `make it ${SIZE_MIN.width} x ${SIZE_MIN.height}`);
      return canvas;
    }
    const page = this.#pages[this.#page];
    this.#drawHead(canvas);
    const hints = height >= HINTS_HEIGHT_MIN ? 1 : 0;
    const area: Area = { x: 0, y: 1, width, height: height - 2 - hints };
    page.draw(canvas, area);
    for (const dialog of this.#dialogs) dialog.draw(canvas, area);
    if (hints > 0) canvas.put(0, height - 2, page.hints, Style.Dim);
    this.#drawFoot(canvas, height - 1);
    return canvas;
  }

  #drawHead(canvas: Canvas): void {
    const { status } = this.node;
    const filtering = status === null ? "" : filteringText(status, this.node.now.getTime());
    let x = 0;
    for (const [i, { title }] of this.#pages.entries()) {
      const isShown = i === this.#page;
      const text = isShown || canvas.width >= 60 ? `${i + 1} ${title}` : `${i + 1}`;
      const marked = isShown ? `[${text}]` : ` ${text} `;
      x = canvas.put(x, 0, marked, isShown ? Style.Selected : Style.Plain);
    }
    const style = filtering === "filtering" ? Style.Green : Style.Yellow;
    canvas.put(Math.max(x + 1, canvas.width - filtering.length), 0, filtering, style);
  }

  /** Node, role and connection; what was just done or failed takes their place for a while. */
  #drawFoot(canvas: Canvas, y: number): void {
    const { connection, status, me } = this.node;
    if (this.#note !== "" && Date.now() < this.#noteEndsAtMs) {
      const isBad = /^failed:|, but /.test(this.#note);
      canvas.put(0, y, this.#note, isBad ? Style.Red : Style.Bold);
      return;
    }
    const who = `${status?.node ?? "?"}  ${me?.role ?? "?"}`;
    const since = ago(Date.now() - connection.sinceMs);
    // Where it is was shown until then; there is little room.
    const reason = connection.reason.replace(`${this.client.origin}: `, "");
    const what = connection.isRefused ? "NOT LET IN" : "NO ANSWER";
    const text = connection.isUp
      ? `${who}  connected to ${this.client.origin}`
      : `${who}  ${what} (${
        since === "now" ? "just now" : `for ${since}`
      }), trying again: ${reason}`;
    canvas.put(0, y, text, connection.isUp ? Style.Dim : Style.Red);
  }
}
