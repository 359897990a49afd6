import { change, keptOf } from "../data/collections.ts";
import { isReadOnly } from "../data/node.ts";
import { isAdmin } from "../data/session.ts";
import type { Resource } from "../data/types.ts";
import { t } from "../text/mod.ts";
import { Button, Empty, Name } from "./basics.tsx";
import { attempt } from "./errors.tsx";
import { DEFAULT_GROUP } from "./names.ts";
import { Picker } from "./picker.tsx";
import { Pieces } from "./pieces.tsx";

/** Who is in a group. */
export function GroupClients(
  { group: { id, spec }, members }: {
    group: Resource<"groups">;
    members: readonly Resource<"clients">[];
  },
) {
  const others = (keptOf("clients").items.value ?? []).filter((one) => one.spec.group !== id);
  const move = (client: string, name: string, group: string, groupName: string) =>
    attempt(() =>
      change("clients", client, (one) => ({ ...one, group }), {
        said: t.clients.moved(name, groupName),
      })
    );
  return (
    <>
      {isAdmin.value && others.length > 0 && (
        <div class="toolbar">
          <Picker
            label={t.groups.addClient}
            placeholder={t.groups.addClient}
            value=""
            options={others.map((one) => ({
              value: one.id,
              label: one.spec.name,
              more: [...one.spec.addresses, ...one.spec.ids][0] ?? "",
            }))}
            onPick={(client) => {
              const found = others.find((one) => one.id === client);
              if (found !== undefined) void move(client, found.spec.name, id, spec.name);
            }}
          />
        </div>
      )}
      {members.length === 0
        ? (
          <Empty
            text={id === DEFAULT_GROUP ? t.groups.defaultClients : t.groups.noClients}
            icon="monitor-smartphone"
          />
        )
        : (
          <Pieces of={members}>
            {(some) => (
              <ul class="rows card">
                {some.map((client) => (
                  <li key={client.id}>
                    <div class="row-flat">
                      <span class="row-main">
                        <a class="plain-link" href={`/clients/${client.id}`}>
                          <Name text={client.spec.name} />
                        </a>
                        <span class="muted small mono">
                          {[...client.spec.addresses, ...client.spec.ids].join(", ")}
                        </span>
                      </span>
                      {isAdmin.value && id !== DEFAULT_GROUP && (
                        <Button
                          small
                          kind="quiet"
                          iconOnly
                          icon="x"
                          label={t.groups.removeClient(client.spec.name)}
                          disabled={isReadOnly.value}
                          onClick={() =>
                            void move(
                              client.id,
                              client.spec.name,
                              DEFAULT_GROUP,
                              keptOf("groups").byId.value.get(DEFAULT_GROUP)?.spec.name ?? "",
                            )}
                        />
                      )}
                    </div>
                  </li>
                ))}
              </ul>
            )}
          </Pieces>
        )}
    </>
  );
}
