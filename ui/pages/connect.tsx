/** What is typed into which device, ready to be copied or scanned. */
import { useSignal } from "@preact/signals";
import { call, get } from "../data/api.ts";
import { change, useCollection } from "../data/collections.ts";
import { isReadOnly, plainAddresses, status } from "../data/node.ts";
import { useLoaded } from "../data/poll.ts";
import { isAdmin } from "../data/session.ts";
import type { EntryPage } from "../data/types.ts";
import { Button, Card, CopyLine, Name, PageHead } from "../parts/basics.tsx";
import { clientOptions } from "../parts/choices.ts";
import { Field, Segmented } from "../parts/controls.tsx";
import { attempt, sayError } from "../parts/errors.tsx";
import { Picker } from "../parts/picker.tsx";
import { Qr } from "../parts/qr.tsx";
import { param, setParams } from "../router.ts";
import { t } from "../text/mod.ts";

const SYSTEMS = ["router", "android", "apple", "windows", "linux", "browser"] as const;
type System = typeof SYSTEMS[number];
const POLL_MS = 2_000;

/** Where this node is asked, and how. */
function placesOf(clientId: string | null) {
  const { listeners = [], encrypted } = status.value ?? {};
  const has = (protocol: string) => listeners.some((one) => one.protocol === protocol);
  const portOf = (protocol: string, usual: string) => {
    const port = listeners.find((one) => one.protocol === protocol)?.address.replace(/^.*:/, "");
    return port === undefined || port === usual ? "" : `:${port}`;
  };
  const name = encrypted?.server_name ?? null;
  const host = name === null ? null : clientId === null ? name : `${clientId}.${name}`;
  return {
    plain: plainAddresses.value,
    plainPort: portOf("udp", "53"),
    dot: host !== null && has("dot") ? host + portOf("dot", "853") : null,
    doq: host !== null && has("doq") ? `quic://${host}${portOf("doq", "853")}` : null,
    doh: name !== null && has("doh")
      ? `https://${name}${portOf("doh", "443")}/dns-query${clientId === null ? "" : `/${clientId}`}`
      : null,
  };
}
type Places = ReturnType<typeof placesOf>;

export default function Connect() {
  const clients = useCollection("clients");
  const system = SYSTEMS.find((one) => one === param("system")) ?? "router";
  const client = clients.byId.value.get(param("client")) ?? null;
  const id = client?.spec.ids[0] ?? null;
  const places = placesOf(id);
  const suggestion = (client?.spec.name ?? "").toLowerCase().normalize("NFKD")
    .replace(/[^a-z0-9]+/g, "-").replace(/^-+|-+$/g, "").slice(0, 63);
  const addId = () =>
    change("clients", client!.id, (spec) => ({ ...spec, ids: [...spec.ids, suggestion] }), {
      said: t.common.saved(client!.spec.name),
    });
  return (
    <>
      <PageHead title={t.pages.connect} lead={t.connect.lead} />
      <Segmented
        label={t.connect.system}
        value={system}
        onChange={(value) => setParams({ system: value })}
        wrap
        choices={SYSTEMS.map((value) => ({ value, label: t.connect.systems[value] }))}
      />
      <div class="grid connect section">
        <Card title={t.connect.systems[system]}>
          <Steps system={system} places={places} clientId={id} />
        </Card>
        <div class="stack">
          <Card title={t.connect.who}>
            <Field label={t.connect.client} hint={t.connect.clientHint} optional>
              {(ids) => (
                <Picker
                  ids={ids}
                  value={param("client")}
                  options={[{ value: "", label: t.connect.anybody }, ...clientOptions()]}
                  onPick={(value) => setParams({ client: value })}
                />
              )}
            </Field>
            {client !== null && id === null && isAdmin.value && suggestion !== "" && (
              <Button
                class="section"
                label={t.connect.addId(suggestion)}
                disabled={isReadOnly.value}
                onClick={() => void attempt(addId)}
              />
            )}
          </Card>
          <Card title={t.connect.works}>
            <Arrival />
          </Card>
        </div>
      </div>
    </>
  );
}

