import { useSignal } from "@preact/signals";
import { call } from "../data/api.ts";
import { keptOf, remove, useCollection } from "../data/collections.ts";
import { isAdmin, me } from "../data/session.ts";
import type { Resource, Specs } from "../data/types.ts";
import { Button, CopyLine, Empty, Name, PageHead, Popover, Tag } from "../parts/basics.tsx";
import { AddButton, Collected, ResourceDialog } from "../parts/collection.tsx";
import { Check, Field, Select, TextField } from "../parts/controls.tsx";
import { confirm, Dialog } from "../parts/dialog.tsx";
import { attempt } from "../parts/errors.tsx";
import { moment } from "../parts/format.ts";
import { NewPassword } from "../parts/new_password.tsx";
import { Qr } from "../parts/qr.tsx";
import { Table } from "../parts/table.tsx";
import { toast } from "../parts/toasts.tsx";
import { t } from "../text/mod.ts";

type User = Resource<"users">;
interface Link {
  readonly url: string;
  readonly expires_at: string;
}

const NEW: Specs["users"] = { name: "", role: "viewer", disabled: false, password: "" };

export default function Users() {
  const users = useCollection("users");
  const editing = useSignal<User | "new" | null>(null);
  const link = useSignal<(Link & { name: string }) | null>(null);
  return (
    <>
      <PageHead title={t.pages.users} lead={t.users.lead}>
        <AddButton label={t.users.add} onClick={() => editing.value = "new"} />
      </PageHead>
      <Collected of={users}>
        {(items) =>
          items.length === 0
            ? (
              <Empty text={t.users.empty} icon="user-round">
                {isAdmin.value && <a class="button primary" href="/setup">{t.shell.setUp}</a>}
              </Empty>
            )
            : (
              <Table
                caption={t.pages.users}
                rows={items}
                keyOf={({ id }) => id}
                isMuted={({ spec }) => spec.disabled}
                columns={[
                  {
                    key: "name",
                    title: t.common.name,
                    card: "title",
                    sort: ({ spec }) => spec.name,
                    cell: ({ spec }) => (
                      <span class="line">
                        <Name text={spec.name} />
                        {spec.name === me.value?.name && <Tag kind="accent">{t.users.you}</Tag>}
                        {spec.disabled && <Tag kind="warning">{t.users.disabled}</Tag>}
                      </span>
                    ),
                  },
                  {
                    key: "role",
                    title: t.users.role,
                    sort: ({ spec }) => spec.role,
                    cell: ({ spec }) => t.users.roles[spec.role],
                  },
                  {
                    key: "otp",
                    title: t.users.otp,
                    cell: ({ spec }) =>
                      spec.otp
                        ? <Tag kind="ok" icon="shield-check">{t.common.on}</Tag>
                        : <Tag>{t.common.off}</Tag>,
                  },
                  {
                    key: "actions",
                    title: t.common.actions,
                    hideTitle: true,
                    cell: (user) =>
                      isAdmin.value && (
                        <UserMenu
                          user={user}
                          onEdit={() => editing.value = user}
                          onLink={(made) => link.value = { ...made, name: user.spec.name }}
                        />
                      ),
                  },
                ]}
              />
            )}
      </Collected>
      {editing.value !== null && (
        <UserDialog
          resource={editing.value === "new" ? null : editing.value}
          onClose={() => editing.value = null}
        />
      )}
      {link.value !== null && <LinkDialog link={link.value} onClose={() => link.value = null} />}
    </>
  );
}

function UserMenu(
  { user, onEdit, onLink }: { user: User; onEdit: () => void; onLink: (link: Link) => void },
) {
  const { id, spec } = user;
  const reset = () => attempt(async () => onLink(await call<Link>("POST", `users/${id}/reset`)));
  const dropOtp = async () => {
    if (!await confirm(t.users.dropOtp, t.users.dropOtpText(spec.name), t.users.dropOtp)) return;
    await attempt(async () => {
      await call("POST", `users/${id}/otp/disable`);
      await keptOf("users").load();
      toast(t.users.otpDropped(spec.name));
    });
  };
  const drop = async () => {
    if (!await confirm(t.users.remove(spec.name), t.users.removeText, t.common.remove)) return;
    await attempt(() => remove("users", user, { said: t.common.removed(spec.name) }));
  };
  return (
    <span class="cell-actions">
      <Button
        small
        kind="quiet"
        iconOnly
        icon="pencil"
        label={`${t.common.edit}: ${spec.name}`}
        onClick={onEdit}
      />
      <Popover small kind="quiet" iconOnly icon="ellipsis" label={`${t.common.more}: ${spec.name}`}>
        {(close) => (
          <div class="menu">
            <button type="button" onClick={() => (close(), void reset())}>
              {t.users.resetLink}
            </button>
            {spec.otp && (
              <button type="button" onClick={() => (close(), void dropOtp())}>
                {t.users.dropOtp}
              </button>
            )}
            <button type="button" onClick={() => (close(), void drop())}>{t.common.remove}</button>
          </div>
        )}
      </Popover>
    </span>
  );
}

function UserDialog({ resource, onClose }: { resource: User | null; onClose: () => void }) {
  return (
    <ResourceDialog
      title={resource === null ? t.users.add : t.users.edit}
      collection="users"
      resource={resource}
      initial={NEW}
      nameOf={({ name }) => name}
      onClose={onClose}
    >
      {({ value, set, problem }) => (
        <>
          <TextField
            label={t.common.name}
            error={problem("name")}
            autocomplete="off"
            value={value.name}
            onText={(name) => set({ name })}
          />
          <Field label={t.users.role} hint={t.users.roleHints[value.role]}>
            {(ids) => (
              <Select
                {...ids}
                value={value.role}
                onChange={(role) => set({ role })}
                choices={(["viewer", "admin"] as const).map((role) => ({
                  value: role,
                  label: t.users.roles[role],
                }))}
              />
            )}
          </Field>
          <NewPassword
            label={resource === null ? t.signIn.password : t.signIn.newPassword}
            {...(resource !== null && { hint: t.users.passwordStays, optional: true })}
            value={value.password ?? ""}
            onInput={(password) => set({ password })}
            error={problem("password")}
          />
          {resource !== null && (
            <Check
              isOn={value.disabled}
              label={t.users.disable}
              onChange={(disabled) => set({ disabled })}
            />
          )}
        </>
      )}
    </ResourceDialog>
  );
}

function LinkDialog({ link, onClose }: { link: Link & { name: string }; onClose: () => void }) {
  const url = new URL(link.url, location.origin).href;
  return (
    <Dialog title={t.users.linkFor(link.name)} onClose={onClose}>
      <p>{t.users.linkText(moment(new Date(link.expires_at)))}</p>
      <CopyLine label="" text={url} />
      <Qr text={url} label={t.users.linkFor(link.name)} />
    </Dialog>
  );
}
