// A desktop of its own for the real app: a screen nobody sees, a window manager, a session bus, a keychain.
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { start } from "./processes.mjs";
import { until } from "./wait.mjs";

/** Starts one. `keychain: false` leaves the keychain out. `env` is what a program needs to run on it. */
export async function openDesktop({ keychain = true, size = "1280x900" } = {}) {
  const home = mkdtempSync(join(tmpdir(), "parley-desktop-"));
  const runtime = join(home, "run");
  mkdirSync(runtime, { mode: 0o700 });
  const started = [];
  const run = (program, args, options) => {
    const made = start(program, args, { env, ...options });
    started.push(made);
    return made;
  };
  // Nothing of the caller's desktop gets in.
  const env = { PATH: process.env.PATH, LANG: "C.UTF-8", HOME: home, XDG_RUNTIME_DIR: runtime, GTK_A11Y: "none", NO_AT_BRIDGE: "1" };
  try {
    const screen = run("Xvfb", ["-displayfd", "3", "-screen", "0", `${size}x24`, "-nolisten", "tcp"], { stdio: ["ignore", "pipe", "pipe", "pipe"] });
    env.DISPLAY = `:${await screen.line(/^\d+$/)}`;
    const bus = run("dbus-daemon", ["--session", "--nofork", "--nopidfile", "--print-address=1"]);
    env.DBUS_SESSION_BUS_ADDRESS = await bus.line(/^unix:/);
    run("openbox", []);
    if (keychain) {
      const daemon = run("gnome-keyring-daemon", ["--foreground", "--unlock", "--components=secrets"]);
      daemon.child.stdin.end("\n");
      await until("the keychain on the bus", async () => {
        const ask = start("dbus-send", ["--session", "--print-reply", "--dest=org.freedesktop.DBus", "/", "org.freedesktop.DBus.NameHasOwner", "string:org.freedesktop.secrets"], { env });
        await ask.ended;
        return ask.lines.some((line) => line.includes("boolean true"));
      });
    }
  } catch (error) {
    await close();
    throw error;
  }
  async function close() {
    for (const made of started.reverse()) await made.stop();
    rmSync(home, { recursive: true, force: true });
  }
  return { env, home, close };
}
