# Sourced behind find_deno.sh. `build_ui` builds the dashboard; `fresh_ui` does so where a source is
# newer than what was built, and goes on without where it can't.

build_ui() {
  "$deno" run --no-prompt --frozen --config "$root/deno.json" --allow-read --allow-write="$root/src/node" \
    --allow-run --allow-env "$root/scripts/build_ui.ts"
}

fresh_ui() {
  built=$root/src/node/ui.assets
  if [ -e "$built" ] && [ -z "$(find "$root/ui" "$root/deno.json" "$root/scripts/build_ui.ts" \
    -newer "$built" -print -quit)" ]; then
    return
  fi
  build_ui || echo 'dashboard: it could not be built; the service runs all the same' >&2
}
