# shellcheck shell=bash
# What ./run and ./test share: checking tools, installing what is missing, building. Sourced, not run.
# Everything here looks first and acts only on what is missing or out of date.

# What the window needs to be built, and llama.cpp with it.
build_packages=(libwebkit2gtk-4.1-dev libgtk-3-dev librsvg2-dev build-essential pkg-config file xdg-utils cmake clang libclang-dev curl unzip python3)
# What the tests need beside it: a screen, a window manager, a keychain, fonts, a driver for the window, a browser.
test_packages=(webkit2gtk-driver xvfb xauth openbox imagemagick x11-utils xdotool dbus gnome-keyring libsecret-tools fonts-dejavu-core fonts-noto-cjk libgl1-mesa-dri chromium)

say() { printf '%s\n' "== $*" >&2; }
fail() {
    printf '%s\n' "$@" >&2
    exit 1
}

# at_least HAVE WANT: both as 1.2.3
at_least() { [ "$(printf '%s\n%s\n' "$2" "$1" | sort -V | head -1)" = "$2" ]; }

need_rust() {
    local have
    command -v cargo >/dev/null || fail "Rust is missing. Get it from https://rustup.rs (1.95 or newer), open a new terminal and try again."
    have=$(cargo --version | awk '{print $2}')
    at_least "$have" 1.95.0 || fail "Rust $have is too old, 1.95 or newer is needed. With rustup: rustup update stable"
}

need_node() {
    local have
    command -v node >/dev/null && command -v npm >/dev/null ||
        fail "Node.js is missing. Get version 20.19 or newer from https://nodejs.org (Debian 12's own is too old) and try again."
    have=$(node --version)
    at_least "${have#v}" 20.19.0 || fail "Node.js $have is too old, 20.19 or newer is needed: https://nodejs.org"
}

# need_packages WHY PACKAGE…: installs those that are missing.
need_packages() {
    local why=$1 missing=() package root=()
    shift
    if ! command -v dpkg-query >/dev/null; then
        say "This is no Debian or Ubuntu: please see to it yourself that these or their like are installed: $*"
        return
    fi
    for package in "$@"; do
        dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'install ok installed' || missing+=("$package")
    done
    [ ${#missing[@]} -eq 0 ] && return
    say "Installing what $why needs: ${missing[*]}"
    if [ "$(id -u)" -ne 0 ]; then
        command -v sudo >/dev/null || fail "That needs an administrator. As root, run:" "    apt-get install --no-install-recommends ${missing[*]}"
        root=(sudo)
    fi
    # The lists may be old or absent; fetch them only if it does not work without.
    local install=("${root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300 install -y --no-install-recommends "${missing[@]}")
    "${install[@]}" >/dev/null 2>&1 || { "${root[@]}" apt-get update >&2 && "${install[@]}" >&2; } ||
        fail "The packages could not be installed (see above). Mend that, then try again; nothing is done twice."
}

# need_npm FOLDER: installs the packages of its lock file when that changed.
need_npm() {
    local stamp="$1/node_modules/.lock-installed"
    cmp -s "$1/package-lock.json" "$stamp" && return
    say "Installing the npm packages of $1"
    npm ci --prefix "$1" --no-audit --no-fund >&2 || fail "npm could not install the packages of $1 (see above)."
    cp "$1/package-lock.json" "$stamp"
}

# need_python WHY REQUIREMENTS FOLDER: a Python of its own in FOLDER, with these packages, when the list changed.
need_python() {
    local why=$1 requirements=$2 folder=$3
    cmp -s "$requirements" "$folder/installed.txt" && return
    command -v python3 >/dev/null && python3 -c 'import ensurepip, sys; sys.exit(sys.version_info < (3, 10))' 2>/dev/null ||
        need_packages "$why" python3 python3-venv
    say "Installing $why"
    rm -rf "$folder"
    python3 -m venv "$folder" >&2 &&
        "$folder/bin/python" -m pip install --quiet --disable-pip-version-check --requirement "$requirements" >&2 ||
        fail "The Python packages could not be installed (see above). Python 3.10 or newer is needed."
    cp "$requirements" "$folder/installed.txt"
}

# The page, into ui/dist, when anything it is made of is newer than the last time.
build_ui() {
    local stamp=$target/ui-built
    if [ -f "$stamp" ] && [ -f ui/dist/index.html ] &&
        [ -z "$(find ui -path ui/node_modules -prune -o -path ui/dist -prune -o -path ui/src/paraglide -prune -o -type f -newer "$stamp" -print -quit)" ]; then
        return
    fi
    say "Building the page"
    mkdir -p "$target"
    touch "$stamp.new"
    npm --prefix ui run --silent build >&2 || fail "The page could not be built (see above)."
    mv "$stamp.new" "$stamp"
}

# The app, its helper programs and (small) the tests' peers: one set of packages always, so that cargo settles on
# one set of features and nothing is compiled twice.
build_programs() {
    say "Building the app (the first time takes some minutes)"
    cargo build --workspace --bins --exclude parley-interop >&2 || fail "The build failed (see above)."
}

# Where cargo puts things.
target=${CARGO_TARGET_DIR:-$PWD/target}
