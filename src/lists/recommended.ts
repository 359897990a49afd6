/** A list that we recommend: its name and address, never its content. */
export interface RecommendedList {
  /** Stable: presets and users refer to it. */
  readonly id: string;
  readonly name: string;
  readonly description: string;
  readonly category: RecommendedCategory;
  readonly url: string;
  readonly homepage: string;
  /** As its source states it; `not stated` where it does not. */
  readonly licence: string;
  /** The licence forbids commercial use; such a list is in no preset. */
  readonly nonCommercial: boolean;
  readonly presets: readonly PresetId[];
}

export type RecommendedCategory =
  | "ads"
  | "trackers"
  | "telemetry"
  | "malware"
  | "phishing"
  | "scam"
  | "crypto"
  | "bypass"
  | "adult"
  | "gambling"
  | "social"
  | "annoyances";

export type PresetId = "balanced" | "strict" | "family" | "careful";

/** Sets of recommended lists to begin with. */
export const PRESETS: readonly {
  readonly id: PresetId;
  readonly name: string;
  readonly description: string;
}[] = [
  {
    id: "balanced",
    name: "Balanced",
    description: "Ads, trackers and known malware, with few pages that break.",
  },
  {
    id: "strict",
    name: "Strict",
    description: "As much as lists can block; expect to allow a name now and then.",
  },
  {
    id: "family",
    name: "Family",
    description: "Balanced, and adult sites, gambling and ways around the filter.",
  },
  {
    id: "careful",
    name: "Don't break anything",
    description: "A small list of ads and one of malware, chosen for having no false alarms.",
  },
];

const GITHUB = "https://raw.githubusercontent.com";
const HAGEZI = `${GITHUB}/hagezi/dns-blocklists/main/adblock`;
const HAGEZI_HOME = "https://github.com/hagezi/dns-blocklists";
const REGISTRY = "https://adguardteam.github.io/HostlistsRegistry/assets";
const REGISTRY_HOME = "https://github.com/AdguardTeam/HostlistsRegistry";
const BLOCKLIST_PROJECT = `${GITHUB}/blocklistproject/Lists/main`;
const BLOCKLIST_PROJECT_HOME = "https://github.com/blocklistproject/Lists";
const STEVENBLACK = `${GITHUB}/StevenBlack/hosts/master`;
const STEVENBLACK_HOME = "https://github.com/StevenBlack/hosts";
const SHADOW = `${GITHUB}/ShadowWhisperer/BlockLists/master/Lists`;
const SHADOW_HOME = "https://github.com/ShadowWhisperer/BlockLists";
const NOT_STATED = "not stated";
const NON_COMMERCIAL = /non-commercial|\bNC\b/;

type Row = readonly [
  id: string,
  name: string,
  category: RecommendedCategory,
  url: string,
  homepage: string,
  licence: string,
  presets: string,
  description: string,
];

