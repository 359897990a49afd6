import { useSignal } from "@preact/signals";
import { call } from "../data/api.ts";
import { keptOf } from "../data/collections.ts";
import { isReadOnly } from "../data/node.ts";
import { isAdmin, me } from "../data/session.ts";
import type { Resource, Specs } from "../data/types.ts";
import { Popover, Tag } from "../parts/basics.tsx";
import { Check } from "../parts/controls.tsx";
import { confirm } from "../parts/dialog.tsx";
import { attempt } from "../parts/errors.tsx";
import { moment } from "../parts/format.ts";
import { NewPassword } from "../parts/new_password.tsx";
import { Qr } from "../parts/qr.tsx";
import { ResourcePage, RoleField, ShownOnce } from "../parts/resource_page.tsx";
import { toast } from "../parts/toasts.tsx";
import { t } from "../text/mod.ts";

type User = Resource<"users">;
interface Link {
  readonly url: string;
  readonly expires_at: string;
}

const NEW: Specs["users"] = { name: "", role: "viewer", disabled: false, password: "" };

export default function Users() {
  const link = useSignal<(Link & { name: string }) | null>(null);
  return (
    <>
      <ResourcePage
        collection="users"
        words={t.users}
        icon="user-round"
        initial={NEW}
        isMuted={({ disabled }) => disabled}
        tags={({ name, disabled }) => (
          <>
            {name === me.value?.name && <Tag kind="accent">{t.users.you}</Tag>}
            {disabled && <Tag kind="warning">{t.users.disabled}</Tag>}
          </>
        )}
        columns={[
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
        ]}
        more={(user) => (
          <UserMenu
            user={user}
            onLink={(made) => link.value = { ...made, name: user.spec.name }}
          />
        )}
        fields={({ value, set, problem }, resource) => (
          <>
            <RoleField
              hint={t.users.roleHints[value.role]}
              value={value.role}
              onChange={(role) => set({ role })}
            />
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
        whereEmpty={isAdmin.value && <a class="button primary" href="/setup">{t.shell.setUp}</a>}
      />
      {link.value !== null && <LinkDialog link={link.value} onClose={() => link.value = null} />}
    </>
  );
}

/** What lets somebody in again who can't come in. */
function UserMenu({ user: { id, spec }, onLink }: { user: User; onLink: (link: Link) => void }) {
  const reset = () => attempt(async () => onLink(await call<Link>("POST", `users/${id}/reset`)));
  const dropOtp = async () => {
    if (!await confirm(t.users.dropOtp, t.users.dropOtpText(spec.name), t.users.dropOtp)) return;
    await attempt(async () => {
      await call("POST", `users/${id}/otp/disable`);
      await keptOf("users").load();
      toast(t.users.otpDropped(spec.name));
    });
  };
  return (
    <Popover
      small
      kind="quiet"
      iconOnly
      icon="ellipsis"
      label={`${t.common.more}: ${spec.name}`}
      disabled={isReadOnly.value}
    >
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
        </div>
      )}
    </Popover>
  );
}

function LinkDialog({ link, onClose }: { link: Link & { name: string }; onClose: () => void }) {
  const url = new URL(link.url, location.origin).href;
  return (
    <ShownOnce
      title={t.users.linkFor(link.name)}
      text={t.users.linkText(moment(new Date(link.expires_at)))}
      secret={url}
      onClose={onClose}
    >
      <Qr text={url} label={t.users.linkFor(link.name)} />
    </ShownOnce>
  );
}
