import { send, token } from "../data/api.ts";
import { apiPath, type Params } from "../data/paths.ts";
import { attempt } from "./errors.tsx";
import { saveFile } from "./save_file.ts";

/**
 * A link to a file that the API makes. The browser takes it by itself, however large it is; who came in
 * by a token, which no link carries, is handed it by the page.
 */
export function FileLink(
  { path, params, label, onGo }: { path: string; params: Params; label: string; onGo: () => void },
) {
  const fetchIt = async () => {
    const response = await send("GET", path, { params, timeoutMs: null });
    const said = response.headers.get("content-disposition") ?? "";
    saveFile(await response.blob(), /filename="([^"]+)"/.exec(said)?.[1] ?? "svc");
  };
  return (
    <a
      href={apiPath(path, params)}
      download
      onClick={(event) => {
        onGo();
        if (token.value === null) return;
        event.preventDefault();
        void attempt(fetchIt);
      }}
    >
      {label}
    </a>
  );
}