function Steps(
  { system, places, clientId }: { system: System; places: Places; clientId: string | null },
) {
  const { plain, plainPort, dot, doh, doq } = places;
  const addresses = plain.map((address) => (
    <CopyLine
      key={address}
      label={address.includes(":") ? "IPv6" : "IPv4"}
      text={address}
    />
  ));
  const needsTls = <p class="muted">{t.connect.needsTls}</p>;
  const text = t.connect.steps[system];
  const encrypted = {
    router: null,
    android: dot === null ? needsTls : (
      <>
        <CopyLine label={t.connect.hostname} text={dot.replace(/:\d+$/, "")} />
        <Qr text={dot.replace(/:\d+$/, "")} label={t.connect.hostname} />
      </>
    ),
    apple: doh === null && dot === null
      ? needsTls
      : <AppleProfile clientId={clientId} isDoh={doh !== null} />,
    windows: doh === null ? needsTls : <CopyLine label="DoH" text={doh} />,
    linux: dot === null && doq === null ? needsTls : (
      <>
        {dot !== null && <CopyLine label="DoT" text={`DNS=${plain[0]}#${dot}`} />}
        {doq !== null && <CopyLine label="DoQ" text={doq} />}
      </>
    ),
    browser: doh === null ? needsTls : <CopyLine label="DoH" text={doh} />,
  }[system];
  return (
    <div class="form">
      <ol class="how">{text.map((line, i) => <li key={i}>{line}</li>)}</ol>
      {encrypted}
      {system !== "browser" && system !== "android" && (
        <>
          <h3>{t.connect.plain}</h3>
          {addresses}
          {plainPort !== "" && <p class="problem">{t.setup.port(plainPort.slice(1))}</p>}
        </>
      )}
    </div>
  );
}

/** A profile that a phone loads by its camera; the link is open for an hour. */
function AppleProfile({ clientId, isDoh }: { clientId: string | null; isDoh: boolean }) {
  const url = useSignal<string | null>(null);
  const make = async () => {
    try {
      const made = await call<{ url: string }>("POST", "profiles", {
        body: {
          protocol: isDoh ? "doh" : "dot",
          ...(clientId !== null && { client_id: clientId }),
        },
      });
      url.value = new URL(made.url, location.origin).href;
    } catch (error) {
      sayError(error);
    }
  };
  if (!isAdmin.value) return <p class="muted">{t.connect.adminMakes}</p>;
  if (url.value === null) {
    return <Button kind="primary" icon="download" label={t.connect.makeProfile} onClick={make} />;
  }
  return (
    <>
      <p>{t.connect.profileText}</p>
      <Qr text={url.value} label={t.connect.makeProfile} />
      <CopyLine label="" text={url.value} />
      <a class="button plain" href={url.value} download>{t.connect.download}</a>
    </>
  );
}

/** Tells when somebody asks who was not there before. */
function Arrival() {
  const since = useSignal(new Date().toISOString());
  const latest = useLoaded(
    async (signal) => ({
      entry:
        (await get<EntryPage>("querylog", { since: since.value, limit: 1 }, signal)).entries[0] ??
          null,
    }),
    [],
    POLL_MS,
  );
  const entry = latest.data.value?.entry ?? null;
  return (
    <div class={entry === null ? "waiting" : "waiting done"} role="status">
      {entry === null
        ? (
          <>
            <span class="pulse" aria-hidden="true" />
            <p>{t.setup.waiting}</p>
          </>
        )
        : (
          <p>
            <strong>{t.setup.firstQuery}</strong>{" "}
            <Name text={entry.client_name ?? entry.client ?? ""} /> {t.setup.askedFor}{" "}
            <Name text={entry.name} mono />
          </p>
        )}
    </div>
  );
}
