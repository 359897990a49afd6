/**
 * What most pages need: it comes in one file with the shell, for a file more costs more than the few
 * bytes that one page has no use for.
 */
import "./data/poll.ts";
import "./data/seen.ts";
import "./data/stats.ts";
import "./parts/chart.tsx";
import "./parts/file_link.tsx";
import "./parts/names.ts";
import "./parts/outcome.tsx";
import "./parts/table.tsx";
import "./parts/top.tsx";
import "./parts/upstream_health.tsx";
import "./text/plural.ts";
