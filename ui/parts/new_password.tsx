import { t } from "../text/mod.ts";
import { Field } from "./controls.tsx";

export const PASSWORD_LENGTH_MIN = 8;

/** A password to be; shown, where one wants to see it, by the browser's own means. */
export function NewPassword(
  { value, onInput, error, label, hint, optional = false }: {
    value: string;
    onInput: (text: string) => void;
    error?: string | undefined;
    label?: string;
    hint?: string;
    optional?: boolean;
  },
) {
  return (
    <Field
      label={label ?? t.signIn.newPassword}
      hint={hint ?? t.signIn.passwordHint(PASSWORD_LENGTH_MIN)}
      error={error}
      optional={optional}
    >
      {(ids) => (
        <input
          {...ids}
          type="password"
          autocomplete="new-password"
          value={value}
          onInput={(event) => onInput(event.currentTarget.value)}
        />
      )}
    </Field>
  );
}
