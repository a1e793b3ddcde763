import { screen } from "@testing-library/svelte";
import userEvent from "@testing-library/user-event";
import { describe, expect, it } from "vitest";
import type { Action } from "@/contract/index.ts";
import { appError, conversation, item, turn } from "../../tests/fixtures.ts";
import { expectAccessible, openPage, settle } from "../../tests/onePage.ts";
import { pagesHost } from "../../tests/pages.ts";
import { act, canAct } from "./act.ts";
import Notices from "./Notices.svelte";

const broken = appError({
  code: "config.broken",
  params: { file: "mcp.json", line: 12 },
  cause: "expected `,` at line 12 column 3",
  actions: [{ type: "openFile", path: "/home/mira/.parley/mcp.json", line: 12 }],
});

describe.each(["en", "zh-CN"] as const)("what is wrong with the app in %s", (language) => {
  it("stands there with its button, accessible", async () => {
    const host = pagesHost({ notices: [broken] });
    const { container } = await openPage(Notices, host, { language });
    await expectAccessible(container);
    await userEvent.click(screen.getAllByTestId("error-action")[0]!);
    expect(host.callsOf("file_open")).toEqual([{ path: "/home/mira/.parley/mcp.json" }]);
  });
});

it("can be hidden, and comes back as news", async () => {
  const host = pagesHost({ notices: [broken] });
  await openPage(Notices, host);
  await userEvent.click(screen.getByRole("button", { name: "Hide" }));
  expect(screen.queryByTestId("error")).toBeNull();
  host.emit({ type: "noticesChanged", notices: [] });
  await settle();
  host.emit({ type: "noticesChanged", notices: [broken] });
  await settle();
  expect(screen.getByTestId("error").dataset.code).toBe("config.broken");
});

it("gives the place that nothing opens for copying, whole", async () => {
  const place = `/home/mira/${"a long way down/".repeat(20)}mcp.json`;
  const host = pagesHost({ notices: [broken] });
  host.answers.file_open = () => Promise.reject(appError({ code: "desktop.cannot_open", params: { place }, cause: "no launcher", actions: [] }));
  const user = userEvent.setup();
  await openPage(Notices, host);
  await user.click(screen.getAllByTestId("error-action")[0]!);
  await settle();
  expect(screen.getByRole("alert")).toHaveTextContent(`Nothing on this computer opens “mcp.json”. You find it here: ${place}`);
  await user.click(screen.getByRole("button", { name: "Copy path" }));
  expect(await navigator.clipboard.readText()).toBe(place);
});

it("says that the engine cannot be heard, until it can", async () => {
  const host = pagesHost();
  const { app } = await openPage(Notices, host);
  app.lost = appError({ code: "internal", params: {}, actions: [{ type: "retry" }] });
  await settle();
  await userEvent.click(screen.getByRole("button", { name: "Try again" }));
  await settle();
  expect(screen.queryByTestId("error")).toBeNull();
});

describe("a button beside an error", () => {
  async function inChat() {
    const host = pagesHost({ turns: [turn("c1", "failed", appError())] });
    host.answers.conversation_open = () => ({ conversation: conversation("c1", "x"), items: [item("c1", 1, { kind: "user", text: "hi" })], earlier: null, turn: null });
    const { app } = await openPage(Notices, host, { page: "chat" });
    await app.open("c1");
    return { host, app };
  }

  it("tries the answer again, or goes on with it, in its chat", async () => {
    const { host, app } = await inChat();
    await act(app, { type: "retry" }, {});
    await act(app, { type: "continue" }, {});
    expect(host.callsOf("turn_retry")).toEqual([{ conversationId: "c1", continue: false }, { conversationId: "c1", continue: true }]);
  });

  it("answers with another model at once where the answer failed", async () => {
    const { host, app } = await inChat();
    await act(app, { type: "useModel", model: "deepseek" }, {});
    expect(host.callsOf("model_use")).toEqual([{ id: "deepseek" }]);
    expect(host.callsOf("turn_retry")).toEqual([{ conversationId: "c1", continue: false }]);
  });

  it("leads to the page that mends it", async () => {
    const { app } = await inChat();
    await act(app, { type: "checkKey", model: "deepseek" }, {});
    expect(app.page).toBe("models");
    await act(app, { type: "showLog", server: "notes" }, {});
    expect(app.page).toBe("connections");
    expect(app.spotlight).toEqual({ server: "notes", log: true });
    await act(app, { type: "openPage", page: "settings" }, {});
    expect(app.page).toBe("settings");
  });

  it("picks a folder, or leads to where one is written", async () => {
    const { host, app } = await inChat();
    await act(app, { type: "chooseFolder", server: "files" }, {});
    expect(host.callsOf("root_pick")).toEqual([{ server: "files" }]);
    host.snapshot = { ...host.snapshot, app: { version: "0", picksFolders: false } };
    await app.start();
    await act(app, { type: "chooseFolder", server: "files" }, {});
    expect(app.spotlight).toEqual({ server: "files", log: false });
  });

  it("gives the error of what it could not do", async () => {
    const { host, app } = await inChat();
    host.answers.root_remove = () => {
      throw appError({ code: "storage.full" });
    };
    expect((await act(app, { type: "removeFolder", server: "files", path: "/x" }, {}))?.code).toBe("storage.full");
  });

  it("is not drawn where it would do nothing", async () => {
    const { app } = await inChat();
    app.go("permissions");
    const can = (action: Action) => canAct(app, action, {});
    expect(can({ type: "retry" })).toBe(false);
    expect(can({ type: "continue" })).toBe(false);
    expect(can({ type: "waitUntil", at: 0 })).toBe(false);
    expect(canAct(app, { type: "retry" }, { retry: () => {} })).toBe(true);
    expect(can({ type: "showLog", server: "s" })).toBe(true);
  });
});
