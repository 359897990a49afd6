/** Services to block, of a catalogue that lies beside the service. */

/** In the public catalogue's form. */
const CATALOGUE = {
  blocked_services: [
    { id: "youtube", name: "YouTube", group: "streaming", rules: ["||youtube.example^"] },
    { id: "tiktok", name: "TikTok", group: "social_network", rules: ["||tiktok.example^"] },
    { id: "roblox", name: "Roblox", group: "gaming", rules: ["||roblox.example^"] },
  ],
};
const FILE = "services.json";

/** Puts the catalogue into the service's folder; what its `[filter]` has then: it, and nothing else. */
export async function filterWithServices(directory: string) {
  await Deno.writeTextFile(`${directory}/${FILE}`, JSON.stringify(CATALOGUE));
  return { default_lists: false, services: true, services_file: FILE, directory: false } as const;
}
