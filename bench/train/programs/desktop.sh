# shellcheck shell=bash
# shellcheck disable=SC2154 # variables that collect sets
# Sourced by collect: browsers, editors and programs with windows.

# A network of its own has no way out: what browsers would fetch on their own is not fetched.
program_chromium() {
  start unshare --net chromium --headless=new --no-sandbox --disable-gpu --disable-dev-shm-usage \
    --disable-extensions --disable-breakpad --disable-background-networking --disable-component-update \
    --no-first-run --remote-debugging-port=9222 --window-size=1400,2000 \
    --user-data-dir="$work/home/chromium" "file://$data/chromium.html"
  wait_settled 150 50
  sample
}

program_firefox() {
  mkdir "$work/home/profile"
  cp "$here/workloads/firefox.js" "$work/home/profile/user.js"
  MOZ_CRASHREPORTER_DISABLE=1 start unshare --net firefox-esr --headless --no-remote \
    --profile "$work/home/profile" "file://$data/firefox.html"
  wait_settled 250 50
  sample
}

program_vim() {
  FOLDER=$data READY=$work/ready start vim -e -s -u NONE -i NONE -N -n -S "$here/workloads/vim.vim"
  wait_ready
  sample
}

program_emacs() {
  FOLDER=$data READY=$work/ready start emacs -Q --fg-daemon="train-$$" -l "$here/workloads/emacs.el"
  wait_ready
  sample
}

# The filter goes with the sheet alone: without it the import would ask for a separator, which ends a
# headless office that has no other document.
program_libreoffice() {
  start soffice --headless --norestore --nologo --nofirststartwizard \
    "-env:UserInstallation=file://$work/home/office" "$data/document.fodt" \
    --infilter=CSV:44,34,76,1 "$data/sheet.csv"
  wait_settled 120 55
  sample
}

# Sets DISPLAY.
start_display() {
  # launch gives no descriptor to what it starts: the number goes to the log.
  start_helper sh -c "exec Xvfb -displayfd 3 -screen 0 1600x1200x24 -nolisten tcp 3>'$work/home/display'"
  local end=$((SECONDS + 20))
  until [[ -s $work/home/display ]]; do
    ((SECONDS < end)) || skip "Xvfb did not start: $(tail -n 1 "$work/log")"
    sleep 0.1
  done
  DISPLAY=:$(<"$work/home/display")
  export DISPLAY NO_AT_BRIDGE=1 GDK_BACKEND=x11
}

program_inkscape() {
  start_display
  start inkscape "$data/drawing.svg"
  wait_settled 120 50
  sample
}

program_geany() {
  start_display
  head -c 1500000 "$data/source.txt" >"$work/home/headers.h"
  start geany --new-instance --no-terminal --config "$work/home/geany" "$work/home/headers.h" \
    "$data/source.c" "$data/source.cpp" "$data/source.rs" "$here/data.py" "$data/drawing.svg"
  wait_settled 60 40
  sample
}

program_gimp() {
  sed "s,FOLDER,$data,g; s,READY,$work/ready," "$here/workloads/gimp.scm" >"$work/home/script.scm"
  # Tiles in memory, not in a file.
  start gimp --no-interface --no-data --no-fonts --no-splash -c \
    -b "(load \"$work/home/script.scm\")"
  wait_ready
  sample
}