// Presets by their first letters: b, s, f, c.
const ROWS: readonly Row[] = [
  [
    "adguard_dns",
    "AdGuard DNS filter",
    "ads",
    "https://adguardteam.github.io/AdGuardSDNSFilter/Filters/filter.txt",
    "https://github.com/AdguardTeam/AdGuardSDNSFilter",
    "GPL-3.0",
    "bsf",
    "Ads and trackers from several filters, made for DNS.",
  ],
  [
    "adguard_popup",
    "AdGuard DNS Popup Hosts",
    "ads",
    `${REGISTRY}/filter_59.txt`,
    REGISTRY_HOME,
    "GPL-3.0",
    "s",
    "Hosts that open pop-up windows.",
  ],
  [
    "adaway",
    "AdAway default",
    "ads",
    "https://adaway.org/hosts.txt",
    "https://github.com/AdAway/adaway.github.io",
    "CC BY 3.0",
    "c",
    "Ads in mobile apps.",
  ],
  [
    "stevenblack",
    "StevenBlack unified",
    "ads",
    `${STEVENBLACK}/hosts`,
    STEVENBLACK_HOME,
    "MIT",
    "",
    "Ads and malware, merged from well-known hosts files.",
  ],
  [
    "oisd_small",
    "OISD small",
    "ads",
    "https://small.oisd.nl/",
    "https://oisd.nl/",
    "all rights reserved",
    "",
    "The most common ads only.",
  ],
  [
    "oisd_big",
    "OISD big",
    "ads",
    "https://big.oisd.nl/",
    "https://oisd.nl/",
    "all rights reserved",
    "",
    "Ads, trackers and malware, meant to break nothing.",
  ],
  [
    "hagezi_light",
    "HaGeZi Light",
    "ads",
    `${HAGEZI}/light.txt`,
    HAGEZI_HOME,
    NOT_STATED,
    "",
    "Ads and trackers, small.",
  ],
  [
    "hagezi_normal",
    "HaGeZi Normal",
    "ads",
    `${HAGEZI}/multi.txt`,
    HAGEZI_HOME,
    NOT_STATED,
    "bf",
    "Ads, trackers, telemetry and scams.",
  ],
  [
    "hagezi_pro",
    "HaGeZi Pro",
    "ads",
    `${HAGEZI}/pro.txt`,
    HAGEZI_HOME,
    NOT_STATED,
    "",
    "As Normal, and more of it.",
  ],
  [
    "hagezi_pro_plus",
    "HaGeZi Pro++",
    "ads",
    `${HAGEZI}/pro.plus.txt`,
    HAGEZI_HOME,
    NOT_STATED,
    "s",
    "Aggressive: may limit what apps can do.",
  ],
  [
    "peter_lowe",
    "Peter Lowe's list",
    "ads",
    "https://pgl.yoyo.org/adservers/serverlist.php?hostformat=adblockplus&showintro=1&mimetype=plaintext",
    "https://pgl.yoyo.org/adservers/",
    "its own, non-commercial",
    "",
    "Ad servers, small and old.",
  ],
  [
    "dan_pollock",
    "Dan Pollock's list",
    "ads",
    "https://someonewhocares.org/hosts/zero/hosts",
    "https://someonewhocares.org/hosts/",
    "its own, non-commercial",
    "",
    "Ads and shock sites.",
  ],
  [
    "onehosts_lite",
    "1Hosts Lite",
    "ads",
    `${GITHUB}/badmojr/1Hosts/master/Lite/adblock.txt`,
    "https://github.com/badmojr/1Hosts",
    NOT_STATED,
    "",
    "Ads and trackers, careful.",
  ],
  [
    "awavenue",
    "AWAvenue Ads Rule",
    "ads",
    `${GITHUB}/TG-Twilight/AWAvenue-Ads-Rule/main/AWAvenue-Ads-Rule.txt`,
    "https://github.com/TG-Twilight/AWAvenue-Ads-Rule",
    NOT_STATED,
    "",
    "Advertising SDKs in apps.",
  ],
  [
    "easyprivacy",
    "EasyPrivacy",
    "trackers",
    "https://v.firebog.net/hosts/Easyprivacy.txt",
    "https://easylist.to/",
    "MIT",
    "s",
    "Trackers of the EasyPrivacy filter, as names.",
  ],
  [
    "disconnect_tracking",
    "Disconnect simple tracking",
    "trackers",
    "https://s3.amazonaws.com/lists.disconnect.me/simple_tracking.txt",
    "https://disconnect.me/",
    "GPL-3.0",
    "",
    "Well-known trackers, very small.",
  ],
  [
    "shadow_tracking",
    "ShadowWhisperer Tracking",
    "trackers",
    `${SHADOW}/Tracking`,
    SHADOW_HOME,
    "permissive",
    "",
    "Trackers found by hand.",
  ],
  [
    "adguard_cname",
    "AdGuard CNAME trackers",
    "trackers",
    `${GITHUB}/AdguardTeam/cname-trackers/master/data/combined_disguised_trackers.txt`,
    "https://github.com/AdguardTeam/cname-trackers",
    "MIT",
    "bsf",
    "Trackers that hide behind a name of the page's own.",
  ],
  [
    "windows_spy",
    "WindowsSpyBlocker",
    "telemetry",
    `${GITHUB}/crazy-max/WindowsSpyBlocker/master/data/hosts/spy.txt`,
    "https://github.com/crazy-max/WindowsSpyBlocker",
    "MIT",
    "s",
    "Telemetry of Windows.",
  ],
  [
    "smart_tv",
    "Perflyst Smart-TV",
    "telemetry",
    `${GITHUB}/Perflyst/PiHoleBlocklist/master/SmartTV-AGH.txt`,
    "https://github.com/Perflyst/PiHoleBlocklist",
    "MIT",
    "s",
    "Telemetry and ads of television sets.",
  ],
  [
    "game_console",
    "Game console ads",
    "ads",
    `${GITHUB}/DandelionSprout/adfilt/master/GameConsoleAdblockList.txt`,
    "https://github.com/DandelionSprout/adfilt",
    "Dandelicence",
    "",
    "Ads and telemetry of consoles.",
  ],
  [
    "push_notifications",
    "Anti push notifications",
    "annoyances",
    `${REGISTRY}/filter_39.txt`,
    REGISTRY_HOME,
    "Dandelicence",
    "s",
    "Services that ask to send notifications.",
  ],
  [
    "hagezi_tif",
    "HaGeZi Threat Intelligence Feeds",
    "malware",
    `${HAGEZI}/tif.txt`,
    HAGEZI_HOME,
    NOT_STATED,
    "s",
    "Malware, phishing and scams of many feeds; large.",
  ],
  [
    "urlhaus",
    "URLhaus",
    "malware",
    "https://malware-filter.gitlab.io/malware-filter/urlhaus-filter-agh-online.txt",
    "https://gitlab.com/malware-filter/urlhaus-filter",
    "CC0",
    "bsfc",
    "Hosts that spread malware right now.",
  ],
  [
    "dandelion_malware",
    "Anti-Malware list",
    "malware",
    `${GITHUB}/DandelionSprout/adfilt/master/Alternate%20versions%20Anti-Malware%20List/AntiMalwareAdGuardHome.txt`,
    "https://github.com/DandelionSprout/adfilt",
    "Dandelicence",
    "sf",
    "Malware, scams and dubious top-level domains.",
  ],
  [
    "shadow_malware",
    "ShadowWhisperer Malware",
    "malware",
    `${SHADOW}/Malware`,
    SHADOW_HOME,
    "permissive",
    "",
    "Malware found by hand.",
  ],
  [
    "stalkerware",
    "Stalkerware indicators",
    "malware",
    `${GITHUB}/AssoEchap/stalkerware-indicators/master/generated/hosts`,
    "https://github.com/AssoEchap/stalkerware-indicators",
    NOT_STATED,
    "sf",
    "Apps that spy on their owner.",
  ],
  [
    "nocoin",
    "NoCoin",
    "crypto",
    `${GITHUB}/hoshsadiq/adblock-nocoin-list/master/hosts.txt`,
    "https://github.com/hoshsadiq/adblock-nocoin-list",
    "MIT",
    "sf",
    "Pages that mine cryptocurrency.",
  ],
  [
    "phishing_army",
    "Phishing Army extended",
    "phishing",
    "https://phishing.army/download/phishing_army_blocklist_extended.txt",
    "https://phishing.army/",
    "CC BY-NC 4.0",
    "",
    "Phishing, from several feeds.",
  ],
  [
    "phishing_urls",
    "Phishing URL blocklist",
    "phishing",
    "https://malware-filter.gitlab.io/malware-filter/phishing-filter-agh.txt",
    "https://gitlab.com/malware-filter/phishing-filter",
    "CC BY-SA 4.0",
    "bsf",
    "Phishing sites right now.",
  ],
  [
    "scam",
    "Scam blocklist",
    "scam",
    `${GITHUB}/durablenapkin/scamblocklist/master/adguard.txt`,
    "https://github.com/durablenapkin/scamblocklist",
    "MIT",
    "sf",
    "Shops and services that cheat.",
  ],
  [
    "hagezi_bypass",
    "HaGeZi DoH, VPN and proxy bypass",
    "bypass",
    `${HAGEZI}/doh-vpn-proxy-bypass.txt`,
    HAGEZI_HOME,
    NOT_STATED,
    "f",
    "Ways around the filter.",
  ],
  [
    "oisd_nsfw",
    "OISD NSFW",
    "adult",
    "https://nsfw.oisd.nl/",
    "https://oisd.nl/",
    "all rights reserved",
    "",
    "Adult sites.",
  ],
  [
    "blp_porn",
    "Blocklist Project porn",
    "adult",
    `${BLOCKLIST_PROJECT}/porn.txt`,
    BLOCKLIST_PROJECT_HOME,
    "Unlicense",
    "f",
    "Adult sites; large.",
  ],
  [
    "hagezi_gambling",
    "HaGeZi Gambling",
    "gambling",
    `${HAGEZI}/gambling.txt`,
    HAGEZI_HOME,
    NOT_STATED,
    "f",
    "Gambling and betting.",
  ],
  [
    "stevenblack_social",
    "StevenBlack social",
    "social",
    `${STEVENBLACK}/alternates/social-only/hosts`,
    STEVENBLACK_HOME,
    "MIT",
    "",
    "Social networks.",
  ],
];

/** The recommended lists, 36 of them. */
export const RECOMMENDED: readonly RecommendedList[] = ROWS.map(
  ([id, name, category, url, homepage, licence, presets, description]) => ({
    id,
    name,
    description,
    category,
    url,
    homepage,
    licence,
    nonCommercial: NON_COMMERCIAL.test(licence),
    presets: PRESETS.filter((preset) => presets.includes(preset.id[0])).map((preset) => preset.id),
  }),
);
