// A small WebDriver client, and the page as tests speak of it: by `data-testid`.
import { writeFileSync } from "node:fs";
import { freePort, gone, start, tree } from "./processes.mjs";
import { until } from "./wait.mjs";

const ELEMENT = "element-6066-11e4-a52e-4f735466cecf";
export const ENTER = "\uE007";
export const CONTROL = "\uE009";

/** Opens `binary` in a window that can be driven. `env` is all the environment it gets. */
export async function drive(binary, env) {
  const port = await freePort();
  // Without the variable the app opens but is not driven, and the session never begins.
  const driver = start("WebKitWebDriver", [`--port=${port}`, "--host=127.0.0.1"], { env: { ...env, TAURI_WEBVIEW_AUTOMATION: "true" } });
  const call = async (method, path, body) => {
    const answer = await fetch(`http://127.0.0.1:${port}${path}`, {
      method,
      headers: { "content-type": "application/json" },
      body: body === undefined ? undefined : JSON.stringify(body),
      signal: AbortSignal.timeout(30_000),
    });
    const { value } = await answer.json();
    if (!answer.ok) throw new Error(`${method} ${path}: ${value?.error}: ${value?.message}`);
    return value;
  };
  try {
    await until("WebKitWebDriver", async () => (await call("GET", "/status")).ready);
    const options = { "webkitgtk:browserOptions": { binary, args: [] } };
    const { sessionId } = await call("POST", "/session", { capabilities: { alwaysMatch: options } });
    return new Page(driver, call, `/session/${sessionId}`);
  } catch (error) {
    await driver.stop();
    throw new Error(`${error.message}\n${driver.lines.join("\n")}`);
  }
}

/** `send` → the element with that id; anything with a bracket, dot or blank is taken as CSS. */
export const css = (name) => (/[\s.[\]#>:]/.test(name) ? name : `[data-testid="${name}"]`);

class Page {
  constructor(driver, call, session) {
    this.driver = driver;
    this.call = (method, path, body) => call(method, session + path, body);
  }
  /** The id of the driver's process; the app is below it. */
  get pid() {
    return this.driver.pid;
  }
  run(script, ...args) {
    return this.call("POST", "/execute/sync", { script, args });
  }
  async all(name) {
    const found = await this.call("POST", "/elements", { using: "css selector", value: css(name) });
    return found.map((one) => one[ELEMENT]);
  }
  async count(name) {
    return (await this.all(name)).length;
  }
  /** The last one of that name: the newest, in a chat. Waits for it. */
  async find(name, limit) {
    return until(`${name} on the page`, async () => (await this.all(name)).at(-1), limit);
  }
  async text(name) {
    return this.run("return arguments[0].textContent", { [ELEMENT]: await this.find(name) });
  }
  async attr(name, attribute) {
    return this.call("GET", `/element/${await this.find(name)}/attribute/${attribute}`);
  }
  async value(name) {
    return this.call("GET", `/element/${await this.find(name)}/property/value`);
  }
  /** Clicks it as soon as it can be clicked. */
  async click(name, limit) {
    await until(`a click on ${name}`, async () => {
      const id = (await this.all(name)).at(-1);
      if (!id || !(await this.call("GET", `/element/${id}/enabled`))) return false;
      await this.call("POST", `/element/${id}/click`, {});
      return true;
    }, limit);
  }
  async type(name, text) {
    await this.call("POST", `/element/${await this.find(name)}/value`, { text });
  }
  /** Until the last `name` has this text (a string in it, or a pattern). */
  see(name, text, limit) {
    const fits = (seen) => (text instanceof RegExp ? text.test(seen) : seen.includes(text));
    return until(`${name} with ${text}`, async () => {
      const id = (await this.all(name)).at(-1);
      return id && fits(await this.run("return arguments[0].textContent", { [ELEMENT]: id }));
    }, limit);
  }
  /** Until something matches. */
  has(selector, limit) {
    return this.find(selector, limit);
  }
  /** Until nothing matches any more. */
  hasNot(selector, limit) {
    return until(`no ${selector}`, async () => (await this.count(selector)) === 0, limit);
  }
  async shot(file) {
    writeFileSync(file, Buffer.from(await this.call("GET", "/screenshot"), "base64"));
  }
  /** Ends the app as a person's session does, with TERM, sees that all of it ends, then the driver. */
  async close() {
    const below = tree(this.pid).filter(({ pid }) => pid !== this.pid);
    for (const { pid } of below.filter(({ parent }) => parent === this.pid)) process.kill(pid, "SIGTERM");
    try {
      await gone(below);
    } finally {
      await this.driver.stop();
    }
  }
}
